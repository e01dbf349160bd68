//! Tokens: who is believed, and that nobody else makes anything happen.

use crate::support::{AUDIENCE, ISSUER, Issuer, SECRET, Shop, key_file, now, public};
use serde_json::{Value, json};
use std::path::Path;

const KEY: &str = "0a4f6c1e-8f5e-4c3a-9d57";

fn scope(keys: &str) -> String {
    format!(
        "[scope]\ntenant = [\"jwt:sub\"]\n[scope.jwt]\n{keys}\naudience = [\"{AUDIENCE}\"]\nissuer = [\"{ISSUER}\"]\n"
    )
}

fn by_file(setting: &str, name: &str) -> String {
    scope(&format!("{setting} = \"{}\"", key_file(name).display()))
}

/// A shop for each kind of key, with whoever signs for it.
async fn shops() -> [(Shop, Issuer); 3] {
    [
        (Shop::open(&scope(&format!("secret = \"{SECRET}\""))).await, Issuer::secret(SECRET.as_bytes())),
        (Shop::open(&by_file("public_key", "rsa-public.pem")).await, Issuer::rsa()),
        (Shop::open(&by_file("public_key", "p256-public.pem")).await, Issuer::p256()),
    ]
}

#[tokio::test]
async fn whoever_a_verified_token_names_has_keys_of_its_own() {
    for (shop, issuer) in shops().await {
        assert_eq!(shop.pay_with(KEY, &issuer.token("ann")).await.executed(), 1);
        // Another token of the same caller: the same tenant.
        let again = shop.pay_with(KEY, &issuer.token_with(json!({ "exp": now() + 60 }))).await;
        assert!(again.executed() == 1 && again.is_replay());
        assert_eq!(shop.pay_with(KEY, &issuer.token("bob")).await.executed(), 2);
        let accepted = [
            json!({ "sub": 42 }),
            json!({ "sub": "42", "aud": ["https://other.example", AUDIENCE] }),
            json!({ "sub": 42, "nbf": now(), "exp": now() + 3600 }),
            // The clocks of issuer and gateway may be apart by a little.
            json!({ "sub": 42, "nbf": now() + 10 }),
            json!({ "sub": 42, "exp": now() - 10 }),
        ];
        for claims in accepted {
            assert_eq!(shop.pay_with(KEY, &issuer.token_with(claims)).await.executed(), 3);
        }
    }
}

#[tokio::test]
async fn a_token_that_is_wrong_in_any_way_executes_nothing() {
    for (shop, issuer) in shops().await {
        let wrong_claims = [
            json!({ "exp": now() - 3600 }),
            json!({ "exp": null }),
            json!({ "exp": (now() + 3600).to_string() }),
            json!({ "nbf": now() + 3600 }),
            json!({ "nbf": "soon" }),
            json!({ "aud": "https://other.example" }),
            json!({ "aud": ["https://other.example"] }),
            json!({ "aud": [] }),
            json!({ "aud": null }),
            json!({ "iss": "https://other.example" }),
            json!({ "iss": [ISSUER] }),
            json!({ "iss": null }),
            json!({ "sub": null }),
            json!({ "sub": "" }),
            json!({ "sub": "an n" }),
            json!({ "sub": " ann" }),
            json!({ "sub": "ann\n" }),
            json!({ "sub": "a".repeat(256) }),
            json!({ "sub": 1.5 }),
            json!({ "sub": ["ann"] }),
            json!({ "filling": "a".repeat(8 * 1024) }),
        ];
        for claims in wrong_claims {
            shop.pay_with(KEY, &issuer.token_with(claims)).await.is_refused();
        }
        let right = issuer.token("ann");
        let (signed, signature) = right.rsplit_once('.').unwrap();
        let (header, claims) = signed.split_once('.').unwrap();
        let others = issuer.token("bob");
        let others_claims = others.split('.').nth(1).unwrap();
        let forged = [
            Issuer::stranger().token("ann"),
            Issuer::secret(b"another-secret-of-at-least-32-bytes").token("ann"),
            format!("{header}.{others_claims}.{signature}"),
            format!("{signed}."),
            signed.to_owned(),
            format!("{right}."),
            format!("{right}.{signature}"),
            format!("{signed}.{signature}="),
            format!(".{claims}.{signature}"),
            "opaque-token".to_owned(),
            String::new(),
        ];
        for token in forged {
            shop.pay_with(KEY, &token).await.is_refused();
        }
        let bearer = format!("Bearer {right}");
        shop.pay(KEY, &[]).await.is_refused();
        shop.pay(KEY, &[("Authorization", "Basic YW5uOmFubg==")]).await.is_refused();
        shop.pay(KEY, &[("Authorization", &bearer), ("Authorization", &bearer)]).await.is_refused();
        assert_eq!(shop.executions(), 0);
    }
}

#[tokio::test]
async fn no_token_chooses_its_own_algorithm_or_its_own_key() {
    for ((shop, issuer), pem) in shops().await.into_iter().zip([None, Some("rsa"), Some("p256")]) {
        let headers = [
            json!({ "alg": "none" }),
            json!({ "alg": "None" }),
            json!({ "alg": "" }),
            json!({ "alg": "HS512" }),
            json!({ "alg": "RS512" }),
            json!({ "alg": null }),
            json!({}),
        ];
        for header in headers {
            let token = issuer.token_under(header);
            let (signed, _) = token.rsplit_once('.').unwrap();
            shop.pay_with(KEY, &format!("{signed}.")).await.is_refused();
            shop.pay_with(KEY, &token).await.is_refused();
        }
        for header in [
            json!({ "alg": "HS256", "crit": ["exp"] }),
            json!({ "alg": "RS256", "crit": [] }),
            json!({ "alg": "ES256", "crit": ["b64"], "b64": false }),
        ] {
            shop.pay_with(KEY, &issuer.token_under(header)).await.is_refused();
        }
        // The public key is no secret: whoever knows it must not be able to sign with it.
        if let Some(pem) = pem.map(public) {
            let trimmed = pem.trim_ascii().to_vec();
            for secret in [pem, trimmed] {
                shop.pay_with(KEY, &Issuer::secret(&secret).token("ann")).await.is_refused();
            }
        }
        let stranger = Issuer::stranger();
        let own_key = json!({ "alg": "ES256", "kid": "own", "jwk": stranger.jwk("own") });
        shop.pay_with(KEY, &stranger.token_under(own_key)).await.is_refused();
        assert_eq!(shop.executions(), 0);
    }
}

/// A JWK set in a file of its own.
struct Keys(tempfile::TempDir);

impl Keys {
    fn of(keys: &[Value]) -> Self {
        let file = Self(tempfile::tempdir().unwrap());
        file.replace(&json!({ "keys": keys }).to_string());
        file
    }

    fn path(&self) -> std::path::PathBuf {
        self.0.path().join("jwks.json")
    }

    /// As tools do that must never leave half a file.
    fn replace(&self, text: &str) {
        let new = self.0.path().join("new");
        std::fs::write(&new, text).unwrap();
        std::fs::rename(new, self.path()).unwrap();
    }
}

fn by_keys(path: &Path) -> String {
    scope(&format!("jwks = \"{}\"", path.display()))
}

#[tokio::test]
async fn a_token_names_its_key_in_a_set() {
    let (rsa, p256, secret) = (Issuer::rsa(), Issuer::p256(), Issuer::secret(SECRET.as_bytes()));
    let for_encryption =
        json!({ "kty": "RSA", "kid": "enc", "use": "enc", "n": rsa.jwk("")["n"], "e": "AQAB" });
    let unknown_kind = json!({ "kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": "AAAA" });
    let keys = Keys::of(&[rsa.jwk("r"), p256.jwk("p"), secret.jwk("s"), for_encryption, unknown_kind]);
    let shop = Shop::open(&by_keys(&keys.path())).await;
    for token in [rsa.token_by("r"), p256.token_by("p"), secret.token_by("s"), p256.token("ann")] {
        assert_eq!(shop.pay_with(KEY, &token).await.executed(), 1);
    }
    for token in [
        rsa.token_by("gone"),
        rsa.token_by("p"),
        rsa.token_by("enc"),
        p256.token_by("r"),
        p256.token_by("ed"),
        secret.token_by("r"),
        Issuer::stranger().token_by("p"),
        Issuer::secret(&public("rsa")).token_by("r"),
        rsa.token_under(json!({ "alg": "RS256", "kid": 1 })),
    ] {
        shop.pay_with(KEY, &token).await.is_refused();
    }
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn keys_are_replaced_while_the_gateway_runs() {
    let (old, new) = (Issuer::rsa(), Issuer::p256());
    let keys = Keys::of(&[old.jwk("old")]);
    let shop = Shop::open(&by_keys(&keys.path())).await;
    assert_eq!(shop.pay_with(KEY, &old.token_by("old")).await.executed(), 1);
    shop.pay_with(KEY, &new.token_by("new")).await.is_refused();

    // What is wrong is not taken: the keys stay.
    for wrong in ["", "{", "[]", "{\"keys\": []}", "{\"keys\": [{\"kty\": \"RSA\"}]}"] {
        keys.replace(wrong);
        shop.pay_with(KEY, &new.token_by("new")).await.is_refused();
        assert!(shop.pay_with(KEY, &old.token_by("old")).await.is_replay());
    }
    std::fs::remove_file(keys.path()).unwrap();
    shop.pay_with(KEY, &new.token_by("new")).await.is_refused();
    assert!(shop.pay_with(KEY, &old.token_by("old")).await.is_replay());

    keys.replace(&json!({ "keys": [new.jwk("new")] }).to_string());
    assert!(
        shop.pay_with(KEY, &new.token_by("new")).await.is_replay(),
        "a key that is new is looked for at once"
    );
    shop.pay_with(KEY, &old.token_by("old")).await.is_refused();
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn a_token_that_is_not_believed_is_not_passed_over_for_the_credential() {
    let scope =
        scope(&format!("secret = \"{SECRET}\"")).replace("\"jwt:sub\"", "\"jwt:sub\", \"credential\"");
    let shop = Shop::open(&scope).await;
    shop.pay_with(KEY, "opaque-token").await.is_refused();
    shop.pay(KEY, &[("Authorization", "Bearer forged"), ("X-Api-Key", "good")]).await.is_refused();
    assert_eq!(shop.executions(), 0);
    assert_eq!(shop.pay(KEY, &[("X-Api-Key", "good")]).await.executed(), 1);
    assert_eq!(shop.pay(KEY, &[("Authorization", "Basic YW5uOmFubg==")]).await.executed(), 2);
}

#[tokio::test]
async fn tokens_for_anybody_are_taken_only_where_that_is_said() {
    let scope = format!(
        "[scope]\ntenant = [\"jwt:tid\"]\n[scope.jwt]\nsecret = \"{SECRET}\"\ndangerous_any_audience = true\nleeway = \"0s\"\n"
    );
    let shop = Shop::open(&scope).await;
    let issuer = Issuer::secret(SECRET.as_bytes());
    let claims = json!({ "tid": "ann", "aud": "https://other.example", "iss": null });
    assert_eq!(shop.pay_with(KEY, &issuer.token_with(claims)).await.executed(), 1);
    shop.pay_with(KEY, &issuer.token("ann")).await.is_refused();
    shop.pay_with(KEY, &issuer.token_with(json!({ "tid": "ann", "exp": now() - 1 }))).await.is_refused();
    assert_eq!(shop.executions(), 1);
}

#[tokio::test]
async fn a_forged_header_of_a_stranger_is_never_believed() {
    let token_too = scope(&format!("secret = \"{SECRET}\""))
        .replace("\"jwt:sub\"", "\"header:x-account\", \"jwt:sub\"")
        .replace("[scope.jwt]", "trusted_peers = [\"10.0.0.0/8\"]\n[scope.jwt]");
    let header_alone = "[scope]\ntenant = [\"header:x-account\"]\ntrusted_peers = [\"10.0.0.0/8\"]\n";
    for scope in [header_alone, &token_too] {
        let shop = Shop::open(scope).await;
        for key in ["X-Account", "x-account"] {
            shop.pay(KEY, &[(key, "bob"), ("X-Forwarded-For", "10.0.0.7")]).await.is_refused();
        }
        assert_eq!(shop.executions(), 0);
    }
    let shop = Shop::open(&token_too).await;
    let issuer = Issuer::secret(SECRET.as_bytes());
    let bearer = |subject: &str| format!("Bearer {}", issuer.token(subject));
    assert_eq!(shop.pay(KEY, &[("Authorization", &bearer("bob"))]).await.executed(), 1);
    let forged = shop.pay(KEY, &[("Authorization", &bearer("ann")), ("X-Account", "bob")]).await;
    assert_eq!(forged.executed(), 2, "it is ann's, whatever it says of bob");
}
