//! Machines whose clocks are five minutes off, on one PostgreSQL: its clock alone counts.

use crate::support::{ClockOff, Database, Gateway, Service, Worker, config, config_on, semel, until};
use jiff::Timestamp;

const SLOW: &str = "key-of-a-slow-payment";
const QUICK: &str = "key-of-a-quick-payment";
const KEPT: &str = "key-of-a-kept-payment";
const BRIEF: &str = "key-of-a-brief-payment";
const DOUBTFUL: &str = "key-of-a-doubtful-one";

/// What lasts four minutes has ended by a clock that is five minutes fast, and what ends within seconds has not by one that is slow. The quick lease is
/// still long enough for a busy machine: with less than a third of it left, nothing is sent to the service any more.
fn routes(service: &Service) -> String {
    format!(
        r#"
lease = "4m"
timeout = "3m"
retention = "4m"
[[route]]
operation = "quick"
match = "POST /quick"
lease = "3s"
timeout = "2500ms"
[route.reconcile]
poll = "http://{}/operations/{{operation_id}}"
every = "100ms"
[[route]]
operation = "brief"
match = "POST /brief"
retention = "1s"
tombstone = "1s"
[worker]
in_gateway = false
"#,
        service.address
    )
}

fn a_wrong_clock_changes_nothing(worker_off: ClockOff, gateway_off: ClockOff, seconds: i64) {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let store = runtime.block_on(Database::new()).into_url();
    let file = config_on(&store, directory.path(), "semel.toml", service.address, &routes(&service));

    // Two owners die with a lease of four minutes and one of seconds.
    let (killed, gateway) = (Gateway::start(&file), Gateway::start_with(&file, gateway_off));
    let _waiting = [killed.begin(SLOW, "hold"), killed.begin_at("/quick", QUICK, "hold")];
    until("the service is at work", || (service.executions().len() == 2).then_some(()));
    killed.kill();
    assert_eq!(gateway.pay(KEPT, "answer").status, 201);
    assert_eq!(gateway.pay_at("/brief", BRIEF, "answer").status, 201);
    assert_eq!(gateway.pay_at("/quick", DOUBTFUL, "hang-up").status, 504);

    let (worker, believed) = Worker::start_with(&file, worker_off);
    let off = believed.duration_since(Timestamp::now()).as_secs();
    assert!((off - seconds).abs() < 60, "the clock is off, or this shows nothing: {off} s");

    // Nothing stays behind: leases, questions, windows and tombstones come to their end in time.
    gateway.until(QUICK, |operation| operation["state"] == "completed");
    gateway.until(DOUBTFUL, |operation| operation["state"] == "completed");
    until("the brief one is forgotten", || gateway.operation(BRIEF).is_none().then_some(()));

    // Nothing was judged early: every part of the worker has gone through all of it by now.
    assert_eq!(gateway.operation(SLOW).unwrap()["state"], "in_progress");
    assert_eq!(gateway.operation(KEPT).unwrap()["state"], "completed");
    let retry = gateway.pay(KEPT, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
    let duplicate = gateway.pay(SLOW, "answer");
    assert_eq!((duplicate.status, duplicate.code().as_str()), (409, "idempotency_key_in_progress"));
    assert_eq!(service.executions().len(), 5, "each of them once");
    assert_eq!(worker.stop(), Some(0));
}

#[test]
fn a_worker_that_is_five_minutes_fast_changes_nothing() {
    a_wrong_clock_changes_nothing(ClockOff("+5m"), ClockOff("-5m"), 300);
}

#[test]
fn a_worker_that_is_five_minutes_slow_changes_nothing() {
    a_wrong_clock_changes_nothing(ClockOff("-5m"), ClockOff("+5m"), -300);
}

/// On SQLite, where the machine's clock is the store's: one start with a clock that is 30 days ahead used to purge everything without a word,
/// and with the right clock again a retry was executed a second time.
#[test]
fn one_start_with_a_clock_that_is_a_month_ahead_forgets_nothing() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"24h\"\ntombstone = \"24h\"\n";
    let file = config(directory.path(), "semel.toml", service.address, rest);
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay(KEPT, "answer").status, 201);
    gateway.kill();

    let wrong = Gateway::start_with(&file, ClockOff("+30d"));
    let clock = wrong.ask("/v1/clock").json();
    assert_eq!(clock["held"], true, "{clock}");
    assert!(clock["hold_seconds"].as_u64().unwrap() > 29 * 86_400, "{clock}");
    let ready = wrong.ask("/readyz");
    assert_eq!(ready.status, 200, "it serves: {ready:?}");
    assert!(ready.json()["clock_hold_seconds"].as_u64().unwrap() > 29 * 86_400, "{ready:?}");
    assert!(
        wrong.ask("/metrics").body.contains("api_idempotency_clock_hold_seconds 25"),
        "the gauge shows it"
    );
    assert_eq!(wrong.pay(DOUBTFUL, "answer").status, 201);
    // Three seconds, in which the worker comes by: nothing that it does not do can be waited for.
    std::thread::sleep(std::time::Duration::from_secs(3));
    let retry = wrong.pay(KEPT, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
    wrong.kill();

    let gateway = Gateway::start(&file);
    let clock = gateway.ask("/v1/clock").json();
    assert_eq!(clock["held"], false, "{clock}");
    for key in [KEPT, DOUBTFUL] {
        let retry = gateway.pay(key, "answer");
        assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
    }
    assert_eq!(service.executions().len(), 2, "each of them once");
}

#[test]
fn a_store_that_was_stopped_for_a_fortnight_serves_at_once_and_an_operator_ends_the_hold() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file =
        config(directory.path(), "semel.toml", service.address, "retention = \"24h\"\ntombstone = \"24h\"\n");
    let gateway = Gateway::start_with(&file, ClockOff("-14d"));
    assert_eq!(gateway.pay(KEPT, "answer").status, 201);
    gateway.kill();

    let gateway = Gateway::start(&file);
    let retry = gateway.pay(KEPT, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
    assert_eq!(gateway.pay(DOUBTFUL, "answer").status, 201);
    let admin = format!("http://{}", gateway.admin);
    let shown = semel().args(["clock", "--admin", &admin]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("A clock hold is open"), "{text}");
    let accepted = semel().args(["clock", "accept", "--admin", &admin]).output().unwrap();
    let text = String::from_utf8(accepted.stdout).unwrap();
    assert!(accepted.status.success() && text.contains("No clock hold is open"), "{text}");
    until("what was over is forgotten", || gateway.operation(KEPT).is_none().then_some(()));
    let retry = gateway.pay(DOUBTFUL, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
}

/// The store was stopped for a fortnight, and is started with the right clock; then with one that is three days slow, which nobody can tell. What is
/// answered meanwhile was forgotten once the hold ended, and a retry was executed a second time.
#[test]
fn what_is_answered_while_the_clock_is_set_back_during_a_hold_is_replayed_when_the_hold_ends() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = "retention = \"24h\"\ntombstone = \"24h\"\n";
    let file = config(directory.path(), "semel.toml", service.address, rest);
    for (off, key) in [("-14d", KEPT), ("+0", QUICK), ("-3d", DOUBTFUL)] {
        let gateway = Gateway::start_with(&file, ClockOff(off));
        assert_eq!(gateway.pay(key, "answer").status, 201);
        gateway.kill();
    }

    let gateway = Gateway::start(&file);
    assert_eq!(gateway.ask("/v1/clock").json()["held"], true);
    let admin = format!("http://{}", gateway.admin);
    let accepted = semel().args(["clock", "accept", "--admin", &admin]).output().unwrap();
    assert!(accepted.status.success(), "{accepted:?}");
    until("what was over is forgotten", || gateway.operation(KEPT).is_none().then_some(()));
    for key in [QUICK, DOUBTFUL] {
        let retry = gateway.pay(key, "answer");
        assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
    }
    assert_eq!(service.executions().len(), 3, "each of them once");
}

#[test]
fn a_start_with_a_clock_far_behind_says_so_and_serves_nothing_until_it_is_accepted() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let file = config(directory.path(), "semel.toml", service.address, "");
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay(KEPT, "answer").status, 201);
    gateway.kill();

    let gateway = Gateway::start_with(&file, ClockOff("-14d"));
    let refused = gateway.pay(DOUBTFUL, "answer");
    assert_eq!(
        (refused.status, refused.code().as_str()),
        (503, "idempotency_store_unavailable"),
        "{refused:?}"
    );
    let ready = gateway.ask("/readyz");
    assert_eq!(ready.status, 503, "{ready:?}");
    assert!(ready.json()["why"].as_str().unwrap().contains("clock"), "{ready:?}");
    let admin = format!("http://{}", gateway.admin);
    let shown = semel().args(["clock", "--admin", &admin]).output().unwrap();
    let text = String::from_utf8(shown.stdout).unwrap();
    assert!(text.contains("This instance serves no requests") && text.contains("behind"), "{text}");
    let accepted = semel().args(["clock", "accept", "--admin", &admin]).output().unwrap();
    let text = String::from_utf8(accepted.stdout).unwrap();
    assert!(accepted.status.success() && text.contains("No clock hold is open"), "{text}");
    assert_eq!(gateway.pay(DOUBTFUL, "answer").status, 201);
    let retry = gateway.pay(KEPT, "answer");
    assert_eq!((retry.status, retry.header("idempotent-replayed")), (201, Some("true")), "{retry:?}");
}
