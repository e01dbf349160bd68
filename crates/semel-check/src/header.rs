//! Header lines from the command line, with secrets from the environment.

use crate::secrets::{Secrets, is_secret_name, looks_live};
use http::{HeaderName, HeaderValue};

/// Headers by which a caller is known.
const CREDENTIALS: [&str; 7] = [
    "authorization",
    "proxy-authorization",
    "cookie",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-access-token",
];

/// A header that is sent with every request of a caller.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) name: HeaderName,
    pub(crate) value: HeaderValue,
    /// The value as reports and commands show it: `Bearer $TOKEN`, or `***`.
    pub(crate) shown: String,
}

impl Header {
    /// Parses `Name: value`. A word `env:NAME` in the value is replaced by that environment variable.
    pub(crate) fn parse(line: &str, secrets: &mut Secrets) -> Result<Self, String> {
        let (name, value) = line.split_once(':').ok_or("write 'Name: value'")?;
        let name: HeaderName =
            name.trim().parse().map_err(|_| format!("`{}` is not a header name", name.trim()))?;
        let (mut words, mut shown) = (Vec::new(), Vec::new());
        let is_secret = is_secret_name(name.as_str());
        for (number, word) in value.split_whitespace().enumerate() {
            if let Some(variable) = word.strip_prefix("env:") {
                words.push(secrets.read_environment(variable)?);
                shown.push(format!("${variable}"));
                continue;
            }
            words.push(word.to_owned());
            // The scheme, as in `Bearer X`, is no secret.
            let is_scheme = number == 0
                && value.split_whitespace().count() > 1
                && word.bytes().all(|byte| byte.is_ascii_alphabetic());
            if is_secret && !is_scheme {
                secrets.add(word);
                shown.push("***".to_owned());
            } else {
                shown.push(word.to_owned());
            }
        }
        let value = HeaderValue::from_str(&words.join(" "))
            .map_err(|_| format!("the value of {name} has characters that no header can have"))?;
        Ok(Self { name, value, shown: shown.join(" ") })
    }

    pub(crate) fn is_credential(&self) -> bool {
        CREDENTIALS.contains(&self.name.as_str())
    }

    pub(crate) fn looks_live(&self) -> bool {
        looks_live(&String::from_utf8_lossy(self.value.as_bytes()))
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
        let mixed = Header::parse("X-Signing-Secret: Key abcdef env:PATH", &mut secrets).unwrap();
        assert_eq!(mixed.shown, "Key *** $PATH", "what is written beside a variable is no less secret");
        let path = Header::parse("X-Tenant: env:PATH", &mut secrets).unwrap();
        assert_eq!(path.shown, "$PATH");
        let said = format!("echo s3cret {}", std::env::var("PATH").unwrap());
        assert_eq!(secrets.redact(&said), "echo *** ***");
        assert!(Header::parse("Authorization: env:SEMEL_NOT_SET", &mut secrets).is_err());
        let unusable = Header::parse("s3cret without a colon", &mut secrets).err().unwrap();
        assert!(!unusable.contains("s3cret"), "{unusable}");
        assert!(Header::parse("A: Bearer sk_live_1", &mut secrets).unwrap().looks_live());
    }
}
