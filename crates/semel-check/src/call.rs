//! A method and a path, as people write them.

use crate::secrets::Secrets;
use http::Method;

/// A method and a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
}

impl Call {
    /// Parses `POST /payments`. In the path, `env:NAME` is replaced by that environment variable.
    pub(crate) fn parse(text: &str, secrets: &mut Secrets) -> Result<Self, String> {
        let (method, path) = text.split_once(' ').ok_or("write a method and a path: 'POST /payments'")?;
        let method: Method = method.parse().map_err(|_| format!("`{method}` is not a method"))?;
        if !path.starts_with('/') {
            return Err(format!("`{path}` is not a path: it begins with /"));
        }
        Ok(Self { method, path: secrets.resolve_in_path(path)? })
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}
