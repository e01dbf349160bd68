#![no_main]
//! The target `webhook` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::webhook::target(data));
