//! Templates of links from an operation to other systems: the provider's dashboard, traces, the log.

/// A link with placeholders, such as `https://bank.example/search?q={operation_id}`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinkTemplate {
    /// What the link is called.
    pub name: String,
    /// The address, with its placeholders.
    pub(crate) url: String,
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
pub const PLACEHOLDERS: [&str; 7] =
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
}
