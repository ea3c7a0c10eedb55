//! libFuzzer with the target that `TIDEGATE_FUZZ_TARGET` names.
#![no_main]

use std::sync::LazyLock;

use tidegate_fuzz::{TARGETS, Target};

static TARGET: LazyLock<&Target> = LazyLock::new(|| {
    let name = std::env::var("TIDEGATE_FUZZ_TARGET").unwrap_or_default();
    TARGETS.iter().find(|target| target.name == name).unwrap_or_else(|| {
        let names: Vec<_> = TARGETS.iter().map(|target| target.name).collect();
        eprintln!("found no target '{name}', expected one of {}", names.join(", "));
        std::process::exit(2);
    })
});

libfuzzer_sys::fuzz_target!(|input: &[u8]| (TARGET.fuzz_one)(input));
