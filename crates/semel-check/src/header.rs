//! Header lines from the command line, with secrets from the environment, and the redaction of those secrets.

use http::{HeaderName, HeaderValue};
use std::collections::BTreeSet;

/// Headers that carry credentials. Their values appear in no report.
const CREDENTIALS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
];

/// Beginnings of keys with which real money moves.
const LIVE: [&str; 8] = [
    "sk_live_",
    "rk_live_",
    "pk_live_",
    "live_sk_",
    "access_token$production$",
    "xnd_production_",
    "rzp_live_",
    "sk_prod_",
];

/// A header that is sent with every request of a caller.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The value as reports and commands show it: `Bearer $TOKEN`, or `***`.
    pub(crate) shown: String,
}

/// Values that must not appear in any report.
#[derive(Clone, Default)]
pub(crate) struct Secrets(BTreeSet<String>);

impl Header {
    /// Parses `Name: value`. A word `env:NAME` in the value is replaced by that environment variable.
    pub(crate) fn parse(line: &str, secrets: &mut Secrets) -> Result<Self, String> {
        let (name, value) = line.split_once(':').ok_or_else(|| format!("`{line}`: write 'Name: value'"))?;
        let name: HeaderName =
            name.trim().parse().map_err(|_| format!("`{}` is not a header name", name.trim()))?;
        let (mut words, mut shown) = (Vec::new(), Vec::new());
        let is_credential = CREDENTIALS.contains(&name.as_str());
        for word in value.split_whitespace() {
            if let Some(variable) = word.strip_prefix("env:") {
                let secret = std::env::var(variable)
                    .map_err(|_| format!("the environment variable {variable} is not set"))?;
                secrets.add(&secret);
                words.push(secret);
                shown.push(format!("${variable}"));
            } else {
                words.push(word.to_owned());
                shown.push(word.to_owned());
            }
        }
        let (value, mut shown) = (words.join(" "), shown.join(" "));
        if is_credential && shown == value {
            // The scheme, as in `Bearer X`, is no secret.
            let (scheme, credential) = value.split_once(' ').unwrap_or(("", &value));
            secrets.add(credential);
            shown = format!("{scheme} ***").trim().to_owned();
        }
        let value = HeaderValue::from_str(&value)
            .map_err(|_| format!("the value of {name} has characters that no header can have"))?;
        Ok(Self { name, value, shown })
    }

    pub(crate) fn is_credential(&self) -> bool {
        CREDENTIALS.contains(&self.name.as_str())
    }

    pub(crate) fn looks_live(&self) -> bool {
        self.value.to_str().is_ok_and(looks_live)
    }
}

/// Whether a text has a key in it with which real money moves.
pub(crate) fn looks_live(text: &str) -> bool {
    LIVE.iter().any(|live| text.contains(live))
}

impl Secrets {
    pub(crate) fn add(&mut self, secret: &str) {
        // A shorter one would redact half of every report, and protects nothing.
        if secret.len() >= 3 {
            self.0.insert(secret.to_owned());
        }
    }

    /// The text without any secret in it.
    pub(crate) fn redact(&self, text: &str) -> String {
        // Longest first: one secret may be the beginning of another.
        let mut secrets: Vec<&String> = self.0.iter().collect();
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        secrets.into_iter().fold(text.to_owned(), |text, secret| text.replace(secret.as_str(), "***"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_are_sent_and_never_shown() {
        let mut secrets = Secrets::default();
        let header = Header::parse("Authorization: Bearer s3cret", &mut secrets).unwrap();
        assert_eq!((header.value.as_bytes(), header.shown.as_str()), (&b"Bearer s3cret"[..], "Bearer ***"));
        let path = Header::parse("X-Tenant: env:PATH", &mut secrets).unwrap();
        assert_eq!(path.shown, "$PATH");
        let said = format!("echo s3cret {}", std::env::var("PATH").unwrap());
        assert_eq!(secrets.redact(&said), "echo *** ***");
        assert!(Header::parse("Authorization: env:SEMEL_NOT_SET", &mut secrets).is_err());
        assert!(Header::parse("no colon", &mut secrets).is_err());
        assert!(Header::parse("A: Bearer sk_live_1", &mut secrets).unwrap().looks_live());
    }
}
