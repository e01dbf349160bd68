#![no_main]
//! The target `framing` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::framing::target(data));
