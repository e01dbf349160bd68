//! The provider that moves the money: one call, under the operation's own identity.

use crate::conclusion::Conclusion;
use crate::payment::Payment;
use crate::refund::Granted;
use crate::verdict::{NoAnswer, Verdict};
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Builder;
use axum::http::{HeaderValue, Method, StatusCode, Uri};
use semel::headers::{IDEMPOTENCY_KEY, OPERATION_ID};
use semel::{Body, Found, Identity, Inquiry, OperationId, Promise, Takeover};
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options, Resend};
use semel_tower::Reply;
use serde_json::{Map, Value, json};
use std::time::Duration;

/// What a provider can be relied on for, once nobody knows whether a call reached it. Whoever sets the service up has read the
/// provider's manual.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum ProviderPromise {
    /// One identity is charged once, however often it is sent.
    #[default]
    Deduplicates,
    /// It says what became of an identity, and refuses late attempts of one that it knows nothing of.
    CanBeAsked,
    /// Neither.
    Neither,
}

/// Where the provider is, and what it promises.
#[derive(Clone, Debug)]
pub struct ProviderOptions {
    /// Its address, such as `http://127.0.0.1:9100`.
    pub url: Uri,
    /// What it promises.
    pub promise: ProviderPromise,
    /// How long one call to it may take. Default 5 s.
    pub timeout: Duration,
}

impl ProviderOptions {
    /// A provider at `url` that promises this.
    #[must_use]
    pub fn new(url: Uri, promise: ProviderPromise) -> Self {
        Self { url, promise, timeout: Duration::from_secs(5) }
    }
}

/// A client of the provider, for one operation.
#[derive(Clone)]
pub(crate) struct Provider<'a> {
    pub(crate) options: &'a ProviderOptions,
    pub(crate) operation: OperationId,
    /// How the provider is to misbehave, for demonstrations and tests.
    pub(crate) mode: Option<HeaderValue>,
}

/// One kind of call.
#[derive(Clone, Copy)]
pub(crate) enum Call<'a> {
    Charge(&'a Payment),
    Refund(&'a Granted),
}

impl Call<'_> {
    fn path(self) -> &'static str {
        match self {
            Self::Charge(_) => "/charges",
            Self::Refund(_) => "/refunds",
        }
    }

    /// What is ordered, and what a webhook is to say that our own client is told: only we know that.
    fn order(self) -> Value {
        let (mut order, concluded): (_, &dyn Fn(Verdict) -> Conclusion) = match self {
            Self::Charge(payment) => (
                json!({
                    "amount": payment.terms.amount,
                    "currency": payment.terms.currency,
                    "reference": payment.id,
                }),
                &|verdict| Conclusion::charged(payment.clone(), verdict),
            ),
            Self::Refund(Granted { refund, charge_id }) => (
                json!({
                    "charge_id": charge_id,
                    "amount": refund.amount,
                    "currency": refund.currency,
                    "reference": refund.id,
                }),
                &|verdict| Conclusion::refunded(refund.clone(), &verdict),
            ),
        };
        // What the provider calls its part, and why it declines, is not in our answers.
        let verdicts = [
            ("webhook_response", Verdict::Succeeded { id: String::new() }),
            ("webhook_response_declined", Verdict::Declined { code: String::new() }),
        ];
        for (name, verdict) in verdicts {
            if let Some(answer) = concluded(verdict).reply().ok().and_then(document) {
                order[name] = answer;
            }
        }
        order
    }
}

impl Provider<'_> {
    /// Makes the one call. `Ok` is the provider's word; everything else is silence.
    pub(crate) async fn call(&self, identity: Identity, call: Call<'_>) -> Result<Verdict, NoAnswer> {
        let mut request = self
            .request(Method::POST, call.path())?
            .header("attempt", identity.attempt())
            .header(OPERATION_ID, self.operation.to_string())
            .header(CONTENT_TYPE, "application/json");
        if let Some(mode) = &self.mode {
            request = request.header("x-provider-mode", mode);
        }
        let request = request.header(IDEMPOTENCY_KEY, identity.into_key());
        match self.exchange(request, call.order().to_string().into()).await? {
            (StatusCode::CREATED | StatusCode::PAYMENT_REQUIRED, body) => Verdict::of_receipt(&read(&body)?),
            (status, _) => Err(NoAnswer::Status(status)),
        }
    }

    /// Asks what became of an identity.
    pub(crate) async fn ask(&self, inquiry: Inquiry, call: Call<'_>) -> Result<Found<Verdict>, NoAnswer> {
        let path = call.path();
        let uri = format!("{path}/by-identity/{}?attempt={}", inquiry.key, inquiry.up_to_attempt);
        let (status, body) = self.exchange(self.request(Method::GET, &uri)?, Bytes::new()).await?;
        match status {
            StatusCode::OK => Ok(Found::Happened(Verdict::of_receipt(&read(&body)?)?)),
            // The provider's manual says that it refuses these attempts from now on.
            StatusCode::NOT_FOUND if denies(&body, &inquiry) => Ok(Found::NeverWill),
            status => Err(NoAnswer::Status(status)),
        }
    }

    fn request(&self, method: Method, path: &str) -> Result<Builder, NoAnswer> {
        Ok(Endpoint::new(&self.options.url)?.request(method, path))
    }

    /// Each call has a connection of its own: one that was kept may be closed by the provider just as the call is sent, and that call
    /// would be in doubt.
    async fn exchange(&self, request: Builder, body: Bytes) -> Result<(StatusCode, Bytes), NoAnswer> {
        let options = Options {
            deadline: self.options.timeout,
            idle_connections: 0,
            resend: Resend::Never,
            ..Options::default()
        };
        let client = Client::new(&Endpoint::new(&self.options.url)?, ClientTlsFiles::default(), options)?;
        let (head, body) = client.send(request.body(body)?).await?.into_parts();
        Ok((head.status, body))
    }
}

/// What the provider promises of one kind of call.
pub(crate) struct Promised<'a> {
    pub(crate) provider: &'a Provider<'a>,
    pub(crate) call: Call<'a>,
}

impl Promise<Verdict, NoAnswer> for Promised<'_> {
    async fn after_takeover(&self, inquiry: Inquiry) -> Result<Takeover<Verdict>, NoAnswer> {
        Ok(match self.provider.options.promise {
            ProviderPromise::Deduplicates => Takeover::Repeat,
            ProviderPromise::Neither => Takeover::Unclear,
            ProviderPromise::CanBeAsked => self.provider.ask(inquiry, self.call).await?.into(),
        })
    }

    async fn after_silence(&self, inquiry: Inquiry) -> Found<Verdict> {
        match self.provider.options.promise {
            ProviderPromise::CanBeAsked => {
                self.provider.ask(inquiry, self.call).await.unwrap_or(Found::Unclear)
            }
            ProviderPromise::Deduplicates | ProviderPromise::Neither => Found::Unclear,
        }
    }
}

/// Whether it is the provider itself that knows nothing of this very call. Anybody on the way can answer 404.
fn denies(body: &[u8], inquiry: &Inquiry) -> bool {
    read(body).is_ok_and(|said| {
        said["code"] == "not_found"
            && said["identity"] == inquiry.key.as_str()
            && said["attempt"] == inquiry.up_to_attempt
    })
}

fn read(body: &[u8]) -> Result<Value, NoAnswer> {
    serde_json::from_slice(body).map_err(NoAnswer::Unreadable)
}

/// An answer of ours as a webhook carries it.
fn document(reply: Reply) -> Option<Value> {
    let (response, _) = reply.into_parts();
    let text = |bytes: &Bytes| String::from_utf8(bytes.to_vec()).ok();
    let headers: Option<Map<String, Value>> =
        response.headers.iter().map(|(name, value)| Some((name.clone(), text(value)?.into()))).collect();
    let Body::Stored(body) = &response.body else { return None };
    Some(json!({ "status": response.status, "headers": headers?, "body": text(body)? }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_providers_own_word_about_this_very_call_is_a_denial() {
        let inquiry = Inquiry { key: "op_1/charged".into(), up_to_attempt: 2 };
        for (body, is_one) in [
            (r#"{"code":"not_found","identity":"op_1/charged","attempt":2}"#, true),
            (r#"{"code":"not_found","identity":"op_1/charged","attempt":1}"#, false),
            (r#"{"code":"not_found","identity":"op_2/charged","attempt":2}"#, false),
            (r#"{"code":"not_found"}"#, false),
            (r#"{"status":404,"error":"Not Found"}"#, false),
            ("<html>404 Not Found</html>", false),
            ("", false),
        ] {
            assert_eq!(denies(body.as_bytes(), &inquiry), is_one, "{body}");
        }
    }
}
