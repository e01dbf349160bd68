use super::*;

#[test]
fn headers_that_must_not_matter_cannot_be_chosen() {
    for name in [
        "Authorization",
        "proxy-authorization",
        "Cookie",
        "x-api-key",
        "Idempotency-Key",
        "Accept",
        "accept-language",
        "Prefer",
        "semel-operation-id",
        "content-length",
        "traceparent",
        "DPoP",
    ] {
        let error = Recipe::builder().header(name).build().unwrap_err().to_string();
        assert!(error.contains(&name.to_lowercase()) && error.contains("never"), "{error}");
    }
    assert!(matches!(Recipe::builder().header("a b").build(), Err(RecipeError::HeaderName { .. })));
}

#[test]
fn another_recipe_gives_another_fingerprint_even_if_its_rules_do_not_apply() {
    let other = Recipe::builder().ignore("/nowhere").build().unwrap();
    assert_ne!(sample("{}").hash_by(&everything()), sample("{}").hash_by(&other));
}

#[test]
fn a_recipe_is_known_by_its_rules_and_not_by_how_they_were_given() {
    let one = Recipe::builder()
        .header("B")
        .header("a")
        .ignore("/x")
        .ignore("/w")
        .default("/d", " 1.0 ")
        .build()
        .unwrap();
    let other = Recipe::builder()
        .default("/d", "1")
        .ignore("/w")
        .ignore("/x")
        .header("A")
        .header("b")
        .build()
        .unwrap();
    assert_eq!(one.id(), other.id());
    assert_eq!(one, other);
    assert_ne!(one.id(), everything().id());
}

#[test]
fn a_recipe_goes_through_its_text_and_keeps_its_id() {
    let secret = secret("0123456789abcdef");
    let recipe = Recipe::builder()
        .ignore("/metadata/trace_id")
        .only("/metadata")
        .default("/metadata/n", "0.1000000000000000055")
        .header("api-version")
        .secret(&secret)
        .build()
        .unwrap();
    let back = Recipe::from_text(recipe.to_text()).unwrap();
    assert_eq!(back, recipe);
    assert_eq!(back.id(), recipe.id());
    assert_eq!(back.to_text(), recipe.to_text());
    let request = sample("{}");
    let hash = |recipe: &Recipe| fingerprint(recipe, Some(&secret), &request.request());
    assert_eq!(hash(&back), hash(&recipe));
    let through_serde: Recipe = serde_json::from_str(&serde_json::to_string(&recipe).unwrap()).unwrap();
    assert_eq!(through_serde, recipe);
}

#[test]
fn a_recipe_of_another_version_or_with_unknown_rules_is_unavailable() {
    for (text, expected) in [
        (r#"{"version":4,"something":"new"}"#, RecipeUnavailable::Version { version: 4 }),
        (r#"{"version":3,"something":"new"}"#, RecipeUnavailable::Damaged),
        (r#"{"normalise":{"/a":"uppercase"},"version":3}"#, RecipeUnavailable::Damaged),
        (r#"{"normalise":{"/a":"lowercase"},"version":2}"#, RecipeUnavailable::Damaged),
        (r#"{"bytes":true,"version":2}"#, RecipeUnavailable::Damaged),
        (r#"{"bytes":true,"ignore":["/a"],"version":3}"#, RecipeUnavailable::Damaged),
        (r#"{"version":2,"something":"new"}"#, RecipeUnavailable::Damaged),
        (r#"{"version":1,"host":{}}"#, RecipeUnavailable::Damaged),
        (r#"{"version":2,"host":{"aliases":[["a"],["a","b"]]}}"#, RecipeUnavailable::Damaged),
        (r#"{"version":1,"something":"new"}"#, RecipeUnavailable::Damaged),
        (r#"{"version":1,"headers":["a b"]}"#, RecipeUnavailable::Damaged),
        ("", RecipeUnavailable::Damaged),
        ("{}", RecipeUnavailable::Damaged),
    ] {
        assert_eq!(Recipe::from_text(text).unwrap_err(), expected, "{text}");
    }
}

// These are in stores. If this test fails, retries of requests made before an update are refused after it: make a new
// version of the recipe instead.
#[test]
fn the_text_of_an_old_recipe_still_gives_the_fingerprint_that_it_gave() {
    let text = r#"{"defaults":{"/currency":"\"EUR\""},"headers":["api-version"],"ignore":["/metadata/trace_id"],"version":1}"#;
    let recipe = Recipe::from_text(text).unwrap();
    assert_eq!(recipe.to_text(), text);
    assert_eq!(recipe.id().to_string(), "3ee5e287647669202b8125fd71aa128f");
    let request = sample(r#"{"amount":9007199254740993,"metadata":{"trace_id":1}}"#).with("api-version", "3");
    assert_eq!(
        hex(&request.hash_by(&recipe).0),
        "a1d0a569901bfc7521668dd3f4c11edc5fc5fbbb0cae740e0b3c112dbad6cc8c"
    );
    let everything = Recipe::from_text(r#"{"version":1}"#).unwrap();
    let form = sample("b=2&a=1").with("content-type", "application/x-www-form-urlencoded");
    assert_eq!(
        hex(&form.hash_by(&everything).0),
        "dcde0de001d281ad1bac8f61510926b57a81a9092c1858cd58c37359c85fe447"
    );
    let secret = secret("0123456789abcdef");
    let keyed = Recipe::from_text(r#"{"secret":"f768e471760ffd54","version":1}"#).unwrap();
    let keyed = fingerprint(&keyed, Some(&secret), &sample("[]").request()).unwrap();
    assert_eq!(hex(&keyed.0), "e4b117e29b41f725ba0bea883aa91522accc405f2aa133a45c0d0657deaa6320");
    let command = Recipe::builder().command("create_payment/1").build().unwrap();
    assert_eq!(command.to_text(), r#"{"command":"create_payment/1","version":1}"#);
    let (_, command) = command_fingerprint(&command, None, &[1]).unwrap();
    assert_eq!(hex(&command.0), "3873035517d6df9157b5a8d31c7bc23b4ffa561f7e35070068a8811b5660d015");
}

#[test]
fn a_secret_changes_the_hash_and_another_secret_makes_it_unavailable_not_different() {
    let (one, other) = (secret("0123456789abcdef"), secret("0123456789abcdeg"));
    let keyed = |secret| Recipe::builder().secret(secret).build().unwrap();
    let request = sample("{}");
    let hash = |recipe: &Recipe, secret| fingerprint(recipe, secret, &request.request());
    assert_ne!(hash(&keyed(&one), Some(&one)), hash(&keyed(&other), Some(&other)));
    assert_eq!(hash(&keyed(&one), Some(&other)), Err(RecipeUnavailable::OtherSecret));
    assert_eq!(hash(&keyed(&one), None), Err(RecipeUnavailable::OtherSecret));
    // Records from before there was a secret are still comparable.
    assert_eq!(hash(&everything(), Some(&one)), hash(&everything(), None));
}

#[test]
fn a_secret_is_long_enough_and_never_shown() {
    assert_eq!(FingerprintSecret::new("0123456789abcde"), Err(SecretTooShort { bytes: 15 }));
    assert_eq!(format!("{:?}", secret("0123456789abcdef")), "FingerprintSecret(…)");
    let recipe = Recipe::builder().secret(&secret("0123456789abcdef")).build().unwrap();
    assert!(!recipe.to_text().contains("0123456789abcdef"));
    // Longer than a block of the hash function.
    assert_ne!(secret(&"a".repeat(65)), secret(&"a".repeat(66)));
}

#[test]
fn the_keyed_hash_is_hmac_as_everybody_computes_it() {
    // RFC 4231, case 6: a key longer than a block.
    let secret = FingerprintSecret::new([0xaa; 131]).unwrap();
    let mut hmac = secret.hmac();
    hmac::Mac::update(&mut hmac, b"Test Using Larger Than Block-Size Key - Hash Key First");
    assert_eq!(
        hex(&hmac::Mac::finalize(hmac).into_bytes()),
        "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"
    );
}

#[test]
fn the_tenant_of_a_credential_is_stable_short_and_says_nothing() {
    let secret = secret("0123456789abcdef");
    let tenant = tenant_of_credential(&secret, b"Bearer abc");
    assert_eq!(tenant, "cred_4df65271c6a16111b017e97eca07c249");
    assert_eq!(tenant.len(), 5 + 32);
    assert_ne!(tenant, tenant_of_credential(&secret, b"Bearer abd"));
    assert_ne!(tenant, tenant_of_credential(&self::secret("0123456789abcdeg"), b"Bearer abc"));
}

#[test]
fn a_stored_recipe_stays_available_when_its_header_could_not_be_chosen_any_more() {
    let text = r#"{"headers":["x-request-id"],"version":1}"#;
    assert_eq!(Recipe::from_text(text).unwrap().to_text(), text);
    assert!(serde_json::from_str::<Recipe>(text).unwrap_err().to_string().contains("x-request-id"));
}
