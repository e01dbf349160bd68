//! JSON: the whole report, for programs. `docs/check/report.schema.json` describes it.

use super::Report;
use serde::Serialize;

#[derive(Serialize)]
struct Document<'a> {
    #[serde(flatten)]
    report: &'a Report,
    exit_status: u8,
    badge: bool,
}

/// The report as JSON.
///
/// # Errors
/// Never in practice: it is plain data.
pub fn render(report: &Report, exit_status: u8) -> Result<String, serde_json::Error> {
    let document = Document { report, exit_status, badge: report.deserves_a_badge() };
    serde_json::to_string_pretty(&document).map(|text| text + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::Value;

    /// The part of JSON Schema that ours uses.
    fn check(schema: &Value, value: &Value, at: &str) {
        let types = match &schema["type"] {
            Value::String(one) => vec![one.as_str()],
            Value::Array(several) => several.iter().filter_map(Value::as_str).collect(),
            _ => Vec::new(),
        };
        let own = match value {
            Value::Null => "null",
            Value::Bool(_) => "boolean",
            Value::Number(_) => "integer",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        assert!(types.is_empty() || types.contains(&own), "{at}: {own} is not {types:?}");
        if let Some(allowed) = schema["enum"].as_array() {
            assert!(allowed.contains(value), "{at}: {value}");
        }
        if let Value::Object(members) = value {
            for (name, member) in members {
                let property = &schema["properties"][name];
                assert!(property.is_object(), "{at}/{name} is not in the schema");
                check(property, member, &format!("{at}/{name}"));
            }
            for name in schema["required"].as_array().unwrap() {
                assert!(members.contains_key(name.as_str().unwrap()), "{at}: {name} is missing");
            }
        }
        for (index, item) in value.as_array().into_iter().flatten().enumerate() {
            check(&schema["items"], item, &format!("{at}/{index}"));
        }
    }

    #[test]
    fn the_schema_describes_every_member() {
        let schema = include_str!("../../tests/report.schema.json");
        let schema: Value = serde_json::from_str(schema).unwrap();
        let text = render(&super::super::tests::sample(), 1).unwrap();
        check(&schema, &serde_json::from_str(&text).unwrap(), "");
    }
}
