//! Posts telemetry to a collector.

use bytes::Bytes;
use http::header::CONTENT_TYPE;
use http::{HeaderName, HeaderValue, StatusCode};
use semel_http::{Client, Endpoint};

/// Where one sort of telemetry is sent.
pub(super) struct Collector {
    client: Client,
    endpoint: Endpoint,
    path: String,
    headers: Vec<(HeaderName, HeaderValue)>,
}

/// Why something was not exported.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotExported {
    /// It may be taken later.
    #[error("the collector is unavailable: {0}")]
    Unavailable(String),
    /// It will never be taken.
    #[error("the collector answered {0}")]
    Refused(StatusCode),
}

impl Collector {
    /// What is sent goes to `signal` below the collector's address.
    pub(super) fn new(
        client: Client,
        endpoint: &Endpoint,
        signal: &str,
        headers: &[(HeaderName, HeaderValue)],
    ) -> Self {
        let path = format!("{}{signal}", endpoint.path().trim_end_matches('/'));
        Self { client, endpoint: endpoint.clone(), path, headers: headers.to_vec() }
    }

    pub(super) async fn export(&self, body: Bytes) -> Result<(), NotExported> {
        let unavailable = |error: &dyn std::error::Error| NotExported::Unavailable(error.to_string());
        let mut request = self.endpoint.post(&self.path).header(CONTENT_TYPE, "application/x-protobuf");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let request = request.body(body).map_err(|error| unavailable(&error))?;
        let answer = self.client.send(request).await.map_err(|error| unavailable(&error))?;
        match answer.status() {
            status if status.is_success() => Ok(()),
            // The protocol says that these are worth another try.
            status @ (StatusCode::TOO_MANY_REQUESTS
            | StatusCode::BAD_GATEWAY
            | StatusCode::SERVICE_UNAVAILABLE
            | StatusCode::GATEWAY_TIMEOUT) => Err(NotExported::Unavailable(format!("it answered {status}"))),
            status => Err(NotExported::Refused(status)),
        }
    }
}
