//! What is wrong with TLS.

use super::assert_errors;

#[test]
fn a_certificate_that_is_not_there() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[tls]
certificate = "/nowhere/tls.crt"
key = "/nowhere/tls.key"
"#,
        r#"
error: /nowhere/tls.crt cannot be read (No such file or directory (os error 2))
 --> semel.toml:3:15
  |
3 | certificate = "/nowhere/tls.crt"
  |               ^^^^^^^^^^^^^^^^^^
  = help: write the path of a file that the gateway may read, absolute or from where it is started
"#,
    );
}

#[test]
fn a_certificate_without_its_key() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[tls]
certificate = "/nowhere/tls.crt"
client_certificates = "optional"
"#,
        r#"
error: `key` is missing from this [tls]
 --> semel.toml:2:1
  |
2 | [tls]
  | ^^^^^
  = help: add key = "/etc/semel/tls.key"

error: `client_ca` is missing: no client certificate could be verified
 --> semel.toml:4:23
  |
4 | client_certificates = "optional"
  |                       ^^^^^^^^^^
  = help: add client_ca = "/etc/semel/clients.crt", or remove `client_certificates`
"#,
    );
}

#[test]
fn a_key_in_the_place_of_its_path() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[admin.tls]
certificate = "/nowhere/tls.crt"
key = "-----BEGIN PRIVATE KEY-----\ns3cr3t\n-----END PRIVATE KEY-----"
"#,
        r#"
error: `key` takes the path of a file, not its content
 --> semel.toml:4:7
  |
4 | key = ****************************************************************
  |       ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
  = help: put it into a file that only the gateway can read, and write its path here
"#,
    );
}

#[test]
fn authorities_for_a_service_in_the_clear() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
upstream_protocol = "http3"
[upstream_tls]
"#,
        r#"
error: `upstream_protocol` cannot be "http3"
 --> semel.toml:2:21
  |
2 | upstream_protocol = "http3"
  |                     ^^^^^^^
  = help: did you mean "http1"?

error: [upstream_tls] has no effect: `upstream` is not an https:// URL
 --> semel.toml:3:1
  |
3 | [upstream_tls]
  | ^^^^^^^^^^^^^^
  = help: write upstream = "https://…", or remove [upstream_tls]
"#,
    );
}
