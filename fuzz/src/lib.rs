//! Fuzz targets as plain functions of bytes.
//!
//! Each target is a function of bytes that panics on a bug, in a module of its own
//! or with its kind. `cargo test` replays the kept inputs in `corpus/<target>/`
//! through it on a stable compiler; libFuzzer searches for new ones with the same
//! function, for a minute here:
//!
//! ```sh
//! tools/fuzz.sh disciplines 60
//! ```
//!
//! To add a target, write a function here, a line in [`TARGETS`], and a few inputs in
//! `corpus/<target>/` named after what they show.

pub mod curves;
pub mod disciplines;
pub mod http;
pub mod link;
pub mod proxy;
pub mod requests;
pub mod scenarios;
mod settings;
pub mod shapers;
pub mod traces;
pub mod wire;

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Also the name of its corpus.
    pub name: &'static str,
    /// Does whatever the input says; panics on a bug.
    pub fuzz_one: fn(&[u8]),
}

/// Every fuzz target.
pub const TARGETS: &[Target] = &[
    Target { name: "disciplines", fuzz_one: disciplines::fuzz_one },
    Target { name: "capture", fuzz_one: traces::capture },
    Target { name: "connection_log", fuzz_one: traces::connection_log },
    Target { name: "curves", fuzz_one: curves::fuzz_one },
    Target { name: "delivery", fuzz_one: traces::delivery },
    Target { name: "flent", fuzz_one: traces::flent },
    Target { name: "flow_log", fuzz_one: traces::flow_log },
    Target { name: "frames", fuzz_one: traces::frames },
    Target { name: "flows", fuzz_one: scenarios::flows },
    Target { name: "gateway", fuzz_one: scenarios::gateway },
    Target { name: "http_body", fuzz_one: http::body },
    Target { name: "http_head", fuzz_one: http::head },
    Target { name: "http_log", fuzz_one: traces::http_log },
    Target { name: "link", fuzz_one: link::fuzz_one },
    Target { name: "movie", fuzz_one: traces::movie },
    Target { name: "nfqueue", fuzz_one: link::nfqueue },
    Target { name: "page_load", fuzz_one: traces::page_load },
    Target { name: "page_table", fuzz_one: traces::page_table },
    Target { name: "proxy", fuzz_one: proxy::fuzz_one },
    Target { name: "requests", fuzz_one: requests::fuzz_one },
    Target { name: "scenario", fuzz_one: scenarios::scenario },
    Target { name: "shapers", fuzz_one: shapers::fuzz_one },
    Target { name: "size_distribution", fuzz_one: traces::size_distribution },
    Target { name: "sizes", fuzz_one: traces::sizes },
    Target { name: "study", fuzz_one: scenarios::study },
    Target { name: "stream", fuzz_one: traces::stream },
    Target { name: "tls_hello", fuzz_one: http::hello },
    Target { name: "tls_records", fuzz_one: http::records },
    Target { name: "transfers", fuzz_one: traces::transfers },
    Target { name: "wire", fuzz_one: wire::fuzz_one },
];
