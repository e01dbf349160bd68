#![no_main]
//! The target `headers` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::headers::target(data));
