use super::*;
use crate::canonical::NormalForm;

fn normalised() -> Recipe {
    Recipe::builder()
        .normalise("/currency", NormalForm::Lowercase)
        .normalise("/amount", NormalForm::Decimal)
        .normalise("/at", NormalForm::Timestamp)
        .default("/currency", "\"EUR\"")
        .build()
        .unwrap()
}

#[test]
fn spellings_that_are_declared_as_one_are_one_request() {
    let recipe = normalised();
    let hash = |body: &str| sample(body).hash_by(&recipe);
    let first = hash(r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00Z"}"#);
    for same in [
        r#"{"currency":"eur","amount":"10.00","at":"2026-11-01T09:00:00+00:00"}"#,
        r#"{"amount":"1e1","at":"2026-11-01T10:00:00.000+01:00"}"#,
    ] {
        assert_eq!(hash(same), first, "{same}");
    }
    for other in [
        r#"{"currency":"USD","amount":"10.0","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.01","at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":10.0,"at":"2026-11-01T09:00:00Z"}"#,
        r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00.001Z"}"#,
        r#"{"currency":"EUR","amount":"10.0","at":"2026-11-01T09:00:00-00:00"}"#,
        r#"{"currency":"EUR","amount":"10,0","at":"2026-11-01T09:00:00Z"}"#,
    ] {
        assert_ne!(hash(other), first, "{other}");
    }
}

#[test]
fn a_body_compared_by_its_bytes_is_another_one_in_another_spelling() {
    let recipe = Recipe::builder().bytes().build().unwrap();
    assert!(recipe.compares_bytes());
    let hash =
        |content_type: &str, body: &str| sample(body).with("content-type", content_type).hash_by(&recipe);
    for (content_type, one, other) in [
        ("application/json", r#"{"a":1}"#, r#"{"a": 1}"#),
        ("application/x-www-form-urlencoded", "a=1&b=2", "b=2&a=1"),
        ("application/json", "1", "1.0"),
    ] {
        assert_eq!(hash(content_type, one), hash(content_type, one));
        assert_ne!(hash(content_type, one), hash(content_type, other), "{one}");
    }
    assert_ne!(hash("application/json", "1"), hash("text/plain", "1"));
    let boundary = |boundary: &str| {
        let body = format!(
            "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n1\r\n--{boundary}--\r\n"
        );
        hash(&format!("multipart/form-data; boundary={boundary}"), &body)
    };
    assert_ne!(boundary("one"), boundary("two"));
}

#[test]
fn only_recipes_that_need_it_have_the_third_version() {
    let version =
        |recipe: Recipe| recipe.to_text().rsplit_once(":").unwrap().1.trim_end_matches('}').to_owned();
    let build = |builder: RecipeBuilder| version(builder.build().unwrap());
    assert_eq!(build(Recipe::builder().default("/a", "1").host()), "2");
    assert_eq!(build(Recipe::builder().command("pay/1")), "1");
    assert_eq!(build(Recipe::builder().bytes()), "3");
    let lowercase = |builder: RecipeBuilder| builder.normalise("/a", NormalForm::Lowercase);
    assert_eq!(build(lowercase(Recipe::builder().command("pay/1"))), "3");
    assert_eq!(build(lowercase(Recipe::builder()).command("pay/1")), "3");
}

#[test]
fn rules_that_would_have_no_effect_are_refused() {
    let bytes = || Recipe::builder().bytes();
    for wrong in [
        bytes().ignore("/a"),
        bytes().only("/a"),
        bytes().default("/a", "1"),
        bytes().normalise("/a", NormalForm::Decimal),
    ] {
        assert!(matches!(wrong.build(), Err(RecipeError::BytesAndJson)));
    }
    assert!(matches!(bytes().command("pay/1").build(), Err(RecipeError::BytesOfCommand)));
    let host = Recipe::builder().normalise("/a", NormalForm::Decimal).command("pay/1").host();
    assert!(matches!(host.build(), Err(RecipeError::HostOfCommand)));
    assert!(bytes().header("api-version").host().build().is_ok());
}

#[test]
fn a_command_counts_in_normal_forms_too() {
    let recipe =
        Recipe::builder().command("pay/1").normalise("/currency", NormalForm::Lowercase).build().unwrap();
    let hash = |currency: &str| {
        command_fingerprint(&recipe, None, &serde_json::json!({ "currency": currency })).unwrap().1
    };
    assert_eq!(hash("EUR"), hash("eur"));
    assert_ne!(hash("EUR"), hash("usd"));
}

// These are in stores. If this test fails, retries of requests made before an update are refused after it: make a new
// version of the recipe instead.
#[test]
fn the_text_of_a_recipe_of_version_3_still_gives_the_fingerprint_that_it_gave() {
    let text = r#"{"defaults":{"/currency":"\"EUR\""},"normalise":{"/amount":"decimal","/at":"timestamp","/currency":"lowercase"},"version":3}"#;
    let recipe = Recipe::from_text(text).unwrap();
    assert_eq!((recipe.to_text(), recipe.id()), (text, normalised().id()));
    let request = sample(r#"{"amount":"9007199254740993.10","at":"2026-11-01T10:00:00.50+01:00"}"#);
    assert_eq!(
        hex(&request.hash_by(&recipe).0),
        "5194e9688db9af95ffb45164c4b79e5ff97582642811723c040068903a401a8d"
    );
    let bytes = Recipe::from_text(r#"{"bytes":true,"version":3}"#).unwrap();
    assert_eq!(
        hex(&sample(r#"{"a": 1}"#).hash_by(&bytes).0),
        "8ed4089061800013fe70776dd05d93ad06dbb8500508b4976b213cbd632aa120"
    );
}
