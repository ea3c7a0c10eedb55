//! Page loads of a browser, from HTTP Archives (HAR 1.x): which objects a page
//! requests, when, from which host, and how large the replies are.
//!
//! The size is `response.bodySize`, the bytes that crossed the network after
//! compression. A reply whose size the browser did not know (-1, or nothing) is
//! left out and counted: `content.size` is the size before compression and would be
//! several times too large for text.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use tidegate_core::{Bytes, Span, Time};

use super::ReadError;
use super::error::{Mismatch, contents, quote};
use super::text::{Scan, without_mark};

/// The page loads of one archive.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLoads {
    /// The pages, in the order of their first request in the archive.
    pub pages: Vec<PageLoad>,
    /// Requests whose reply has no known size.
    pub unknown_sizes: u64,
}

/// One page load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageLoad {
    /// The page's name in the archive; empty for requests of no page.
    pub name: String,
    /// Its requests, earliest first. The first is at zero.
    pub requests: Vec<PageRequest>,
}

/// One request of a page load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    /// When it was made, counted from the page's first request.
    pub at: Time,
    /// From then to the reply's last byte; zero if the archive does not say.
    pub took: Span,
    /// The host to which it was sent, without the port; empty for objects inside
    /// the page (`data:`).
    pub host: String,
    /// Size of the reply's body; zero for redirections and cached objects.
    pub size: Bytes,
}

/// The part of an archive that is read.
#[derive(Deserialize)]
struct Archive {
    log: Log,
}

#[derive(Deserialize)]
struct Log {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Entry {
    #[serde(default)]
    pageref: Option<String>,
    #[serde(deserialize_with = "unix_nanos")]
    started_date_time: i128,
    /// In milliseconds.
    #[serde(default)]
    time: Option<f64>,
    request: Request,
    #[serde(default)]
    response: Option<Response>,
}

#[derive(Deserialize)]
struct Request {
    url: String,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    /// Some tools write whole numbers as 1234.0.
    #[serde(default)]
    body_size: Option<f64>,
}

fn unix_nanos<'de, D: Deserializer<'de>>(deserializer: D) -> Result<i128, D::Error> {
    let text = String::deserialize(deserializer)?;
    Scan(&text).iso_date().ok_or_else(|| {
        let found = quote(&text);
        serde::de::Error::custom(format!("{found} is no date as 2016-01-24T14:41:45.818Z"))
    })
}

impl PageLoads {
    /// Reads an archive file.
    ///
    /// # Errors
    /// When the file is not JSON or not an HTTP Archive.
    pub fn read(path: &Path) -> Result<PageLoads, ReadError> {
        let (file, contents) = contents(path)?;
        PageLoads::parse(&file, &contents)
    }

    /// Reads an archive from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](PageLoads::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<PageLoads, ReadError> {
        let archive: Archive = serde_json::from_slice(without_mark(contents)).map_err(|error| {
            let message = error.to_string();
            // The place already stands in front of the message.
            let message = message.split(" at line ").next().unwrap_or_default();
            let line = u64::try_from(error.line()).unwrap_or(u64::MAX).max(1);
            Mismatch::new(quote(message), "an HTTP Archive (HAR)").at_line(name, line)
        })?;
        Ok(pages(archive.log.entries))
    }

    /// All requests of all pages.
    pub fn requests(&self) -> impl Iterator<Item = &PageRequest> + '_ {
        self.pages.iter().flat_map(|page| &page.requests)
    }
}

/// Sorts requests into their pages.
fn pages(entries: Vec<Entry>) -> PageLoads {
    let mut unknown_sizes = 0;
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut pages: Vec<PageLoad> = Vec::new();
    // The times of each page's requests; the page holds them in the same order.
    let mut starts: Vec<Vec<i128>> = Vec::new();
    for entry in entries {
        let size = entry.response.and_then(|response| response.body_size);
        let Some(size) = size.filter(|size| *size >= 0.0) else {
            unknown_sizes += 1;
            continue;
        };
        let name = entry.pageref.unwrap_or_default();
        let index = *names.entry(name.clone()).or_insert_with(|| {
            pages.push(PageLoad { name, requests: Vec::new() });
            starts.push(Vec::new());
            pages.len() - 1
        });
        // Sizes are whole, and `as` saturates.
        let size = Bytes(size as u64);
        let host = host(&entry.request.url);
        // Some tools write -1 for a request that was never answered.
        let took = Span::from_seconds(entry.time.unwrap_or_default().max(0.0) / 1e3);
        pages[index].requests.push(PageRequest { at: Time::ZERO, took, host, size });
        starts[index].push(entry.started_date_time);
    }
    for (page, starts) in pages.iter_mut().zip(starts) {
        let first = starts.iter().min().copied().unwrap_or_default();
        for (request, start) in page.requests.iter_mut().zip(starts) {
            request.at = Time(u64::try_from(start - first).unwrap_or(u64::MAX));
        }
        page.requests.sort_by_key(|request| request.at);
    }
    PageLoads { pages, unknown_sizes }
}

/// The host of `scheme://user@host:port/path`, in lower case.
fn host(url: &str) -> String {
    let Some((_, rest)) = url.split_once("://") else {
        return String::new();
    };
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    // An IPv6 address is in brackets and has colons of its own.
    let end = match host.find(']') {
        Some(bracket) => bracket + 1,
        None => host.find(':').unwrap_or(host.len()),
    };
    host[..end].to_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_taken_out_of_addresses() {
        for (url, expected) in [
            ("https://WWW.example.org:8443/a?b", "www.example.org"),
            ("http://user:secret@example.org?q", "example.org"),
            ("http://[2001:db8::1]:80/", "[2001:db8::1]"),
            ("data:text/plain,x", ""),
        ] {
            assert_eq!(host(url), expected, "{url}");
        }
    }
}
