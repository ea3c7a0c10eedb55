#![no_main]

libfuzzer_sys::fuzz_target!(|input: &[u8]| tidegate_fuzz::link::nfqueue(input));
