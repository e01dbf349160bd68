//! Lists, filters, pages and single operations.

use crate::support::{AdminApi, Ask, KEY, Opening, problem};
use semel::{Body, Draft, RecordKey, State, Store as _, Timestamp, When};
use semel_conformance::samples::in_state;
use serde_json::Value;
use std::collections::BTreeSet;

/// A record in this state, with an answer if it has one.
fn draft(number: usize) -> Draft {
    let state = State::ALL[number % State::ALL.len()];
    let tenant = ["acme", "globex"][number % 2];
    let operation = ["create_payment", "create_refund"][number / 2 % 2];
    let mut draft = in_state(state, RecordKey::new(tenant, operation, format!("key-{number:012}")));
    draft.dead_letter = state == State::Unknown && number.is_multiple_of(4);
    draft
}

async fn stocked(admin: &AdminApi, count: usize) -> Vec<String> {
    let drafts: Vec<Draft> = (0..count).map(draft).collect();
    let ids = drafts.iter().map(|draft| draft.operation_id.to_string()).collect();
    for batch in drafts.chunks(250) {
        admin.store.create(batch.to_vec()).await.unwrap();
    }
    ids
}

fn ids(page: &Value) -> Vec<String> {
    let operations = page["operations"].as_array().unwrap();
    operations.iter().map(|operation| operation["operation_id"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_thousand_records_are_paged_through_newest_first_and_none_twice() {
    for admin in AdminApi::on_every_store().await {
        let mut expected = stocked(&admin, 1_000).await;
        expected.reverse();
        for limit in [7, 100, 999, 1_000] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = admin.get(&format!("/v1/operations?limit={limit}&cursor={cursor}")).await;
                assert_eq!(page.status, 200, "{}", page.text());
                let page = page.json();
                let found = ids(&page);
                assert!(found.len() <= limit);
                seen.extend(found);
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = next.to_owned(),
                    None => break,
                }
            }
            assert_eq!(seen, expected, "in pages of {limit}");
        }
        assert_eq!(ids(&admin.get("/v1/operations").await.json()).len(), 100, "a page by default");
    }
}

#[tokio::test]
async fn filters_let_through_what_they_say() {
    for admin in AdminApi::on_every_store().await {
        stocked(&admin, 240).await;
        let all =
            admin.get("/v1/operations?limit=1000").await.json()["operations"].as_array().unwrap().clone();
        assert_eq!(all.len(), 240);
        type Holds = fn(&Value) -> bool;
        let filters: [(&str, Holds); 6] = [
            ("state=unknown", |operation| operation["state"] == "unknown"),
            ("state=failed_retryable", |operation| operation["state"] == "failed_retryable"),
            ("tenant=acme", |operation| operation["tenant"] == "acme"),
            ("operation=create_refund", |operation| operation["operation"] == "create_refund"),
            ("dead_letter=true", |operation| operation["dead_letter"] == true),
            ("state=completed&tenant=globex&operation=create_payment&dead_letter=false", |operation| {
                operation["state"] == "completed"
                    && operation["tenant"] == "globex"
                    && operation["operation"] == "create_payment"
            }),
        ];
        for (query, holds) in filters {
            let found = ids(&admin.get(&format!("/v1/operations?limit=1000&{query}")).await.json());
            let expected: Vec<String> = all
                .iter()
                .filter(|operation| holds(operation))
                .map(|operation| operation["operation_id"].as_str().unwrap().to_owned())
                .collect();
            assert!(!expected.is_empty() || query.contains("completed"), "{query} is a real question");
            assert_eq!(found, expected, "{query}");
        }
        assert!(ids(&admin.get("/v1/operations?tenant=nobody").await.json()).is_empty());
        let found = ids(&admin.get("/v1/operations?key=key-000000000017").await.json());
        assert_eq!(found.len(), 1);
        let shown = admin.get(&format!("/v1/operations/{}?full_key=true", found[0])).await.json();
        assert_eq!(shown["key"], "key-000000000017");
    }
}

#[tokio::test]
async fn what_cannot_be_asked_is_refused_with_what_can() {
    let admin = AdminApi::open().await;
    for (query, parameter, said) in [
        ("state=done", "state", "in_progress, completed"),
        ("limit=0", "limit", "from 1 to 1000"),
        ("limit=1001", "limit", "from 1 to 1000"),
        ("limit=ten", "limit", "from 1 to 1000"),
        ("cursor=abc", "cursor", "next_cursor"),
        ("dead_letter=maybe", "dead_letter", "true or false"),
        ("sate=unknown", "sate", "state, tenant, operation, key"),
        ("state=unknown&state=completed", "state", "more than once"),
    ] {
        let answer = admin.get(&format!("/v1/operations?{query}")).await;
        assert_eq!((answer.status, problem(&answer)), (400, "admin_parameter_invalid".into()), "{query}");
        assert_eq!(answer.json()["parameter"], parameter, "{query}");
        assert!(answer.json()["detail"].as_str().unwrap().contains(said), "{query}: {}", answer.text());
    }
}

#[tokio::test]
async fn an_operation_is_shown_with_its_history_and_without_what_it_answered() {
    for admin in AdminApi::on_every_store().await {
        let ask = Ask::payment().answered_with("location", "/payments/secret-place");
        // The first attempt did nothing, the second succeeded: that makes history.
        let failed = admin.pay(&ask.clone().answered_with("semel-outcome", "retryable")).await;
        let answer = admin.pay(&ask.answered_with("semel-resource", "payment/pay_1")).await;
        assert_eq!((failed.operation_id(), answer.status), (answer.operation_id(), 201));
        let shown = admin.get(&format!("/v1/operations/{}", answer.operation_id())).await;
        assert_eq!(shown.status, 200);
        let operation = shown.json();
        assert_eq!(operation["key"], format!("{}…", &KEY[..8]));
        assert_eq!(operation["state"], "completed");
        assert_eq!(operation["attempt"], 2);
        assert_eq!(operation["resource"]["id"], "pay_1");
        assert_eq!(operation["response"]["status"], 201);
        assert_eq!(operation["response"]["headers"], serde_json::json!(["content-type", "location"]));
        assert_eq!(operation["response"]["body"], "stored");
        assert_eq!(operation["response"]["body_bytes"], answer.body.len());
        assert!(operation["times"]["expires"].as_str().unwrap() > operation["now"].as_str().unwrap());
        let happenings: Vec<_> = operation["history"]
            .as_array()
            .unwrap()
            .iter()
            .map(|line| (line["happening"].as_str().unwrap(), line["actor"].as_str().unwrap()))
            .collect();
        assert_eq!(happenings, [("failed_retryable", "owner"), ("retried", "request")]);
        let listed = admin.get("/v1/operations").await;
        for text in [shown.text(), listed.text()] {
            assert!(!text.contains("effect") && !text.contains("secret-place"), "bodies stay inside: {text}");
        }
        assert_eq!(listed.json()["operations"][0]["response"]["body"], "stored");
    }
}

#[tokio::test]
async fn every_state_can_be_shown() {
    for admin in AdminApi::on_every_store().await {
        let mut states = BTreeSet::new();
        for id in stocked(&admin, 12).await {
            let answer = admin.get(&format!("/v1/operations/{id}")).await;
            assert_eq!(answer.status, 200, "{}", answer.text());
            states.insert(answer.json()["state"].as_str().unwrap().to_owned());
        }
        assert_eq!(states, State::ALL.map(|state| state.as_str().to_owned()).into());
    }
}

#[tokio::test]
async fn a_window_that_is_over_is_shown_so_before_the_reaper_comes() {
    let admin = AdminApi::open().await;
    let answer = admin.pay(&Ask::payment()).await;
    let path = format!("/v1/operations/{}", answer.operation_id());
    assert_eq!(admin.get(&path).await.json()["expired"], false);
    admin.clock.advance(semel::Policy::default().retention);
    let operation = admin.get(&path).await.json();
    assert_eq!((&operation["expired"], &operation["state"]), (&true.into(), &"expired".into()));
    assert_eq!(operation["response"]["body"], "dropped", "nobody gets it any more");
}

#[tokio::test]
async fn bodies_that_were_not_kept_are_shown_as_such() {
    let admin = AdminApi::open().await;
    for (number, (body, said)) in
        [(Body::NotStored, "not_stored"), (Body::Dropped, "dropped")].into_iter().enumerate()
    {
        let mut draft =
            in_state(State::Completed, RecordKey::new("acme", "create_payment", format!("key-{number}")));
        draft.response.as_mut().unwrap().body = body;
        let id = draft.operation_id;
        admin.store.create(vec![draft]).await.unwrap();
        let shown = admin.get(&format!("/v1/operations/{id}")).await.json();
        assert_eq!(shown["response"]["body"], said);
        assert!(shown["response"].get("body_bytes").is_none());
    }
}

#[tokio::test]
async fn operations_are_listed_by_their_age_and_the_oldest_first() {
    for admin in AdminApi::on_durable_stores(Opening::default).await {
        let mut made = Vec::new();
        for number in 0..6_usize {
            let mut draft = draft(number);
            let day = i64::try_from(number).unwrap() * 86_400_000;
            draft.times.created = When::At(Timestamp::from_millis(1_700_000_000_000 + day));
            made.push(draft.operation_id.to_string());
            admin.store.create(vec![draft]).await.unwrap();
        }
        let mut young = draft(6);
        young.times.created = When::NOW;
        made.push(young.operation_id.to_string());
        admin.store.create(vec![young]).await.unwrap();
        let listed = async |query: &str| ids(&admin.get(&format!("/v1/operations?{query}")).await.json());
        assert_eq!(listed("order=oldest").await, made);
        assert_eq!(listed("order=oldest&older_than=10m").await, made[..6]);
        assert_eq!(listed("order=oldest&limit=2&older_than=10m").await, made[..2]);
        let day = |number: i64| {
            let moment = jiff::Timestamp::from_millisecond(1_700_000_000_000 + number * 86_400_000).unwrap();
            moment.to_string()
        };
        let between = format!("created_after={}&created_before={}", day(1), day(4));
        assert_eq!(listed(&format!("order=oldest&{between}")).await, made[1..4]);
        let mut newest = made[1..4].to_vec();
        newest.reverse();
        assert_eq!(listed(&between).await, newest);
        for wrong in ["older_than=10", "created_after=yesterday", "order=random"] {
            let answer = admin.get(&format!("/v1/operations?{wrong}")).await;
            assert_eq!((answer.status, problem(&answer)), (400, "admin_parameter_invalid".into()), "{wrong}");
        }
    }
}
