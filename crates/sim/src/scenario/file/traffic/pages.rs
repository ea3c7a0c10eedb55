//! Sources of pages.

use std::sync::Arc;

use tidegate_core::{Bytes, Span};

use super::super::data::{DataFiles, load_text};
use super::super::syntax::{self, PageSource};
use super::super::values::At;
use super::{Reader, WEB_REQUEST, one_of, per_second_of, size_law};
use crate::pages::{Pages, RecordedPages};
use crate::scenario::{
    FrameOrder, Marking, Opener, PageProfile, Protocol, QuicControl, QuicProfile, SizeLaw,
    TrafficKind, TrafficSpec, Visits,
};
use crate::trace::{PageLoads, PageTable};
use tidegate_files::Mistake;

/// The `keepalive_timeout` of nginx.
const KEEP_ALIVE: Span = Span::seconds(75);
/// What servers have by default.
const HTTP3: QuicProfile = QuicProfile { congestion: QuicControl::Cubic, streams: 1 };
/// Nobody asks for pages faster, and a run ends.
const LEAST_BETWEEN: Span = Span::millis(1);

impl Reader<'_> {
    pub(in crate::scenario::file) fn pages(
        &self,
        source: &At<PageSource>,
    ) -> Result<TrafficSpec, Mistake> {
        let request = source.request.map_or(WEB_REQUEST, |request| request.0.max(Bytes(1)));
        let opened_by = Opener::Receiver { request };
        let transfer = self.transfer(&source.from, &source.to, opened_by, &source.tcp, false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let what = [
            source.recorded.as_ref().map(|it| &it.place),
            source.page_table.as_ref().map(|it| &it.place),
        ];
        one_of(&what, &source.place, "one of recorded, page_table")?;
        let pages = pages(source.page_table.as_ref(), source.recorded.as_ref(), self.data)?;
        let sizes = match (&source.sizes, &pages) {
            (Some(sizes), Pages::Outlined(_)) => size_law(sizes, self.data)?,
            (None, Pages::Outlined(_)) => {
                let expected = "how large the objects of a page_table are";
                return Err(Mistake::missing(&source.place, "sizes", expected));
            }
            (Some(sizes), _) => {
                let expected = "none, since recordings have the sizes";
                return Err(Mistake::at(&sizes.place, "sizes", expected));
            }
            // Not used with recordings.
            (None, _) => SizeLaw::Constant(Bytes(1)),
        };
        if matches!(sizes, SizeLaw::Endless) {
            let place = source.sizes.as_ref().map_or(&source.place, |sizes| &sizes.place);
            return Err(Mistake::at(place, "'endless'", "objects with an end"));
        }
        let given = [
            source.load.as_ref().map(|it| &it.place),
            source.every.as_ref().map(|it| &it.place),
            source.pause.as_ref().map(|it| &it.place),
        ];
        one_of(&given, &source.place, "one of load, every, pause")?;
        let users = transfer.to.len() as f64;
        let visits = match (&source.load, &source.every, &source.pause) {
            (Some(load), ..) => {
                let mean = mean_size(&pages);
                let per_second = per_second_of(load.value.0, mean, &transfer.tcp);
                Visits::Every(Span::from_seconds(users / per_second))
            }
            (_, Some(every), _) => Visits::Every(every.value.0),
            (_, _, Some(pause)) => Visits::After(pause.value.0),
            _ => unreachable!("one of the three is given"),
        };
        let (Visits::Every(between) | Visits::After(between)) = visits;
        let place = given.into_iter().flatten().next().unwrap_or(&source.place);
        if between < LEAST_BETWEEN {
            let expected = format!("at least '{LEAST_BETWEEN}' between two pages of a user");
            return Err(Mistake::at(place, format!("'{between}'"), expected));
        }
        let objects = users * mean_objects(&pages) / between.as_seconds();
        self.check_arrivals(objects, place)?;
        let protocol = source.protocol.as_ref().map_or(Protocol::Http2, |it| it.value.into());
        if let (Some(written), Protocol::Recorded, Pages::Outlined(_)) =
            (&source.protocol, protocol, &pages)
        {
            let expected = "a protocol, since a page_table records none";
            return Err(Mistake::at(&written.place, "'recorded'", expected));
        }
        let is_http3 =
            source.protocol.as_ref().is_some_and(|it| it.value == syntax::Protocol::Http3);
        let profile = PageProfile {
            pages,
            sizes,
            visits,
            protocol,
            quic: is_http3.then_some(HTTP3),
            order: source.order.map_or(FrameOrder::default(), FrameOrder::from),
            handshakes: source.tls.map_or(1, |tls| tls.0 as usize),
            keep_alive: source.keep_alive.map_or(KEEP_ALIVE, |span| span.0),
        };
        let kind = TrafficKind::Pages { transfer, profile };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }
}

impl From<syntax::Protocol> for Protocol {
    fn from(written: syntax::Protocol) -> Protocol {
        match written {
            syntax::Protocol::Http10 => Protocol::Http10,
            syntax::Protocol::Http11 => Protocol::Http11,
            // Over QUIC, as the profile says.
            syntax::Protocol::Http2 | syntax::Protocol::Http3 => Protocol::Http2,
            syntax::Protocol::Recorded => Protocol::Recorded,
        }
    }
}

impl From<syntax::Order> for FrameOrder {
    fn from(written: syntax::Order) -> FrameOrder {
        match written {
            syntax::Order::RoundRobin => FrameOrder::RoundRobin,
            syntax::Order::Priority => FrameOrder::Priority,
        }
    }
}

/// The pages of a table or of recordings, or neither.
pub(in crate::scenario::file) fn pages(
    page_table: Option<&At<String>>,
    recorded: Option<&At<Vec<At<String>>>>,
    data: &dyn DataFiles,
) -> Result<Pages, Mistake> {
    Ok(match (page_table, recorded) {
        (None, None) => Pages::Drawn,
        (Some(file), None) => {
            let expected = "a CSV file with objects, body_bytes and hosts";
            Pages::Outlined(Arc::new(load_text(data, file, expected, PageTable::parse)?))
        }
        (None, Some(files)) => {
            let load = |file| load_text(data, file, "an HTTP Archive (HAR)", PageLoads::parse);
            let loads = files.iter().map(load).collect::<Result<Vec<_>, _>>()?;
            let pages = RecordedPages::new(&loads).ok_or_else(|| {
                Mistake::at(&files.place, "archives without an object", "pages with a known size")
            })?;
            Pages::Recorded(Arc::new(pages))
        }
        (Some(_), Some(files)) => {
            return Err(Mistake::at(&files.place, "page_table and recorded", "one of them"));
        }
    })
}

/// Mean size of a page in bytes.
fn mean_size(pages: &Pages) -> f64 {
    match pages {
        Pages::Recorded(pages) => pages.mean_size(),
        Pages::Outlined(table) => {
            let sum: f64 = table.pages.iter().map(|page| page.size.0 as f64).sum();
            sum / table.pages.len() as f64
        }
        Pages::Drawn => unreachable!("a source has pages"),
    }
}

/// Mean number of objects of a page.
fn mean_objects(pages: &Pages) -> f64 {
    match pages {
        Pages::Recorded(pages) => pages.mean_objects(),
        Pages::Outlined(table) => {
            let sum: f64 = table.pages.iter().map(|page| f64::from(page.objects)).sum();
            sum / table.pages.len() as f64
        }
        Pages::Drawn => unreachable!("a source has pages"),
    }
}
