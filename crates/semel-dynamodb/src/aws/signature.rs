//! Signature version 4, as far as one service with requests of one form needs it: `POST /`, without a query.

use super::Credentials;
use hmac::{Hmac, KeyInit as _, Mac as _};
use http::HeaderValue;
use http::header::{AUTHORIZATION, HeaderName, InvalidHeaderValue};
use http::request::Builder;
use sha2::{Digest as _, Sha256};
use std::fmt::Write as _;

const ALGORITHM: &str = "AWS4-HMAC-SHA256";
const DATE: HeaderName = HeaderName::from_static("x-amz-date");
const TOKEN: HeaderName = HeaderName::from_static("x-amz-security-token");
const TARGET: HeaderName = HeaderName::from_static("x-amz-target");

/// Signs requests to one service in one region.
#[derive(Clone, Debug)]
pub(crate) struct Signer {
    region: String,
    service: &'static str,
    host: String,
}

impl Signer {
    pub(crate) fn new(region: &str, service: &'static str, host: &str) -> Self {
        Self { region: region.into(), service, host: host.into() }
    }

    /// The request's head with what proves who sends it: its target, the time, and the signature over both and the body.
    pub(crate) fn sign(
        &self,
        request: Builder,
        target: &str,
        body: &[u8],
        credentials: &Credentials,
        at: i64,
    ) -> Result<Builder, InvalidHeaderValue> {
        let (date, authorization) = self.authorization(target, body, credentials, at);
        let mut request = request
            .header(DATE, date)
            .header(TARGET, target)
            .header(AUTHORIZATION, HeaderValue::try_from(authorization)?);
        if let Some(token) = &credentials.session_token {
            let mut token = HeaderValue::try_from(token)?;
            token.set_sensitive(true);
            request = request.header(TOKEN, token);
        }
        Ok(request)
    }

    fn authorization(
        &self,
        target: &str,
        body: &[u8],
        credentials: &Credentials,
        at: i64,
    ) -> (String, String) {
        let Self { region, service, host } = self;
        let date = amz_date(at);
        let day = date.get(..8).unwrap_or_default();
        let mut headers = format!("host:{host}\nx-amz-date:{date}\n");
        let mut names = String::from("host;x-amz-date");
        if let Some(token) = &credentials.session_token {
            headers += &format!("x-amz-security-token:{token}\n");
            names += ";x-amz-security-token";
        }
        headers += &format!("x-amz-target:{target}\n");
        names += ";x-amz-target";
        let canonical = format!("POST\n/\n\n{headers}\n{names}\n{}", hex(&Sha256::digest(body)));
        let scope = format!("{day}/{region}/{service}/aws4_request");
        let to_sign = format!("{ALGORITHM}\n{date}\n{scope}\n{}", hex(&Sha256::digest(canonical)));
        let secret = format!("AWS4{}", credentials.secret_access_key);
        let key = [day, region, service, "aws4_request"]
            .iter()
            .fold(secret.into_bytes(), |key, part| hmac(&key, part.as_bytes()));
        let signature = hex(&hmac(&key, to_sign.as_bytes()));
        let id = &credentials.access_key_id;
        let authorization =
            format!("{ALGORITHM} Credential={id}/{scope}, SignedHeaders={names}, Signature={signature}");
        (date, authorization)
    }
}

fn hmac(key: &[u8], message: &[u8]) -> Vec<u8> {
    // A key of any length will do; should that ever change, what is signed with nothing is refused by the service.
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(key) else { return Vec::new() };
    mac.update(message);
    mac.finalize().into_bytes().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        // Writing to a string does not fail.
        let _written = write!(text, "{byte:02x}");
    }
    text
}

/// A moment in milliseconds as `20261119T223132Z`.
fn amz_date(millis: i64) -> String {
    let moment = jiff::Timestamp::from_millisecond(millis).unwrap_or_default();
    moment.strftime("%Y%m%dT%H%M%SZ").to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Computed with botocore 1.44.5 (`SigV4Auth`) for the same request, time and credentials.
    #[test]
    fn a_signature_is_the_one_that_botocore_makes() {
        let signer = Signer::new("us-east-1", "dynamodb", "dynamodb.us-east-1.amazonaws.com");
        let mut credentials =
            Credentials::new("AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", None);
        let sign = |credentials: &Credentials| {
            let target = "DynamoDB_20120810.GetItem";
            signer.authorization(target, b"{\"TableName\": \"t\"}", credentials, 1_440_938_160_000)
        };
        let (date, plain) = sign(&credentials);
        assert_eq!(date, "20150830T123600Z");
        assert_eq!(plain, PLAIN);
        credentials.session_token = Some("a/token==".into());
        assert_eq!(sign(&credentials).1, WITH_TOKEN);
    }

    const PLAIN: &str = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-target, Signature=dad58a313afee76acdeadfaf6449b6a62148790732aaf1c1f3d1f47bfa62c09a";
    const WITH_TOKEN: &str = "AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20150830/us-east-1/dynamodb/aws4_request, SignedHeaders=host;x-amz-date;x-amz-security-token;x-amz-target, Signature=1f5ab04b23f3a711fed3bfc1ee385a83762c664f3d53f6da0d9a24c96f7bbec4";
}
