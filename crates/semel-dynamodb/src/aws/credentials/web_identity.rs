//! Credentials for a token that somebody else vouches for: a Kubernetes service account, say.

use super::environment::variable;
use super::{Credentials, CredentialsError, moment};
use bytes::Bytes;
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options};
use std::fs;

pub(super) async fn look(region: &str) -> Result<Option<Credentials>, CredentialsError> {
    let (Some(file), Some(role)) = (variable("AWS_WEB_IDENTITY_TOKEN_FILE"), variable("AWS_ROLE_ARN")) else {
        return Ok(None);
    };
    let failed = |what: String| CredentialsError(format!("web identity ({file}): {what}"));
    let token = fs::read_to_string(&file).map_err(|error| failed(error.to_string()))?;
    let endpoint =
        variable("AWS_ENDPOINT_URL_STS").unwrap_or_else(|| format!("https://sts.{region}.amazonaws.com/"));
    let endpoint = Endpoint::parse(&endpoint).map_err(|error| failed(error.to_string()))?;
    let session = variable("AWS_ROLE_SESSION_NAME").unwrap_or_else(|| "semel".into());
    let body = format!(
        "Action=AssumeRoleWithWebIdentity&Version=2011-06-15&RoleArn={}&RoleSessionName={}&WebIdentityToken={}",
        encoded(&role),
        encoded(&session),
        encoded(token.trim())
    );
    let ask = async {
        let client = Client::new(&endpoint, ClientTlsFiles::default(), Options::default())
            .map_err(|error| error.to_string())?;
        let request = endpoint
            .post("/")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(body))
            .map_err(|error| error.to_string())?;
        let answer = client.send(request).await.map_err(|error| error.to_string())?;
        let status = answer.status();
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        match of(&text).filter(|_| status.is_success()) {
            Some(found) => Ok(found),
            None => Err(format!("STS answered {status} {}", element(&text, "Code").unwrap_or_default())),
        }
    };
    ask.await.map(Some).map_err(failed)
}

/// From STS's answer, whose elements have no attributes and occur once.
fn of(xml: &str) -> Option<Credentials> {
    let mut found = Credentials::new(
        element(xml, "AccessKeyId")?,
        element(xml, "SecretAccessKey")?,
        Some(element(xml, "SessionToken")?.to_owned()),
    );
    found.expires = Some(moment(element(xml, "Expiration")?)?);
    Some(found)
}

fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    rest.split_once(&format!("</{name}>")).map(|(text, _)| text.trim())
}

fn encoded(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    let spell = |byte: u8| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") };
    text.bytes().map(spell).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_answer_of_sts_is_read() {
        let xml = "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials>\
                   <SessionToken>tok==</SessionToken><SecretAccessKey>s/1</SecretAccessKey>\
                   <Expiration>2026-11-19T23:00:00Z</Expiration><AccessKeyId>ASIA</AccessKeyId></Credentials>";
        let found = of(xml).unwrap();
        assert_eq!((found.access_key_id.as_str(), found.secret_access_key.as_str()), ("ASIA", "s/1"));
        assert_eq!((found.session_token.as_deref(), found.expires), (Some("tok=="), Some(1_795_129_200_000)));
        assert_eq!(of("<Code>AccessDenied</Code>"), None);
    }

    #[test]
    fn a_form_is_encoded() {
        assert_eq!(encoded("arn:aws:iam::1:role/a b"), "arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fa%20b");
    }
}
