//! The address of a poll.

use super::InvalidPoll;
use http::Uri;
use http::uri::Scheme;
use semel::OperationId;

const PLACEHOLDER: &str = "{operation_id}";

/// A fixed host, and a path that is fixed but for the operation id.
#[derive(Debug)]
pub(super) struct Address {
    host: String,
    port: u16,
    authority: String,
    path: String,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, InvalidPoll> {
        if !url.contains(PLACEHOLDER) {
            return Err(InvalidPoll::NoOperation(url.into()));
        }
        let some_id = OperationId::from_u128(0);
        let filled = url.replace(PLACEHOLDER, &some_id.to_string());
        if filled.contains(['{', '}']) {
            return Err(InvalidPoll::Placeholder(url.into()));
        }
        let invalid = || InvalidPoll::Address(url.into());
        let uri: Uri = filled.parse().map_err(|_| invalid())?;
        let authority = uri.authority().ok_or_else(invalid)?;
        if uri.scheme() != Some(&Scheme::HTTP) {
            return Err(InvalidPoll::Scheme(url.into()));
        }
        if authority.as_str().contains('@') || authority.host().is_empty() {
            return Err(invalid());
        }
        // The template's own path: everything after its authority, in which nothing is to be put.
        let (_, path) = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once(authority.as_str()))
            .filter(|(before, _)| before.is_empty())
            .ok_or_else(|| InvalidPoll::Placeholder(url.into()))?;
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        if !path.contains(PLACEHOLDER) {
            return Err(InvalidPoll::NoOperation(url.into()));
        }
        Ok(Self {
            host: authority.host().trim_matches(['[', ']']).into(),
            port: authority.port_u16().unwrap_or(80),
            authority: authority.as_str().into(),
            path: if path.starts_with('/') { path.into() } else { format!("/{path}") },
        })
    }

    pub(super) fn socket(&self) -> (&str, u16) {
        (&self.host, self.port)
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    pub(super) fn path_for(&self, id: OperationId) -> String {
        self.path.replace(PLACEHOLDER, &id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_fixed_but_for_the_operation() {
        let id = OperationId::from_u128(7);
        for (url, host, port, path) in [
            (
                "http://127.0.0.1:9000/operations/{operation_id}",
                "127.0.0.1",
                9000,
                format!("/operations/{id}"),
            ),
            ("http://bank.internal/find?op={operation_id}", "bank.internal", 80, format!("/find?op={id}")),
            ("http://[::1]:81/{operation_id}/{operation_id}#x", "::1", 81, format!("/{id}/{id}")),
            ("http://bank?op={operation_id}", "bank", 80, format!("/?op={id}")),
        ] {
            let address = Address::parse(url).unwrap();
            assert_eq!((address.socket(), address.path_for(id)), ((host, port), path), "{url}");
        }
    }

    #[test]
    fn an_address_that_cannot_be_meant_is_refused() {
        for (url, said) in [
            ("http://bank/operations", "every operation would get the same answer"),
            ("http://bank/operations#{operation_id}", "every operation would get the same answer"),
            ("https://bank/{operation_id}", "plain HTTP"),
            ("http://{operation_id}.bank/{operation_id}", "all that can be put"),
            ("http://bank/{key}/{operation_id}", "all that can be put"),
            ("http://user:pw@bank/{operation_id}", "is no address"),
            ("bank/{operation_id}", "is no address"),
            ("/{operation_id}", "is no address"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(said), "{url}: {error}");
        }
    }
}
