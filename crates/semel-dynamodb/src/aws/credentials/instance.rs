//! Credentials of an instance's role, from its metadata: IMDSv2 alone, whose token a tricked proxy cannot get.

use super::environment::variable;
use super::{Credentials, CredentialsError};
use bytes::Bytes;
use http::{Method, StatusCode};
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options};
use std::time::Duration;

const METADATA: &str = "http://169.254.169.254/";
const ROLES: &str = "/latest/meta-data/iam/security-credentials/";

pub(super) async fn look() -> Result<Option<Credentials>, CredentialsError> {
    if variable("AWS_EC2_METADATA_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true")) {
        return Ok(None);
    }
    let url = variable("AWS_EC2_METADATA_SERVICE_ENDPOINT").unwrap_or_else(|| METADATA.into());
    let asked = ask(&url).await;
    asked.map_err(|what| CredentialsError(format!("the instance's metadata ({url}): {what}")))
}

/// `None` where there is no metadata service: this machine is no instance.
async fn ask(url: &str) -> Result<Option<Credentials>, String> {
    let endpoint = Endpoint::parse(url).map_err(|error| error.to_string())?;
    let options = Options { deadline: Duration::from_secs(1), ..Options::default() };
    let client =
        Client::new(&endpoint, ClientTlsFiles::default(), options).map_err(|error| error.to_string())?;
    let token = endpoint
        .request(Method::PUT, "/latest/api/token")
        .header("x-aws-ec2-metadata-token-ttl-seconds", "300")
        .body(Bytes::new())
        .map_err(|error| error.to_string())?;
    let token = match client.send(token).await {
        Ok(answer) if answer.status().is_success() => answer.into_body(),
        Ok(answer) => return Err(format!("answered {} to a request for a token", answer.status())),
        Err(_nobody) => return Ok(None),
    };
    let get = async |path: &str| {
        let request = endpoint
            .get(path)
            .header("x-aws-ec2-metadata-token", &token[..])
            .body(Bytes::new())
            .map_err(|error| error.to_string())?;
        client.send(request).await.map_err(|error| error.to_string())
    };
    let roles = get(ROLES).await?;
    if roles.status() == StatusCode::NOT_FOUND {
        return Ok(None);
    }
    let role = String::from_utf8_lossy(roles.body()).lines().next().unwrap_or_default().trim().to_owned();
    let answer = get(&format!("{ROLES}{role}")).await?;
    match Credentials::of_document(answer.body()).filter(|_| answer.status().is_success()) {
        Some(found) => Ok(Some(found)),
        None => Err(format!("answered {} without credentials", answer.status())),
    }
}
