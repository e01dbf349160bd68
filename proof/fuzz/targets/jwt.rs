#![no_main]
//! The target `jwt` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::jwt::target(data));
