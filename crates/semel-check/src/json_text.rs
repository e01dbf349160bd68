//! Changes one value in the text of a JSON document, and leaves every other byte as it is.
//!
//! Parsing and writing again would change numbers (`10.10`, 2^53 + 1) and the order of members, and an API may look at either.

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fmt;
use std::ops::Range;

/// The text of the value at a JSON Pointer.
pub(crate) fn at<'a>(text: &'a str, pointer: &str) -> Option<&'a str> {
    let mut value = text.trim();
    for token in tokens(pointer)? {
        value = match value.as_bytes().first()? {
            b'{' => serde_json::from_str::<HashMap<String, &'a RawValue>>(value).ok()?.get(&token)?.get(),
            b'[' => serde_json::from_str::<Vec<&'a RawValue>>(value)
                .ok()?
                .get(token.parse::<usize>().ok()?)?
                .get(),
            _ => return None,
        };
    }
    Some(value)
}

/// The document with another value at a pointer. A missing member is added if its parent is an object.
pub(crate) fn with(text: &str, pointer: &str, value: &str) -> Option<String> {
    let range = match at(text, pointer) {
        Some(found) => range_of(text, found),
        None => return added(text, pointer, value),
    };
    Some(format!("{}{value}{}", &text[..range.start], &text[range.end..]))
}

/// The same document spelled differently: the members of the outermost object in reverse order, with white space, and the first letter of
/// the first name as an escape. `None` if it is no object with two members.
pub(crate) fn respelled(text: &str) -> Option<String> {
    let Members(mut members) = serde_json::from_str(text).ok()?;
    if members.len() < 2 {
        return None;
    }
    members.reverse();
    let members: Vec<String> =
        members.iter().map(|(name, value)| format!("  {} : {value}", escaped(name))).collect();
    Some(format!("{{\n{}\n}}\n", members.join(" ,\n")))
}

fn escaped(name: &str) -> String {
    let quoted = serde_json::Value::from(name).to_string();
    match name.chars().next() {
        Some(first) if first.is_ascii_alphanumeric() => {
            format!("\"\\u{:04x}{}", u32::from(first), &quoted[1 + first.len_utf8()..])
        }
        _ => quoted,
    }
}

fn added(text: &str, pointer: &str, value: &str) -> Option<String> {
    let (parent, _) = pointer.rsplit_once('/')?;
    let name = tokens(pointer)?.pop()?;
    let object = at(text, parent)?;
    let Members(members) = serde_json::from_str(object).ok()?;
    let start = range_of(text, object).start + 1;
    let comma = if members.is_empty() { "" } else { "," };
    Some(format!("{}{}:{value}{comma}{}", &text[..start], serde_json::Value::from(name), &text[start..]))
}

fn tokens(pointer: &str) -> Option<Vec<String>> {
    if pointer.is_empty() {
        return Some(Vec::new());
    }
    let tokens = pointer.strip_prefix('/')?.split('/');
    Some(tokens.map(|token| token.replace("~1", "/").replace("~0", "~")).collect())
}

/// Where a part of a text stands in it.
fn range_of(text: &str, part: &str) -> Range<usize> {
    let start = (part.as_ptr() as usize).saturating_sub(text.as_ptr() as usize);
    start..start + part.len()
}

/// The members of an object, in their order.
struct Members(Vec<(String, String)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;
        impl<'de> Visitor<'de> for InOrder {
            type Value = Members;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some((name, value)) = map.next_entry::<String, &RawValue>()? {
                    members.push((name, value.get().to_owned()));
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(InOrder)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_value_is_replaced_and_every_other_byte_stays() {
        let text = r#" {"a": 10.10, "b": {"c~/d": [1, {"e": 9007199254740993}]}} "#;
        assert_eq!(at(text, "/a"), Some("10.10"));
        assert_eq!(at(text, "/b/c~0~1d/1/e"), Some("9007199254740993"));
        assert_eq!(at(text, "/b/x"), None);
        let changed = with(text, "/b/c~0~1d/1/e", "2").unwrap();
        assert_eq!(changed, r#" {"a": 10.10, "b": {"c~/d": [1, {"e": 2}]}} "#);
        assert_eq!(with("{}", "/a", "1").unwrap(), r#"{"a":1}"#);
        assert_eq!(with(r#"{"b":2}"#, "/a", "1").unwrap(), r#"{"a":1,"b":2}"#);
        assert_eq!(with("[]", "/a", "1"), None);
    }

    #[test]
    fn another_spelling_means_the_same() {
        let text = r#"{"amount":10.10,"note":"a\"b"}"#;
        let other = respelled(text).unwrap();
        assert_ne!(other, text);
        let [one, two]: [serde_json::Value; 2] =
            [text, &other].map(|text| serde_json::from_str(text).unwrap());
        assert_eq!(one, two);
        assert!(other.contains("10.10") && other.contains("\\u006eote"), "{other}");
        assert_eq!(respelled("[1,2]"), None);
    }
}
