//! Fingerprints by the second version of recipes: hosts, media types with parameters, forms and multipart bodies.
//!
//! The first line of the input is the host, the second the content type, and the rest is the body, and the query too where it is text.

use crate::independent::content::parts;
use crate::independent::fingerprint::{Asked2, canonical, clean, fingerprint_2};
use crate::independent::shape::Rules;
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderValue, Method};
use semel::fingerprint::{HttpRequest, Recipe, RecipeUnavailable, fingerprint};
use std::sync::LazyLock;

static COUNTS_HOST: LazyLock<Option<Recipe>> =
    LazyLock::new(|| Recipe::builder().host_aliases(["a.example", "b.example", "localhost"]).build().ok());

/// The fingerprint is that of a second implementation, and a multipart form has the same under another boundary.
pub fn target(data: &[u8]) {
    let mut lines = data.splitn(3, |byte| *byte == b'\n');
    let mut line = || lines.next().unwrap_or_default();
    let (host, content_type, body) = (line(), line(), line());
    let Ok(content_type) = HeaderValue::from_bytes(content_type) else { return };
    assert!(COUNTS_HOST.is_some(), "the recipe could not be made");
    let Some(recipe) = &*COUNTS_HOST else { return };
    let made = made(recipe, host, &content_type, body);
    let expected = fingerprint_2(&Asked2 {
        recipe_text: recipe.to_text(),
        aliases: &["a.example", "b.example", "localhost"],
        host,
        content_type: content_type.as_bytes(),
        query: std::str::from_utf8(body).unwrap_or_default(),
        body,
        canonical: clean(body).map(|value| canonical(&value, &Rules::default())).as_deref(),
    });
    assert_eq!(made, Ok(expected));
    under_another_boundary(recipe, body);
}

fn made(
    recipe: &Recipe,
    host: &[u8],
    content_type: &HeaderValue,
    body: &[u8],
) -> Result<Vec<u8>, RecipeUnavailable> {
    let mut headers = HeaderMap::new();
    headers.insert(CONTENT_TYPE, content_type.clone());
    let asked = HttpRequest {
        operation: "create_payment",
        method: &Method::POST,
        path: "/payments",
        query: Some(std::str::from_utf8(body).unwrap_or_default()),
        host: Some(host),
        headers: &headers,
        body,
    };
    fingerprint(recipe, None, &asked).map(|made| made.0.to_vec())
}

/// Takes the body for the content of a part.
fn under_another_boundary(recipe: &Recipe, content: &[u8]) {
    let form = |boundary: &str| {
        let delimiter = format!("--{boundary}");
        let head = format!("{delimiter}\r\nContent-Disposition: form-data; name=\"a\"\r\n\r\n");
        let body = [head.as_bytes(), content, b"\r\n", delimiter.as_bytes(), b"--\r\n"].concat();
        let content_type = HeaderValue::try_from(format!("multipart/form-data; boundary={boundary}"));
        let is_clean = parts(boundary.as_bytes(), &body).is_some_and(|(parts, _)| parts.len() == 1);
        content_type.ok().filter(|_| is_clean).map(|content_type| {
            // The query is not the body here.
            let mut headers = HeaderMap::new();
            headers.insert(CONTENT_TYPE, content_type);
            let asked = HttpRequest {
                operation: "create_payment",
                method: &Method::POST,
                path: "/payments",
                query: None,
                host: None,
                headers: &headers,
                body: &body,
            };
            fingerprint(recipe, None, &asked)
        })
    };
    if let (Some(one), Some(other)) = (form("B"), form("------------------------d74496d66958873e")) {
        assert_eq!(one, other);
    }
}
