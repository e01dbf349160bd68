//! Who may ask what.

use crate::support::{AdminApi, Ask, Opening, get, problem, resolve, with_token};
use semel::State;

const READS: [&str; 2] = ["/v1/operations", "/v1/stats"];
const OPEN: [&str; 3] = ["/healthz", "/readyz", "/metrics"];

const RESOLUTION: &str = r#"{"outcome":"completed","reason":"seen at the bank"}"#;

#[tokio::test]
async fn with_a_token_only_the_probes_and_local_metrics_go_without() {
    let admin = AdminApi::open().await;
    let id = admin.doubtful("key-0123456789abcdef").await;
    let show = format!("/v1/operations/{id}");
    for path in OPEN {
        assert_eq!(get(path).send(&admin.admin).await.status, 200, "{path}");
    }
    let resolving = resolve(id, RESOLUTION);
    let reading = READS.iter().copied().chain([show.as_str()]).map(get);
    for ask in reading.chain([resolving.clone()]) {
        let without = ask.send(&admin.admin).await;
        assert_eq!((without.status, problem(&without)), (401, "admin_unauthorized".into()));
        assert_eq!(without.header("www-authenticate"), Some(r#"Bearer realm="semel-admin""#));
        for wrong in ["Bearer the-admin-tokem", "Bearer ", "Basic the-admin-token", "the-admin-token"] {
            let answer = ask.clone().header("Authorization", wrong).send(&admin.admin).await;
            assert_eq!(answer.status, 401, "{wrong}");
            assert!(answer.header("www-authenticate").unwrap().starts_with("Bearer"), "{wrong}");
            assert!(!answer.text().contains("the-admin"), "what was shown is not repeated");
        }
        let wrong = ask.clone().header("Authorization", "Bearer wrong").send(&admin.admin).await;
        assert!(wrong.header("www-authenticate").unwrap().contains("invalid_token"));
    }
    assert_eq!(admin.record(id).await.state, State::Unknown, "nobody without a token settled it");
    for path in READS.iter().copied().chain([show.as_str()]) {
        assert_eq!(admin.get(path).await.status, 200, "{path}");
    }
    assert_eq!(with_token(resolving).send(&admin.admin).await.status, 200);
}

#[tokio::test]
async fn without_a_token_this_machine_may_read_and_nobody_may_change() {
    let admin = AdminApi::with(Opening { token: None, ..Opening::default() }).await;
    let id = admin.doubtful("key-0123456789abcdef").await;
    for path in OPEN.iter().chain(&READS) {
        assert_eq!(get(path).send(&admin.admin).await.status, 200, "{path}");
    }
    for ask in [resolve(id, RESOLUTION), with_token(resolve(id, RESOLUTION))] {
        let answer = ask.send(&admin.admin).await;
        assert_eq!((answer.status, problem(&answer)), (403, "admin_forbidden".into()));
        assert!(answer.text().contains("[admin] token"), "it says how to enable it: {}", answer.text());
    }
    assert_eq!(admin.record(id).await.state, State::Unknown);
}

#[tokio::test]
async fn without_a_token_a_page_under_another_name_reads_nothing() {
    let admin = AdminApi::with(Opening { token: None, ..Opening::default() }).await;
    for hosts in [&["evil.example"][..], &["localhost.evil.example"], &["localhost", "evil.example"]] {
        let ask = hosts.iter().fold(Ask::new("GET", "/v1/operations"), |ask, host| ask.header("Host", host));
        let answer = ask.send(&admin.admin).await;
        assert_eq!((answer.status, problem(&answer)), (403, "admin_forbidden".into()), "{hosts:?}");
    }
}

#[tokio::test]
async fn what_is_not_there_and_what_is_not_allowed_is_said() {
    let admin = AdminApi::open().await;
    let nowhere = admin.get("/v2/operations").await;
    assert_eq!((nowhere.status, problem(&nowhere)), (404, "admin_no_such_path".into()));
    let answer = with_token(Ask::new("DELETE", "/v1/operations")).send(&admin.admin).await;
    assert_eq!((answer.status, problem(&answer)), (405, "admin_method_not_allowed".into()));
    let id = "0198f2a4-6c1e-7b3d-9a55-2f60c1d7e8b4";
    for answer in [
        admin.get(&format!("/v1/operations/{id}")).await,
        admin.resolve(id.parse().unwrap(), RESOLUTION).await,
    ] {
        assert_eq!((answer.status, problem(&answer)), (404, "admin_no_such_operation".into()));
    }
    let answer = admin.get("/v1/operations/17").await;
    assert_eq!((answer.status, problem(&answer)), (400, "admin_parameter_invalid".into()));
    assert_eq!(answer.json()["parameter"], "id");
}
