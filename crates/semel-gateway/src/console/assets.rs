//! Stylesheet, modules and icon, compiled in. Their hash is in their address, so that browsers keep them until they change.

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use sha2::{Digest, Sha256};
use std::sync::LazyLock;

const STYLE: &str = "text/css; charset=utf-8";
const MODULE: &str = "text/javascript; charset=utf-8";

const ASSETS: [(&str, &str, &str); 8] = [
    ("console.css", STYLE, include_str!("assets/console.css")),
    ("console.js", MODULE, include_str!("assets/console.js")),
    ("times.js", MODULE, include_str!("assets/times.js")),
    ("keys.js", MODULE, include_str!("assets/keys.js")),
    ("updates.js", MODULE, include_str!("assets/updates.js")),
    ("forms.js", MODULE, include_str!("assets/forms.js")),
    ("bulk.js", MODULE, include_str!("assets/bulk.js")),
    ("icon.svg", "image/svg+xml", include_str!("assets/icon.svg")),
];

static VERSION: LazyLock<String> = LazyLock::new(|| {
    let all = ASSETS.iter().fold(Sha256::new(), |all, (_, _, text)| all.chain_update(text));
    all.finalize()[..6].iter().map(|byte| format!("{byte:02x}")).collect()
});

/// Where they are.
pub(super) fn base() -> String {
    format!("/console/assets/{}", *VERSION)
}

/// They say nothing of anybody, and the sign-in page needs them.
pub(super) async fn asset(Path((version, name)): Path<(String, String)>) -> Response {
    let found = ASSETS.iter().find(|(asset, _, _)| *asset == name);
    let Some((_, kind, text)) = found.filter(|_| version == *VERSION) else {
        return (StatusCode::NOT_FOUND, "There is no such file.\n").into_response();
    };
    ([(CONTENT_TYPE, *kind), (CACHE_CONTROL, "private, max-age=31536000, immutable")], *text).into_response()
}
