//! The admin API, asked over HTTP.

use super::Failure;
use super::problem::Problem;
use crate::escape::escape_json;
use bytes::Bytes;
use clap::Args;
use http::header::{AUTHORIZATION, CONTENT_TYPE, USER_AGENT};
use http::{HeaderValue, Method, StatusCode};
use semel_http::tls::ClientTlsFiles;
use semel_http::{Client, Endpoint, Error, Options};
use serde::de::DeserializeOwned;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Duration;

/// By this the audit says that an act came by the CLI.
const AGENT: &str = concat!("semel-cli/", env!("CARGO_PKG_VERSION"));

const DEFAULT_ADMIN: &str = "http://127.0.0.1:8081";

/// How the admin API is reached.
#[derive(Args)]
#[command(next_help_heading = "Admin API")]
pub(crate) struct Connection {
    /// URL of the admin API.
    #[arg(long, value_name = "URL", env = "SEMEL_ADMIN", default_value = DEFAULT_ADMIN)]
    admin: String,

    /// For https: PEM file of the authorities to trust instead of the system's.
    #[arg(long, value_name = "FILE", env = "SEMEL_ADMIN_CA")]
    admin_ca: Option<PathBuf>,

    /// The admin token, or env:NAME for the environment variable that holds it.
    #[arg(long, value_name = "TOKEN", env = "SEMEL_ADMIN_TOKEN", hide_env_values = true)]
    token: Option<String>,
}

impl Connection {
    /// The flags by which another command finds the same API. Tokens are not among them.
    pub(crate) fn flags(&self) -> String {
        let mut flags = String::new();
        if self.admin != DEFAULT_ADMIN {
            flags.push_str(&format!(" --admin {}", self.admin));
        }
        if let Some(ca) = &self.admin_ca {
            flags.push_str(&format!(" --admin-ca {}", ca.display()));
        }
        flags
    }

    pub(crate) fn has_token(&self) -> bool {
        self.token.as_deref().is_some_and(|token| !token.is_empty())
    }
}

/// Twice as long as the gateway itself waits for its store, and more.
const DEADLINE: Duration = Duration::from_secs(30);

/// Longer than any answer of the admin API.
const LONGEST_ANSWER: usize = 64 * 1024 * 1024;

/// The admin API of one gateway.
pub(crate) struct Admin {
    endpoint: Endpoint,
    /// Whom to trust, for https.
    tls: ClientTlsFiles,
    token: Option<HeaderValue>,
}

/// What the API answered.
pub(crate) struct Reply {
    status: StatusCode,
    body: Bytes,
}

impl Admin {
    pub(crate) fn new(connection: &Connection) -> Result<Self, Failure> {
        let address = &connection.admin;
        let wrong = |what: &str| {
            Failure::Usage(format!("--admin {address}: {what}; write a URL such as http://127.0.0.1:8081"))
        };
        // With a password in it, it would be shown.
        if address.contains('@') {
            let cure = "write a URL such as http://127.0.0.1:8081";
            return Err(Failure::Usage(format!("--admin: a URL with a user name or password; {cure}")));
        }
        let endpoint = Endpoint::parse(address).map_err(|error| wrong(&error.to_string()))?;
        if endpoint.path() != "/" {
            return Err(wrong("only scheme, host and port are allowed"));
        }
        let tls = ClientTlsFiles { ca: connection.admin_ca.clone(), ..ClientTlsFiles::default() };
        Ok(Self { endpoint, tls, token: token(connection.token.as_deref())? })
    }

    pub(crate) async fn get(&self, path: &str) -> Result<Reply, Failure> {
        self.ask(Method::GET, path, Bytes::new()).await
    }

    pub(crate) async fn post(&self, path: &str, document: &serde_json::Value) -> Result<Reply, Failure> {
        self.ask(Method::POST, path, Bytes::from(document.to_string())).await
    }

    async fn ask(&self, method: Method, path: &str, body: Bytes) -> Result<Reply, Failure> {
        let mut request = self
            .endpoint
            .request(method, path)
            .header(CONTENT_TYPE, "application/json")
            .header(USER_AGENT, AGENT);
        if let Some(token) = &self.token {
            request = request.header(AUTHORIZATION, token);
        }
        let request = request.body(body).map_err(|error| Failure::Usage(error.to_string()))?;
        // Nothing is sent twice, and no connection outlives its answer.
        let options = Options {
            deadline: DEADLINE,
            longest_answer: LONGEST_ANSWER,
            idle_connections: 0,
            ..Options::default()
        };
        let client = Client::new(&self.endpoint, self.tls.clone(), options)
            .map_err(|error| Failure::Usage(format!("--admin-ca: {error}: {}", error.cure())))?;
        match client.send(request).await {
            Ok(response) => Ok(Reply { status: response.status(), body: response.into_body() }),
            Err(Error::Connect { error, .. }) => Err(Failure::Unanswered(format!(
                "no admin API at {} ({error}): is the gateway running? Set its URL with --admin or SEMEL_ADMIN",
                self.endpoint.at("")
            ))),
            Err(error) => Err(Failure::Unanswered(format!("admin API: {error}"))),
        }
    }
}

/// The token as it is sent.
fn token(setting: Option<&str>) -> Result<Option<HeaderValue>, Failure> {
    let token = match setting.map(|setting| (setting, setting.strip_prefix("env:"))) {
        None | Some(("", _)) => return Ok(None),
        Some((_, Some(name))) => std::env::var(name)
            .map_err(|_| Failure::Usage(format!("--token env:{name}: the variable is not set")))?,
        Some((token, None)) => token.to_owned(),
    };
    let mut value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| {
        Failure::Usage("the token contains characters that are not allowed in a header".into())
    })?;
    value.set_sensitive(true);
    Ok(Some(value))
}

impl Reply {
    /// The answer, if it is not a refusal.
    pub(crate) fn document<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        self.accepted()?;
        serde_json::from_slice(&self.body).map_err(|error| {
            Failure::Unanswered(format!("the answer is not from an admin API of this version: {error}"))
        })
    }

    /// Prints the answer, and tells whether it was a refusal.
    pub(crate) fn print(&self) -> Result<(), Failure> {
        let mut out = std::io::stdout().lock();
        out.write_all(&escape_json(&self.body))?;
        if !self.body.ends_with(b"\n") {
            out.write_all(b"\n")?;
        }
        out.flush()?;
        self.accepted()
    }

    /// Whether a probe says yes; if not, what it says.
    pub(crate) fn is_success(&self) -> Result<(), Failure> {
        if self.status.is_success() {
            return Ok(());
        }
        Err(Failure::Refused(String::from_utf8_lossy(&self.body).into_owned()))
    }

    fn accepted(&self) -> Result<(), Failure> {
        if self.status.is_success() {
            return Ok(());
        }
        let said = match serde_json::from_slice::<Problem>(&self.body) {
            Ok(problem) => problem.to_string(),
            Err(_) => format!("the answer was {}: is this the admin API of a gateway?", self.status),
        };
        Err(match self.status {
            StatusCode::UNAUTHORIZED => Failure::Refused(format!("{said} Set SEMEL_ADMIN_TOKEN.")),
            StatusCode::BAD_REQUEST => Failure::Usage(said),
            status if status.is_server_error() => Failure::Unanswered(said),
            _ => Failure::Refused(said),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(address: &str) -> Result<Admin, Failure> {
        Admin::new(&Connection { admin: address.into(), admin_ca: None, token: None })
    }

    #[test]
    fn an_address_is_host_and_port() {
        for address in [
            "http://127.0.0.1:8081",
            "http://127.0.0.1:8081/",
            "http://[::1]:8081",
            "http://box",
            "https://box",
        ] {
            assert!(at(address).is_ok(), "{address}");
        }
        for address in ["", "127.0.0.1:8081", "http://box/v1", "http://box?x", "http://a:b@box", "ftp://box"]
        {
            let Err(Failure::Usage(said)) = at(address) else { panic!("{address} was taken") };
            assert!(said.contains("http://127.0.0.1:8081"), "{said}");
        }
    }

    #[test]
    fn a_token_is_given_or_named_and_never_shown() {
        let shown =
            |setting| token(setting).map(|token| token.map(|token| token.to_str().unwrap().to_owned()));
        assert_eq!(shown(None).unwrap(), None);
        assert_eq!(shown(Some("")).unwrap(), None);
        assert_eq!(shown(Some("abc")).unwrap().as_deref(), Some("Bearer abc"));
        assert!(matches!(shown(Some("env:SEMEL_NO_SUCH_VARIABLE")), Err(Failure::Usage(_))));
        assert!(matches!(shown(Some("a\nb")), Err(Failure::Usage(_))));
        assert_eq!(format!("{:?}", token(Some("abc")).unwrap()), "Some(Sensitive)");
    }
}
