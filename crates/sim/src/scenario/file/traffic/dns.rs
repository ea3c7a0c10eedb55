//! Sources of lookups.

use tidegate_core::{Bytes, Span};

use super::super::syntax::DnsSource;
use super::super::tcp::within;
use super::super::values::At;
use super::{Reader, size_law};
use crate::scenario::{DnsProfile, Marking, SizeLaw, TrafficKind, TrafficSpec};
use tidegate_files::Mistake;

/// The mean of the 203 queries in nine captures of users' devices that `docs/scenarios.md`
/// names: 59 to 78 bytes, but for a tenth at either end.
const QUERY: Bytes = Bytes(67);
/// The logarithms of the 177 answers in these captures: a mean of 142 bytes, and 213 or more
/// in a tenth of them.
const ANSWER: SizeLaw = SizeLaw::Lognormal { log_mean: 4.876, log_deviation: 0.401 };
/// As resolv.conf(5) has both.
const TIMEOUT: Span = Span::seconds(5);
const ATTEMPTS: u8 = 2;
/// No round trip is shorter by enough to matter.
const LEAST_TIMEOUT: Span = Span::millis(1);

impl Reader<'_> {
    pub(in crate::scenario::file) fn dns(
        &self,
        source: &At<DnsSource>,
    ) -> Result<TrafficSpec, Mistake> {
        let from = self.topology.resolve(&source.from)?;
        let to = self.topology.resolve(&source.to)?;
        self.check_ways(&from, &source.to, &to, true)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let per_second = source.per_second.0;
        self.check_arrivals(per_second, &source.per_second.place)?;
        let query = match &source.query {
            Some(query) => within(query, DnsProfile::LEAST_QUERY, DnsProfile::MOST_QUERY)?,
            None => QUERY,
        };
        let answers = match &source.answer {
            Some(answer) => {
                let law = size_law(answer, self.data)?;
                let range = query..=DnsProfile::MOST_ANSWER;
                let found = match law {
                    SizeLaw::Constant(size) if range.contains(&size) => None,
                    SizeLaw::Constant(size) => Some(size.to_string()),
                    SizeLaw::Endless => Some("endless".into()),
                    // Draws are cut to the range.
                    _ => None,
                };
                if let Some(found) = found {
                    let (least, most) = (range.start(), range.end());
                    let expected = format!(
                        "from '{least}', since an answer repeats the question, to '{most}', since \
                         longer ones come over TCP; or a law"
                    );
                    return Err(Mistake::at(&answer.place, format!("'{found}'"), expected));
                }
                law
            }
            None => ANSWER,
        };
        let timeout = match &source.timeout {
            Some(timeout) => within(timeout, LEAST_TIMEOUT, DnsProfile::MOST_TIMEOUT)?,
            None => TIMEOUT,
        };
        let attempts = source.attempts.map_or(ATTEMPTS, |attempts| attempts.0 as u8);
        let profile = DnsProfile { per_second, query, answers, timeout, attempts };
        let kind = TrafficKind::Dns { from, to, profile };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }
}
