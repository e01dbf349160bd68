//! Values as the service spells them.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::{Map, Value, json};

/// The attributes of an item, by their names.
pub(crate) type Item = Map<String, Value>;

pub(crate) fn text(text: &str) -> Value {
    json!({ "S": text })
}

pub(crate) fn number(number: impl ToString) -> Value {
    json!({ "N": number.to_string() })
}

pub(crate) fn bytes(bytes: &[u8]) -> Value {
    json!({ "B": BASE64_STANDARD.encode(bytes) })
}

/// Attributes whose contents are validated. Errors name the attribute alone: contents stay out of them.
#[derive(Clone, Copy)]
pub(crate) struct Attributes<'a>(pub(crate) &'a Item);

impl<'a> Attributes<'a> {
    fn of_type(self, name: &str, kind: &str) -> Result<Option<&'a Value>, String> {
        let Some(value) = self.0.get(name) else { return Ok(None) };
        value.get(kind).map(Some).ok_or_else(|| wrong(name))
    }

    pub(crate) fn text(self, name: &str) -> Result<Option<&'a str>, String> {
        self.of_type(name, "S")?.map(|value| value.as_str().ok_or_else(|| wrong(name))).transpose()
    }

    pub(crate) fn number<T: std::str::FromStr>(self, name: &str) -> Result<Option<T>, String> {
        let parse = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        self.of_type(name, "N")?.map(|value| parse(value).ok_or_else(|| wrong(name))).transpose()
    }

    pub(crate) fn bytes(self, name: &str) -> Result<Option<Vec<u8>>, String> {
        let decode = |value: &Value| value.as_str().and_then(|text| BASE64_STANDARD.decode(text).ok());
        self.of_type(name, "B")?.map(|value| decode(value).ok_or_else(|| wrong(name))).transpose()
    }

    pub(crate) fn array<const LENGTH: usize>(self, name: &str) -> Result<[u8; LENGTH], String> {
        let bytes = self.bytes(name)?.ok_or_else(|| wrong(name))?;
        bytes.try_into().map_err(|_| wrong(name))
    }

    pub(crate) fn texts(self, name: &str) -> Result<Vec<&'a str>, String> {
        let Some(list) = self.of_type(name, "L")? else { return Ok(Vec::new()) };
        let elements = list.as_array().ok_or_else(|| wrong(name))?;
        elements
            .iter()
            .map(|element| element.get("S").and_then(Value::as_str).ok_or_else(|| wrong(name)))
            .collect()
    }

    pub(crate) fn has(self, name: &str) -> bool {
        self.0.contains_key(name)
    }
}

pub(crate) fn wrong(name: &str) -> String {
    format!("invalid {name}")
}
