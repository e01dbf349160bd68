//! Every statement uses an index: `EXPLAIN QUERY PLAN` of each, on an empty file, where the planner knows nothing
//! but the statement itself.

use crate::audit::{self, PURGE_AUDIT};
use crate::listing::{COUNT_LIVE, DUE, HISTORY, list_sql};
use crate::{schema, statements};
use rusqlite::{Connection, StatementStatus};
use semel::audit::{AuditAction, AuditFilter};
use semel::{Filter, State, Timestamp};
use std::path::Path;

const NOW: Timestamp = Timestamp::from_millis(1);

fn file() -> Connection {
    let mut conn = Connection::open_in_memory().unwrap();
    schema::migrate(&mut conn, Path::new("semel.db"), false).unwrap();
    conn
}

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let values = vec![rusqlite::types::Value::Integer(1); statement.parameter_count()];
    let rows = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(3)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn goes_by(conn: &Connection, sql: &str, index: &str) {
    let plan = plan(conn, sql);
    assert!(plan.iter().any(|step| step.contains(index)), "{sql}\nshould go by {index}: {plan:?}");
    assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{sql}\nscans: {plan:?}");
}

#[test]
fn creating_needs_no_reading_at_all() {
    assert_eq!(plan(&file(), statements::CREATE), Vec::<String>::new());
}

/// Neither a sort nor the values of an `IN`, in the statement itself or in the condition of an index, may need one: making it takes
/// longer than writing the record.
#[test]
fn no_statement_of_a_request_makes_a_temporary_table() {
    let conn = file();
    for sql in [
        statements::CREATE,
        statements::SWAP,
        statements::KEEP_ANSWER,
        statements::REMOVE,
        statements::READ,
        statements::SET_CLOCK,
    ] {
        let mut statement = conn.prepare(&format!("EXPLAIN {sql}")).unwrap();
        let values = vec![rusqlite::types::Null; statement.parameter_count()];
        let steps = statement.query_map(rusqlite::params_from_iter(values), |row| row.get(1)).unwrap();
        let steps: Vec<String> = steps.collect::<Result<_, _>>().unwrap();
        assert!(
            steps.iter().any(|step| step == "Transaction"),
            "these are the steps of a statement: {steps:?}"
        );
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{sql}: {steps:?}");
    }
}

/// A statement whose plan depends on a parameter's value is planned again for the next value, which takes longer than running it.
#[test]
fn no_statement_of_a_request_is_planned_twice() {
    let conn = file();
    let statements = [
        statements::CREATE,
        statements::SWAP,
        statements::KEEP_ANSWER,
        statements::REMOVE,
        statements::READ,
        statements::FIND,
        statements::ANSWER,
        statements::CLOCK,
        statements::SET_CLOCK,
    ];
    for sql in statements {
        for round in 0..3 {
            let mut statement = conn.prepare_cached(sql).unwrap();
            let value = |number| rusqlite::types::Value::Blob(vec![round, number]);
            let count = u8::try_from(statement.parameter_count()).unwrap();
            let mut rows = statement.query(rusqlite::params_from_iter((0..count).map(value))).unwrap();
            // Values of these types do not fit everywhere: what matters is that it was begun.
            let _begun = rows.next();
            drop(rows);
            assert_eq!(statement.get_status(StatementStatus::RePrepare), 0, "{sql}");
        }
    }
}

#[test]
fn records_are_found_changed_and_removed_by_their_indexes() {
    let conn = file();
    goes_by(&conn, statements::READ, "semel_records_key (key_hash=?)");
    goes_by(&conn, statements::FIND, "semel_records_operation_id (operation_id=?)");
    goes_by(&conn, statements::SWAP, "semel_records_operation_id (operation_id=?)");
    goes_by(&conn, statements::REMOVE, "semel_records_operation_id (operation_id=?)");
}

#[test]
fn answers_are_found_and_dropped_by_their_time() {
    let conn = file();
    goes_by(&conn, statements::ANSWER, "PRIMARY KEY (ends_at=? AND operation_id=?)");
    goes_by(&conn, statements::ANSWERS_OVER, "PRIMARY KEY (ends_at<?)");
    assert!(!plan(&conn, statements::ANSWERS_OVER).iter().any(|step| step.contains("TEMP B-TREE")));
    goes_by(&conn, statements::DROP_ANSWERS, "PRIMARY KEY ((ends_at,operation_id)<(?,?))");
}

#[test]
fn what_is_purged_is_found_by_what_it_waits_for() {
    let conn = file();
    goes_by(&conn, statements::PURGE, "semel_records_due (due_kind=? AND due_at<?)");
    let plan = plan(&conn, statements::PURGE);
    assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
    goes_by(&conn, statements::ANY_HISTORY, "PRIMARY KEY (operation_id>? AND operation_id<?)");
}

#[test]
fn history_and_what_is_remembered_are_found_by_primary_key() {
    let conn = file();
    for sql in [statements::REMOVE_HISTORY, statements::TELL, HISTORY] {
        goes_by(&conn, sql, "PRIMARY KEY (operation_id=?");
    }
    assert!(!plan(&conn, HISTORY).iter().any(|step| step.contains("TEMP B-TREE")));
    goes_by(&conn, statements::RECALL, "PRIMARY KEY (name=?");
    for sql in [statements::CLOCK, statements::SET_CLOCK] {
        goes_by(&conn, sql, "INTEGER PRIMARY KEY (rowid=?)");
    }
}

#[test]
fn what_is_due_comes_in_the_order_of_its_index() {
    let conn = file();
    goes_by(&conn, DUE, "semel_records_due (due_kind=? AND (due_at,operation_id)>(?,?)");
    let plan = plan(&conn, DUE);
    assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{plan:?}");
}

#[test]
fn a_tenants_keys_are_counted_by_its_index() {
    let plan = plan(&file(), COUNT_LIVE);
    assert!(plan.iter().any(|step| step.contains("semel_records_tenant (tenant=?)")), "{plan:?}");
    assert!(!plan.iter().any(|step| step.starts_with("SCAN semel_records")), "{plan:?}");
}

/// Every combination of filters: 7 states or none, and 4 others given or not (dead letters in three ways).
fn filters() -> impl Iterator<Item = Filter> {
    let states = State::ALL.into_iter().map(Some).chain([None]);
    states.flat_map(|state| {
        (0..24).map(move |bits: u8| Filter {
            state,
            tenant: (bits & 1 != 0).then(|| "tenant".into()),
            operation: (bits & 2 != 0).then(|| "operation".into()),
            key: (bits & 4 != 0).then(|| "key".into()),
            dead_letter: [None, Some(true), Some(false)][usize::from(bits / 8)],
            ..Filter::default()
        })
    })
}

#[test]
fn every_listing_goes_by_an_index_or_by_the_table_newest_first() {
    let conn = file();
    for filter in filters() {
        let (sql, values) = list_sql(&filter, NOW, None);
        let plan = plan(&conn, &sql);
        assert_eq!(values.len() + 2, conn.prepare(&sql).unwrap().parameter_count(), "{sql}");
        let usual = matches!(filter.state, None | Some(State::Completed | State::Expired));
        let in_progress = filter.state == Some(State::InProgress);
        let expected = match (&filter.key, filter.dead_letter) {
            // One client key has few records: sorting those is nothing.
            (Some(_), _) => "semel_records_key (key_hash>? AND key_hash<?)",
            (None, Some(true)) => "semel_records_dead_letter (dead_letter=? AND rowid<?)",
            _ if in_progress => "semel_records_due (due_kind=?)",
            // Newest first is the table's own order, and most records are such: a page is soon full.
            _ if usual && filter.tenant.is_none() => "USING INTEGER PRIMARY KEY (rowid<?)",
            _ if usual => "semel_records_tenant (tenant=? AND rowid<?)",
            _ => "semel_records_rare (state=? AND rowid<?)",
        };
        assert!(
            plan.iter().any(|step| step.contains(expected)),
            "{filter:?}\nshould go by {expected}: {plan:?}"
        );
        assert!(!plan.iter().any(|step| step.starts_with("SCAN")), "{filter:?} scans: {plan:?}");
        let sorts = plan.iter().any(|step| step.contains("TEMP B-TREE"));
        // As many are in progress as are being worked on: sorting those is nothing either.
        assert!(!sorts || filter.key.is_some() || in_progress, "{filter:?} sorts: {plan:?}");
    }
}

#[test]
fn a_rare_state_is_looked_up_rather_than_searched_for_in_a_tenant() {
    let conn = file();
    let filter = Filter { state: Some(State::Unknown), tenant: Some("tenant".into()), ..Filter::default() };
    goes_by(&conn, &list_sql(&filter, NOW, None).0, "semel_records_rare (state=? AND rowid<?)");
    let filter = Filter { state: Some(State::Completed), ..filter };
    goes_by(&conn, &list_sql(&filter, NOW, None).0, "semel_records_tenant (tenant=? AND rowid<?)");
}

#[test]
fn a_listing_of_the_audit_goes_by_an_index_in_the_order_of_time() {
    let conn = file();
    for bits in 0..32_u8 {
        let some = |bit: u8, text: &str| (bits & bit != 0).then(|| text.to_owned());
        let filter = AuditFilter {
            target: some(1, "target"),
            tenant: some(2, "tenant"),
            actor: some(4, "actor"),
            action: (bits & 8 != 0).then_some(AuditAction::Settle),
            from: (bits & 16 != 0).then_some(NOW),
            until: (bits & 16 != 0).then_some(NOW),
            ..AuditFilter::default()
        };
        let (sql, values) = audit::list_sql(&filter);
        assert_eq!(values.len() + 3, conn.prepare(&sql).unwrap().parameter_count(), "{sql}");
        let by = ["target", "tenant", "actor", "action"].into_iter().zip([1, 2, 4, 8]);
        let by = by.filter(|(_, bit)| bits & bit != 0).map(|(name, _)| name).next().unwrap_or("at");
        goes_by(&conn, &sql, &format!("semel_audit_{by} ("));
        let plan = plan(&conn, &sql);
        assert!(!plan.iter().any(|step| step.contains("TEMP B-TREE")), "{filter:?} sorts: {plan:?}");
    }
    goes_by(&conn, PURGE_AUDIT, "semel_audit_at (at<?)");
}

#[test]
fn a_listing_of_moments_ends_where_they_end() {
    let conn = file();
    for oldest_first in [false, true] {
        let filter = Filter { created_from: Some(NOW), oldest_first, ..Filter::default() };
        let (sql, _) = list_sql(&filter, NOW, Some(7));
        goes_by(&conn, &sql, "USING INTEGER PRIMARY KEY (rowid>? AND rowid<?)");
        let rare = Filter { state: Some(State::Unknown), ..filter };
        let (sql, _) = list_sql(&rare, NOW, Some(7));
        goes_by(&conn, &sql, "semel_records_rare (state=? AND rowid>? AND rowid<?)");
    }
}
