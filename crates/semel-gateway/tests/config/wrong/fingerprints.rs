//! Recipes of fingerprints.

use super::assert_errors;

#[test]
fn hosts_of_fingerprints() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[fingerprint]
host = "ignored"
host_aliases = [["api.example", "https://api.example"], ["b", "API.example:443"], "c"]
"#,
        r#"
error: `host` cannot be "ignored"
 --> semel.toml:3:8
  |
3 | host = "ignored"
  |        ^^^^^^^^^
  = help: did you mean "ignore"?

error: "https://api.example" is not the name of a host
 --> semel.toml:4:33
  |
4 | host_aliases = [["api.example", "https://api.example"], ["b", "API.example:443"], "c"]
  |                                 ^^^^^^^^^^^^^^^^^^^^^
  = help: write a name without scheme and path: "api.example.com"

error: "api.example" is in two lists of host aliases
 --> semel.toml:4:63
  |
4 | host_aliases = [["api.example", "https://api.example"], ["b", "API.example:443"], "c"]
  |                                                               ^^^^^^^^^^^^^^^^^
  = help: put all names of one host into one list

error: `host_aliases` must be a list of lists, and this is a string
 --> semel.toml:4:83
  |
4 | host_aliases = [["api.example", "https://api.example"], ["b", "API.example:443"], "c"]
  |                                                                                   ^^^
  = help: write host_aliases = [["api.example.com", "www.api.example.com"]]
"#,
    );
}

#[test]
fn fingerprints() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.fingerprint]
ignore = ["metadata", "/a~2", "/amount"]
only = ["/amount/value"]
headers = ["Authorization", "accept-language", "bad name"]
[route.fingerprint.defaults]
currency = "EUR"
"/items" = []
"#,
        r#"
error: "metadata" is not a JSON Pointer: it must start with a slash, such as "/metadata/trace_id"
 --> semel.toml:6:11
  |
6 | ignore = ["metadata", "/a~2", "/amount"]
  |           ^^^^^^^^^^
  = help: write a slash before each name, and quote the whole: "/metadata/trace_id"

error: "/a~2" is not a JSON Pointer: a tilde is written ~0 and a slash within a name ~1
 --> semel.toml:6:23
  |
6 | ignore = ["metadata", "/a~2", "/amount"]
  |                       ^^^^^^
  = help: write a slash before each name, and quote the whole: "/metadata/trace_id"

error: the rules for "/amount" conflict: it is ignored, and another rule applies to it or to a part of it
 --> semel.toml:7:9
  |
7 | only = ["/amount/value"]
  |         ^^^^^^^^^^^^^^^
  = help: remove one of the two rules

error: the header "authorization" can never be part of a fingerprint: it is a credential, which may be renewed between two attempts
 --> semel.toml:8:12
  |
8 | headers = ["Authorization", "accept-language", "bad name"]
  |            ^^^^^^^^^^^^^^^
  = help: remove it

error: the header "accept-language" can never be part of a fingerprint: it says how the answer should look, not what is asked for
 --> semel.toml:8:29
  |
8 | headers = ["Authorization", "accept-language", "bad name"]
  |                             ^^^^^^^^^^^^^^^^^
  = help: remove it

error: "bad name" is not a valid header name
 --> semel.toml:8:48
  |
8 | headers = ["Authorization", "accept-language", "bad name"]
  |                                                ^^^^^^^^^^
  = help: write only the name: "api-version"

error: "currency" is not a JSON Pointer: it must start with a slash, such as "/metadata/trace_id"
  --> semel.toml:10:1
   |
10 | currency = "EUR"
   | ^^^^^^^^
   = help: write a slash before each name, and quote the whole: "/metadata/trace_id"

error: a default must be a string, a number, true or false
  --> semel.toml:11:12
   |
11 | "/items" = []
   |            ^^
   = help: write "/currency" = "EUR"
"#,
    );
}

#[test]
fn normal_forms() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.fingerprint]
ignore = ["/metadata"]
normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
"#,
        r#"
error: "uppercase" is not a normal form
 --> semel.toml:7:29
  |
7 | normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
  |                             ^^^^^^^^^^^
  = help: did you mean "lowercase"?

error: "decimals" is not a normal form
 --> semel.toml:7:54
  |
7 | normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
  |                                                      ^^^^^^^^^^
  = help: did you mean "decimal"?

error: "at" is not a JSON Pointer: it must start with a slash, such as "/metadata/trace_id"
 --> semel.toml:7:66
  |
7 | normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
  |                                                                  ^^^^
  = help: write a slash before each name, and quote the whole: "/metadata/trace_id"

error: the rules for "/metadata" conflict: it is ignored, and another rule applies to it or to a part of it
 --> semel.toml:7:86
  |
7 | normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
  |                                                                                      ^^^^^^^^^^^^^^
  = help: remove one of the two rules

error: a normal form is a word in quotes
 --> semel.toml:7:123
  |
7 | normalise = { "/currency" = "uppercase", "/amount" = "decimals", "at" = "timestamp", "/metadata/at" = "timestamp", "/n" = 1 }
  |                                                                                                                           ^
  = help: write "/amount" = "decimal"
"#,
    );
}

#[test]
fn rules_beside_the_comparison_of_bytes() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
profile = "ucp"
[[route]]
operation = "create_payment"
match = "POST /payments"
[route.fingerprint]
ignore = ["/metadata"]
bytes = "yes"
[[route]]
operation = "create_checkout"
match = "POST /checkouts"
[route.fingerprint]
bytes = false
ignore = ["/metadata"]
[[route]]
operation = "create_order"
match = "POST /orders"
[route.fingerprint]
bytes = true
[route.fingerprint.normalise]
"/currency" = "lowercase"
[route.fingerprint.defaults]
"/currency" = "eur"
"#,
        r#"
error: the body is compared by its bytes, and rules for JSON would have no effect
 --> semel.toml:7:11
  |
7 | ignore = ["/metadata"]
  |           ^^^^^^^^^^^
  = help: remove it, or write bytes = false in this section

error: `bytes` must be true or false, not a string
 --> semel.toml:8:9
  |
8 | bytes = "yes"
  |         ^^^^^
  = help: write bytes = true or bytes = false, without quotes

error: the body is compared by its bytes, and rules for JSON would have no effect
  --> semel.toml:21:1
   |
21 | "/currency" = "lowercase"
   | ^^^^^^^^^^^
   = help: remove it, or write bytes = false in this section

error: the body is compared by its bytes, and rules for JSON would have no effect
  --> semel.toml:23:1
   |
23 | "/currency" = "eur"
   | ^^^^^^^^^^^
   = help: remove it, or write bytes = false in this section
"#,
    );
}
