//! Canonical JSON, and the fingerprint of requests.
//!
//! The first line of the input is a digit that chooses the recipe, a letter for the body (`j`son, `e`ncoded json, `f`orm, else bytes)
//! and the query; the rest is the body.

use crate::independent::fingerprint::{ConnectionOptions, canonical, clean, fingerprint};
use crate::independent::json::Json;
use crate::independent::shape::Rules;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, HeaderValue, Method};
use semel::canonical::{NormalForm, NotCanonical, Shape, Sink, write_canonical};
use semel::fingerprint::{FingerprintSecret, HttpRequest, Recipe};
use std::sync::LazyLock;

const SECRET: &[u8] = b"a secret that nobody else has got";
const VERSION: &str = "2026-11-16";

/// A recipe, and the same as the second implementation has it.
struct Both {
    recipe: Recipe,
    /// The same by version 1, as it is in stores, if that knows its rules.
    first: Option<Recipe>,
    shape: Shape,
    rules: Rules,
    secret: Option<FingerprintSecret>,
    counts_version: bool,
}

static RECIPES: LazyLock<Vec<Both>> = LazyLock::new(|| {
    let all = [
        (Rules::default(), false, false),
        (
            Rules {
                ignore: vec![vec!["a"], vec!["b", "c"], vec!["d", "1"], vec!["", "~/"]],
                ..Rules::default()
            },
            false,
            false,
        ),
        (
            Rules {
                only: vec![vec!["a"], vec!["b", "c"], vec!["d", "1", "a"], vec!["\u{fb33}"]],
                ..Rules::default()
            },
            true,
            false,
        ),
        (
            Rules {
                defaults: vec![
                    (vec!["a"], "1.0"),
                    (vec!["b", "c"], "{\"z\": [1], \"a\": 9007199254740993}"),
                    (vec!["\u{1f600}"], "\"\\u0041\""),
                ],
                ..Rules::default()
            },
            false,
            true,
        ),
        (
            Rules {
                ignore: vec![vec!["b", "trace"], vec!["0"]],
                only: vec![vec!["b"], vec!["d", "0"]],
                defaults: vec![(vec!["b", "c"], "null"), (vec!["a"], "0"), (vec!["d", "a"], "[]")],
                ..Rules::default()
            },
            true,
            true,
        ),
        (
            Rules {
                defaults: vec![(vec!["a"], "\"\\u0041B\""), (vec!["c"], "\"2026-01-01T00:30:00+01:00\"")],
                normalise: vec![
                    (vec!["a"], "lowercase"),
                    (vec!["b"], "decimal"),
                    (vec!["c"], "timestamp"),
                    (vec!["d", "1"], "decimal"),
                    (vec!["d", "2", "at"], "timestamp"),
                ],
                ..Rules::default()
            },
            false,
            false,
        ),
    ];
    let all = all.into_iter().filter_map(|(rules, counts_version, keyed)| both(rules, counts_version, keyed));
    all.chain(by_bytes()).collect()
});

/// A recipe that looks at nothing but the bytes of a body.
fn by_bytes() -> Option<Both> {
    let recipe = Recipe::builder().bytes().build().ok()?;
    let (shape, rules) = (Shape::default(), Rules::default());
    Some(Both { recipe, first: None, shape, rules, secret: None, counts_version: false })
}

fn both(rules: Rules, counts_version: bool, keyed: bool) -> Option<Both> {
    let pointer = |names: &Vec<&str>| -> String {
        names.iter().map(|name| format!("/{}", name.replace('~', "~0").replace('/', "~1"))).collect()
    };
    let pointers = |all: &[Vec<&'static str>]| all.iter().map(pointer).collect::<Vec<_>>();
    let (ignore, only) = (pointers(&rules.ignore), pointers(&rules.only));
    let defaults: Vec<_> = rules.defaults.iter().map(|(names, text)| (pointer(names), *text)).collect();
    let shape = Shape::new(
        ignore.iter().map(String::as_str),
        only.iter().map(String::as_str),
        defaults.iter().map(|(pointer, text)| (pointer.as_str(), *text)),
    );
    let form = |name: &str| NormalForm::ALL.into_iter().find(|form| form.as_str() == name);
    let forms = rules.normalise.iter().map(|(names, name)| Some((pointer(names), form(name)?)));
    let forms: Vec<_> = forms.collect::<Option<_>>()?;
    let shape = shape.ok()?.normalise(forms.iter().map(|(pointer, form)| (pointer.as_str(), *form)));
    let mut recipe = Recipe::builder();
    recipe = ignore.into_iter().fold(recipe, |recipe, pointer| recipe.ignore(pointer));
    recipe = only.into_iter().fold(recipe, |recipe, pointer| recipe.only(pointer));
    recipe = defaults.into_iter().fold(recipe, |recipe, (pointer, text)| recipe.default(pointer, text));
    recipe = forms.into_iter().fold(recipe, |recipe, (pointer, form)| recipe.normalise(pointer, form));
    if counts_version {
        recipe = recipe.header("api-version");
    }
    let secret = if keyed { FingerprintSecret::new(SECRET).ok() } else { None };
    if let Some(secret) = &secret {
        recipe = recipe.secret(secret);
    }
    let recipe = recipe.build().ok()?;
    let first = match rules.normalise.is_empty() {
        true => Some(Recipe::from_text(&recipe.to_text().replace("\"version\":2", "\"version\":1")).ok()?),
        false => None,
    };
    Some(Both { recipe, first, shape: shape.ok()?, rules, secret, counts_version })
}

/// The canonical form and the fingerprint are those of a second implementation, and what means the same has one of each.
pub fn target(data: &[u8]) {
    let (head, body) = match data.iter().position(|byte| *byte == b'\n') {
        Some(end) => (&data[..end], &data[end + 1..]),
        None => (&b""[..], data),
    };
    let number = head.first().map_or(0, |digit| usize::from(digit.wrapping_sub(b'0')));
    assert_eq!(RECIPES.len(), 7, "a recipe could not be made");
    let both = &RECIPES[number % RECIPES.len()];
    let value = clean(body);
    text(body, value.as_ref());
    let expected = value.as_ref().map(|value| canonical(value, &both.rules));
    if !both.rules.are_none() {
        shaped(both, body, expected.as_deref());
    }
    let query = head.get(2..).and_then(|query| std::str::from_utf8(query).ok()).unwrap_or_default();
    request(both, head.get(1).copied().unwrap_or(b'j'), query, body, expected.as_deref());
}

/// Keeps what it is given, piece by piece.
struct Pieces(Vec<Vec<u8>>);

impl Sink for Pieces {
    fn write(&mut self, piece: &[u8]) {
        self.0.push(piece.to_vec());
    }
}

fn text(body: &[u8], value: Option<&Json>) {
    let written = semel::canonical::canonical(body);
    let expected = value.map(|value| canonical(value, &Rules::default()));
    assert_eq!(written.as_ref().ok(), expected.as_ref(), "{:?}", String::from_utf8_lossy(body));
    match written {
        Ok(written) => {
            assert_eq!(semel::canonical::canonical(written.as_bytes()).as_ref(), Ok(&written), "done twice");
            if let Some(value) = value {
                let mut otherwise = String::new();
                let seed = body
                    .iter()
                    .fold(1, |seed: u64, byte| seed.wrapping_mul(31).wrapping_add(u64::from(*byte)));
                spell_otherwise(value, &mut otherwise, &mut Dice(seed));
                assert_eq!(semel::canonical::canonical(otherwise.as_bytes()), Ok(written), "{otherwise}");
            }
        }
        Err(error) => {
            let at = match error {
                NotCanonical::Syntax { at }
                | NotCanonical::LoneSurrogate { at }
                | NotCanonical::InvalidUtf8 { at }
                | NotCanonical::ExponentTooLarge { at }
                | NotCanonical::TooDeep { at } => at,
                NotCanonical::DuplicateMember { object } => object,
                _ => 0,
            };
            assert!(at <= body.len(), "{error:?} is beyond the text");
        }
    }
}

fn shaped(both: &Both, body: &[u8], expected: Option<&str>) {
    let mut pieces = Pieces(Vec::new());
    let written = write_canonical(body, &both.shape, &mut pieces).map(|()| pieces.0.concat()).ok();
    let written = written.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert_eq!(written.as_deref(), expected, "{:?}", String::from_utf8_lossy(body));
}

fn request(both: &Both, kind: u8, query: &str, body: &[u8], canonical: Option<&str>) {
    let media_type = match kind {
        b'j' | b'e' => "application/json",
        b'f' => "application/x-www-form-urlencoded",
        _ => "text/plain",
    };
    let content_encoding = (kind == b'e').then_some("gzip");
    let mut headers = HeaderMap::new();
    let spelt = format!("{}; charset=utf-8", media_type.to_uppercase());
    headers.extend(HeaderValue::try_from(spelt).map(|value| (CONTENT_TYPE, value)));
    headers.extend(content_encoding.map(|coding| (CONTENT_ENCODING, HeaderValue::from_static(coding))));
    headers.insert("api-version", HeaderValue::from_static(VERSION));
    let asked = HttpRequest {
        operation: "create_payment",
        method: &Method::POST,
        path: "/payments",
        query: Some(query),
        host: None,
        headers: &headers,
        body,
    };
    let make = |recipe| semel::fingerprint::fingerprint(recipe, both.secret.as_ref(), &asked);
    let counted = if both.counts_version { vec![("api-version", vec![VERSION])] } else { Vec::new() };
    let expected = |version, recipe: &Recipe| {
        fingerprint(&ConnectionOptions {
            version,
            by_bytes: recipe.compares_bytes(),
            recipe_text: recipe.to_text(),
            secret: both.secret.as_ref().map(|_| SECRET),
            operation: "create_payment",
            method: "POST",
            path: "/payments",
            query,
            headers: &counted,
            media_type,
            content_encoding,
            body,
            canonical,
        })
    };
    let newest = if both.first.is_some() { 2 } else { 3 };
    let first = both.first.as_ref().map(|first| (1, first));
    for (version, recipe) in first.into_iter().chain([(newest, &both.recipe)]) {
        let made = make(recipe).map(|made| made.0.to_vec());
        assert_eq!(made, Ok(expected(version, recipe)), "{version} {kind} {query:?}");
    }
}

/// Chance that is the same for the same input.
struct Dice(u64);

impl Dice {
    fn below(&mut self, sides: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % sides
    }
}

/// The same value with other white space, another order of members, other escapes and other spellings of numbers.
fn spell_otherwise(value: &Json, text: &mut String, dice: &mut Dice) {
    let mut space = |text: &mut String| text.push_str(["", " ", "\n", "\t\r", ""][dice.below(5)]);
    space(text);
    match value {
        Json::Array(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                spell_otherwise(item, text, dice);
            }
            text.push(']');
        }
        Json::Object(members) => {
            let mut members: Vec<_> = members.iter().collect();
            for at in (1..members.len()).rev() {
                members.swap(at, dice.below(at + 1));
            }
            text.push('{');
            for (at, (name, item)) in members.into_iter().enumerate() {
                if at > 0 {
                    text.push_str(", ");
                }
                spell_string(name, text, dice);
                text.push_str([":", " : ", "\n:"][dice.below(3)]);
                spell_otherwise(item, text, dice);
            }
            text.push('}');
        }
        Json::String(string) => spell_string(string, text, dice),
        Json::Number(number) => text.push_str(&number.spelling(dice.below(4))),
        other => other.write(text),
    }
    text.push_str(["", " ", "\r\n"][dice.below(3)]);
}

fn spell_string(string: &str, text: &mut String, dice: &mut Dice) {
    text.push('"');
    for character in string.chars() {
        if character < ' ' || "\"\\".contains(character) || dice.below(4) == 0 {
            for unit in character.encode_utf16(&mut [0; 2]) {
                match dice.below(2) {
                    0 => text.push_str(&format!("\\u{unit:04x}")),
                    _ => text.push_str(&format!("\\u{unit:04X}")),
                }
            }
        } else {
            text.push(character);
        }
    }
    text.push('"');
}
