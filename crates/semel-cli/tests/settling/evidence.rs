//! Evidence about something else settles nothing: an earlier attempt, an earlier operation under the same key, a stranger's answer.

use crate::support::{Answer, Gateway, Service, TOKEN, config, exchange};
use crate::webhooks::{rest as webhooks, sent};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const KEY: &str = "key-of-a-payment-0001";

fn resolve(gateway: &Gateway, id: &str, resolution: &Value) -> Answer {
    let headers = [("authorization", &*format!("Bearer {TOKEN}")), ("content-type", "application/json")];
    let path = format!("/v1/operations/{id}/resolve");
    exchange(gateway.admin, "POST", &path, &headers, &resolution.to_string())
}

fn text(member: &Value) -> &str {
    member.as_str().unwrap()
}

/// Ada looks at attempt 1 and finds nothing. Bert settles it meanwhile, and the client's retry executes attempt 2, whose answer is lost.
/// Now Ada says what she found out.
#[test]
fn an_operators_word_without_an_attempt_is_refused_and_changes_nothing() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, ""));
    assert_eq!(gateway.pay(KEY, "vanish").status, 504);
    let first = gateway.until(KEY, |operation| operation["state"] == "unknown");
    let id = text(&first["operation_id"]);
    let bert = json!({ "outcome": "not_executed", "attempt": 1, "reason": "the bank has nothing" });
    assert_eq!(resolve(&gateway, id, &bert).status, 200);
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    let second = gateway.until(KEY, |operation| operation["state"] == "unknown");
    assert_eq!((&second["operation_id"], &second["attempt"]), (&json!(id), &json!(2)));

    for outcome in ["not_executed", "failed"] {
        let ada = json!({ "outcome": outcome, "reason": "the bank has nothing" });
        let refused = resolve(&gateway, id, &ada);
        assert_eq!(refused.status, 400, "{refused:?}");
        let problem = refused.json();
        assert_eq!(
            (&problem["code"], &problem["operation"]["attempt"]),
            (&json!("admin_attempt_missing"), &json!(2))
        );
        let detail = text(&problem["detail"]);
        for part in ["attempt 2", &format!("semel operations show {id}"), "\"attempt\": 2"] {
            assert!(detail.contains(part), "{part}: {detail}");
        }

        let typed = ["resolve", id, "--outcome", outcome, "--reason", "the bank has nothing", "--yes"];
        let refused = gateway.operations(&typed);
        let said = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(2), "{said}");
        for part in ["attempt 2", &format!("semel operations show {id}"), "--attempt 2"] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert_eq!(gateway.operation(KEY).unwrap()["version"], second["version"], "nothing was changed");
    }
    let late = json!({ "outcome": "not_executed", "attempt": 1, "reason": "the bank has nothing" });
    assert_eq!(resolve(&gateway, id, &late).code(), "admin_other_attempt");
    let held = gateway.pay(KEY, "answer");
    assert_eq!((held.status, held.code().as_str()), (409, "idempotency_outcome_unknown"));
    assert_eq!(service.executions(), [json!([id, 2])], "one effect");

    // That it happened is true of the operation, whichever attempt it was.
    let happened = json!({ "outcome": "completed", "reason": "the bank has it as tx 17" });
    assert_eq!(resolve(&gateway, id, &happened).status, 200);
}

/// The provider's message is about the first operation under the key. Its window is over when the message comes again.
#[test]
fn a_message_that_names_a_key_is_kept_in_the_history_and_settles_nothing() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!("retention = \"1s\"\ntombstone = \"0s\"\n{}", webhooks());
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    let paid = gateway.pay(KEY, "answer");
    let first = paid.header("semel-operation-id").unwrap();
    let tenant = gateway.operation(KEY).map(|operation| operation["tenant"].clone());
    assert!(tenant.is_some(), "{paid:?}");
    let body = json!({
        "tenant": tenant, "operation": "create_payment", "key": KEY, "outcome": "completed",
        "response": {"status": 201, "body": "paid, says the provider"},
    });
    // The key is new work once the window and the tombstone are over.
    let second = crate::support::until("another operation under the key", || {
        let again = gateway.pay(KEY, "vanish");
        (again.status == 504).then(|| gateway.operation(KEY).unwrap())
    });
    assert_ne!(text(&second["operation_id"]), first);
    let doubtful = gateway.until(KEY, |operation| operation["state"] == "unknown");

    for _ in 0..5 {
        let kept = sent(&gateway, "msg_1", &body);
        assert_eq!((kept.status, &kept.json()["result"]), (200, &json!("kept")), "{kept:?}");
        assert!(text(&kept.json()["detail"]).contains("operation_id"), "{kept:?}");
    }
    let after = gateway.operation(KEY).unwrap();
    assert_eq!((&after["state"], &after["operation_id"]), (&json!("unknown"), &doubtful["operation_id"]));
    let lines = |operation: &Value| operation["history"].as_array().unwrap().len();
    assert_eq!(lines(&after), lines(&doubtful) + 1, "once, however often it comes: {after}");
    let last = after["history"].as_array().unwrap().last().unwrap();
    assert_eq!((&last["happening"], &last["actor"]), (&json!("remarked"), &json!("webhook:provider")));
    assert_eq!(gateway.pay(KEY, "answer").status, 409, "nothing is replayed, and nothing executes");

    // With its id it is settled.
    let by_id = json!({ "operation_id": doubtful["operation_id"], "outcome": "completed" });
    assert_eq!(sent(&gateway, "msg_2", &by_id).json()["result"], "settled");
}

#[test]
fn a_message_that_something_failed_and_names_no_attempt_settles_nothing() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!("lease = \"1s\"\ntimeout = \"500ms\"\n{}", webhooks());
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    assert_eq!(gateway.pay(KEY, "vanish").status, 504);
    let doubtful = gateway.until(KEY, |operation| operation["state"] == "unknown");
    let id = text(&doubtful["operation_id"]);
    for (number, outcome) in ["failed", "not_executed"].into_iter().enumerate() {
        let vague = json!({ "operation_id": id, "outcome": outcome });
        for _ in 0..3 {
            let kept = sent(&gateway, &format!("msg_{number}"), &vague);
            assert_eq!((kept.status, &kept.json()["result"]), (200, &json!("kept")), "{kept:?}");
            assert!(text(&kept.json()["detail"]).contains("`attempt`"), "{kept:?}");
        }
    }
    let after = gateway.operation(KEY).unwrap();
    assert_eq!(after["state"], "unknown");
    assert_eq!(after["history"].as_array().unwrap().len(), 3, "doubted, and each message once: {after}");
    // Their promise counts once the lease is over.
    let precise = json!({ "operation_id": id, "outcome": "not_executed", "attempt": 1 });
    crate::support::until("it is settled", || {
        (sent(&gateway, "msg_9", &precise).json()["result"] == "settled").then_some(())
    });
}

/// Answers every request so, and counts them.
fn answering(answer: String) -> (SocketAddr, Arc<AtomicUsize>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let asked: Arc<AtomicUsize> = Arc::default();
    let counting = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
            if lines.take_while(|line| !line.is_empty()).count() > 0 {
                counting.fetch_add(1, Ordering::SeqCst);
                let _ = stream.write_all(answer.as_bytes());
            }
        }
    });
    (address, asked)
}

/// The address is a proxy's: the service behind it is being deployed, or the path is wrong.
#[test]
fn a_strangers_404_proves_nothing() {
    let page = "<html>\r\n<head><title>404 Not Found</title></head>\r\n<body>\r\n<center><h1>404 Not Found</h1></center>\r\n\
                <hr><center>nginx/1.28.0</center>\r\n</body>\r\n</html>\r\n";
    let head =
        "HTTP/1.1 404 Not Found\r\nServer: nginx/1.28.0\r\nContent-Type: text/html\r\nConnection: close\r\n";
    let (stranger, asked) = answering(format!("{head}Content-Length: {}\r\n\r\n{page}", page.len()));
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!(
        "lease = \"300ms\"\ntimeout = \"200ms\"\n[route.reconcile]\n\
         poll = \"http://{stranger}/operations/{{operation_id}}\"\nevery = \"400ms\"\nattempts = 1\nabsence_is_proof = true\n"
    );
    let gateway = Gateway::start(&config(directory.path(), "semel.toml", service.address, &rest));
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    let given_up = gateway.until(KEY, |operation| {
        operation["dead_letter"] == true
            || operation["state"] != "unknown" && operation["state"] != "in_progress"
    });
    assert_eq!((&given_up["state"], &given_up["reconcile_attempts"]), (&json!("unknown"), &json!(1)));
    assert_eq!(asked.load(Ordering::SeqCst), 1);
    assert!(given_up["history"].to_string().contains("poll_absence_without_outcome"), "{given_up}");
    assert_eq!(gateway.pay(KEY, "answer").status, 409);
    assert_eq!(service.executions().len(), 1, "one effect");
}
