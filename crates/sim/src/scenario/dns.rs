//! How stub resolvers ask for names.

use std::fmt;

use tidegate_core::{Bytes, Span};

use super::{SizeLaw, short};

/// What the stub resolvers of a source ask, and how long they wait.
#[derive(Clone, Debug)]
pub struct DnsProfile {
    /// Lookups a second, on average, all hosts together.
    pub per_second: f64,
    /// IP size of a query.
    pub query: Bytes,
    /// IP sizes of answers; what is drawn below the query's size or above
    /// [`DnsProfile::MOST_ANSWER`] becomes that bound.
    pub answers: SizeLaw,
    /// How long an attempt waits for an answer (`timeout` of resolv.conf).
    pub timeout: Span,
    /// How often a resolver asks before it gives up (`attempts` of resolv.conf).
    pub attempts: u8,
}

impl DnsProfile {
    /// IPv4 and UDP headers, 12 bytes of a header of DNS, and a question for the root in 5.
    pub const LEAST_QUERY: Bytes = Bytes(45);
    /// The longest name (RFC 1035) has 254 bytes more; options of EDNS are left out.
    pub const MOST_QUERY: Bytes = Bytes(299);
    /// Operators agreed in 2020 that no message of more than 1 232 bytes goes over UDP, so that
    /// no path has to fragment it (RFC 9715 appendix A); there are 28 bytes of headers.
    pub const MOST_ANSWER: Bytes = Bytes(1_260);
    /// glibc does not wait longer (`RES_MAXRETRANS`).
    pub const MOST_TIMEOUT: Span = Span::seconds(30);
    /// glibc does not ask more often (`RES_MAXRETRY`).
    pub const MOST_ATTEMPTS: u8 = 5;

    /// How long a lookup takes that nobody answers.
    #[must_use]
    pub fn patience(&self) -> Span {
        self.timeout * u64::from(self.attempts)
    }
}

impl fmt::Display for DnsProfile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} DNS lookups a second, answers of {}", short(self.per_second), self.answers)
    }
}
