//! Whom the gateway calls over TLS, as a whole process: the bank that is polled, and the collector of its traces, which requires a client
//! certificate.

use crate::support::{Gateway, Service, config, until};
use semel_testing::tls::{Authority, HttpsServer};

const KEY: &str = "key-of-a-payment-0001";

fn answer(body: &str) -> String {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn polls_and_traces_go_over_tls_to_whom_the_ca_file_vouches_for() {
    // The servers run on its threads while this one waits for the process.
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let (authority, stranger) = (Authority::new(), Authority::new());
    let clients = Authority::new();
    let serve = |certificates: &Authority, clients: Option<&Authority>, name: &str, body: &str| {
        let certificate = certificates.issue(name, &["localhost"]);
        runtime.block_on(HttpsServer::start(&certificate, clients, answer(body)))
    };
    let bank = serve(&authority, None, "bank", r#"{"status":201,"headers":{},"body":"paid"}"#);
    // It requires a certificate of its clients.
    let collector = serve(&authority, Some(&clients), "collector", "{}");
    let impostor =
        serve(&stranger, None, "bank", r#"{"status":201,"headers":{},"body":"paid by a stranger"}"#);

    let service = Service::start();
    let ca = authority.ca();
    let ca = ca.display();
    let shown = clients.issue("gateway", &["gateway.example"]);
    let (certificate, key) = (shown.certificate.display(), shown.key.display());
    let settings = |bank: u16| {
        format!(
            r#"
[route.reconcile]
poll = "https://localhost:{bank}/operations/{{operation_id}}"
every = "100ms"
tls = {{ ca = "{ca}" }}
[telemetry]
otlp = "https://localhost:{}"
tls = {{ ca = "{ca}", certificate = "{certificate}", key = "{key}" }}
"#,
            collector.port()
        )
    };
    let directory = tempfile::tempdir().unwrap();
    let file = config(directory.path(), "semel.toml", service.address, &settings(impostor.port()));
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    let polled = gateway.until(KEY, |operation| operation["reconcile_attempts"].as_u64() >= Some(1));
    assert_eq!(polled["state"], "unknown", "{polled}");
    assert!(impostor.requests().is_empty(), "nothing is sent to a stranger");
    gateway.kill();

    let file = config(directory.path(), "semel.toml", service.address, &settings(bank.port()));
    let gateway = Gateway::start(&file);
    let settled = gateway.until(KEY, |operation| operation["state"] == "completed");
    let id = settled["operation_id"].as_str().unwrap();
    let asked = bank.requests();
    assert!(asked[0].starts_with(&format!("GET /operations/{id} HTTP/1.1\r\n")), "{asked:?}");
    let retry = gateway.pay(KEY, "answer");
    assert_eq!((retry.status, retry.body.as_str()), (201, "paid"));
    until("traces", || {
        collector.requests().iter().any(|sent| sent.starts_with("POST /v1/traces HTTP/1.1\r\n")).then_some(())
    });
}
