use super::pointer::PointerError;
use super::*;
use serde_json::Value;

#[track_caller]
pub(super) fn form(text: &str) -> String {
    let form = canonical(text.as_bytes()).unwrap();
    assert_eq!(canonical(form.as_bytes()).unwrap(), form, "the canonical form of {text} is not its own");
    form
}

fn refusal(text: &str) -> NotCanonical {
    canonical(text.as_bytes()).unwrap_err()
}

pub(super) fn shaped(shape: &Shape, text: &str) -> String {
    let mut written = Vec::new();
    write_canonical(text.as_bytes(), shape, &mut written).unwrap();
    String::from_utf8(written).unwrap()
}

#[test]
fn spellings_of_one_number_are_one() {
    for (spellings, expected) in [
        (&["1", "1.0", "1e0", "1E+0", "10e-1", "0.1e1", "1.000", "100e-2", "0.00001e5", "1e-0"][..], "1"),
        (&["0", "-0", "0.0", "-0.0e5", "0e999999999999999999999999999", "0e-7"], "0"),
        (&["-12.50", "-125e-1", "-0.125E2"], "-12.5"),
        (&["1e21", "1000000000000000000000"], "1e+21"),
        (&["9007199254740993", "9007199254740993.0", "90071992547409930e-1"], "9007199254740993e0"),
        (&["0.1000000000000000055", "1000000000000000055e-19"], "1000000000000000055e-19"),
        (
            &["1e999999999", "10e999999998", "0.1e1000000000", "1e+00000000000000000000999999999"],
            "1e999999999",
        ),
        (&["-1e-999999999", "-0.001e-999999996"], "-1e-999999999"),
        (&["1e-400"], "1e-400"),
        (&["18446744073709551615"], "18446744073709551615e0"),
        (&["1e309"], "1e309"),
    ] {
        for spelling in spellings {
            assert_eq!(form(spelling), expected, "{spelling}");
        }
    }
}

#[test]
fn two_amounts_are_never_rounded_into_each_other() {
    for (one, other) in [
        (r#"{"amount":9007199254740993}"#, r#"{"amount":9007199254740992}"#),
        (r#"{"amount":0.1}"#, r#"{"amount":0.1000000000000000055}"#),
        ("1e999999999", "1e999999998"),
        ("1e999999999", "\"1e999999999\""),
        ("9007199254740993", "\"9007199254740993e0\""),
        ("1e-999999999", "0"),
        ("1e309", "1e310"),
        ("5e-324", "4.9406564584124654e-324"),
        ("123456789012345678901234567890", "123456789012345678901234567891"),
    ] {
        assert_ne!(form(one), form(other));
    }
}

#[test]
fn exponents_beyond_18_digits_are_refused_also_when_trimming_makes_them_so() {
    assert_eq!(form("1e999999999999999999"), "1e999999999999999999");
    for text in ["1e1000000000000000000", "10e999999999999999999", "[0.01e-999999999999999999]"] {
        assert!(matches!(refusal(text), NotCanonical::ExponentTooLarge { .. }), "{text}");
    }
}

#[test]
fn a_number_of_millions_of_digits_is_kept_as_it_is() {
    let digits = "123456789".repeat(100_000);
    assert_eq!(form(&format!("{digits}.{digits}000")), format!("{digits}{digits}e-{}", digits.len()));
    assert_eq!(form(&format!("1{}", "0".repeat(1_000_000))), "1e1000000");
}

#[test]
fn strings_are_written_with_the_fewest_escapes() {
    assert_eq!(form(r#""\u0041\/\u00e9\ud83d\ude00""#), "\"A/é😀\"");
    assert_eq!(
        form(r#""\u0000\u0008\u0009\u000A\u000b\u000c\u000D\u001F\u0022\u005C\u007f""#),
        "\"\\u0000\\b\\t\\n\\u000b\\f\\r\\u001f\\\"\\\\\u{7f}\""
    );
}

#[test]
fn names_are_sorted_by_utf_16_code_units_however_they_are_spelt() {
    assert_eq!(form(r#"{"\ufb33":1,"😀":2,"\u20ac":3,"z":4}"#), "{\"z\":4,\"€\":3,\"😀\":2,\"\u{fb33}\":1}");
    assert_eq!(form(r#"{"\u0062":1,"a":2,"ab":3,"":4}"#), r#"{"":4,"a":2,"ab":3,"b":1}"#);
    assert_eq!(form("{\"\\ud83d\\ude01\":1,\"😀\":2}"), "{\"😀\":2,\"😁\":1}");
}

#[test]
fn duplicate_members_are_refused_after_unescaping() {
    for text in [r#"{"a":1,"a":1}"#, r#"{"a":1,"b":2,"\u0061":3}"#, r#"[{"x":{"😀":1,"\ud83d\ude00":1}}]"#]
    {
        assert!(matches!(refusal(text), NotCanonical::DuplicateMember { .. }), "{text}");
    }
    // The same name in two objects is no duplicate.
    assert_eq!(form(r#"{"a":{"a":1},"b":{"a":1}}"#), r#"{"a":{"a":1},"b":{"a":1}}"#);
}

#[test]
fn lone_surrogates_are_refused() {
    for text in [
        r#""\ud800""#,
        r#""\ud800x""#,
        r#""\ud800\u0041""#,
        r#""\udc00""#,
        r#"{"\ud83d":1}"#,
        r#""\ud83d\ud83d""#,
    ] {
        assert!(matches!(refusal(text), NotCanonical::LoneSurrogate { .. }), "{text}");
    }
    assert!(matches!(canonical(b"\"\xed\xa0\x80\""), Err(NotCanonical::InvalidUtf8 { at: 1 })));
    assert!(matches!(canonical(b"\"\xff\""), Err(NotCanonical::InvalidUtf8 { at: 1 })));
}

#[test]
fn what_rfc_8259_does_not_admit_is_refused() {
    for text in [
        "",
        " ",
        "[",
        "]",
        "{",
        "}",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{,}",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{a:1}",
        "{1:1}",
        "{'a':1}",
        "[1}",
        "{\"a\":1]",
        "1 2",
        "[] x",
        "01",
        "03e",
        "-00E+",
        "[00.5e",
        "-01",
        "-",
        "+1",
        ".5",
        "5.",
        "1.e1",
        "1e",
        "1e+",
        "0x1",
        "NaN",
        "Infinity",
        "-Infinity",
        "nul",
        "nulll",
        "True",
        "\"",
        "\"\\",
        "\"\\x\"",
        "\"\\u12\"",
        "\"\\u12g4\"",
        "\"\\u+123\"",
        "\"\n\"",
        "\"\u{1f}\"",
        "\"\t\"",
        "//\n1",
        "/**/1",
        "1//",
        "\u{feff}1",
        "\u{a0}1",
        "1\u{c}",
        "[1],",
        "\"a\" \"b\"",
        "{\"a\" 1}",
        "{\"a\"::1}",
        "[1,,2]",
        "tru",
        "--1",
        "1.2.3",
    ] {
        assert!(matches!(refusal(text), NotCanonical::Syntax { .. }), "{text}: {:?}", refusal(text));
        assert!(serde_json::from_str::<Value>(text).is_err(), "{text}");
    }
}

#[test]
fn white_space_and_order_do_not_matter() {
    assert_eq!(form(" \t\r\n{ \"b\" : [ 1 , { } , [ ] ] ,\n\"a\" : null } "), r#"{"a":null,"b":[1,{},[]]}"#);
}

#[test]
fn ten_thousand_levels_are_written_and_one_more_is_refused() {
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    assert_eq!(form(&nested(MAX_DEPTH)), nested(MAX_DEPTH));
    assert!(matches!(refusal(&nested(MAX_DEPTH + 1)), NotCanonical::TooDeep { at: MAX_DEPTH }));
    let objects = |levels: usize| format!("{}1{}", "{\"b\":2,\"a\":".repeat(levels), "}".repeat(levels));
    assert!(form(&objects(MAX_DEPTH)).ends_with(",\"b\":2}"));
    assert!(matches!(refusal(&objects(MAX_DEPTH + 1)), NotCanonical::TooDeep { .. }));
    assert!(matches!(refusal(&"[".repeat(10 << 20)), NotCanonical::TooDeep { .. }));
}

#[test]
fn nothing_is_written_of_what_is_refused() {
    let mut written = Vec::new();
    let text = br#"{"a":1,"b":[1,2,{"x":1,"x":2}]}"#;
    assert!(write_canonical(text, &Shape::default(), &mut written).is_err());
    assert_eq!(written, b"");
}

#[test]
fn ignored_members_count_as_absent() {
    let shape = Shape::new(["/metadata/trace_id", "/a~1b", "/items/1", "/~0x/y"], [], []).unwrap();
    assert_eq!(
        shaped(
            &shape,
            r#"{"z":1,"metadata":{"trace_id":{"deep":["]",{}]},"x":1},"a/b":2,"items":[1,[2],3,{"1":4}],"~x":{"y":5}}"#
        ),
        r#"{"items":[1,3,{"1":4}],"metadata":{"x":1},"z":1,"~x":{}}"#
    );
    // A name reaches through objects by its spelling, and the same name elsewhere is another.
    assert_eq!(
        shaped(&shape, r#"{"trace_id":1,"\u006detadata":{"\u0074race_id":1}}"#),
        r#"{"metadata":{},"trace_id":1}"#
    );
    assert_eq!(shaped(&shape, r#"{"items":{"0":1,"1":2}}"#), r#"{"items":{"0":1}}"#);
    assert_eq!(shaped(&shape, r#""a/b""#), r#""a/b""#);
}

#[test]
fn only_what_is_named_counts_where_something_is_named() {
    let shape = Shape::new([], ["/amount", "/card/number", "/lines/0/sku"], []).unwrap();
    assert_eq!(
        shaped(
            &shape,
            r#"{"note":"x","card":{"number":1,"cvc":2},"amount":{"value":1,"a":[2]},"lines":[{"sku":1,"n":2},{"sku":3}]}"#
        ),
        r#"{"amount":{"a":[2],"value":1},"card":{"number":1},"lines":[{"sku":1}]}"#
    );
    // What stands in the way counts as it is.
    assert_eq!(shaped(&shape, r#"{"card":7,"lines":[5,6]}"#), r#"{"card":7,"lines":[5]}"#);
    assert_eq!(shaped(&shape, "[1,2]"), "[]");
    let both = Shape::new(["/amount/trace"], ["/amount"], []).unwrap();
    assert_eq!(shaped(&both, r#"{"x":1,"amount":{"trace":1,"value":2}}"#), r#"{"amount":{"value":2}}"#);
}

#[test]
fn defaults_are_filled_in_where_the_parent_is_an_object_without_the_member() {
    let defaults =
        [("/currency", "\"EUR\""), ("/a", "1.0"), ("/card/type", r#"{"y":1,"x":2}"#), ("/zz", "null")];
    let shape = Shape::new([], [], defaults).unwrap();
    let filled = r#"{"a":1,"b":2,"card":{"type":{"x":2,"y":1}},"currency":"EUR","zz":null}"#;
    assert_eq!(shaped(&shape, r#"{"card":{},"b":2}"#), filled);
    assert_eq!(
        shaped(&shape, r#"{"zz":null,"b":2,"card":{"type":{"x":2,"y":1}},"currency":"EUR","a":1}"#),
        filled
    );
    assert_eq!(shaped(&shape, r#"{"b":2,"\u0061":3}"#), r#"{"a":3,"b":2,"currency":"EUR","zz":null}"#);
    assert_eq!(shaped(&shape, "{}"), r#"{"a":1,"currency":"EUR","zz":null}"#);
    assert_eq!(shaped(&shape, r#"{"card":[]}"#), r#"{"a":1,"card":[],"currency":"EUR","zz":null}"#);
    assert_eq!(shaped(&shape, "[]"), "[]");
    assert_eq!(shaped(&shape, "5"), "5");
    // A default that is not taken is not filled in.
    let only = Shape::new([], ["/b"], [("/a", "1"), ("/b", "2")]).unwrap();
    assert_eq!(shaped(&only, "{}"), r#"{"b":2}"#);
}

#[test]
fn texts_count_in_their_normal_form_where_one_is_declared() {
    let forms = [
        ("/currency", NormalForm::Lowercase),
        ("/amount", NormalForm::Decimal),
        ("/at", NormalForm::Timestamp),
        ("/items/0/sku", NormalForm::Lowercase),
    ];
    let shape = Shape::new([], [], []).unwrap().normalise(forms).unwrap();
    let expected = r#"{"amount":"10","at":"2026-11-01T09:00:00Z","currency":"eur","items":[{"sku":"a\nb"},{"sku":"C"}]}"#;
    for same in [
        r#"{"currency":"EUR","amount":"10.00","at":"2026-11-01T09:00:00+00:00","items":[{"sku":"A\nB"},{"sku":"C"}]}"#,
        r#"{"at":"2026-11-01T10:00:00.0\u002b01:00","currency":"\u0045ur","amount":"\u0031e1","items":[{"sku":"a\u000AB"},{"sku":"C"}]}"#,
        expected,
    ] {
        assert_eq!(shaped(&shape, same), expected, "{same}");
    }
    // What is not of the kind counts as it is, and so does what is not a text.
    for (text, expected) in [
        (r#"{"amount":"010","at":"now"}"#, r#"{"amount":"010","at":"now"}"#),
        (r#"{"amount":10.0,"at":1793523600}"#, r#"{"amount":10,"at":1793523600}"#),
        (r#"{"amount":" 10"}"#, r#"{"amount":" 10"}"#),
        (r#"{"amount":"1e1000000000000000000"}"#, r#"{"amount":"1e1000000000000000000"}"#),
        (r#"{"amount":"-0.00","currency":null}"#, r#"{"amount":"0","currency":null}"#),
        (r#"{"amount":"9007199254740993.0"}"#, r#"{"amount":"9007199254740993e0"}"#),
        (r#"{"amount":"\u20ac10.0","currency":["EUR"]}"#, r#"{"amount":"€10.0","currency":["EUR"]}"#),
        (r#"{"currency":"ÄÖİ\u0000\"","CURRENCY":"EUR"}"#, r#"{"CURRENCY":"EUR","currency":"ÄÖİ\u0000\""}"#),
        (r#"{"items":{"0":{"sku":"A"}}}"#, r#"{"items":{"0":{"sku":"a"}}}"#),
        (r#""EUR""#, r#""EUR""#),
    ] {
        assert_eq!(shaped(&shape, text), expected, "{text}");
        assert_eq!(shaped(&shape, expected), expected);
    }
}

#[test]
fn a_default_counts_in_the_normal_form_of_its_text() {
    let defaults = [("/currency", r#""EUR""#), ("/amount", r#""10.0""#), ("/fee", "0")];
    let forms = [
        ("/currency", NormalForm::Lowercase),
        ("/amount", NormalForm::Decimal),
        ("/fee", NormalForm::Decimal),
    ];
    let shape = Shape::new([], [], defaults).unwrap().normalise(forms).unwrap();
    assert_eq!(shaped(&shape, "{}"), r#"{"amount":"10","currency":"eur","fee":0}"#);
    assert_eq!(shaped(&shape, r#"{"currency":"Eur","fee":0.0}"#), shaped(&shape, "{}"));
}

#[test]
fn a_normal_form_only_counts_where_its_value_does() {
    let forms = [("/a/b", NormalForm::Lowercase), ("/c", NormalForm::Lowercase)];
    let shape = Shape::new([], ["/a"], []).unwrap().normalise(forms).unwrap();
    assert_eq!(shaped(&shape, r#"{"a":{"b":"X","c":"X"},"c":"X"}"#), r#"{"a":{"b":"x","c":"X"}}"#);
}

#[test]
fn rules_at_odds_are_refused_and_named() {
    let conflict = |shape: Result<Shape, ShapeError>, pointer: &str| match shape {
        Err(ShapeError::Conflict { pointer: found, .. }) => assert_eq!(found, pointer),
        other => panic!("{other:?}"),
    };
    conflict(Shape::new(["/a~1b"], ["/a~1b/c"], []), "/a~1b");
    conflict(Shape::new(["/a", "/a/b"], [], []), "/a");
    conflict(Shape::new(["/x/a"], [], [("/x/a", "1")]), "/x/a");
    conflict(Shape::new([], ["/a", "/a/b/c"], []), "/a");
    conflict(Shape::new(["/a/b"], [], [("/a", "{}")]), "/a");
    let lowercase = |shape: Shape, pointer| shape.normalise([(pointer, NormalForm::Lowercase)]);
    conflict(lowercase(Shape::new(["/a"], [], []).unwrap(), "/a"), "/a");
    conflict(lowercase(Shape::new(["/a"], [], []).unwrap(), "/a/b"), "/a");
    conflict(lowercase(Shape::new([], ["/a/b"], []).unwrap(), "/a"), "/a");
    conflict(lowercase(Shape::new([], [], [("/a", "[]")]).unwrap(), "/a"), "/a");
    assert!(matches!(lowercase(Shape::default(), "a"), Err(ShapeError::Pointer(_))));
    assert!(Shape::new(["/a/b"], [], [("/a", "null")]).is_ok());
    assert!(matches!(Shape::new([], [], [("/a", "EUR")]), Err(ShapeError::Default { .. })));
    assert!(matches!(Shape::new([""], [], []), Err(ShapeError::Pointer(PointerError::WholeBody))));
}

#[test]
fn a_large_body_of_many_small_objects_is_sorted_throughout() {
    let body: Vec<String> =
        (0..20_000).map(|n| format!("{{\"b\":{n},\"a\":{{\"d\":[{{\"y\":1,\"x\":2}}],\"c\":0}}}}")).collect();
    let expected: Vec<String> =
        (0..20_000).map(|n| format!("{{\"a\":{{\"c\":0,\"d\":[{{\"x\":2,\"y\":1}}]}},\"b\":{n}}}")).collect();
    assert_eq!(
        canonical(format!("[{}]", body.join(",")).as_bytes()).unwrap(),
        format!("[{}]", expected.join(","))
    );
}
