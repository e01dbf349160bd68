//! Who is asked.

use super::question::Question;
use crate::tls::ClientTlsFiles;
use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use semel_http::tls::TlsError;
use semel_http::{Client, Endpoint, Options, Resend};
use semel_tower::BoxError;
use std::time::Duration;

/// Answers whose request it is.
pub(in crate::tenant) struct Authority {
    endpoint: Endpoint,
    client: Client,
}

impl Authority {
    pub(in crate::tenant) fn new(
        url: &Endpoint,
        tls: &ClientTlsFiles,
        deadline: Duration,
    ) -> Result<Self, TlsError> {
        // Asking has no effects: what broke is asked again.
        let options = Options { deadline, resend: Resend::Once, ..Options::default() };
        let client = Client::new(url, tls.clone(), options)?;
        Ok(Self { endpoint: url.clone(), client })
    }

    /// The head of the answer to a question.
    pub(in crate::tenant) async fn ask(
        &self,
        question: &Question,
    ) -> Result<(StatusCode, HeaderMap), BoxError> {
        let mut request = self.endpoint.get(self.endpoint.path()).body(Bytes::new())?;
        *request.headers_mut() = question.fields().clone();
        let head = self.client.send_for_head(request).await?;
        Ok((head.status, head.headers))
    }
}
