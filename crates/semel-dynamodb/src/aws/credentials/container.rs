//! Credentials from the endpoint of a container: ECS, or EKS Pod Identity.

use super::environment::variable;
use super::{Credentials, CredentialsError};
use bytes::Bytes;
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Options};
use std::fs;
use std::net::IpAddr;
use std::time::Duration;

/// Where ECS answers.
const ECS: &str = "http://169.254.170.2";

/// Other addresses that a credentials endpoint over plain HTTP may have, besides loopback: ECS's and EKS's.
const LINK_LOCAL: [&str; 3] = ["169.254.170.2", "169.254.170.23", "fd00:ec2::23"];

pub(super) async fn look() -> Result<Option<Credentials>, CredentialsError> {
    let relative = variable("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI").map(|path| format!("{ECS}{path}"));
    let Some(url) = relative.or_else(|| variable("AWS_CONTAINER_CREDENTIALS_FULL_URI")) else {
        return Ok(None);
    };
    let failed = |what: String| CredentialsError(format!("the container's credentials ({url}): {what}"));
    let file = variable("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE");
    let token = match file {
        Some(file) => {
            let read = fs::read_to_string(&file).map_err(|error| failed(format!("{file}: {error}")))?;
            Some(read.trim().to_owned())
        }
        None => variable("AWS_CONTAINER_AUTHORIZATION_TOKEN"),
    };
    ask(&url, token).await.map(Some).map_err(failed)
}

async fn ask(url: &str, token: Option<String>) -> Result<Credentials, String> {
    let endpoint = Endpoint::parse(url).map_err(|error| error.to_string())?;
    if !endpoint.is_https() && !may_be_plain(endpoint.host()) {
        return Err("over plain HTTP only loopback and the container's own addresses are asked".into());
    }
    let options = Options { deadline: Duration::from_secs(5), ..Options::default() };
    let client =
        Client::new(&endpoint, ClientTlsFiles::default(), options).map_err(|error| error.to_string())?;
    let mut request = endpoint.get(endpoint.path());
    if let Some(token) = token {
        request = request.header("authorization", token);
    }
    let request = request.body(Bytes::new()).map_err(|error| error.to_string())?;
    let answer = client.send(request).await.map_err(|error| error.to_string())?;
    let status = answer.status();
    let found = status.is_success().then(|| Credentials::of_document(answer.body())).flatten();
    found.ok_or_else(|| format!("answered {status} without credentials"))
}

fn may_be_plain(host: &str) -> bool {
    let is_loopback = |host: &str| host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    host == "localhost" || is_loopback(host) || LINK_LOCAL.contains(&host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_sent_in_plain_text_to_nobody_else() {
        for host in ["localhost", "127.0.0.1", "::1", "169.254.170.2", "169.254.170.23", "fd00:ec2::23"] {
            assert!(may_be_plain(host), "{host}");
        }
        for host in ["169.254.169.254", "10.0.0.1", "credentials.example"] {
            assert!(!may_be_plain(host), "{host}");
        }
    }
}
