//! What strangers wrote, made harmless before any page sees it.
//!
//! Keys, tenants, errors, reasons, resources and header names come from clients, services and providers. Templates escape what HTML would read; here
//! goes what people would misread: bidirectional and zero-width characters are spelt out.

use crate::escape::escape_lines;
use serde_json::Value;

/// The same document with every text in it made visible, names of members too.
pub(super) fn harmless(value: Value) -> Value {
    match value {
        Value::String(text) => Value::String(escape_lines(&text)),
        Value::Array(items) => Value::Array(items.into_iter().map(harmless).collect()),
        Value::Object(members) => Value::Object(
            members.into_iter().map(|(name, value)| (escape_lines(&name), harmless(value))).collect(),
        ),
        plain => plain,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_cannot_be_seen_is_spelt_out_wherever_it_stands() {
        let told = json!({ "a\u{202e}": ["\u{200b}x", 1, null, { "b": "two\nlines" }] });
        assert_eq!(harmless(told), json!({ "a\\u{202e}": ["\\u{200b}x", 1, null, { "b": "two\nlines" }] }));
    }
}
