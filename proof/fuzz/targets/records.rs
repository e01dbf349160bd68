#![no_main]
//! The target `records` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::records::target(data));
