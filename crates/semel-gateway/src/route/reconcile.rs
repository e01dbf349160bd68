//! How doubt about an operation is settled by asking.

use crate::setting::InvalidValue;
use crate::tls::ClientTlsFiles;
use http::Uri;
use semel::OperationId;
use std::fmt;
use std::time::Duration;

/// How doubt about an operation is settled by asking the service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReconcileConfig {
    /// Where to ask.
    pub poll: PollUrl,
    /// Whom to trust there, and which certificate to show, for `https`.
    pub tls: ClientTlsFiles,
    /// How long after the doubt arose to ask first; then exponentially longer. Default 5 s.
    pub every: Duration,
    /// How often to ask before it is a dead letter. Default 12.
    pub attempts: u32,
    /// Whether the service's word that there is no trace of an attempt proves that nothing happened: it refuses that attempt from then on.
    /// Default: no.
    pub absence_is_proof: bool,
}

/// The address that knows what became of an operation. Nothing in it changes but the operation's id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PollUrl {
    before: String,
    after: String,
}

const OPERATION_ID: &str = "{operation_id}";

impl PollUrl {
    pub(crate) const EXAMPLE: &str = "http://127.0.0.1:9000/operations/{operation_id}";

    /// The address that a text tells: absolute, with `{operation_id}` once, in its path or query.
    ///
    /// # Errors
    /// What is wrong with it, and what would be right.
    pub fn parse(text: &str) -> Result<Self, InvalidValue> {
        let wrong = |problem: &str| {
            Err(InvalidValue::new(problem, format!("write an address such as \"{}\"", Self::EXAMPLE)))
        };
        let Some((before, after)) = text.split_once(OPERATION_ID) else {
            return wrong("the address to poll does not say where the operation's id goes");
        };
        if after.contains(OPERATION_ID) {
            return wrong("the address to poll has {operation_id} in it twice");
        }
        if [before, after].iter().any(|part| part.contains(['{', '}'])) {
            return wrong("the address to poll has braces other than {operation_id}");
        }
        if text.contains('#') {
            return wrong("the address to poll has a fragment, which is not sent");
        }
        let scheme = |scheme: &str| ["http", "https"].contains(&scheme);
        let Some((_, rest)) = before.split_once("://").filter(|(given, _)| scheme(given)) else {
            return wrong("the URL to poll must begin with http:// or https://");
        };
        if !rest.contains(['/', '?']) {
            return wrong("{operation_id} may stand in the path or the query, never in the host");
        }
        let poll = Self { before: before.to_owned(), after: after.to_owned() };
        match poll.for_operation(OperationId::from_u128(0)) {
            Some(uri) if uri.authority().is_some_and(|authority| authority.as_str().contains('@')) => {
                wrong("the address to poll has a user name or password, which would never be sent")
            }
            Some(uri) if uri.host().is_some_and(|host| !host.is_empty()) => Ok(poll),
            _ => wrong("invalid poll URL"),
        }
    }

    /// Whether it is polled over TLS.
    #[must_use]
    pub fn is_https(&self) -> bool {
        self.before.starts_with("https://")
    }

    /// The address for one operation.
    #[must_use]
    pub fn for_operation(&self, id: OperationId) -> Option<Uri> {
        // Never `None` once parsed: an id is hexadecimal digits and hyphens.
        format!("{}{id}{}", self.before, self.after).parse().ok()
    }
}

impl fmt::Display for PollUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{OPERATION_ID}{}", self.before, self.after)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_operations_id_goes_into_the_path_or_the_query() {
        let id = OperationId::from_u128(7);
        for text in [
            "http://127.0.0.1:9000/operations/{operation_id}",
            "http://provider.example/v1/{operation_id}/status?full=1",
            "http://host?id={operation_id}",
            "https://host/{operation_id}",
            "http://[::1]:9000/x?id={operation_id}&y",
        ] {
            let poll = PollUrl::parse(text).unwrap();
            assert_eq!(poll.to_string(), text);
            let uri = poll.for_operation(id).unwrap().to_string();
            assert!(uri.contains(&id.to_string()), "{uri}");
        }
    }

    #[test]
    fn an_address_that_would_not_do_is_refused() {
        for (text, problem) in [
            ("http://host/operations", "does not say where"),
            ("http://host/{operation_id}/{operation_id}", "twice"),
            ("http://host/{id}/{operation_id}", "braces"),
            ("/operations/{operation_id}", "must begin with"),
            ("ftp://host/{operation_id}", "must begin with"),
            ("{operation_id}", "must begin with"),
            ("http://{operation_id}.host/x", "never in the host"),
            ("http://host:{operation_id}", "never in the host"),
            ("http://me:word@host/{operation_id}", "a user name or password"),
            ("http://host/{operation_id}#x", "a fragment"),
            ("http:///{operation_id}", "invalid poll URL"),
            ("http://ho st/{operation_id}", "invalid poll URL"),
        ] {
            assert!(PollUrl::parse(text).unwrap_err().problem.contains(problem), "{text}");
        }
    }
}
