//! Page loads of a browser, from HTTP Archives (HAR 1.x): which objects a page
//! asks for, when, of which host, and how large the replies are.
//!
//! The size is `response.bodySize`, the bytes that crossed the network after
//! compression. A reply where the browser did not know it (-1, or nothing) is
//! left out and counted: `content.size` is the size before compression and
//! would be several times too large for text.

use std::path::Path;

use tidegate_core::{Bytes, Time};

use super::ReadError;

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
    /// When it was made, from the page's first request on.
    pub at: Time,
    /// The host that it was sent to, without the port.
    pub host: String,
    /// Size of the reply's body; zero for redirections and cached objects.
    pub size: Bytes,
}

impl PageLoads {
    /// Reads an archive file.
    ///
    /// # Errors
    /// When the file is not JSON or not a HTTP Archive.
    pub fn read(path: &Path) -> Result<PageLoads, ReadError> {
        let _ = path;
        unimplemented!("next commit")
    }

    /// Reads an archive from memory; `name` is for error messages.
    ///
    /// # Errors
    /// As [`read`](PageLoads::read).
    pub fn parse(name: &str, contents: &[u8]) -> Result<PageLoads, ReadError> {
        let _ = (name, contents);
        unimplemented!("next commit")
    }

    /// All requests of all pages.
    pub fn requests(&self) -> impl Iterator<Item = &PageRequest> + '_ {
        self.pages.iter().flat_map(|page| &page.requests)
    }
}
