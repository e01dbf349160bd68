//! What is wrong with `[cors]`: whose pages may use the API.

use super::assert_errors;

#[test]
fn origins_that_no_browser_would_send() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cors]
allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
"#,
        r#"
error: the origin "app.example" has no scheme
 --> semel.toml:3:18
  |
3 | allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
  |                  ^^^^^^^^^^^^^
  = help: write "https://app.example"

error: browsers send origins in lower case, and "https://App.example" is not
 --> semel.toml:3:33
  |
3 | allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
  |                                 ^^^^^^^^^^^^^^^^^^^^^
  = help: write "https://app.example"

error: "https://app.example/" has a path, and an origin ends with its host and port
 --> semel.toml:3:56
  |
3 | allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
  |                                                        ^^^^^^^^^^^^^^^^^^^^^^
  = help: write "https://app.example"

error: `null` is what every sandboxed frame and every local file sends as its origin
 --> semel.toml:3:80
  |
3 | allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
  |                                                                                ^^^^^^
  = help: serve the page from an origin of its own, and name that

error: "https://*.app.example" is a pattern, and origins are compared as they are
 --> semel.toml:3:88
  |
3 | allow_origins = ["app.example", "https://App.example", "https://app.example/", "null", "https://*.app.example"]
  |                                                                                        ^^^^^^^^^^^^^^^^^^^^^^^
  = help: name each origin; "*" alone allows every one
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cors]
allow_origins = ["https://a.example:443", "https://a.example:x", "https://a@b.example"]
allow_methods = ["post", "*"]
allow_headers = ["*"]
"#,
        r#"
error: browsers leave the default port out, and "https://a.example:443" names it
 --> semel.toml:3:18
  |
3 | allow_origins = ["https://a.example:443", "https://a.example:x", "https://a@b.example"]
  |                  ^^^^^^^^^^^^^^^^^^^^^^^
  = help: write "https://a.example"

error: "https://a.example:x" is not an origin
 --> semel.toml:3:43
  |
3 | allow_origins = ["https://a.example:443", "https://a.example:x", "https://a@b.example"]
  |                                           ^^^^^^^^^^^^^^^^^^^^^
  = help: write scheme://host or scheme://host:port, such as "https://app.example"

error: "https://a@b.example" is not an origin
 --> semel.toml:3:66
  |
3 | allow_origins = ["https://a.example:443", "https://a.example:x", "https://a@b.example"]
  |                                                                  ^^^^^^^^^^^^^^^^^^^^^
  = help: write scheme://host or scheme://host:port, such as "https://app.example"

error: methods are compared as they are, and "post" is not one
 --> semel.toml:4:18
  |
4 | allow_methods = ["post", "*"]
  |                  ^^^^^^
  = help: write it as requests do: "POST"

error: "*" is not a method
 --> semel.toml:4:26
  |
4 | allow_methods = ["post", "*"]
  |                          ^^^
  = help: name each method, such as "POST"

error: "*" is not the name of a header
 --> semel.toml:5:18
  |
5 | allow_headers = ["*"]
  |                  ^^^
  = help: name each header, such as "content-type"
"#,
    );
}

#[test]
fn every_origin_is_allowed_alone_and_never_with_credentials() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cors]
allow_origins = ["*", "https://app.example"]
allow_credentials = true
"#,
        r#"
error: `*` allows every origin, so the others have no effect
 --> semel.toml:3:18
  |
3 | allow_origins = ["*", "https://app.example"]
  |                  ^^^
  = help: remove "*", or every other origin

error: `*` and `allow_credentials` together would let every page act for its visitor
 --> semel.toml:3:18
  |
3 | allow_origins = ["*", "https://app.example"]
  |                  ^^^
  = help: name the origins whose pages may send credentials, or remove `allow_credentials`
"#,
    );
}

#[test]
fn a_section_that_names_nobody() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cors]
max_age = "1h"
"#,
        r#"
error: `allow_origins` is missing from this [cors]
 --> semel.toml:2:1
  |
2 | [cors]
  | ^^^^^^
  = help: add allow_origins = ["https://app.example"]
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[cors]
allow_origins = []
"#,
        r#"
error: `allow_origins` is an empty list: no page could use the API
 --> semel.toml:3:17
  |
3 | allow_origins = []
  |                 ^^
  = help: name an origin, or remove the section [cors]
"#,
    );
}
