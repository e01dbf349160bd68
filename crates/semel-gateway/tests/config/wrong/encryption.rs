//! What is wrong with `[encryption]`.

use super::assert_errors;

#[test]
fn keys_that_are_none() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
keys = [
  { id = "2026-11", key = "c2VhbGluZw==" },
  { id = "two words", key = "env:SEMEL_KEY_2026_11" },
  { id = "2026-05" },
]
"#,
        r#"
error: a key is 32 random bytes, as base64 or as 64 hexadecimal digits
 --> semel.toml:4:27
  |
4 |   { id = "2026-11", key = ************** },
  |                           ^^^^^^^^^^^^^^
  = help: make one with `openssl rand -base64 32`

error: "two words" is not a valid key id
 --> semel.toml:5:10
  |
5 |   { id = "two words", key = "env:SEMEL_KEY_2026_11" },
  |          ^^^^^^^^^^^
  = help: use letters, digits, dots, _ and - only, such as the month in which it was made

error: `key` is missing from this [[encryption.keys]]
 --> semel.toml:6:3
  |
6 |   { id = "2026-05" },
  |   ^^^^^^^^^^^^^^^^^^
  = help: add key = "env:SEMEL_KEY_2026_11"
"#,
    );
}

#[test]
fn keys_that_are_there_twice() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "2026-12"
keys = [
  { id = "2026-11", key = "env:SEMEL_KEY_2026_11" },
  { id = "2026-11", key = "env:SEMEL_KEY_2026_05" },
]
"#,
        r#"
error: the key "2026-11" is given twice
 --> semel.toml:6:27
  |
6 |   { id = "2026-11", key = "env:SEMEL_KEY_2026_05" },
  |                           ^^^^^^^^^^^^^^^^^^^^^^^
  = help: give every key its own id, and never reuse an id
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }, { id = "a", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: this key is the same as "2026-11"
 --> semel.toml:3:78
  |
3 | keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }, { id = "a", key = "env:SEMEL_KEY_2026_11" }]
  |                                                                              ^^^^^^^^^^^^^^^^^^^^^^^
  = help: use another key for each id: make one with `openssl rand -base64 32`
"#,
    );
}

#[test]
fn keys_that_nobody_can_use() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
plain = "refused"
"#,
        r#"
error: `keys` is missing from this [encryption]
 --> semel.toml:2:1
  |
2 | [encryption]
  | ^^^^^^^^^^^^
  = help: add keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "2026-12"
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: there is no key with the id "2026-12"
 --> semel.toml:3:13
  |
3 | seal_with = "2026-12"
  |             ^^^^^^^^^
  = help: write one of "2026-11", or "none"
"#,
    );
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[encryption]
seal_with = "none"
plain = "refused"
keys = [{ id = "2026-11", key = "env:SEMEL_KEY_2026_11" }]
"#,
        r#"
error: nothing would be sealed, and plain answers would be refused: no answer could be replayed
 --> semel.toml:4:9
  |
4 | plain = "refused"
  |         ^^^^^^^^^
  = help: write plain = "accepted", or name a key in `seal_with`
"#,
    );
}
