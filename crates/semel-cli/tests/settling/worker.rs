//! The command itself.

use crate::support::{Gateway, Service, Worker, config, exchange, semel, until};

#[test]
fn help_teaches() {
    let output = semel().args(["worker", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    for part in [
        "--config <FILE>",
        "--admin-listen <ADDRESS>",
        "in_gateway = false",
        "Examples:",
        "SIGTERM",
        "Exit status",
    ] {
        assert!(help.contains(part), "{part}: {help}");
    }
    assert!(help.lines().all(|line| line.chars().count() <= 110), "{help}");
}

#[test]
fn it_says_why_it_does_not_start() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    let said = |text: &str| {
        std::fs::write(&file, text).unwrap();
        let output = semel().args(["worker", "--config"]).arg(&file).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let wrong = said("upstream = 1\n");
    assert!(wrong.contains("semel.toml:1:12"), "{wrong}");
    let alone = said("upstream = \"http://127.0.0.1:9000\"\nstore = \"memory:\"\n");
    assert!(alone.contains("memory:") && alone.contains("sqlite:FILE"), "{alone}");
    let nowhere = said("upstream = \"http://127.0.0.1:9000\"\nstore = \"sqlite:/nowhere/at/all/semel.db\"\n");
    assert!(nowhere.contains("/nowhere/at/all"), "{nowhere}");
}

#[test]
fn told_where_it_serves_health_metrics_and_the_admin_api() {
    const KEY: &str = "key-of-a-payment-0001";
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let rest = format!(
        "[route.reconcile]\npoll = \"http://{}/operations/{{operation_id}}\"\nevery = \"100ms\"\n[worker]\nin_gateway = false\n",
        service.address
    );
    let file = config(directory.path(), "semel.toml", service.address, &rest);
    let gateway = Gateway::start(&file);
    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);

    let (worker, admin) = Worker::start_with_admin(&file);
    for probe in ["/healthz", "/readyz"] {
        assert_eq!(exchange(admin, "GET", probe, &[], "").status, 200, "{probe}");
    }
    gateway.until(KEY, |operation| operation["state"] == "completed");
    let metrics = || exchange(admin, "GET", "/metrics", &[], "").body;
    let resolved = "api_idempotency_reconcile_resolved_total{operation=\"create_payment\"} 1";
    // The answer is stored before it is counted.
    until("it is counted where it was done", || metrics().lines().any(|line| line == resolved).then_some(()));
    assert!(metrics().contains("api_idempotency_dead_letters"), "the gauges are there as well");
    assert_eq!(exchange(admin, "GET", "/v1/operations", &[], "").status, 401, "by the token of the file");
    assert_eq!(worker.stop(), Some(0));
    assert_eq!(service.executions().len(), 1);

    let open = directory.path().join("open.toml");
    let text = std::fs::read_to_string(&file).unwrap();
    let without: Vec<_> = text.lines().filter(|line| !line.starts_with("token")).collect();
    std::fs::write(&open, without.join("\n")).unwrap();
    let refused =
        semel().args(["worker", "--admin-listen", "0.0.0.0:0", "--config"]).arg(&open).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), said.contains("open to the network")), (Some(1), true), "{said}");
}

#[test]
fn told_to_reload_it_asks_where_the_new_file_says() {
    const KEY: &str = "key-of-a-payment-0001";
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let asking_at = |host: &str| {
        let rest = format!(
            "[route.reconcile]\npoll = \"http://{host}/operations/{{operation_id}}\"\nevery = \"100ms\"\nattempts = 1000\n[worker]\nin_gateway = false\n"
        );
        config(directory.path(), "semel.toml", service.address, &rest)
    };
    // Nobody listens there.
    let file = asking_at("127.0.0.1:1");
    let gateway = Gateway::start(&file);
    let (worker, admin) = Worker::start_with_admin(&file);
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, text.replace("store = \"", "store = \"sqlite:elsewhere.db\" #")).unwrap();
    let refused = semel().args(["reload", "--admin", &format!("http://{admin}")]).output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!((refused.status.code(), said.contains("restart: store changed")), (Some(1), true), "{said}");

    assert_eq!(gateway.pay(KEY, "hang-up").status, 504);
    gateway.until(KEY, |operation| operation["reconcile_attempts"].as_u64() > Some(0));

    asking_at(&service.address.to_string());
    worker.is_told_to_reload();
    gateway.until(KEY, |operation| operation["state"] == "completed");
    let metrics = exchange(admin, "GET", "/metrics", &[], "").body;
    assert!(metrics.contains("config_reloads_total{result=\"applied\"} 1"), "{metrics}");
    assert_eq!(worker.stop(), Some(0));
    assert_eq!(service.executions().len(), 1);
}
