//! What is wrong with `[[webhook]]`.

use super::assert_errors;

#[test]
fn webhooks() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[webhook]]
source = "a b"
secrets = "s3cr3t"
[[webhook]]
source = "provider"
secrets = ["env:GONE", "s3cr3t"]
[[webhook]]
source = "provider"
secrets = []
[[webhook]]
"#,
        r#"
error: "a b" is not a valid source name
 --> semel.toml:3:10
  |
3 | source = "a b"
  |          ^^^^^
  = help: it is part of a URL: use letters, digits, _ and - only

error: `secrets` must be a list of strings, not a string
 --> semel.toml:4:11
  |
4 | secrets = ********
  |           ^^^^^^^^
  = help: write secrets = ["env:NAME_OF_A_VARIABLE"]

error: `secrets`: the environment variable GONE is not set
 --> semel.toml:7:12
  |
7 | secrets = ["env:GONE", ********]
  |            ^^^^^^^^^^
  = help: set GONE before the start, or name another variable

error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:7:24
  |
7 | secrets = ["env:GONE", ********]
  |                        ^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or ask it for a new one

error: the source "provider" is given twice
 --> semel.toml:9:10
  |
9 | source = "provider"
  |          ^^^^^^^^^^
  = help: put all its secrets into one [[webhook]]

error: without a secret no webhook can be verified
  --> semel.toml:10:11
   |
10 | secrets = []
   |           ^^
   = help: write ["env:SEMEL_WEBHOOK_SECRET"]

error: `source` is missing from this [[webhook]]
  --> semel.toml:11:1
   |
11 | [[webhook]]
   | ^^^^^^^^^^^
   = help: add source = "provider"

error: `secrets` is missing from this [[webhook]]
  --> semel.toml:11:1
   |
11 | [[webhook]]
   | ^^^^^^^^^^^
   = help: add secrets = ["env:SEMEL_WEBHOOK_SECRET"]
"#,
    );
}

#[test]
fn a_source_by_the_name_that_strangers_are_counted_under() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[webhook]]
source = "unknown"
secrets = ["env:SEMEL_WEBHOOK_SECRET"]
"#,
        r#"
error: "unknown" is not a valid source name: metrics count unknown sources under it
 --> semel.toml:3:10
  |
3 | source = "unknown"
  |          ^^^^^^^^^
  = help: write another name: "provider"
"#,
    );
}

#[test]
fn a_webhook_secret_that_is_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[[webhook]]
source = "provider"
secrets = ["whsec_dG9vLXNob3J0", "whsec_this-is-not-base64,whatever-it-is"] # not shown
"#,
        r#"
error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:4:12
  |
4 | secrets = [********************, *****************************************] # not shown
  |            ^^^^^^^^^^^^^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or ask it for a new one

error: a webhook secret is whsec_ and 24 to 64 bytes in base64: make one with echo "whsec_$(head -c 32 /dev/urandom | base64)"
 --> semel.toml:4:34
  |
4 | secrets = [********************, *****************************************] # not shown
  |                                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: write the secret that the provider gave you ("whsec_…"), or ask it for a new one
"#,
    );
}
