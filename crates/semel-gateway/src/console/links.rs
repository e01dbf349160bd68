//! Links of an operation to other systems: the provider's dashboard, traces, the log.

use super::documents::Operation;
use crate::config::{LinkTemplate, PLACEHOLDERS};
use std::fmt::Write as _;

impl LinkTemplate {
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
