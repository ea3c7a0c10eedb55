//! Fuzz targets as plain functions of bytes.
//!
//! Each target is a module with one function, `fuzz_one(&[u8])`, which panics
//! on a bug. `cargo test` replays the kept inputs in `corpus/<target>/` through
//! it on a stable compiler; libFuzzer looks for new ones with the same function:
//!
//! ```sh
//! mkdir -p out/corpus
//! cargo +nightly fuzz run -s none --fuzz-dir fuzz/libfuzzer disciplines \
//!     out/corpus fuzz/corpus/disciplines -- -max_len=200
//! ```
//!
//! New inputs go to the first folder. Address sanitizer is off (`-s none`): it
//! takes most of the time and finds nothing in code without `unsafe`.
//!
//! To add a target: a module here, a line in [`TARGETS`], a few inputs in
//! `corpus/<target>/` named by what they show, and a file and a `[[bin]]` in
//! `libfuzzer/`.

pub mod disciplines;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of its corpus and of its libFuzzer binary.
    pub name: &'static str,
    /// Does whatever the input says; panics on a bug.
    pub fuzz_one: fn(&[u8]),
}

/// Every fuzz target.
pub const TARGETS: &[Target] = &[Target { name: "disciplines", fuzz_one: disciplines::fuzz_one }];
