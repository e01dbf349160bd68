//! An operation gets another name while keys of it are live.

use crate::support::{Gateway, Service, TOKEN, configuration, payment, semel};

fn route(operation: &str, more: &str) -> String {
    format!("[[route]]\noperation = \"{operation}\"\nmatch = \"POST /payments\"\n{more}\n")
}

/// Starts a gateway that must not start, and returns what it says.
pub(crate) fn refused(service: &Service, store: &str, sections: &str) -> String {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("semel.toml");
    std::fs::write(&file, configuration(service, store, "", sections)).unwrap();
    let output = semel().args(["gateway", "--config"]).arg(file).output().unwrap();
    assert!(!output.status.success());
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// `semel reload`, and what it says.
pub(crate) fn reload(gateway: &Gateway) -> (bool, String) {
    let admin = format!("http://{}", gateway.admin);
    let output =
        semel().args(["reload", "--admin", &admin]).env("SEMEL_ADMIN_TOKEN", TOKEN).output().unwrap();
    let said =
        format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    (output.status.success(), said)
}

#[tokio::test]
async fn a_new_name_is_refused_while_keys_are_live_unless_the_old_one_is_told() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let ask = payment("payment-before-the-rename");
    let (old, new) = (route("create_payment", ""), route("pay", ""));
    let told = route("pay", "formerly = [\"create_payment\"]");

    let gateway = Gateway::configured(&service, &store, "", &old).await;
    gateway.is_given(&configuration(&service, &store, "", &new));
    let (is_done, said) = reload(&gateway);
    assert!(is_done, "no key is live: {said}");
    gateway.is_given(&configuration(&service, &store, "", &old));
    assert!(reload(&gateway).0);
    let first = gateway.send(&ask).await;
    assert!(first.status == 201 && !first.is_replay(), "{first:?}");
    gateway.is_given(&configuration(&service, &store, "", &new));
    let (is_done, said) = reload(&gateway);
    let advice =
        "create_payment has 1 live key: add formerly = [\"create_payment\"] to the route \"POST /payments\"";
    assert!(!is_done && said.contains(advice), "{said}");
    assert!(gateway.send(&ask).await.is_replay(), "the old name stays in force");
    drop(gateway);

    let said = refused(&service, &store, &new);
    assert!(said.contains("create_payment has 1 live key"), "{said}");
    let gateway = Gateway::configured(&service, &store, "", &told).await;
    let replay = gateway.send(&ask).await;
    assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    assert_eq!(service.executions().len(), 1);
}

#[tokio::test]
async fn naming_what_the_quick_start_covered_is_refused_unless_method_and_path_are_told() {
    let service = Service::start();
    let directory = tempfile::tempdir().unwrap();
    let store = format!("sqlite:{}", directory.path().join("semel.db").display());
    let ask = payment("payment-by-quick-start");
    let gateway = Gateway::by_flags(&service, &store).await;
    let first = gateway.send(&ask).await;
    drop(gateway);
    let open = |more: &str| format!("[[route]]\noperation = \"pay\"\nmatch = \"POST /{{what}}\"\n{more}\n");
    for (sections, advice) in [
        (route("create_payment", ""), "add formerly = [\"POST /payments\"] to the route \"POST /payments\""),
        (open(""), "POST /{what} has 1 live key: add formerly = [\"POST /{what}\"]"),
    ] {
        let said = refused(&service, &store, &sections);
        assert!(said.contains(advice), "{said}");
    }
    for sections in
        [route("create_payment", "formerly = [\"POST /payments\"]"), open("formerly = [\"POST /{what}\"]")]
    {
        let gateway = Gateway::configured(&service, &store, "", &sections).await;
        let replay = gateway.send(&ask).await;
        assert!(replay.is_replay() && replay.body == first.body, "{replay:?}");
    }
    assert_eq!(service.executions().len(), 1);
}
