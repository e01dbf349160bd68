//! Properties that hold for all texts, tried on many.

use super::tests::{form, shaped};
use super::*;
use proptest::prelude::*;
use serde_json::Value;

fn value() -> impl Strategy<Value = Value> {
    let text = prop_oneof!["[a-c]{0,2}", any::<String>(), Just("\u{fb33}".into()), Just("😀".into())];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        // Few digits: serde_json reads others a little off, unless told to be exact.
        any::<i16>().prop_map(|number| Value::from(f64::from(number) / 16.0)),
        text.clone().prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 48, 6, move |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
            prop::collection::btree_map(text.clone(), inner, 0..6)
                .prop_map(|map| Value::Object(map.into_iter().collect())),
        ]
    })
}

/// Spells a value in one of its many ways: white space, member order, escapes and number forms by the given choices.
fn spell(value: &Value, choices: &mut dyn FnMut(usize) -> usize, out: &mut String) {
    let space = |out: &mut String, choices: &mut dyn FnMut(usize) -> usize| {
        out.push_str(["", " ", "\n", "\t\r "][choices(4)]);
    };
    space(out, choices);
    match value {
        Value::String(text) => spell_string(text, choices, out),
        Value::Number(number) if number.is_i64() => {
            out.push_str(&number.to_string());
            out.push_str(["", ".0", "e0", "E+0", ".00e-0"][choices(5)]);
        }
        Value::Array(items) => {
            out.push('[');
            for (index, item) in items.iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                spell(item, choices, out);
            }
            out.push(']');
        }
        Value::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for index in (1..members.len()).rev() {
                members.swap(index, choices(index + 1));
            }
            out.push('{');
            for (index, (name, item)) in members.into_iter().enumerate() {
                out.push_str(if index > 0 { "," } else { "" });
                space(out, choices);
                spell_string(name, choices, out);
                space(out, choices);
                out.push(':');
                spell(item, choices, out);
            }
            out.push('}');
        }
        other => out.push_str(&other.to_string()),
    }
    space(out, choices);
}

fn spell_string(text: &str, choices: &mut dyn FnMut(usize) -> usize, out: &mut String) {
    out.push('"');
    for character in text.chars() {
        if choices(3) == 0 || character < ' ' || character == '"' || character == '\\' {
            for unit in character.encode_utf16(&mut [0; 2]) {
                out.push_str(&format!("\\u{unit:04x}"));
            }
        } else {
            out.push(character);
        }
    }
    out.push('"');
}

fn as_doubles(value: &mut Value) {
    match value {
        Value::Number(number) => *value = Value::from(number.as_f64().unwrap() + 0.0),
        Value::Array(items) => items.iter_mut().for_each(as_doubles),
        Value::Object(members) => members.values_mut().for_each(as_doubles),
        _ => {}
    }
}

proptest! {
    #[test]
    fn all_spellings_of_a_value_have_one_form_and_it_means_the_value(mut value in value(), seed in any::<u64>()) {
        let plain = form(&value.to_string());
        let mut state = seed | 1;
        let mut choices = |bound: usize| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) as usize % bound
        };
        let mut spelt = String::new();
        spell(&value, &mut choices, &mut spelt);
        prop_assert_eq!(&form(&spelt), &plain);
        let mut back: Value = serde_json::from_str(&plain).unwrap();
        as_doubles(&mut back);
        as_doubles(&mut value);
        prop_assert_eq!(back, value);
    }

    #[test]
    fn different_values_have_different_forms(one in value(), other in value()) {
        let same = {
            let (mut one, mut other) = (one.clone(), other.clone());
            as_doubles(&mut one);
            as_doubles(&mut other);
            one == other
        };
        prop_assert_eq!(form(&one.to_string()) == form(&other.to_string()), same);
    }

    #[test]
    fn decimals_are_one_form_exactly_if_they_are_one_value(
        digits in "(0|[1-9][0-9]{0,20})", fraction in "[0-9]{0,20}", exponent in -330_i64..330, zeros in 0_usize..5
    ) {
        let point = if fraction.is_empty() { "" } else { "." };
        let one = format!("{digits}{point}{fraction}e{exponent}");
        let moved = format!("{digits}{fraction}{}e{}", "0".repeat(zeros), exponent - (fraction.len() + zeros) as i64);
        let moved = moved.trim_start_matches('0');
        let moved = if moved.starts_with('e') { format!("0{moved}") } else { moved.to_owned() };
        prop_assert_eq!(form(&one), form(&moved));
        let next = format!("{digits}{fraction}1e{}", exponent - fraction.len() as i64 - 1);
        let next = if next.len() > 1 && next.starts_with('0') { next.trim_start_matches('0').to_owned() } else { next };
        prop_assert_ne!(form(&one), form(&next));
    }

    #[test]
    fn the_form_of_every_double_is_read_back_as_that_double(double in any::<f64>()) {
        if double.is_finite() {
            let printed = ryu_js::Buffer::new().format(double).to_owned();
            let form = form(&printed);
            prop_assert_eq!(form.parse::<f64>().unwrap(), double);
            prop_assert_eq!(form, if double == 0.0 { "0".to_owned() } else { printed });
        }
    }

    #[test]
    fn ignoring_is_removing_and_filling_in_is_inserting(
        mut value in value(), tokens in prop::collection::vec("[a-c]{0,2}|[0-2]", 1..4)
    ) {
        let pointer: String = tokens.iter().map(|token| format!("/{token}")).collect();
        let text = value.to_string();
        let ignoring = shaped(&Shape::new([pointer.as_str()], [], []).unwrap(), &text);
        let filling = shaped(&Shape::new([], [], [(pointer.as_str(), "[null]")]).unwrap(), &text);

        let (last, parents) = tokens.split_last().unwrap();
        let parents: String = parents.iter().map(|token| format!("/{token}")).collect();
        let mut filled = value.clone();
        if let Some(Value::Object(parent)) = filled.pointer_mut(&parents) {
            parent.entry(last).or_insert(serde_json::json!([null]));
        }
        prop_assert_eq!(filling, form(&filled.to_string()));
        match value.pointer_mut(&parents) {
            Some(Value::Object(parent)) => drop(parent.remove(last)),
            Some(Value::Array(parent)) => match last.parse::<usize>() {
                Ok(index) if index < parent.len() => drop(parent.remove(index)),
                _ => {}
            },
            _ => {}
        }
        prop_assert_eq!(ignoring, form(&value.to_string()));
    }

    #[test]
    fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let _ = canonical(&bytes);
    }

    #[test]
    fn what_looks_like_json_never_panics_and_is_accepted_only_if_serde_json_does(
        text in r#"[\[\]{}:,"\\u0-9a-f.eE+\- truefalsn]{0,40}"#
    ) {
        let shape = Shape::new(["/a", "/0"], [], [("/b", "1")]).unwrap();
        let mut written = Vec::new();
        if write_canonical(text.as_bytes(), &shape, &mut written).is_ok() {
            // serde_json refuses numbers beyond a double, which are kept here.
            let parsed = serde_json::from_str::<Value>(&text);
            let out_of_range = parsed.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
            prop_assert!(parsed.is_ok() || out_of_range);
            form(&text);
        }
    }
}
