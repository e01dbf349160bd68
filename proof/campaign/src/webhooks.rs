//! Somebody who reports charges by tenant, operation and key instead of the operation's id: late, twice, and again long after. Keys are used again
//! after their windows, so that such a message may be about an operation that is over.

use crate::client::{Call, call};
use crate::config::WEBHOOK_SECRET;
use crate::ledger;
use crate::plan::{Operation, Variant};
use crate::processes::Processes;
use crate::shop::told_of;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use hmac::{Hmac, KeyInit as _, Mac as _};
use serde_json::{Value, json};
use sha2::Sha256;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How long a delivery may take.
const PATIENCE: Duration = Duration::from_secs(2);
/// How often one message is delivered at most.
const DELIVERIES: u32 = 3;

/// One message that waits.
struct Message {
    id: String,
    body: String,
    due: Instant,
    left: u32,
}

/// Reports every charge in the ledger, without end.
pub(crate) async fn report(processes: &Processes, plan: &[Arc<Operation>], seed: u64) {
    let mut rng = Rng::with_seed(seed ^ 0x3EB);
    let addressed: BTreeMap<String, (u32, &Operation)> = plan
        .iter()
        .flat_map(|operation| {
            Variant::EXECUTABLE
                .map(|variant| (operation.reference(variant), (operation.tenant_of(variant), &**operation)))
        })
        .collect();
    let (mut after, mut waiting) = (0, Vec::<Message>::new());
    loop {
        if let Ok(page) = ledger::page(processes.provider_at, after).await {
            for entry in page["entries"].as_array().into_iter().flatten() {
                after = entry["sequence"].as_u64().unwrap_or(after).max(after);
                let reference = entry["reference"].as_str().unwrap_or_default();
                if let (true, Some(addressed)) = (entry["kind"] == "charge", addressed.get(reference)) {
                    waiting.push(message(entry, *addressed, &mut rng));
                }
            }
        }
        let now = Instant::now();
        for message in waiting.iter_mut().filter(|message| message.due <= now) {
            let site = &processes.sites[rng.usize(0..processes.sites.len())];
            if deliver(site.admin, message).await {
                message.left -= 1;
            }
            message.due = now + Duration::from_millis(rng.u64(200..4_000));
        }
        waiting.retain(|message| message.left > 0);
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn message(entry: &Value, (tenant, operation): (u32, &Operation), rng: &mut Rng) -> Message {
    let (status, body) = told_of(201, entry, false);
    let kept = json!({ "content-type": "application/json" });
    let body = json!({
        "tenant": format!("tenant-{tenant}"), "operation": operation.window.operation(), "key": operation.key,
        "outcome": "completed", "response": { "status": status.as_u16(), "headers": kept, "body": body }
    });
    Message {
        id: format!("msg_{}", entry["sequence"]),
        body: body.to_string(),
        due: Instant::now() + Duration::from_millis(rng.u64(0..1_000)),
        left: rng.u32(1..=DELIVERIES),
    }
}

/// Whether it was taken.
async fn deliver(to: std::net::SocketAddr, message: &Message) -> bool {
    let timestamp = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs().to_string();
    let Some(signature) = sign(&message.id, &timestamp, &message.body) else { return false };
    let headers = &[
        ("content-type", "application/json"),
        ("webhook-id", message.id.as_str()),
        ("webhook-timestamp", timestamp.as_str()),
        ("webhook-signature", signature.as_str()),
    ];
    let delivery =
        Call { method: "POST", path: "/v1/webhooks/campaign", headers, body: message.body.clone() };
    call(to, delivery, PATIENCE).await.is_ok_and(|answer| answer.status == 200)
}

fn sign(id: &str, timestamp: &str, body: &str) -> Option<String> {
    let secret = STANDARD.decode(WEBHOOK_SECRET.strip_prefix("whsec_")?).ok()?;
    let mut hmac = Hmac::<Sha256>::new_from_slice(&secret).ok()?;
    hmac.update(format!("{id}.{timestamp}.{body}").as_bytes());
    Some(format!("v1,{}", STANDARD.encode(hmac.finalize().into_bytes())))
}
