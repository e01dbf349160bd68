//! The request's body, and the changes that cases make to it.

use crate::json_text;
use bytes::Bytes;
use form_urlencoded::Serializer;

/// The body as the user gave it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Body {
    Empty,
    /// The text of a JSON document.
    Json(String),
    /// `application/x-www-form-urlencoded`. `/name` points to a field.
    Form(String),
    Raw(Bytes),
}

/// How a body is changed so that it means something else.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Vary {
    /// The value at this pointer becomes this JSON text.
    Member { pointer: String, value: String },
    /// Another body altogether.
    Other(Body),
}

impl Body {
    /// Takes bytes for what the content type says, or for JSON if they can be read as JSON.
    pub(crate) fn of(bytes: Bytes, content_type: Option<&str>) -> Self {
        if bytes.is_empty() {
            return Self::Empty;
        }
        let Ok(text) = std::str::from_utf8(&bytes) else { return Self::Raw(bytes) };
        let media_type = content_type.unwrap_or("application/json").split(';').next().unwrap_or("").trim();
        if media_type.eq_ignore_ascii_case("application/x-www-form-urlencoded") {
            return Self::Form(text.trim().to_owned());
        }
        let is_json = media_type.ends_with("json") && serde_json::from_str::<serde_json::Value>(text).is_ok();
        if is_json { Self::Json(text.trim().to_owned()) } else { Self::Raw(bytes) }
    }

    /// The content type to send where the user named none.
    pub(crate) fn content_type(&self) -> Option<&'static str> {
        match self {
            Self::Json(_) => Some("application/json"),
            Self::Form(_) => Some("application/x-www-form-urlencoded"),
            Self::Empty | Self::Raw(_) => None,
        }
    }

    pub(crate) fn bytes(&self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::Json(text) | Self::Form(text) => Bytes::copy_from_slice(text.as_bytes()),
            Self::Raw(bytes) => bytes.clone(),
        }
    }

    /// The body with another value, as JSON text, at a pointer. `None` if there is no such place.
    pub(crate) fn with(&self, pointer: &str, value: &str) -> Option<Self> {
        match self {
            Self::Json(text) => json_text::with(text, pointer, value).map(Self::Json),
            Self::Form(text) => {
                let name = pointer.strip_prefix('/')?;
                let value = unquoted(value);
                let mut fields: Vec<(String, String)> =
                    form_urlencoded::parse(text.as_bytes()).into_owned().collect();
                match fields.iter_mut().find(|(found, _)| found == name) {
                    Some((_, found)) => *found = value,
                    None => fields.push((name.to_owned(), value)),
                }
                Some(Self::Form(Serializer::new(String::new()).extend_pairs(fields).finish()))
            }
            Self::Empty | Self::Raw(_) => None,
        }
    }

    /// The body with a text at a pointer.
    pub(crate) fn with_text(&self, pointer: &str, text: &str) -> Option<Self> {
        self.with(pointer, &serde_json::Value::from(text).to_string())
    }

    /// The body without the member at a pointer.
    pub(crate) fn without(&self, pointer: &str) -> Self {
        let Self::Json(text) = self else { return self.clone() };
        let Ok(mut value) = serde_json::from_str::<serde_json::Value>(text) else { return self.clone() };
        if let Some((parent, name)) = pointer.rsplit_once('/')
            && let Some(members) = value.pointer_mut(parent).and_then(serde_json::Value::as_object_mut)
        {
            members.remove(&name.replace("~1", "/").replace("~0", "~"));
        }
        Self::Json(value.to_string())
    }

    /// The same meaning in another spelling.
    pub(crate) fn respelled(&self) -> Option<Self> {
        match self {
            Self::Json(text) => json_text::respelled(text).map(Self::Json),
            _ => None,
        }
    }

    pub(crate) fn varied(&self, vary: &Vary) -> Option<Self> {
        match vary {
            Vary::Member { pointer, value } => self.with(pointer, value),
            Vary::Other(body) => Some(body.clone()),
        }
    }

    /// What `--vary POINTER` comes to: another value of the same type. Strings only if they are decimal numbers; `None` for others.
    pub(crate) fn vary_at(&self, pointer: &str) -> Option<Vary> {
        let found = match self {
            Self::Json(text) => json_text::at(text, pointer)?.to_owned(),
            Self::Form(text) => {
                let name = pointer.strip_prefix('/')?;
                form_urlencoded::parse(text.as_bytes()).find(|(found, _)| found == name)?.1.into_owned()
            }
            Self::Empty | Self::Raw(_) => return None,
        };
        let value = match found.as_str() {
            "true" => "false".to_owned(),
            "false" => "true".to_owned(),
            text if text.starts_with('"') => format!("\"{}\"", raised(&unquoted(text))?),
            text => raised(text)?,
        };
        Some(Vary::Member { pointer: pointer.to_owned(), value })
    }

    /// The first place whose value can be varied safely without being told: a number or a boolean, amounts first.
    pub(crate) fn find_vary(&self) -> Option<Vary> {
        const AMOUNTS: [&str; 8] =
            ["amount", "total", "price", "value", "quantity", "count", "sum", "unit_amount"];
        let mut places = Vec::new();
        match self {
            Self::Json(text) => {
                pointers(&serde_json::from_str(text).ok()?, &mut String::new(), &mut places);
            }
            Self::Form(text) => places.extend(
                form_urlencoded::parse(text.as_bytes())
                    .filter(|(_, value)| raised(value).is_some())
                    .map(|(name, _)| format!("/{name}")),
            ),
            Self::Empty | Self::Raw(_) => {}
        }
        let is_amount = |place: &&String| AMOUNTS.iter().any(|name| place.ends_with(&format!("/{name}")));
        let place = places.iter().find(is_amount).or(places.first())?;
        self.vary_at(place)
    }
}

/// All places with numbers and booleans.
fn pointers(value: &serde_json::Value, at: &mut String, found: &mut Vec<String>) {
    let mut within = |name: &str, value: &serde_json::Value, found: &mut Vec<String>| {
        let length = at.len();
        at.push('/');
        at.push_str(&name.replace('~', "~0").replace('/', "~1"));
        pointers(value, at, found);
        at.truncate(length);
    };
    match value {
        serde_json::Value::Object(members) => {
            members.iter().for_each(|(name, value)| within(name, value, found));
        }
        serde_json::Value::Array(items) => {
            items.iter().enumerate().for_each(|(index, value)| within(&index.to_string(), value, found));
        }
        serde_json::Value::Number(_) | serde_json::Value::Bool(_) => found.push(at.clone()),
        _ => {}
    }
}

/// One more in the last place: 10 → 11, 9.99 → 10.00. `None` for anything but a plain decimal number.
fn raised(number: &str) -> Option<String> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => ("-", digits),
        None => ("", number),
    };
    let plain = digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.')
        && digits.bytes().filter(|byte| *byte == b'.').count() <= 1
        && digits.starts_with(|first: char| first.is_ascii_digit())
        && digits.ends_with(|last: char| last.is_ascii_digit());
    if !plain {
        return None;
    }
    let mut bytes = digits.as_bytes().to_vec();
    for byte in bytes.iter_mut().rev().filter(|byte| **byte != b'.') {
        if *byte == b'9' {
            *byte = b'0';
        } else {
            *byte += 1;
            return Some(format!("{sign}{}", String::from_utf8_lossy(&bytes)));
        }
    }
    Some(format!("{sign}1{}", String::from_utf8_lossy(&bytes)))
}

fn unquoted(value: &str) -> String {
    serde_json::from_str::<String>(value).unwrap_or_else(|_| value.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> Body {
        Body::of(Bytes::copy_from_slice(text.as_bytes()), None)
    }

    #[test]
    fn numbers_grow_by_one_in_the_last_place() {
        for (before, after) in [("10", "11"), ("9.99", "10.00"), ("99", "100"), ("-1.5", "-1.6"), ("0", "1")]
        {
            assert_eq!(raised(before).as_deref(), Some(after));
        }
        for other in ["", "1e3", "a", ".5", "5.", "1.2.3"] {
            assert_eq!(raised(other), None, "{other}");
        }
    }

    #[test]
    fn a_member_is_taken_out() {
        assert_eq!(json(r#"{"a": {"k": 1}, "b": 2}"#).without("/a/k"), json(r#"{"a":{},"b":2}"#));
        assert_eq!(json(r#"{"b":2}"#).without("/a/k"), json(r#"{"b":2}"#));
    }

    #[test]
    fn what_is_varied_is_an_amount_if_there_is_one() {
        let body = json(r#"{"active": true, "amount": 10.50, "id": "7"}"#);
        let varied = body.varied(&body.find_vary().unwrap()).unwrap();
        assert_eq!(varied, json(r#"{"active": true, "amount": 10.51, "id": "7"}"#));
        let body = json(r#"{"active": true}"#);
        assert_eq!(body.varied(&body.find_vary().unwrap()).unwrap(), json(r#"{"active": false}"#));
        assert_eq!(json(r#"{"name": "A"}"#).find_vary(), None);
        assert_eq!(json(r#"{"name": "A"}"#).vary_at("/name"), None, "a text needs POINTER=VALUE");
        let decimal = json(r#"{"amount": "10.00"}"#);
        assert_eq!(
            decimal.varied(&decimal.vary_at("/amount").unwrap()).unwrap(),
            json(r#"{"amount": "10.01"}"#)
        );
    }

    #[test]
    fn forms_have_fields() {
        let form = Body::of(Bytes::from("amount=10&note=a+b"), Some("application/x-www-form-urlencoded"));
        let marked = form.with_text("/reference", "r 1").unwrap();
        assert_eq!(marked, Body::Form("amount=10&note=a+b&reference=r+1".into()));
        let varied = form.varied(&form.find_vary().unwrap()).unwrap();
        assert_eq!(varied, Body::Form("amount=11&note=a+b".into()));
    }
}
