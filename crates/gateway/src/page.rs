//! What the live pages of a gateway and of a link have in common: files that browsers load,
//! what a browser may do with them, and the forms of answers.
//!
//! A page loads nothing from elsewhere, and its policy says so to the browser. It takes its
//! figures from JSON that other programs can read as well.

use http::header::{self, HeaderValue};
use http::{Response, StatusCode};
use http_body_util::Full;
use hyper::body::Bytes;
use serde::Serialize;

use crate::local::{self, TEXT};

/// The type of pages.
pub const HTML: &str = "text/html; charset=utf-8";
/// The type of their programs.
pub const SCRIPT: &str = "text/javascript; charset=utf-8";
/// As OpenMetrics 1.0 names its text form.
pub const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const JSON: &str = "application/json";
const STYLE: &str = "text/css; charset=utf-8";

/// A file of a page: its path, its type and what is in it.
pub type File = (&'static str, &'static str, &'static str);

/// What all pages load.
const SHARED: &[File] = &[
    ("/page.css", STYLE, include_str!("page/page.css")),
    ("/numbers.js", SCRIPT, include_str!("page/numbers.js")),
    ("/plots.js", SCRIPT, include_str!("page/plots.js")),
    ("/uplot/uPlot.iife.min.js", SCRIPT, include_str!("page/uplot/uPlot.iife.min.js")),
    ("/uplot/uPlot.min.css", STYLE, include_str!("page/uplot/uPlot.min.css")),
    ("/uplot/LICENSE", TEXT, include_str!("page/uplot/LICENSE")),
];

/// Only what comes from here, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// The file at `path`: one of a page's `own`, or one that all pages load.
#[must_use]
pub fn file(own: &[File], path: &str) -> Option<Response<Full<Bytes>>> {
    let (_, kind, text) = own.iter().chain(SHARED).find(|(name, ..)| *name == path)?;
    Some(reply(StatusCode::OK, kind, *text))
}

/// The number in `since=NUMBER`, 0 where there is none.
#[must_use]
pub fn since(query: Option<&str>) -> Option<u64> {
    query.map_or(Some(0), |query| query.strip_prefix("since=")?.parse().ok())
}

/// A value as JSON that people can read.
///
/// # Panics
/// When it has no JSON.
#[must_use]
pub fn as_json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string_pretty(value).expect("it is plain JSON");
    reply(status, JSON, text + "\n")
}

/// The same without a line for each of thousands of numbers.
///
/// # Panics
/// When it has no JSON.
#[must_use]
pub fn as_dense_json(value: &impl Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string(value).expect("it is plain JSON");
    reply(StatusCode::OK, JSON, text + "\n")
}

/// A refusal, in words.
#[must_use]
pub fn refuse(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    reply(status, TEXT, format!("{text}\n"))
}

/// The refusal of all methods but this.
#[must_use]
pub fn only(method: &'static str) -> Response<Full<Bytes>> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &format!("only {method}"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(method));
    response
}

/// An answer of this `kind`, a media type.
#[must_use]
pub fn reply(
    status: StatusCode,
    kind: &'static str,
    text: impl Into<Bytes>,
) -> Response<Full<Bytes>> {
    local::reply(status, kind, POLICY, Full::new(text.into()))
}
