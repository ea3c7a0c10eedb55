//! Page loads of a browser, from HTTP Archives (HAR 1.x): which objects a page
//! requests, when, from which host, how large the replies are, and as far as the
//! archive says what discovered an object and which connection carried it.
//!
//! The size is what crossed the network after compression. Browsers and their versions
//! state it in different places or not at all, so it is the first of these that is known:
//!
//! 1. `response.bodySize`, unless it is -1, as Chrome writes for HTTP/2 and WebKit for
//!    whatever it did not measure;
//! 2. `response._transferSize` (Chrome, WebKit), without the headers if these are known;
//! 3. the header `content-length` of the reply;
//! 4. `content.size` less `content.compression`, or alone if the reply's headers name no
//!    `content-encoding`: without one it is the size on the wire.
//!
//! A reply that has none of them is left out and counted: `content.size` of a compressed
//! text would be several times too large. A reply from the browser's cache has no bytes.
//!
//! Tools differ in what they add to HAR. `connection` or WebPagetest's `_socket` names
//! the connection; `_initiator` is the address of what discovered the object, as a text
//! (WebPagetest, chrome-har) or inside a table (Chrome). These and the `timings` are
//! hints: one that is missing, or of an unknown form, is as if it were not there.
//!
//! The time of the server is not recorded as such. It is what is left of
//! `timings.wait` after one round trip, and the round trip to a host is the shortest of
//! its TCP handshakes (`connect` without `ssl`), or its shortest `wait` where no
//! handshake is recorded: an error of one round trip at most.

use std::collections::HashMap;
use std::path::Path;

use serde::{Deserialize, Deserializer};
use serde_json::Value;
use tidegate_core::{Bytes, Span, Time};

use super::error::{Mismatch, contents, quote};
use super::text::{Scan, without_mark};
use super::{MOST_SIZE, ReadError, within_most};

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
    /// When its first request was made, counted from the archive's first.
    pub start: Time,
    /// Its requests, earliest first. The first is at zero.
    pub requests: Vec<PageRequest>,
}

/// One request of a page load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
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
    /// Size of the request, headers included, if the archive says.
    pub request: Option<Bytes>,
    /// From the request to the first byte of the reply, if the archive says.
    pub first_byte: Option<Span>,
    /// Of that, the time of the server.
    pub think: Span,
    /// The number of the request, among those of the page, whose reply made the
    /// browser ask for this one: always an earlier one.
    pub initiator: Option<usize>,
    /// The version of HTTP.
    pub version: HttpVersion,
    /// The connection that carried it, in the words of the archive.
    pub connection: Option<String>,
    /// The urgency that the browser gave it, from 0, the most urgent, to 7
    /// (RFC 9218 section 4.1).
    pub urgency: Urgency,
}

/// How HTTP uses its connections.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HttpVersion {
    /// One response at a time on each connection (RFC 9112).
    #[default]
    One,
    /// Many responses at a time on one connection (RFC 9113, and SPDY and RFC 9114
    /// likewise).
    Two,
}

/// The urgency of a request, from 0, the most urgent, to 7 (RFC 9218 section 4.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Urgency(pub u8);

impl Default for Urgency {
    /// That of a request that says nothing.
    fn default() -> Urgency {
        Urgency(3)
    }
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
    #[serde(default)]
    timings: Value,
    #[serde(default)]
    connection: Value,
    #[serde(default, rename = "_socket")]
    socket: Value,
    #[serde(default, rename = "_initiator")]
    initiator: Value,
    #[serde(default, rename = "_priority")]
    priority: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Request {
    url: String,
    #[serde(default)]
    http_version: Value,
    #[serde(default)]
    headers_size: Value,
    #[serde(default)]
    body_size: Value,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Response {
    #[serde(default, deserialize_with = "size_if_known")]
    body_size: Option<Bytes>,
    #[serde(default, rename = "_transferSize", deserialize_with = "size_if_known")]
    transfer_size: Option<Bytes>,
    #[serde(default, deserialize_with = "size_if_known")]
    headers_size: Option<Bytes>,
    #[serde(default)]
    headers: Vec<Field>,
    #[serde(default)]
    content: Content,
    #[serde(default)]
    http_version: Value,
    #[serde(default, rename = "_fromCache")]
    from_cache: Value,
}

/// A header field of a reply.
#[derive(Deserialize)]
struct Field {
    #[serde(default)]
    name: String,
    #[serde(default)]
    value: String,
}

/// The body of a reply, as the page received it.
#[derive(Default, Deserialize)]
struct Content {
    #[serde(default, deserialize_with = "size_if_known")]
    size: Option<Bytes>,
    #[serde(default, deserialize_with = "size_if_known")]
    compression: Option<Bytes>,
}

impl Response {
    /// The bytes of the body on the network, if they are known.
    fn size(&self) -> Option<Bytes> {
        if !self.from_cache.is_null() {
            return Some(Bytes::ZERO);
        }
        self.body_size
            .or_else(|| Some(self.transfer_size? - self.headers_size.unwrap_or_default()))
            .or_else(|| self.field("content-length")?.trim().parse().ok().map(Bytes))
            .or_else(|| {
                let plain = !self.headers.is_empty() && self.field("content-encoding").is_none();
                let saved = self.content.compression.or(plain.then_some(Bytes::ZERO))?;
                Some(self.content.size? - saved)
            })
    }

    fn field(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|field| field.name.eq_ignore_ascii_case(name))?;
        Some(&found.value)
    }
}

/// A number of bytes; `None` for nothing and for -1. Some tools write whole numbers as
/// 1234.0.
fn size_if_known<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Bytes>, D::Error> {
    let bytes = Option::<f64>::deserialize(deserializer)?;
    let Some(bytes) = bytes.filter(|bytes| *bytes >= 0.0) else { return Ok(None) };
    if bytes > MOST_SIZE.0 as f64 {
        return Err(serde::de::Error::custom(format!("a size of {bytes:e} bytes, over 1 TB")));
    }
    Ok(Some(Bytes(bytes as u64)))
}

/// Milliseconds of a part of a request, where it took any.
fn part(timings: &Value, name: &str) -> Option<Span> {
    let millis = timings.get(name)?.as_f64().filter(|millis| *millis >= 0.0)?;
    Some(Span::from_seconds(millis / 1e3))
}

/// A number of bytes, where it is known.
fn size(value: &Value) -> Option<Bytes> {
    // `as` saturates.
    value.as_f64().filter(|bytes| *bytes > 0.0).map(|bytes| Bytes(bytes as u64))
}

/// A name, which some tools write as a number.
fn name(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}

impl Entry {
    /// From the request to the first byte of the reply.
    fn first_byte(&self, took: Span) -> Option<Span> {
        let receiving = part(&self.timings, "receive")?;
        Some(Span(took.0.saturating_sub(receiving.0)))
    }

    /// The time of a TCP handshake, if this request waited for one.
    fn handshake(&self) -> Option<Span> {
        let connecting = part(&self.timings, "connect")?;
        let securing = part(&self.timings, "ssl").unwrap_or_default();
        Some(Span(connecting.0.saturating_sub(securing.0))).filter(|span| *span > Span::ZERO)
    }

    fn initiator(&self) -> Option<&str> {
        let of_script = || self.initiator.pointer("/stack/callFrames/0/url");
        let found = self.initiator.get("url").or_else(of_script).unwrap_or(&self.initiator);
        found.as_str()
    }

    fn version(&self) -> HttpVersion {
        let of_response = self.response.as_ref().and_then(|it| it.http_version.as_str());
        let of_request = self.request.http_version.as_str();
        let written = of_response.or(of_request).unwrap_or_default().to_lowercase();
        let number = written.strip_prefix("http/").unwrap_or(&written);
        let multiplexes = ["2", "3", "h2", "h3", "spdy", "quic"];
        // WebPagetest of 2016 takes the version from the first header, and that of
        // HTTP/2 is `:status:` or `:scheme:`, of which it keeps the end.
        if multiplexes.iter().any(|it| number.starts_with(it)) || number.ends_with(':') {
            HttpVersion::Two
        } else {
            HttpVersion::One
        }
    }

    /// Chrome's words for its priorities, as it sends them to servers.
    fn urgency(&self) -> Urgency {
        match self.priority.as_str().unwrap_or_default() {
            "VeryHigh" => Urgency(0),
            "High" => Urgency(1),
            "Medium" => Urgency(2),
            "VeryLow" => Urgency(4),
            _ => Urgency::default(),
        }
    }
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
    let round_trips = round_trips(&entries);
    let mut unknown_sizes = 0;
    let mut names: HashMap<String, usize> = HashMap::new();
    let mut pages: Vec<PageLoad> = Vec::new();
    // Of each page, the time and the entry of each request.
    let mut found: Vec<Vec<(i128, Entry, Bytes)>> = Vec::new();
    for mut entry in entries {
        let size = entry.response.as_ref().and_then(Response::size).and_then(within_most);
        let Some(size) = size else {
            unknown_sizes += 1;
            continue;
        };
        let name = entry.pageref.take().unwrap_or_default();
        let index = *names.entry(name.clone()).or_insert_with(|| {
            pages.push(PageLoad { name, ..PageLoad::default() });
            found.push(Vec::new());
            pages.len() - 1
        });
        found[index].push((entry.started_date_time, entry, size));
    }
    let starts = found.iter().flatten().map(|(start, ..)| *start);
    let beginning = starts.min().unwrap_or_default();
    for (page, mut found) in pages.iter_mut().zip(found) {
        found.sort_by_key(|(start, ..)| *start);
        let first = found.first().map_or(beginning, |(start, ..)| *start);
        page.start = Time(u64::try_from(first - beginning).unwrap_or(u64::MAX));
        // The latest request for each address so far.
        let mut asked: HashMap<&str, usize> = HashMap::new();
        for (number, (start, entry, size)) in found.iter().enumerate() {
            let initiator = entry.initiator().and_then(|url| asked.get(url)).copied();
            page.requests.push(entry.request(*start - first, *size, initiator, &round_trips));
            asked.insert(&entry.request.url, number);
        }
    }
    PageLoads { pages, unknown_sizes }
}

/// The round trip to each host.
fn round_trips(entries: &[Entry]) -> HashMap<String, Span> {
    let mut handshakes: HashMap<String, Span> = HashMap::new();
    let mut waits: HashMap<String, Span> = HashMap::new();
    for entry in entries {
        let samples = [(&mut handshakes, entry.handshake()), (&mut waits, entry.wait())];
        for (shortest, sample) in samples {
            if let Some(sample) = sample {
                let shortest = shortest.entry(host(&entry.request.url)).or_insert(sample);
                *shortest = sample.min(*shortest);
            }
        }
    }
    waits.extend(handshakes);
    waits
}

impl Entry {
    /// The time from the end of the request to the reply.
    fn wait(&self) -> Option<Span> {
        part(&self.timings, "wait")
    }

    /// The request, made `after` so many nanoseconds of the page.
    fn request(
        &self,
        after: i128,
        size: Bytes,
        initiator: Option<usize>,
        round_trips: &HashMap<String, Span>,
    ) -> PageRequest {
        // Some tools write -1 for a request that was never answered.
        let took = Span::from_seconds(self.time.unwrap_or_default().max(0.0) / 1e3);
        let host = host(&self.request.url);
        let (wait, round_trip) = (self.wait().unwrap_or_default(), round_trips.get(&host));
        let body = self::size(&self.request.body_size).unwrap_or_default();
        PageRequest {
            at: Time(u64::try_from(after).unwrap_or(u64::MAX)),
            took,
            size,
            request: self::size(&self.request.headers_size)
                .map(|headers| Bytes(headers.0.saturating_add(body.0))),
            first_byte: self.first_byte(took),
            think: Span(wait.0.saturating_sub(round_trip.map_or(0, |round_trip| round_trip.0))),
            initiator,
            version: self.version(),
            connection: name(&self.connection).or_else(|| name(&self.socket)),
            urgency: self.urgency(),
            host,
        }
    }
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
