//! What operators do to the outbox, while its database does not answer.

use crate::support::{AdminApi, Answer, Opening, TOKEN, problem};
use semel::audit::AuditEntry;
use semel::{StoreFuture, Timestamp};
use semel_events::outbox::{Entry, EntryFilter, EntryPage, OutboxAdmin, OutboxStats, Touched};
use semel_testing::http::once::Ask;
use std::sync::Arc;
use std::time::Duration;
use uuid::Uuid;

/// An outbox whose database takes every call and answers none.
struct Hanging;

impl OutboxAdmin for Hanging {
    fn stats(&self) -> StoreFuture<'_, OutboxStats> {
        Box::pin(std::future::pending())
    }

    fn list(&self, _: EntryFilter, _: Option<Uuid>, _: usize) -> StoreFuture<'_, EntryPage> {
        Box::pin(std::future::pending())
    }

    fn find(&self, _: Uuid) -> StoreFuture<'_, (Timestamp, Option<Entry>)> {
        Box::pin(std::future::pending())
    }

    fn requeue(&self, _: Uuid, _: Option<AuditEntry>) -> StoreFuture<'_, Touched> {
        Box::pin(std::future::pending())
    }

    fn discard(&self, _: Uuid, _: String, _: String, _: Option<AuditEntry>) -> StoreFuture<'_, Touched> {
        Box::pin(std::future::pending())
    }
}

#[tokio::test]
async fn a_write_that_the_database_does_not_answer_in_time_is_reported_as_unknown() {
    let outbox: Arc<dyn OutboxAdmin> = Arc::new(Hanging);
    let opening =
        Opening { store_timeout: Duration::from_millis(50), outbox: Some(outbox), ..Opening::default() };
    let admin = AdminApi::with(opening).await;
    for (act, body) in [("requeue", ""), ("drop", r#"{"reason":"the partner has closed"}"#)] {
        let answer = post(&admin, &format!("/v1/outbox/{}/{act}", Uuid::from_u128(7)), body).await;
        assert_eq!(answer.status, 503, "{act}: {}", answer.text());
        assert_eq!(problem(&answer), "admin_act_unknown", "{act}");
    }
}

async fn post(admin: &AdminApi, path: &str, body: &str) -> Answer {
    let ask = Ask::new("POST", path).line("Host: localhost").body(body.to_owned());
    ask.header("Authorization", format!("Bearer {TOKEN}")).send(&admin.admin).await
}
