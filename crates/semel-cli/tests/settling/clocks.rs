//! Machines whose clocks are five minutes off, on one PostgreSQL: its clock alone counts.

use crate::support::{ClockOff, Database, Gateway, Service, Worker, config_on, until};
use jiff::Timestamp;

const SLOW: &str = "key-of-a-slow-payment";
const QUICK: &str = "key-of-a-quick-payment";
const KEPT: &str = "key-of-a-kept-payment";
const BRIEF: &str = "key-of-a-brief-payment";
const DOUBTFUL: &str = "key-of-a-doubtful-one";

/// What lasts four minutes is over by a clock that is five minutes fast, and what is over after a second is not by one that is slow.
fn routes(service: &Service) -> String {
    format!(
        r#"
lease = "4m"
timeout = "3m"
retention = "4m"
[[route]]
operation = "quick"
match = "POST /quick"
lease = "600ms"
timeout = "500ms"
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
    let store = runtime.block_on(Database::new()).url;
    let file = config_on(&store, directory.path(), "semel.toml", service.address, &routes(&service));

    // Two owners die with a lease of four minutes and one of less than a second.
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
