#![no_main]
//! The target `key` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::key::target(data));
