//! The URL of a poll.

use super::InvalidPoll;
use semel::OperationId;
use semel_http::Endpoint;

const PLACEHOLDER: &str = "{operation_id}";

/// A fixed host, and a path that is fixed except for the operation id.
#[derive(Debug)]
pub(super) struct Address {
    endpoint: Endpoint,
    path: String,
}

impl Address {
    pub(super) fn parse(url: &str) -> Result<Self, InvalidPoll> {
        if !url.contains(PLACEHOLDER) {
            return Err(InvalidPoll::NoOperation);
        }
        let some_id = OperationId::from_u128(0);
        let filled = url.replace(PLACEHOLDER, &some_id.to_string());
        if filled.contains(['{', '}']) {
            return Err(InvalidPoll::Placeholder);
        }
        let endpoint = Endpoint::parse(&filled)?;
        // The template's own path: everything after its host, which must not vary.
        let (_, path) = url
            .split_once("://")
            .and_then(|(_, rest)| rest.split_once(endpoint.authority()))
            .filter(|(before, _)| before.is_empty())
            .ok_or(InvalidPoll::Placeholder)?;
        let path = path.split_once('#').map_or(path, |(path, _)| path);
        if !path.contains(PLACEHOLDER) {
            return Err(InvalidPoll::NoOperation);
        }
        let path = if path.starts_with('/') { path.into() } else { format!("/{path}") };
        Ok(Self { endpoint, path })
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn path_for(&self, id: OperationId) -> String {
        self.path.replace(PLACEHOLDER, &id.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_fixed_except_for_the_operation() {
        let id = OperationId::from_u128(7);
        for (url, host, port, path) in [
            (
                "http://127.0.0.1:9000/operations/{operation_id}",
                "127.0.0.1",
                9000,
                format!("/operations/{id}"),
            ),
            ("http://bank.internal/find?op={operation_id}", "bank.internal", 80, format!("/find?op={id}")),
            ("https://bank.example/find?op={operation_id}", "bank.example", 443, format!("/find?op={id}")),
            ("http://[::1]:81/{operation_id}/{operation_id}#x", "::1", 81, format!("/{id}/{id}")),
            ("http://bank?op={operation_id}", "bank", 80, format!("/?op={id}")),
        ] {
            let address = Address::parse(url).unwrap();
            let endpoint = address.endpoint();
            assert_eq!((endpoint.host(), endpoint.port(), address.path_for(id)), (host, port, path), "{url}");
        }
    }

    #[test]
    fn a_url_that_cannot_be_polled_is_refused() {
        for (url, said) in [
            ("http://bank/operations", "every operation would get the same answer"),
            ("http://bank/operations#{operation_id}", "every operation would get the same answer"),
            ("ftp://bank/{operation_id}", "http or https"),
            ("http://{operation_id}.bank/{operation_id}", "is the only placeholder"),
            ("http://bank/{key}/{operation_id}", "is the only placeholder"),
            ("http://user:pw@bank/{operation_id}", "credentials"),
            ("bank/{operation_id}", "not a URL"),
            ("/{operation_id}", "not a URL"),
        ] {
            let error = Address::parse(url).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("pw"), "{url}: {error}");
        }
    }
}
