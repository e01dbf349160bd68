#![no_main]
//! The target `content` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::content::target(data));
