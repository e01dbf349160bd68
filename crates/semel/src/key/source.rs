//! Where the key of a request is looked for.

use super::{IdempotencyKey, KeyError, KeyRules};
use crate::canonical::{CheckedJson, Pointer, PointerError, Value};
use crate::headers::{IDEMPOTENCY_KEY, IDEMPOTENT_REPLAYED, is_hop_by_hop, is_own};
use core::fmt;
use http::{HeaderMap, HeaderName};
use std::str::FromStr;
use std::sync::Arc;

/// A place in a request where its key may be.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum KeySource {
    /// A header field.
    Header(HeaderName),
    /// A string in a JSON body.
    Json(Pointer),
}

/// Why a text names no place where a key could be.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InvalidKeySource {
    /// Neither a header nor a part of the body.
    #[error("\"{text}\" is not a place where a key could be")]
    Scheme {
        /// As given.
        text: String,
    },
    /// Not the name of a header.
    #[error("\"{name}\" is not the name of a header: letters, digits and hyphens")]
    HeaderName {
        /// As given.
        name: String,
    },
    /// A header that has another meaning.
    #[error("`{name}` cannot hold the key: {reason}")]
    NeverAKey {
        /// Its name.
        name: HeaderName,
        /// What it is.
        reason: &'static str,
    },
    /// Not a pointer to a part of the body.
    #[error(transparent)]
    Pointer(#[from] PointerError),
    /// It is in the list already.
    #[error("\"{0}\" is in the list twice")]
    Twice(KeySource),
    /// There is no source.
    #[error("without a source no request has a key")]
    None,
}

impl KeySource {
    /// A header field.
    ///
    /// # Errors
    /// The field has another meaning, or a name that CGI and its heirs read in another way.
    pub fn header(name: HeaderName) -> Result<Self, InvalidKeySource> {
        const CREDENTIAL: &str = "it is a credential";
        const MESSAGE: &str = "it says how the message is to be read";
        let text = name.as_str();
        if !text.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
            return Err(InvalidKeySource::HeaderName { name: text.to_owned() });
        }
        let reason = match text {
            "authorization" | "proxy-authorization" | "cookie" | "x-api-key" | "api-key" | "x-auth-token" => {
                CREDENTIAL
            }
            "host" | "content-type" | "content-length" | "content-encoding" | "expect" | "forwarded" => {
                MESSAGE
            }
            "traceparent" | "tracestate" => "it belongs to one attempt",
            name if is_hop_by_hop(name) => "it is about one connection",
            name if is_own(name) || name == IDEMPOTENT_REPLAYED => "it is Semel's own",
            name if name.starts_with("x-forwarded-") => "it is for proxies to set",
            _ => return Ok(Self::Header(name)),
        };
        Err(InvalidKeySource::NeverAKey { name, reason })
    }

    /// The key that is there, or `None` where nothing is. A body that was not `checked` is not looked into.
    fn find(
        &self,
        rules: &KeyRules,
        headers: &HeaderMap,
        checked: Option<&CheckedJson>,
    ) -> Result<Option<IdempotencyKey>, KeyError> {
        match self {
            Self::Header(name) => rules.parse(headers.get_all(name).iter()),
            Self::Json(place) => match checked.and_then(|checked| checked.find(place)) {
                None => Ok(None),
                Some(Value::Text(key)) => rules.check(key.into_bytes()).map(Some),
                Some(Value::Other) => Err(KeyError::NotText),
            },
        }
    }
}

impl fmt::Display for KeySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header(name) => write!(f, "header:{name}"),
            Self::Json(pointer) => write!(f, "json:{pointer}"),
        }
    }
}

impl FromStr for KeySource {
    type Err = InvalidKeySource;

    /// `header:idempotency-key` or `json:/idempotency_key`.
    fn from_str(text: &str) -> Result<Self, InvalidKeySource> {
        match text.split_once(':') {
            Some(("header", name)) => match HeaderName::try_from(name) {
                Ok(name) => Self::header(name),
                Err(_) => Err(InvalidKeySource::HeaderName { name: name.to_owned() }),
            },
            Some(("json", pointer)) => Ok(Self::Json(Pointer::parse(pointer)?)),
            _ => Err(InvalidKeySource::Scheme { text: text.to_owned() }),
        }
    }
}

static DEFAULT: [KeySource; 1] = [KeySource::Header(IDEMPOTENCY_KEY)];

/// The places where the key of a request is looked for. Default: the header `Idempotency-Key`. Cheap to clone.
///
/// The first one in which something is decides. What is there must be a key, and if there is something in several, the same key.
///
/// ```
/// use semel::key::{KeySource, KeySources};
///
/// let sources = KeySources::new([
///     "header:x-idempotency-key".parse()?,
///     "json:/idempotency_key".parse()?,
/// ])?;
/// assert!(sources.reads_body());
/// # Ok::<(), semel::key::InvalidKeySource>(())
/// ```
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct KeySources(Option<Arc<[KeySource]>>);

impl KeySources {
    /// These places, in this order.
    ///
    /// # Errors
    /// None, or one of them twice.
    pub fn new(sources: impl IntoIterator<Item = KeySource>) -> Result<Self, InvalidKeySource> {
        let sources: Vec<_> = sources.into_iter().collect();
        if sources.is_empty() {
            return Err(InvalidKeySource::None);
        }
        for (number, source) in sources.iter().enumerate() {
            if sources[..number].contains(source) {
                return Err(InvalidKeySource::Twice(source.clone()));
            }
        }
        Ok(Self((sources != DEFAULT).then(|| sources.into())))
    }

    /// The places, in their order.
    pub fn iter(&self) -> impl Iterator<Item = &KeySource> {
        self.0.as_deref().unwrap_or(&DEFAULT).iter()
    }

    /// The header fields among them.
    pub fn headers(&self) -> impl Iterator<Item = &HeaderName> {
        self.iter().filter_map(|source| match source {
            KeySource::Header(name) => Some(name),
            KeySource::Json(_) => None,
        })
    }

    /// Whether a body has to be looked into.
    #[must_use]
    pub fn reads_body(&self) -> bool {
        self.iter().any(|source| matches!(source, KeySource::Json(_)))
    }

    /// The key of a request, or `None` where it has none. A body that was not `checked` is not looked into.
    ///
    /// # Errors
    /// What is there is no key, or not the same everywhere.
    pub fn find(
        &self,
        rules: &KeyRules,
        headers: &HeaderMap,
        checked: Option<&CheckedJson>,
    ) -> Result<Option<IdempotencyKey>, InvalidKey> {
        let mut first: Option<IdempotencyKey> = None;
        for source in self.iter() {
            let invalid = |error| InvalidKey { source: Some(source.clone()), error };
            let Some(key) = source.find(rules, headers, checked).map_err(invalid)? else { continue };
            match &first {
                None => first = Some(key),
                Some(first) if *first == key => {}
                Some(_) => return Err(invalid(KeyError::Different)),
            }
        }
        Ok(first)
    }

    /// Where a key is expected, for a client: "an Idempotency-Key header".
    #[must_use]
    pub fn wanted(&self) -> String {
        let place = |source: &KeySource| match source {
            KeySource::Header(name) if *name == IDEMPOTENCY_KEY => "an Idempotency-Key header".to_owned(),
            KeySource::Header(name) => format!("the header {name}"),
            KeySource::Json(pointer) => format!("the member {pointer} in its JSON body"),
        };
        self.iter().map(place).collect::<Vec<_>>().join(", or ")
    }
}

/// Why a request names no key, and where. The text is written for the client and never repeats the key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InvalidKey {
    /// Where; `None`: in the body as a whole.
    pub source: Option<KeySource>,
    /// What is wrong.
    pub error: KeyError,
}

impl std::error::Error for InvalidKey {}

impl fmt::Display for InvalidKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const HEADER: &str = "Idempotency-Key header";
        const KEY: &str = "Idempotency-Key";
        let text = self.error.to_string();
        match &self.source {
            Some(KeySource::Header(name)) if *name != IDEMPOTENCY_KEY => {
                f.write_str(&text.replace(KEY, name.as_str()))
            }
            Some(KeySource::Json(pointer)) => {
                let place = format!("key at {pointer} in the body");
                f.write_str(&text.replace(HEADER, &place).replace(KEY, &place))
            }
            _ => f.write_str(&text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use http::HeaderValue;

    const KEY: &str = "0123456789abcdef";

    fn sources(texts: &[&str]) -> KeySources {
        KeySources::new(texts.iter().map(|text| text.parse().unwrap())).unwrap()
    }

    fn found(
        sources: &KeySources,
        headers: &[(&'static str, &str)],
        body: &str,
    ) -> Result<Option<String>, String> {
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.append(*name, HeaderValue::try_from(*value).unwrap());
        }
        let checked = CheckedJson::check(Bytes::copy_from_slice(body.as_bytes())).ok();
        let key = sources.find(&KeyRules::default(), &map, checked.as_ref());
        key.map(|key| key.map(IdempotencyKey::into_string)).map_err(|error| error.to_string())
    }

    #[test]
    fn the_first_source_in_which_something_is_decides_and_none_may_differ() {
        let sources = sources(&["header:x-key", "header:idempotency-key", "json:/order/key"]);
        let key = Ok(Some(KEY.to_owned()));
        let in_body = format!(r#"{{"order": {{"key": "{KEY}"}}}}"#);
        let escaped = in_body.replace("0123", r"\u0030123");
        assert_eq!(found(&sources, &[], "{}"), Ok(None));
        assert_eq!(found(&sources, &[("x-key", KEY)], "{}"), key);
        assert_eq!(found(&sources, &[("idempotency-key", &format!("\"{KEY}\""))], ""), key);
        assert_eq!(found(&sources, &[], &in_body), key);
        assert_eq!(
            found(&sources, &[("x-key", KEY), ("idempotency-key", &format!("\"{KEY}\""))], &escaped),
            key
        );
        let different = found(&sources, &[("idempotency-key", "another-key-of-16")], &in_body).unwrap_err();
        assert!(different.contains("different keys"), "{different}");
        let short = found(&sources, &[("x-key", "short"), ("idempotency-key", KEY)], &in_body).unwrap_err();
        assert!(short.starts_with("The x-key is too short"), "{short}");
        let empty = found(&sources, &[("x-key", "")], "{}").unwrap_err();
        assert!(empty.starts_with("The x-key header is empty"), "{empty}");
    }

    #[test]
    fn what_is_in_the_body_must_be_a_string_that_is_a_key() {
        let sources = sources(&["json:/key"]);
        for (value, told) in [
            ("null", "The key at /key in the body must be a string"),
            ("7", "must be a string"),
            ("[\"0123456789abcdef\"]", "must be a string"),
            ("\"\"", "The key at /key in the body is empty"),
            ("\"short\"", "at least 16 characters"),
            ("\"0123456789 abcdef\"", "visible ASCII"),
        ] {
            let error = found(&sources, &[], &format!("{{\"key\": {value}}}")).unwrap_err();
            assert!(error.contains(told), "{value}: {error}");
        }
    }

    #[test]
    fn what_cannot_be_a_source_is_refused() {
        for text in ["header:x-idempotency-key", "header:PayPal-Request-Id", "json:/a~1b/0"] {
            let source: KeySource = text.parse().unwrap();
            assert_eq!(source.to_string(), text.to_ascii_lowercase());
        }
        for text in [
            "query:key",
            "idempotency-key",
            "header:",
            "header:x key",
            "header:x_key",
            "json:",
            "json:key",
            "json:/~2",
            "header:authorization",
            "header:connection",
            "header:semel-attempt",
            "header:content-type",
            "",
        ] {
            assert!(text.parse::<KeySource>().is_err(), "{text}");
        }
        let twice = ["header:x-key", "header:X-Key"].map(|text| text.parse().unwrap());
        assert!(matches!(KeySources::new(twice), Err(InvalidKeySource::Twice(_))));
        assert_eq!(KeySources::new([]), Err(InvalidKeySource::None));
    }
}
