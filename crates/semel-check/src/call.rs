//! A method and a path, as people write them.

use http::Method;

/// A method and a path.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Call {
    pub(crate) method: Method,
    pub(crate) path: String,
}

impl Call {
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (method, path) = text.split_once(' ').ok_or("write a method and a path: 'POST /payments'")?;
        let method: Method = method.parse().map_err(|_| format!("`{method}` is not a method"))?;
        if !path.starts_with('/') {
            return Err(format!("`{path}` is not a path: it begins with /"));
        }
        Ok(Self { method, path: path.to_owned() })
    }
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}
