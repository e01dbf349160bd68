use super::*;

fn hash(content_type: &str, body: &[u8]) -> Fingerprint {
    sample("").with("content-type", content_type).change(|it| it.body = body.to_vec()).hash()
}

fn multipart(boundary: &str, content: &str) -> (String, Vec<u8>) {
    let body = format!(
        "--{boundary}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n{content}\r\n--{boundary}--\r\n"
    );
    (format!("multipart/form-data; boundary={boundary}"), body.into_bytes())
}

fn hash_of((content_type, body): (String, Vec<u8>)) -> Fingerprint {
    hash(&content_type, &body)
}

#[test]
fn a_multipart_body_goes_by_its_parts_and_never_meets_one_that_goes_by_its_bytes() {
    assert_eq!(hash_of(multipart("one", "1")), hash_of(multipart("another", "1")));
    assert_ne!(hash_of(multipart("one", "1")), hash_of(multipart("one", "2")));
    let (content_type, body) = multipart("one", "1");
    let base = hash(&content_type, &body);
    assert_eq!(hash(&content_type.replace("=one", "=\"one\""), &body), base);
    for (other, body) in [
        (content_type.clone(), [b"preamble\r\n", &body[..]].concat()),
        (content_type.clone(), [&body[..], b"epilogue"].concat()),
        (format!("{content_type}; boundary=one"), body.clone()),
        (format!("{content_type}; charset=utf-16"), body.clone()),
        (format!("{content_type}; type=other"), body.clone()),
        (content_type.replace("form-data", "mixed"), body.clone()),
        ("multipart/form-data".into(), body.clone()),
    ] {
        assert_ne!(hash(&other, &body), base, "{other}");
        assert_eq!(hash(&other, &body), hash(&other, &body));
    }
    // By bytes the boundary counts.
    let preamble = |boundary: &str| {
        let (content_type, body) = multipart(boundary, "1");
        hash(&content_type, &[b"preamble\r\n", &body[..]].concat())
    };
    assert_ne!(preamble("one"), preamble("two"));
    assert_eq!(hash(&format!("{content_type}; charset=UTF-8"), &body), base);
    let coded = |boundary| {
        let (content_type, body) = multipart(boundary, "1");
        let sent = sample("").with("content-type", &content_type).with("content-encoding", "identity");
        sent.change(|it| it.body = body).hash()
    };
    assert_ne!(coded("one"), coded("two"), "it is not what its type says before it is decoded");
}

#[test]
fn a_digest_is_not_the_bytes_that_it_stands_for() {
    // Whoever sends a digest as a body gets another one.
    let (content_type, body) = multipart("one", "1");
    let digest = crate::fingerprint::multipart::digest(b"one", &body).unwrap();
    assert_ne!(hash(&content_type, &digest), hash(&content_type, &body));
    assert_ne!(hash("text/plain", &digest), hash(&content_type, &body));
}

#[test]
fn parameters_that_may_change_how_a_body_is_read_count() {
    let json = br#"{"a":1}"#;
    let base = hash("application/json", json);
    for same in ["application/json;charset=utf-8", "application/json; CHARSET=\"UTF8\"", "Application/Json;"]
    {
        assert_eq!(hash(same, json), base, "{same}");
    }
    let others = [
        "application/json; charset=utf-16",
        "application/json; charset=us-ascii",
        "application/json; charset=utf-8; charset=utf-8",
        "application/json; odata=verbose",
        "application/json; version=2",
        "application/json; charset",
        "application/json; charset*=utf-8''utf-16",
    ];
    let hashes: HashSet<_> = others.iter().map(|other| hash(other, json)).chain([base]).collect();
    assert_eq!(hashes.len(), others.len() + 1);
    // Of what is compared by its bytes every parameter counts.
    let plain = [
        "text/plain",
        "text/plain; charset=utf-8",
        "text/plain; charset=latin1",
        "text/plain; format=flowed",
    ];
    let hashes: HashSet<_> = plain.iter().map(|other| hash(other, b"text")).collect();
    assert_eq!(hashes.len(), plain.len());
    assert_eq!(hash("Text/Plain;  Format=\"flowed\"", b"text"), hash("text/plain; format=flowed", b"text"));
}

#[test]
fn in_another_charset_only_equal_bytes_are_equal() {
    for media_type in ["application/json; charset=iso-8859-1", "application/json; charset=utf-16"] {
        assert_ne!(hash(media_type, b"{\"a\": 1}"), hash(media_type, b"{\"a\":1}"));
        assert_eq!(hash(media_type, b"{\"a\":1}"), hash(media_type, b"{\"a\":1}"));
    }
    let form = "application/x-www-form-urlencoded; charset=windows-1252";
    assert_ne!(hash(form, b"a=%C3%A9"), hash(form, b"a=\xc3\xa9"));
}

#[test]
fn no_media_type_an_empty_one_and_several_are_three() {
    let none = sample("[]").change(|it| it.headers.clear());
    let empty = sample("[]").with("content-type", "");
    let twice = |second: &'static str| {
        sample("[]").change(|it| {
            it.headers.append("content-type", HeaderValue::from_static(second));
        })
    };
    let all = [none, empty, twice("application/json"), twice("text/plain"), sample("[]")];
    let hashes: HashSet<_> = all.iter().map(Sample::hash).collect();
    assert_eq!(hashes.len(), all.len());
}

#[test]
fn the_host_counts_where_the_recipe_says_so() {
    let counting = Recipe::builder().host().build().unwrap();
    let hash = |recipe: &Recipe, host| sample("{}").change(|it| it.host = host).hash_by(recipe);
    assert_eq!(hash(&everything(), Some("a.example")), hash(&everything(), Some("b.example")));
    assert_ne!(hash(&counting, Some("a.example")), hash(&counting, Some("b.example")));
    assert_ne!(hash(&counting, Some("")), hash(&counting, None));
    assert_eq!(hash(&counting, Some("A.example:80")), hash(&counting, Some("a.example")));
    let aliases = Recipe::builder().host_aliases(["b.example", "a.example"]).build().unwrap();
    assert_eq!(hash(&aliases, Some("A.example")), hash(&aliases, Some("b.example")));
    assert_ne!(hash(&aliases, Some("c.example")), hash(&aliases, Some("b.example")));
    let again = Recipe::builder().host().host_aliases(["A.EXAMPLE:443", "b.example"]).build().unwrap();
    assert_eq!(again, aliases, "one rule, one recipe");
    assert_eq!(Recipe::from_text(aliases.to_text()).unwrap(), aliases);
}

#[test]
fn rules_about_hosts_that_make_no_sense_are_told() {
    let told = |builder: RecipeBuilder| builder.build().unwrap_err().to_string();
    let builder = || Recipe::builder().host_aliases(["a", "b"]);
    assert!(told(builder().host_aliases(["c", "B"])).contains("\"b\" is in two lists"));
    assert!(told(builder().host_aliases(["http://c"])).contains("not the name of a host"));
    assert!(told(Recipe::builder().host().command("pay/1")).contains("only requests have a host"));
}

// These are in stores. If this test fails, retries of requests made before an update are refused after it: make a new
// version of the recipe instead.
#[test]
fn fingerprints_of_version_2_stay_what_they_are() {
    assert_eq!(everything().to_text(), r#"{"version":2}"#);
    let text = r#"{"headers":["api-version"],"host":{"aliases":[["a.example","b.example"]]},"ignore":["/t"],"version":2}"#;
    let recipe = Recipe::from_text(text).unwrap();
    assert_eq!(
        (recipe.to_text(), recipe.id().to_string().as_str()),
        (text, "0df2639a3ba92e2958872acfbe6f4337")
    );
    let (content_type, body) = multipart("one", "1");
    for (content_type, body, made) in [
        (
            "application/json; charset=utf-8; v=1",
            &br#"{"amount":9007199254740993,"t":1}"#[..],
            "fa5990ab0b315d79ab871755d2d139efab23a019c48e1062caed63ec0194783a",
        ),
        ("application/json", b"[1],", "b149e7dc7df6b128f416955524f04752e82aebf68571e8d825abb196af746000"),
        (
            "application/x-www-form-urlencoded",
            b"b=2&a=1&c",
            "bf63d8c6e5fc83eabd488d3c94dc3eb7bdc52db4924034432bcb622a57d510ec",
        ),
        (
            "application/x-www-form-urlencoded",
            b"b[]=2&a=1&b[]=3",
            "374741fb86a331ffab242c0d855344db76967b8135a92c2f4829218b1c20a7d0",
        ),
        (&content_type, &body, "0156ac155abada40f3cf8bb9e51c31121589008ab9f1c9761c733eb33a99a060"),
        (
            "text/plain; charset=utf-8",
            b"text",
            "afa4b8c339f35adb9bc5ce7082ded7b17e3eb2581619dedcc97590bd77213426",
        ),
        ("text/plain; x", b"a;b", "40b56d07b283bfbf0a5b12bd5e6eae6b55eaee8d2d3bd667712f0f424c1c0d35"),
    ] {
        let request = sample("").with("content-type", content_type).with("api-version", "3");
        let request = request.change(|it| (it.host, it.body) = (Some("B.example:80"), body.to_vec()));
        assert_eq!(hex(&request.hash_by(&recipe).0), made, "{content_type}");
    }
}
