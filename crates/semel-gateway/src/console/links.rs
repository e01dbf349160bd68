//! Links of an operation to other systems: the provider's dashboard, traces, the log.

use super::documents::Operation;
use std::fmt::Write as _;

/// A link with placeholders, such as `https://bank.example/search?q={operation_id}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTemplate {
    /// What the link is called.
    pub name: String,
    url: String,
}

/// Why a template is not one.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum InvalidLink {
    /// It is not `http` or `https`, or begins with a placeholder.
    #[error("a link begins with https:// or http:// and the name of a host")]
    NotHttp,
    /// It has a placeholder that there is not.
    #[error("unknown placeholder in \"{0}\"")]
    Placeholder(String),
}

/// What a link can contain.
pub(crate) const PLACEHOLDERS: [&str; 7] =
    ["operation_id", "tenant", "operation", "key", "resource_type", "resource_id", "error"];

impl LinkTemplate {
    /// The link of this name.
    ///
    /// # Errors
    /// It is not a link to a fixed host, or names what an operation does not have.
    pub fn new(name: impl Into<String>, url: impl Into<String>) -> Result<Self, InvalidLink> {
        let (name, url) = (name.into(), url.into());
        let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
        let host = rest.and_then(|rest| rest.split(['/', '?', '#']).next()).unwrap_or_default();
        let is_host =
            |next: char| next.is_ascii_alphanumeric() || matches!(next, '.' | '-' | ':' | '[' | ']' | '_');
        if host.is_empty() || !host.chars().all(is_host) || !url.chars().all(|next| next.is_ascii_graphic()) {
            return Err(InvalidLink::NotHttp);
        }
        let mut rest = url.as_str();
        while let Some((_, after)) = rest.split_once('{') {
            let Some((placeholder, after)) = after.split_once('}') else {
                return Err(InvalidLink::Placeholder(after.to_owned()));
            };
            if !PLACEHOLDERS.contains(&placeholder) {
                return Err(InvalidLink::Placeholder(placeholder.to_owned()));
            }
            rest = after;
        }
        Ok(Self { name, url })
    }

    /// The same link under another name.
    #[must_use]
    pub(crate) fn named(self, name: String) -> Self {
        Self { name, ..self }
    }

    /// The address for an operation; `None` where it lacks what the link needs.
    pub(super) fn filled(&self, operation: &Operation) -> Option<String> {
        let resource = operation.resource.as_ref();
        let mut url = self.url.clone();
        for placeholder in PLACEHOLDERS {
            let spelled = format!("{{{placeholder}}}");
            if !url.contains(&spelled) {
                continue;
            }
            let value = match placeholder {
                "operation_id" => Some(operation.operation_id.as_str()),
                "tenant" => Some(operation.tenant.as_str()),
                "operation" => Some(operation.operation.as_str()),
                "key" => Some(operation.key.as_str()),
                "resource_type" => resource.map(|resource| resource.kind.as_str()),
                "resource_id" => resource.map(|resource| resource.id.as_str()),
                _ => operation.last_error.as_deref(),
            };
            url = url.replace(&spelled, &percent_encoded(value?));
        }
        Some(url)
    }
}

/// For a path or a query: everything but unreserved characters.
pub(super) fn percent_encoded(text: &str) -> String {
    text.bytes().fold(String::new(), |mut encoded, byte| {
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_' | b'~') {
            encoded.push(byte.into());
        } else {
            // Writing to a string does not fail.
            let _ = write!(encoded, "%{byte:02X}");
        }
        encoded
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_link_leads_to_the_host_that_the_template_names() {
        let operation = Operation {
            operation_id: "0198".into(),
            tenant: "\"><script>alert(1)</script>/../".into(),
            ..Operation::default()
        };
        let link = LinkTemplate::new("Bank", "https://bank.example/{tenant}?q={operation_id}#x").unwrap();
        assert_eq!(
            link.filled(&operation).unwrap(),
            "https://bank.example/%22%3E%3Cscript%3Ealert%281%29%3C%2Fscript%3E%2F..%2F?q=0198#x"
        );
        let link = LinkTemplate::new("Bank", "https://bank.example/{resource_id}").unwrap();
        assert_eq!(link.filled(&operation), None);
        for wrong in [
            "javascript:alert(1)",
            "//bank.example/",
            "https://",
            "https://{tenant}.example/",
            "https://bank.example@evil.example/",
            "https://bank.example/{nothing}",
            "https://bank.example/{tenant",
            "https://bank.example/ a",
        ] {
            assert!(LinkTemplate::new("Bank", wrong).is_err(), "{wrong}");
        }
    }
}
