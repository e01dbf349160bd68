//! The provider: carries orders out, misbehaves, and tells by webhook what it did.

use crate::book::{Charged, Known, Order};
use crate::fault::Fault;
use crate::network::{About, Broken, Host, Way};
use crate::plan::canary;
use crate::rules::{Rule, Work};
use crate::trace::Place;
use crate::world::World;
use bytes::Bytes;
use http::{HeaderMap, HeaderValue};
use semel::{Body, OperationId, StoredResponse};
use semel_worker::{Finding, WebhookSecret};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, SystemTime};

/// What the provider's webhooks are signed with.
pub(crate) const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// What the provider says to an order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Said {
    Done(Charged),
    /// That something went wrong, whatever it did.
    Error,
}

/// Takes an order.
pub(crate) async fn charge(world: Arc<World>, order: Order, rule: Rule) -> Result<Said, Broken> {
    let life = world.provider();
    let charging = async {
        if world.faults.strikes(Fault::ProviderBefore) {
            return Err(Broken);
        }
        if world.faults.strikes(Fault::ProviderStall) {
            tokio::time::sleep(world.chance.millis(4_000, 25_000)).await;
        }
        // A call that is made at most once is never made again: nobody says that it may be.
        let may_refuse = rule.webhooks && rule.work != Work::AtMostOnce;
        if may_refuse
            && world.faults.strikes(Fault::WebhookNotExecuted)
            && refuses(&world, &order, &rule, order.attempt)
        {
            return Err(Broken);
        }
        if may_refuse && order.attempt > 1 && world.faults.strikes(Fault::WebhookEarlier) {
            refuses(&world, &order, &rule, order.attempt - 1);
        }
        let charged = world.book.pages().charge(world.trace.now(), &order, &rule);
        world.trace.note(
            Place::Provider,
            format_args!("#{} {} attempt {}: provider {charged:?}", order.number, order.id, order.attempt),
        );
        match charged {
            Charged::Done if rule.webhooks => tell(&world, &order, &rule, Word::Paid),
            Charged::Declined if rule.webhooks => tell(&world, &order, &rule, Word::Declined),
            _ => {}
        }
        if world.faults.strikes(Fault::ProviderAfter) {
            return Err(Broken);
        }
        if world.faults.strikes(Fault::ProviderError) {
            return Ok(Said::Error);
        }
        Ok(Said::Done(charged))
    };
    life.during(charging).await.unwrap_or(Err(Broken))
}

/// Writes a receipt of what was paid: once, where it is promised not to do it twice.
pub(crate) async fn write_receipt(world: Arc<World>, order: Order, rule: Rule) -> Result<(), Broken> {
    let life = world.provider();
    let writing = async {
        if world.faults.strikes(Fault::ProviderBefore) {
            return Err(Broken);
        }
        let is_new = world.book.pages().write_receipt(&order, rule.work != Work::AtMostOnce);
        world.trace.note(
            Place::Provider,
            format_args!(
                "#{} {} attempt {}: provider writes a receipt, new: {is_new}",
                order.number, order.id, order.attempt
            ),
        );
        if world.faults.strikes(Fault::ProviderAfter) { Err(Broken) } else { Ok(()) }
    };
    life.during(writing).await.unwrap_or(Err(Broken))
}

/// Refuses the attempts up to this one for good, and says so by webhook; whether there was anything to refuse.
fn refuses(world: &Arc<World>, order: &Order, rule: &Rule, attempt: u32) -> bool {
    let did_nothing = world.book.pages().ask(world.trace.now(), order.id, attempt).is_none();
    if did_nothing {
        tell(world, order, rule, Word::NotExecuted(attempt));
    }
    did_nothing
}

/// Whoever polls is told what became of an operation. What did nothing by then never will.
pub(crate) async fn find(
    world: Arc<World>,
    (id, attempt): (OperationId, u32),
    tenant: u32,
    rule: Rule,
) -> Result<Finding, Broken> {
    if !world.provider().is_alive() {
        return Err(Broken);
    }
    let known = world.book.pages().ask(world.trace.now(), id, attempt);
    world.trace.note(Place::Provider, format_args!("{id} attempt {attempt}: provider asked, {known:?}"));
    Ok(match known {
        Some(Known::Charged) => {
            Finding::Completed { response: Some(paid(id, tenant, "poll")), resource: None }
        }
        Some(Known::Declined) => {
            Finding::Failed { response: Some(declined(id, tenant, "poll")), resource: None }
        }
        // A call that is made at most once is never made again: then it is as good as declined.
        None if rule.work == Work::AtMostOnce => {
            Finding::Failed { response: Some(declined(id, tenant, "poll")), resource: None }
        }
        None => Finding::Absent,
    })
}

pub(crate) fn paid(id: OperationId, tenant: u32, via: &str) -> StoredResponse {
    let mut paid = response(201, format!(r#"{{"paid":"{id}","via":"{via}","canary":"{}"}}"#, canary(tenant)));
    paid.headers.push(("location".into(), format!("/payments/{id}").into()));
    paid
}

pub(crate) fn declined(id: OperationId, tenant: u32, via: &str) -> StoredResponse {
    response(
        402,
        format!(r#"{{"code":"card_declined","of":"{id}","via":"{via}","canary":"{}"}}"#, canary(tenant)),
    )
}

fn response(status: u16, body: String) -> StoredResponse {
    let headers = vec![("content-type".into(), "application/json".into())];
    StoredResponse { status, headers, body: Body::Stored(body.into()), schema_version: None }
}

/// What a webhook says.
#[derive(Clone, Copy)]
enum Word {
    Paid,
    Declined,
    /// Of this attempt.
    NotExecuted(u32),
}

/// Tells of an order by webhook: at once or late, once or again, by operation or by key.
fn tell(world: &Arc<World>, order: &Order, rule: &Rule, word: Word) {
    let number = world.webhooks.fetch_add(1, Relaxed);
    let (outcome, attempt, stored) = match word {
        Word::Paid => ("completed", order.attempt, Some(paid(order.id, order.tenant, "webhook"))),
        Word::Declined => ("failed", order.attempt, Some(declined(order.id, order.tenant, "webhook"))),
        Word::NotExecuted(attempt) => ("not_executed", attempt, None),
    };
    let about = if stored.is_some() && world.faults.strikes(Fault::WebhookByKey) {
        let key = world.plan.get(order.number as usize).map_or("", |operation| operation.key.as_str());
        format!(r#""tenant":"tenant-{}","operation":"{}","key":"{key}""#, order.tenant, rule.name)
    } else {
        format!(r#""operation_id":"{}","attempt":{attempt}"#, order.id)
    };
    let response = stored.map_or(String::new(), |stored| format!(r#","response":{}"#, document(&stored)));
    let body = format!(r#"{{{about},"outcome":"{outcome}"{response}}}"#);
    let late = if world.faults.strikes(Fault::WebhookLate) {
        world.chance.millis(5_000, 60_000) + Duration::from_millis(u64::from(number) % 977)
    } else {
        Duration::from_millis(20 + u64::from(number) % 400)
    };
    world.trace.note(
        Place::Provider,
        format_args!(
            "#{} {} attempt {attempt}: webhook {number} is to say {outcome}",
            order.number, order.id
        ),
    );
    let (world, id) = (Arc::clone(world), order.id);
    tokio::spawn(async move {
        tokio::time::sleep(late).await;
        deliver(&world, id, number, Bytes::from(body)).await;
    });
}

fn document(stored: &StoredResponse) -> String {
    let text = match &stored.body {
        Body::Stored(bytes) => String::from_utf8_lossy(bytes).replace('"', "\\\""),
        _ => String::new(),
    };
    let header =
        |(name, value): &(String, Bytes)| format!(r#""{name}":"{}""#, String::from_utf8_lossy(value));
    let headers: Vec<String> = stored.headers.iter().map(header).collect();
    format!(r#"{{"status":{},"headers":{{{}}},"body":"{text}"}}"#, stored.status, headers.join(","))
}

/// Delivers until somebody takes it in.
async fn deliver(world: &Arc<World>, id: OperationId, number: u32, body: Bytes) {
    let mut pause = Duration::from_millis(500);
    for round in 0..12 {
        let gateway = (number as usize).wrapping_add(round);
        let taken_in = deliver_once(world, gateway, (id, number), body.clone()).await;
        if taken_in && !world.faults.strikes(Fault::WebhookAgain) {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(20));
    }
}

async fn deliver_once(
    world: &Arc<World>,
    gateway: usize,
    (id, number): (OperationId, u32),
    body: Bytes,
) -> bool {
    let now = SystemTime::UNIX_EPOCH + Duration::from_millis(world.machine.true_millis().unsigned_abs());
    let Some(headers) = signed(now, number, &body) else { return false };
    let gateway = world.gateway(gateway);
    let way = Way::new(Host::Provider, Host::Gateway(gateway.number), About::Id(id));
    let taking_in = async move { gateway.take_in(headers, body).await };
    let answer = world.network.ask(way, Duration::from_secs(5), taking_in).await;
    if let Ok(status) = answer {
        world.trace.note(Place::Provider, format_args!("{id} webhook {number}: {status}"));
    }
    matches!(answer, Ok(200..=299))
}

fn signed(now: SystemTime, number: u32, body: &[u8]) -> Option<HeaderMap> {
    let id = format!("msg-{number}");
    let seconds = now.duration_since(SystemTime::UNIX_EPOCH).ok()?.as_secs().to_string();
    let signature = WebhookSecret::parse(SECRET).ok()?.sign(&id, &seconds, body)?;
    let mut headers = HeaderMap::new();
    for (name, value) in
        [("webhook-id", id), ("webhook-timestamp", seconds), ("webhook-signature", signature)]
    {
        headers.insert(name, HeaderValue::from_str(&value).ok()?);
    }
    Some(headers)
}
