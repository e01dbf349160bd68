//! How an operation stands, for clients that were told "unknown" or "in progress", and for the gateway in front.

use super::Shared;
use super::gateway::GatewaysName;
use crate::account::Account;
use crate::error::ApiError;
use crate::payment::Status;
use axum::Json;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use semel::{Body, OperationId, Record, State as OperationState};
use semel_tower::{ATTEMPT, OPERATION_ID};
use serde_json::{Map, Value, json};

type Shown = (StatusCode, Json<Value>);

/// 200 with the answer that the operation's requests get, once there is one; 202 until then; 404 for what this
/// account never asked for.
///
/// The gateway in front asks for no account, and under its own name of the operation. What it is told is its route's
/// `[route.reconcile]`: anything but 200 leaves the outcome unknown.
pub(super) async fn show(
    Path(id): Path<String>,
    State(shared): State<Shared>,
    name: GatewaysName,
    headers: HeaderMap,
) -> Result<(HeaderMap, Shown), ApiError> {
    let id: OperationId = id.parse().map_err(|_| ApiError::NotFound)?;
    if name.0 == Some(id) {
        let named = shared.database.named(id).await.map_err(ApiError::Unreadable)?;
        let record = find(&shared, named.ok_or(ApiError::NotFound)?).await?;
        // An answer here is final, at whichever of the gateway's attempts it was given: it is about the one that was asked about too.
        let about = [OPERATION_ID, ATTEMPT].into_iter();
        let about = about.filter_map(|name| headers.get(&name).cloned().map(|value| (name, value)));
        return Ok((about.collect(), shown(&record.ok_or(ApiError::NotFound)?)));
    }
    let account = Account::of(&headers).ok_or(ApiError::NoAccount)?;
    let record = find(&shared, id).await?.filter(|record| *record.key.tenant == *account.as_str());
    Ok((HeaderMap::new(), shown(&record.ok_or(ApiError::NotFound)?)))
}

async fn find(shared: &Shared, id: OperationId) -> Result<Option<Record>, ApiError> {
    let found = shared.store.find(vec![id]).await.map_err(|error| ApiError::Unreadable(error.into()))?;
    Ok(found.items.into_iter().flatten().next())
}

fn shown(record: &Record) -> Shown {
    let mut document = json!({
        "operation_id": record.operation_id.to_string(),
        "operation": &*record.key.operation,
        "state": record.state.as_str(),
        "attempt": record.attempt,
    });
    if let Some(resource) = &record.resource {
        document["resource"] = json!({ "type": resource.kind, "id": resource.id });
    }
    let answered = matches!(record.state, OperationState::Completed | OperationState::FailedReplayable);
    match &record.response {
        Some(response) if answered => {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let headers: Map<String, Value> =
                response.headers.iter().map(|(name, value)| (name.clone(), text(value).into())).collect();
            document["status"] = response.status.into();
            document["headers"] = headers.into();
            if let Body::Stored(body) = &response.body {
                document["body"] = text(body).into();
            }
            (StatusCode::OK, Json(document))
        }
        _ if answered => (StatusCode::OK, Json(document)),
        _ => {
            document["payment_status"] = json!(Status::under_way(Some(record)));
            (StatusCode::ACCEPTED, Json(document))
        }
    }
}
