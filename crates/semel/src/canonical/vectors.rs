//! The vectors of RFC 8785 and of its author's test data (cyberphone/json-canonicalization).

use super::canonical;

#[track_caller]
fn check(input: &str, expected: &str) {
    assert_eq!(canonical(input.as_bytes()).unwrap(), expected);
    assert_eq!(canonical(expected.as_bytes()).unwrap(), expected);
}

#[test]
fn arrays() {
    check(
        "[\n  56,\n  {\n    \"d\": true,\n    \"10\": null,\n    \"1\": [ ]\n  }\n]",
        r#"[56,{"1":[],"10":null,"d":true}]"#,
    );
}

#[test]
fn french() {
    check(
        r#"{
  "peach": "This sorting order",
  "péché": "is wrong according to French",
  "pêche": "but canonicalization MUST",
  "sin":   "ingnore locale"
}
"#,
        r#"{"peach":"This sorting order","péché":"is wrong according to French","pêche":"but canonicalization MUST","sin":"ingnore locale"}"#,
    );
}

#[test]
fn structures() {
    check(
        r#"{
  "1": {"f": {"f": "hi","F": 5} ,"\n": 56.0},
  "10": { },
  "": "empty",
  "a": { },
  "111": [ { } ],
  "A": { }
}"#,
        r#"{"":"empty","1":{"\n":56,"f":{"F":5,"f":"hi"}},"10":{},"111":[{}],"A":{},"a":{}}"#,
    );
}

#[test]
fn unicode() {
    check("{\n  \"Unnormalized Unicode\":\"A\\u030a\"\n}\n", "{\"Unnormalized Unicode\":\"A\u{30a}\"}");
    check(
        "{\n  \"Unnormalized Unicode\":\"\\u1e0d\\u0307\"\n}\n",
        "{\"Unnormalized Unicode\":\"\u{1e0d}\u{307}\"}",
    );
}

// RFC 8785 rounds the first number; its exact value is kept here. Written as the double prints, all is as in the RFC.
#[test]
fn values() {
    let input = |number: &str| {
        format!(
            r#"{{
  "numbers": [{number}, 1E30, 4.50,
              2e-3, 0.000000000000000000000000001],
  "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
  "literals": [null, true, false]
}}"#
        )
    };
    let expected = |number: &str| {
        format!(
            r#"{{"literals":[null,true,false],"numbers":[{number},1e+30,4.5,0.002,1e-27],"string":"€$\u000f\nA'B\"\\\\\"/"}}"#
        )
    };
    check(&input("333333333.3333333"), &expected("333333333.3333333"));
    check(&input("333333333.33333329"), &expected("33333333333333329e-8"));
}

#[test]
fn weird() {
    check(
        r#"{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\u000a": "Newline",
  "1": "One",
  "\u0080": "Control\u007f",
  "\ud83d\ude02": "Smiley",
  "\u00f6": "Latin Small Letter O With Diaeresis",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "</script>": "Browser Challenge"
}
"#,
        "{\"\\n\":\"Newline\",\"\\r\":\"Carriage Return\",\"1\":\"One\",\"</script>\":\"Browser Challenge\",\
         \"\u{80}\":\"Control\u{7f}\",\"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\
         \"😂\":\"Smiley\",\"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

#[test]
fn the_order_of_properties_of_section_3_2_3() {
    check(
        r#"{
  "\u20ac": "Euro Sign",
  "\r": "Carriage Return",
  "\ufb33": "Hebrew Letter Dalet With Dagesh",
  "1": "One",
  "\ud83d\ude00": "Emoji: Grinning Face",
  "\u0080": "Control",
  "\u00f6": "Latin Small Letter O With Diaeresis"
}"#,
        "{\"\\r\":\"Carriage Return\",\"1\":\"One\",\"\u{80}\":\"Control\",\
         \"ö\":\"Latin Small Letter O With Diaeresis\",\"€\":\"Euro Sign\",\"😀\":\"Emoji: Grinning Face\",\
         \"\u{fb33}\":\"Hebrew Letter Dalet With Dagesh\"}",
    );
}

#[test]
fn the_numbers_of_appendix_b() {
    let table: &[(u64, &str)] = &[
        (0x0000_0000_0000_0000, "0"),
        (0x8000_0000_0000_0000, "0"),
        (0x0000_0000_0000_0001, "5e-324"),
        (0x8000_0000_0000_0001, "-5e-324"),
        (0x7fef_ffff_ffff_ffff, "1.7976931348623157e+308"),
        (0xffef_ffff_ffff_ffff, "-1.7976931348623157e+308"),
        (0x4340_0000_0000_0000, "9007199254740992"),
        (0xc340_0000_0000_0000, "-9007199254740992"),
        (0x4430_0000_0000_0000, "295147905179352830000"),
        (0x44b5_2d02_c7e1_4af5, "9.999999999999997e+22"),
        (0x44b5_2d02_c7e1_4af6, "1e+23"),
        (0x44b5_2d02_c7e1_4af7, "1.0000000000000001e+23"),
        (0x444b_1ae4_d6e2_ef4e, "999999999999999700000"),
        (0x444b_1ae4_d6e2_ef4f, "999999999999999900000"),
        (0x444b_1ae4_d6e2_ef50, "1e+21"),
        (0x3eb0_c6f7_a0b5_ed8c, "9.999999999999997e-7"),
        (0x3eb0_c6f7_a0b5_ed8d, "0.000001"),
        (0x41b3_de43_5555_5553, "333333333.3333332"),
        (0x41b3_de43_5555_5554, "333333333.33333325"),
        (0x41b3_de43_5555_5555, "333333333.3333333"),
        (0x41b3_de43_5555_5556, "333333333.3333334"),
        (0x41b3_de43_5555_5557, "333333333.33333343"),
        (0xbecb_f647_612f_3696, "-0.0000033333333333333333"),
        (0x4314_3ff3_c1cb_0959, "1424953923781206.2"),
    ];
    for (bits, expected) in table {
        let double = f64::from_bits(*bits);
        assert_eq!(expected.parse::<f64>().unwrap(), double);
        check(expected, expected);
        check(ryu_js::Buffer::new().format(double), expected);
        // Rust's own shortest decimals, in both of its spellings, are an independent way from the double to a text.
        // The last row is a tie, which Rust rounds up and ECMAScript to even: two values, so two texts.
        if *bits != 0x4314_3ff3_c1cb_0959 {
            check(&format!("{double}"), expected);
            check(&format!("{double:e}"), expected);
        }
    }
    // The last two rows, NaN and Infinity, are errors: JSON has no text for them.
    for bits in [0x7fff_ffff_ffff_ffff, 0x7ff0_0000_0000_0000] {
        let text = format!("{}", f64::from_bits(bits));
        assert!(canonical(text.as_bytes()).is_err(), "{text}");
    }
}
