//! A record that cannot be what was written.

use crate::fixture::{Place, create, draft, key, read};
use crate::sealing::tamper;
use rusqlite::Connection;
use semel::audit::{AuditAction, AuditEntry, AuditFilter};
use semel::transition::{Change, Claim, act};
use semel::{
    Body, Created, Draft, Filter, RecordKey, State, Store, StoreError, StoredResponse, Swap, Swapped, When,
};
use semel_conformance::{
    Tampering, an_answer_that_changed_by_accident_is_damage, listings_pass_over_damaged_records,
    only_what_is_over_in_every_respect_is_purged, what_is_due_is_found_behind_damaged_records,
    writes_go_on_around_a_damaged_record,
};
use std::sync::Arc;
use std::time::Duration;

fn spoil(place: &Place, set: &str, name: &str) {
    let conn = Connection::open(place.path()).unwrap();
    conn.execute(&format!("UPDATE semel_records SET {set} WHERE key = ?1"), [name]).unwrap();
}

#[tokio::test]
async fn a_spoilt_record_is_damage_told_by_operation_id_without_key_or_body() {
    let spoilt = [
        "state = 'nonsense'",
        "origin = 'nowhere'",
        "version = 0",
        "attempt = -1",
        "owner = x'00'",
        "fingerprint = x''",
        "expires_at = 5",
        "response_status = 200, body_kind = 'secret-body', state = 'completed'",
        "response_status = 200, body_kind = 'dropped'",
        // What is left of an answer is no answer that was never there.
        "response_schema = 'v1'",
        "body_kind = 'stored'",
        "response_sum = 0",
        "state = 'unknown', dead_letter = 2",
        "resource_type = 'payment'",
        "dead_letter = 1",
        "key = 'another-key-altogether'",
    ];
    for set in spoilt {
        let place = Place::new();
        let store = place.open().await;
        let written = draft("secret-key");
        create(&store, written.clone()).await;
        spoil(&place, set, "secret-key");
        let Err(StoreError::Damaged(text)) = store.read(vec![key("secret-key")]).await else {
            panic!("{set}")
        };
        assert!(text.contains(&written.operation_id.to_string()), "{set}: {text}");
        assert!(!text.contains("secret"), "{set}: {text}");
        let again = store.create(vec![draft("secret-key")]).await;
        let again = again.unwrap().items;
        assert!(matches!(&again[..], [Created::Damaged(_)]), "{set}: {again:?}");
    }
}

#[tokio::test]
async fn what_is_over_goes_whatever_has_become_of_it() {
    let place = Place::new();
    let store = place.open().await;
    for name in ["sound", "damaged"] {
        let mut draft = completed(name, response(Body::Stored("{}".into())));
        (draft.times.expires, draft.times.purge) = (Some(When::NOW), Some(When::NOW));
        create(&store, draft).await;
    }
    spoil(&place, "operation = CAST(x'ff' AS TEXT), fingerprint = x''", "damaged");
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("UPDATE semel_answers SET headers = 'nonsense'").unwrap();
    let (dropped, purged) = tokio::join!(store.drop_answers(10), store.purge(10));
    assert_eq!((dropped.unwrap().items.len(), purged.unwrap().items.len()), (2, 2));
    let left = "SELECT (SELECT count(*) FROM semel_records) + (SELECT count(*) FROM semel_answers)";
    assert_eq!(conn.query_row(left, [], |row| row.get::<_, i64>(0)).unwrap(), 0);
}

/// As when it is sealed: its headers are in the store no more, in whatever form.
#[tokio::test]
async fn nothing_stays_of_an_answer_that_is_spelt_anew_as_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let draft = completed("large", response(Body::NotStored));
    create(&store, draft.clone()).await;
    let there = read(&store, "large").await.unwrap();
    let mut next = draft;
    next.version += 1;
    next.times = there.times.map(When::At);
    next.response = Some(StoredResponse { headers: vec![], ..response(Body::NotStored) });
    let swap = Swap { expected: there.expected(), next: Box::new(next), history: None };
    let conn = Connection::open(place.path()).unwrap();
    let kept =
        || conn.query_row("SELECT count(*) FROM semel_answers", [], |row| row.get::<_, i64>(0)).unwrap();
    assert_eq!(kept(), 1);
    assert_eq!(store.swap(vec![swap]).await.unwrap().items, [Swapped::Done]);
    assert_eq!(kept(), 0);
}

fn response(body: Body) -> StoredResponse {
    let headers = vec![("location".into(), "/payments/secret".into())];
    StoredResponse { status: 201, headers, body, schema_version: None }
}

fn completed(name: &str, response: StoredResponse) -> Draft {
    let mut draft = draft(name);
    (draft.state, draft.response) = (State::Completed, Some(response));
    (draft.times.completed, draft.times.expires) = (Some(When::NOW), Some(When::In(Duration::from_secs(60))));
    draft
}

#[tokio::test]
async fn an_index_alone_purges_nothing() {
    let place = Place::new();
    let store = place.open().await;
    let spoil = async |key: &RecordKey, set: &str| spoil(&place, set, &key.key);
    only_what_is_over_in_every_respect_is_purged(&store, spoil).await;
}

#[tokio::test]
async fn a_damaged_record_is_in_the_way_of_its_own_item_alone() {
    let place = Place::new();
    let store = place.open().await;
    let damage = async |key: &RecordKey| spoil(&place, "state = 'nonsense'", &key.key);
    writes_go_on_around_a_damaged_record(&store, damage).await;
}

#[tokio::test]
async fn what_cannot_be_written_undoes_its_own_batch_and_no_other() {
    let place = Place::new();
    let store = place.open().await;
    let known = draft("known");
    create(&store, known.clone()).await;
    let conn = Connection::open(place.path()).unwrap();
    conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let first = tokio::spawn({
        let store = store.clone();
        async move { create(&store, draft("first")).await }
    });
    tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    // The id of another operation: no correct caller hands that over.
    let impossible = Draft { operation_id: known.operation_id, ..draft("impossible") };
    let hit = store.create(vec![draft("with-it-1"), impossible, draft("with-it-2")]);
    let other = store.create(vec![draft("other")]);
    let letting_go = async {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        conn.execute_batch("ROLLBACK").unwrap();
    };
    let (hit, other, ()) = tokio::join!(hit, other, letting_go);
    assert!(matches!(hit, Err(StoreError::Unavailable(_))), "{hit:?}");
    assert_eq!(other.unwrap().items, vec![Created::Inserted]);
    assert_eq!(first.await.unwrap(), Created::Inserted);
    for name in ["with-it-1", "with-it-2"] {
        assert_eq!(read(&store, name).await, None, "an error is whole");
    }
}

#[tokio::test]
async fn what_is_due_behind_damaged_records_comes_all_the_same() {
    let place = Place::new();
    let store = place.open().await;
    let damage = async |key: &RecordKey| spoil(&place, "owner = x'00'", &key.key);
    what_is_due_is_found_behind_damaged_records(&store, damage).await;
}

#[tokio::test]
async fn an_answer_that_is_not_what_was_written_is_never_replayed() {
    let place = Place::new();
    let store = place.open().await;
    let conn = Connection::open(place.path()).unwrap();
    let tamper = async |key: &RecordKey, tampering: &Tampering| tamper(&conn, key, tampering);
    an_answer_that_changed_by_accident_is_damage(Arc::new(store), tamper).await;
}

#[tokio::test]
async fn a_listing_shows_the_records_around_damaged_ones() {
    let place = Place::new();
    let store = place.open().await;
    let damage = async |key: &RecordKey| spoil(&place, "owner = x'00'", &key.key);
    listings_pass_over_damaged_records(&store, damage).await;
}

#[tokio::test]
async fn a_record_from_a_listing_is_not_written_back_without_its_body() {
    let place = Place::new();
    let store = place.open().await;
    let reserved = draft("listed");
    create(&store, reserved.clone()).await;
    store.finish_with(Claim::of(&reserved), |_| Ok::<_, ()>(((), crate::fixture::complete()))).await.unwrap();
    let listed = store.list(Filter::default(), None, 1).await.unwrap().records.remove(0);
    assert_eq!(listed.response.as_ref().unwrap().body, Body::Omitted);
    let change = semel::transition::remark(&listed, semel::Actor::Reconciler, None);
    let Change::Put { next, history } = change else { panic!("{change:?}") };
    let refused = store.swap(vec![Swap { expected: listed.expected(), next, history }]).await;
    assert!(
        matches!(&refused, Err(StoreError::Unavailable(text)) if text.contains("programming error")),
        "{refused:?}"
    );
    let kept = read(&store, "listed").await.unwrap();
    assert!(matches!(kept.response.unwrap().body, Body::Stored(_)));
}

#[tokio::test]
async fn a_swap_that_does_not_raise_the_version_is_refused() {
    let place = Place::new();
    let store = place.open().await;
    let reserved = draft("swapped");
    create(&store, reserved.clone()).await;
    let record = read(&store, "swapped").await.unwrap();
    let same = Swap { expected: record.expected(), next: Box::new(reserved.clone()), history: None };
    assert!(matches!(store.swap(vec![same]).await, Err(StoreError::Unavailable(_))));
    let Ok(Change::Put { next, history }) = act(&record, &Claim::of(&record), &crate::fixture::complete())
    else {
        panic!("the owner may complete")
    };
    let right = Swap { expected: record.expected(), next, history };
    assert_eq!(store.swap(vec![right]).await.unwrap().items, vec![Swapped::Done]);
}

#[tokio::test]
async fn a_spoilt_entry_of_the_audit_is_passed_over_and_counted() {
    let spoilt = [
        "action = 'nonsense'",
        "result = ''",
        "details = '{'",
        "details = 1",
        "entry_id = x'00'",
        "actor = x'00'",
    ];
    for set in spoilt {
        let place = Place::new();
        let store = place.open().await;
        for number in 0..3 {
            let mut entry = AuditEntry::new("token:ada", AuditAction::Settle);
            entry.target = Some(number.to_string());
            store.audit(entry, None).await.unwrap();
        }
        let conn = Connection::open(place.path()).unwrap();
        conn.execute(&format!("UPDATE semel_audit SET {set} WHERE target = '1'"), []).unwrap();
        let page = store.audited(AuditFilter::default(), None, 2).await.unwrap();
        assert_eq!((page.lines.len(), page.damaged), (1, 1), "{set}: it takes up a place");
        let rest = store.audited(AuditFilter::default(), page.next, 2).await.unwrap();
        assert_eq!((rest.lines.len(), rest.damaged, rest.next), (1, 0, None), "{set}");
        assert_eq!(store.purge_audit(Duration::ZERO, 0).await.unwrap(), 0);
    }
}
