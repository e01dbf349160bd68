//! A rolling deploy: two builds on one database at once, whose recipes or whose tables are of different versions.

use crate::fixture::{completion, draft, key, number, read, reserved, swap};
use crate::instance::{Instance, Request, answer, finish, replayed, request};
use semel::fingerprint::Recipe;
use semel::transition::{Claim, remark};
use semel::{
    Actor, Created, Decision, DueKind, DueQuery, Filter, Finish, Store, StoredResponse, Swap, Swapped,
};
use semel_postgres::{
    OpenError, PgOptions, PgStore, Reserved, act_in, migration_script, migrations, reserve_in,
};
use semel_testing::database::Database;
use sqlx::{AssertSqlSafe, PgPool, raw_sql};
use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::sync::Barrier;

/// The build before: everything of a request counts.
async fn before(database: &Database) -> Instance {
    Instance::open(&database.url()).await
}

/// The build after: the trace does not count any more.
async fn after(database: &Database) -> Instance {
    let recipe = Recipe::builder().command("create_payment/1").ignore("/trace").build().unwrap();
    Instance::deployed(PgOptions::new(), &database.url(), recipe).await
}

fn with(name: &'static str, value: &'static str) -> Request {
    let mut request = request();
    request.insert(name, value);
    request
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn each_build_compares_by_the_recipe_that_the_record_was_made_with() {
    let database = Database::new().await;
    let (old, new) = (before(&database).await, after(&database).await);

    let first = old.carry_out("made-by-the-old").await;
    assert_eq!(replayed(new.ask("made-by-the-old").await), first);
    let other_trace = new.ask_for("made-by-the-old", &with("trace", "two")).await.unwrap();
    assert!(matches!(other_trace, Decision::KeyReused { .. }), "the trace counted then: {other_trace:?}");

    let first = new.carry_out("made-by-the-new").await;
    for build in [&old, &new] {
        let other_trace = build.ask_for("made-by-the-new", &with("trace", "two")).await;
        assert_eq!(replayed(other_trace), first, "the trace does not count");
        let other_amount = build.ask_for("made-by-the-new", &with("amount", "99.00")).await.unwrap();
        assert!(matches!(other_amount, Decision::KeyReused { .. }), "{other_amount:?}");
    }
}

/// What everybody at once did.
#[derive(Default)]
struct Till {
    effects: Mutex<HashMap<String, u32>>,
    answers: Mutex<HashMap<String, Vec<StoredResponse>>>,
}

impl Till {
    /// Sends a request until it is answered.
    async fn insist(&self, instance: &Instance, name: &str) {
        let answer = loop {
            match instance.ask(name).await.unwrap() {
                Decision::Execute(ticket) => {
                    *self.effects.lock().unwrap().entry(name.to_owned()).or_default() += 1;
                    let answer = answer(&ticket);
                    let stored = finish(ticket, answer.clone()).await;
                    assert!(matches!(stored, Ok(Finish::Stored)), "{stored:?}");
                    break answer;
                }
                Decision::Replay(record) => break record.response.unwrap(),
                Decision::InProgress { .. } => tokio::task::yield_now().await,
                other => panic!("{name} was told {other:?}"),
            }
        };
        self.answers.lock().unwrap().entry(name.to_owned()).or_default().push(answer);
    }

    /// One effect for each operation, and one answer to all its requests.
    fn check(&self) -> usize {
        let (effects, answers) = (self.effects.lock().unwrap(), self.answers.lock().unwrap());
        for (name, answers) in answers.iter() {
            assert_eq!(effects[name], 1, "{name}");
            assert!(answers.iter().all(|answer| *answer == answers[0]), "{name}: {answers:?}");
        }
        effects.len()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn duplicates_that_meet_in_both_builds_have_one_effect() {
    const KEYS: usize = 20;
    const EACH: usize = 16;
    let database = Database::new().await;
    let builds = [before(&database).await, after(&database).await];
    let (till, together) = (Arc::new(Till::default()), Arc::new(Barrier::new(KEYS * EACH)));
    let requests: Vec<_> = (0..KEYS * EACH)
        .map(|number| {
            let (till, together) = (till.clone(), together.clone());
            let (instance, name) = (builds[number % 2].clone(), format!("meeting-{}", number / EACH));
            tokio::spawn(async move {
                together.wait().await;
                till.insist(&instance, &name).await;
            })
        })
        .collect();
    for request in requests {
        request.await.unwrap();
    }
    assert_eq!(till.check(), KEYS);
}

/// The next version of the tables, which only adds: this program can go on.
const ADDS: &str = "BEGIN;
ALTER TABLE semel_records ADD COLUMN region text COLLATE \"C\";
CREATE INDEX semel_records_region ON semel_records (region) WHERE region IS NOT NULL;
UPDATE semel_meta SET value = value + 1 WHERE name = 'schema_version';
COMMIT";

/// The version that this program knows.
fn known() -> i64 {
    migrations().last().unwrap().version
}

async fn run(db: &PgPool, sql: &'static str) {
    raw_sql(sql).execute(db).await.unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn instances_that_run_go_on_while_the_tables_grow_under_them() {
    let database = Database::new().await;
    let (builds, db) = ([before(&database).await, before(&database).await], database.pool().await);
    let (till, done) = (Arc::new(Till::default()), Arc::new(AtomicUsize::new(0)));
    let closing = Arc::new(AtomicBool::new(false));
    let clients: Vec<_> = (0..16)
        .map(|client: usize| {
            let (till, done, closing) = (till.clone(), done.clone(), closing.clone());
            let builds = builds.clone();
            tokio::spawn(async move {
                // Two clients to a key, one at each build.
                for count in 0.. {
                    if closing.load(SeqCst) {
                        return;
                    }
                    till.insist(&builds[client % 2], &format!("growing-{}-{count}", client / 2)).await;
                    done.fetch_add(1, SeqCst);
                }
            })
        })
        .collect();
    let get_on = async || {
        let enough = done.load(SeqCst) + 200;
        while done.load(SeqCst) < enough {
            assert!(clients.iter().all(|client| !client.is_finished()), "a client has failed");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    };
    get_on().await;
    run(&db, ADDS).await;
    get_on().await;
    closing.store(true, SeqCst);
    for client in clients {
        client.await.unwrap();
    }
    till.check();
}

#[tokio::test]
async fn every_call_of_a_running_instance_still_does_what_it_did() {
    let database = Database::new().await;
    let (instance, db) = (before(&database).await, database.pool().await);
    let store = &instance.store;
    // Before the step, so that every statement is prepared and planned for the tables as they were; and after it.
    for round in ["before", "after"] {
        let name = |what: &str| format!("{what}-{round}");
        let first = instance.carry_out(&name("whole")).await;
        assert_eq!(replayed(instance.ask(&name("whole")).await), first);

        let record = reserved(store, &name("completed")).await;
        assert_eq!(store.find(vec![record.operation_id]).await.unwrap().items, [Some(record.clone())]);
        let doing = remark(&record, Actor::Webhook("provider".into()), None);
        let semel::transition::Change::Put { next, history } = doing else { panic!("a remark is written") };
        assert_eq!(swap(store, Swap { expected: record.expected(), next, history }).await, Swapped::Done);
        assert_eq!(store.history(record.operation_id).await.unwrap().len(), 1);
        let remarked = read(store, &name("completed")).await.unwrap();
        assert_eq!(swap(store, completion(&remarked)).await, Swapped::Done);

        let record = reserved(store, &name("removed")).await;
        assert_eq!(store.remove(vec![record.expected()]).await.unwrap().items, [Swapped::Done]);
        let drafts = vec![draft(&name("one")), draft(&name("other")), draft(&name("completed"))];
        let created = store.create(drafts).await.unwrap().items;
        assert!(matches!(created[..], [Created::Inserted, Created::Inserted, Created::Exists(_)]));

        let mut tx = db.begin().await.unwrap();
        let reserving = reserve_in(&mut tx, draft(&name("in-a-transaction"))).await.unwrap();
        let Reserved::New(record) = reserving else { panic!("it is new: {reserving:?}") };
        act_in(&mut tx, &Claim::of(&record), &crate::fixture::complete()).await.unwrap();
        tx.commit().await.unwrap();

        assert_eq!(store.remember(name("recipe"), "text".into()).await.unwrap(), "text");
        assert_eq!(store.recall(name("recipe")).await.unwrap().unwrap(), "text");
        let listed = store.list(Filter::default(), None, 1000).await.unwrap().records;
        let due = DueQuery { kind: DueKind::Lease, after: None, limit: 1000 };
        assert!(store.due(due).await.unwrap().items.is_empty());
        if round == "before" {
            assert_eq!(listed.len(), 5);
            run(&db, ADDS).await;
            // As a newer instance would: the old one keeps what it does not know of.
            run(&db, "UPDATE semel_records SET region = 'eu' WHERE key = 'one-before'").await;
        } else {
            assert_eq!(listed.len(), 10);
        }
    }
    let record = store.read(vec![key("one-before")]).await.unwrap().items.remove(0).unwrap();
    assert_eq!(swap(store, completion(&record)).await, Swapped::Done);
    let kept = "SELECT count(*) FROM semel_records WHERE region = 'eu' AND state = 'completed'";
    assert_eq!(number(&db, kept).await, 1);
}

#[tokio::test]
async fn an_old_build_starts_again_on_newer_tables_that_say_it_can() {
    let database = Database::new().await;
    let first = before(&database).await.carry_out("before-the-deploy").await;
    let db = database.pool().await;
    run(&db, ADDS).await;
    for options in [PgOptions::new(), PgOptions::new().without_migrating()] {
        let recipe = Recipe::builder().command("create_payment/1").build().unwrap();
        let restarted = Instance::deployed(options, &database.url(), recipe).await;
        assert_eq!(replayed(restarted.ask("before-the-deploy").await), first);
    }
    // Neither its migration nor its script takes the tables back.
    let migrated = PgStore::migrate(&db).await.unwrap();
    assert_eq!((migrated.from, migrated.to), (known() + 1, known() + 1));
    raw_sql(AssertSqlSafe(migration_script())).execute(&db).await.unwrap();
    let version = "SELECT value FROM semel_meta WHERE name = 'schema_version'";
    assert_eq!(number(&db, version).await, known() + 1);
}

#[tokio::test]
async fn an_old_build_does_not_start_on_tables_that_it_would_not_understand() {
    let database = Database::new().await;
    before(&database).await.carry_out("before-the-deploy").await;
    let db = database.pool().await;
    run(&db, ADDS).await;
    // Only programs that know the new version may work on it.
    let alone = "UPDATE semel_meta SET value = (SELECT value FROM semel_meta WHERE name = 'schema_version')
                   WHERE name = 'compatible_with'";
    run(&db, alone).await;
    for options in [PgOptions::new(), PgOptions::new().without_migrating()] {
        let refused = options.connect(&database.url()).await;
        assert!(
            matches!(refused, Err(OpenError::Newer { found, .. }) if found == known() + 1),
            "{refused:?}"
        );
    }
    let refused = PgStore::migrate(&db).await;
    assert!(matches!(refused, Err(OpenError::Newer { .. })), "{refused:?}");
}
