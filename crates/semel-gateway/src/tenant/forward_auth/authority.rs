//! Who is asked.

use super::ForwardAuthConfig;
use super::question::Question;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use semel_http::tls::TlsError;
use semel_http::{Client, Endpoint, Options, Resend};
use semel_tower::BoxError;

/// Answers whose request it is.
pub(super) struct Authority {
    endpoint: Endpoint,
    client: Client,
}

impl Authority {
    pub(super) fn new(config: &ForwardAuthConfig) -> Result<Self, TlsError> {
        // Asking has no effects: what broke is asked again.
        let options = Options { deadline: config.deadline, resend: Resend::Once, ..Options::default() };
        let client = Client::new(&config.url, config.tls.clone(), options)?;
        Ok(Self { endpoint: config.url.clone(), client })
    }

    /// The head of the answer to a question.
    pub(super) async fn ask(&self, question: &Question) -> Result<(StatusCode, HeaderMap), BoxError> {
        let mut request = self.endpoint.get(self.endpoint.path()).body(Bytes::new())?;
        *request.headers_mut() = question.fields().clone();
        let head = self.client.send_for_head(request).await?;
        Ok((head.status, head.headers))
    }
}
