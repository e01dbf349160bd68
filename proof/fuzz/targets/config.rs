#![no_main]
//! The target `config` under libFuzzer.

libfuzzer_sys::fuzz_target!(|data: &[u8]| semel_fuzz::config::target(data));
