//! `[telemetry]`.

use crate::read;
use crate::wrong::assert_errors;
use std::time::Duration;

#[test]
fn telemetry_is_off_unless_a_collector_is_named() {
    assert!(read("upstream = \"http://127.0.0.1:9000\"").unwrap().telemetry.is_none());
    let least = "upstream = \"http://127.0.0.1:9000\"\n[telemetry]\notlp = \"http://127.0.0.1:4318\"";
    let telemetry = read(least).unwrap().telemetry.unwrap();
    assert_eq!((telemetry.service_name.as_str(), telemetry.sampling), ("semel-gateway", 1.0));
    assert_eq!((telemetry.metrics_every, telemetry.headers.len()), (None, 0));
}

#[test]
fn every_setting_is_taken_and_no_header_is_shown() {
    let config = read(
        r#"
upstream = "http://127.0.0.1:9000"
[telemetry]
otlp = "http://collector:4318/tenant-7/"
service_name = "payments"
sampling = 0.25
metrics = true
metrics_every = "30s"
[telemetry.headers]
authorization = "env:SET"
x-team = "the payments team"
"#,
    )
    .unwrap();
    let telemetry = config.telemetry.as_ref().unwrap();
    assert_eq!(telemetry.otlp.to_string(), "http://collector:4318/tenant-7/");
    assert_eq!((telemetry.service_name.as_str(), telemetry.sampling), ("payments", 0.25));
    assert_eq!(telemetry.metrics_every, Some(Duration::from_secs(30)));
    assert_eq!(telemetry.headers[0].1, "whsec_dGhlLWZpcnN0LXNlY3JldC1pbi10aGUtZW52aXJvbm1lbnQ=");
    assert_eq!(telemetry.headers[1].1, "the payments team");
    let shown = format!("{config:?}");
    assert!(!shown.contains("whsec_") && !shown.contains("the payments team"), "{shown}");
}

#[test]
fn what_cannot_be_meant_is_told() {
    assert_errors(
        r#"
upstream = "http://127.0.0.1:9000"
[telemetry]
otlp = "ftp://collector:4318"
sampling = 25
metrics_every = "15s"
endpoint = "http://127.0.0.1:4318"
[telemetry.headers]
authorization = "env:GONE"
"no name" = "x"
api-key = 7
x-token = "env:Bearer s3cr3t"
"#,
        r#"
error: the collector's URL needs the scheme http or https
 --> semel.toml:3:8
  |
3 | otlp = "ftp://collector:4318"
  |        ^^^^^^^^^^^^^^^^^^^^^^
  = help: write the scheme, the host and the port: "http://127.0.0.1:4318"

error: `sampling` is a fraction
 --> semel.toml:4:12
  |
4 | sampling = 25
  |            ^^
  = help: write a number from 0 to 1

error: `metrics_every` has no effect without `metrics`
 --> semel.toml:5:17
  |
5 | metrics_every = "15s"
  |                 ^^^^^
  = help: add metrics = true, or remove `metrics_every`

error: `endpoint` is not a setting of [telemetry]
 --> semel.toml:6:1
  |
6 | endpoint = ***********************
  | ^^^^^^^^
  = help: settings here: otlp, service_name, sampling, metrics, metrics_every, headers, tls

error: the environment variable GONE is not set, or not valid UTF-8
 --> semel.toml:8:17
  |
8 | authorization = "env:GONE"
  |                 ^^^^^^^^^^
  = help: write "env:NAME", or the value itself

error: "no name" is not the name of a header
 --> semel.toml:9:1
  |
9 | "no name" = ***
  | ^^^^^^^^^
  = help: write one such as authorization = "env:OTLP_AUTHORIZATION"

error: it must be a string in quotes, not a number
  --> semel.toml:10:11
   |
10 | api-key = *
   |           ^
   = help: write "env:NAME", or the value itself

error: `env:` is not followed by the name of an environment variable
  --> semel.toml:11:11
   |
11 | x-token = *******************
   |           ^^^^^^^^^^^^^^^^^^^
   = help: write "env:NAME", or the value itself
"#,
    );
}

#[test]
fn collectors_that_are_none() {
    for (address, told) in [
        ("127.0.0.1:4318", "not the URL of a collector"),
        ("grpc://127.0.0.1:4317", "needs the scheme"),
        ("http://me:s3cr3t@127.0.0.1:4318", "has credentials in it"),
        ("http://127.0.0.1:4318/v1/traces", "the URL of a single signal"),
        ("http://", "not the URL of a collector"),
    ] {
        let toml = format!("upstream = \"http://127.0.0.1:9000\"\n[telemetry]\notlp = \"{address}\"");
        let wrong = read(&toml).unwrap_err().to_string();
        assert!(wrong.contains(told) && !wrong.contains("s3cr3t"), "{wrong}");
    }
}
