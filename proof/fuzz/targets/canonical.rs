#![no_main]
//! The target `canonical` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::canonical::target(data));
