//! Sources that send datagrams: streams of one size, recorded frames and
//! packets, and what an arrival curve allows.

use std::collections::BTreeSet;
use std::sync::Arc;

use tidegate_core::contract::{Envelope, Term};
use tidegate_core::{Bytes, FlowKey, Rate, Span};

use super::super::data::{load, load_text};
use super::super::syntax::{
    CallSource, CbrSource, Divide, FrameSource, GreedySource, Lasting, PacketLength, PacketSource,
};
use super::super::tcp::within;
use super::super::values::{At, Quantity};
use super::{MOST_DATAGRAM, Reader};
use crate::scenario::{
    Bursts, CallRates, FrameSending, GreedyProfile, Marking, PacketLaw, TimeLaw, TrafficKind,
    TrafficSpec,
};
use crate::trace::applications::{Division, RecordedCall};
use crate::trace::capture::Capture;
use crate::trace::frames::FrameTrace;
use crate::trace::hosts::{self, Hosts};
use crate::traffic::frames::{HEADERS, packets};
use tidegate_files::Mistake;

/// IPv4 and UDP headers, without which there is no datagram.
const LEAST_DATAGRAM: Bytes = Bytes(28);
/// Rates of calls where the file says nothing: about what browsers have.
const FIRST_CALL: Rate = Rate(300_000);
const LEAST_CALL: Rate = Rate(50_000);
const MOST_CALL: Rate = Rate(2_500_000);
/// No picture comes of less, and no call needs more.
const LEAST_CALLS: Rate = Rate(10_000);
const MOST_CALLS: Rate = Rate(100_000_000);
/// Ten times the largest picture of an uncompressed film.
const MOST_FRAME: Bytes = Bytes(1_000_000_000);
/// Limits of drawn packets (`BE appendix B`).
const LEAST_DRAWN: Bytes = Bytes(40);
const MOST_DRAWN: Bytes = Bytes(1_536);

impl Reader<'_> {
    pub(in crate::scenario::file) fn cbr(
        &self,
        source: &CbrSource,
    ) -> Result<TrafficSpec, Mistake> {
        let (from, to) = (self.single(&source.from)?, self.single(&source.to)?);
        self.check_ways(&[from], &source.to, &[to], false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let packet = within(&source.packet, LEAST_DATAGRAM, MOST_DATAGRAM)?;
        let rate = source.rate.0;
        let per_second = rate.0 as f64 / (8.0 * packet.0 as f64);
        self.check_arrivals(per_second, &source.packet.place)?;
        let kind = TrafficKind::Cbr { from, to, rate, packet, pauses: None };
        let (name, class) = (source.name.value.clone(), source.class);
        let deadline = deadline(source.deadline.as_ref())?;
        let marking = Marking { sender: source.dscp.0, ..Marking::default() };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline, kind })
    }

    pub(in crate::scenario::file) fn call(
        &self,
        source: &CallSource,
    ) -> Result<TrafficSpec, Mistake> {
        let (from, to) = (self.single(&source.from)?, self.single(&source.to)?);
        self.check_ways(&[from], &source.to, &[to], true)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let rate = |written: Option<&Quantity<Rate>>, default: Rate| {
            written.map_or(default, |written| written.value.0)
        };
        let least = rate(source.least.as_ref(), LEAST_CALL);
        let most = rate(source.most.as_ref(), MOST_CALL.max(least));
        let first = rate(source.first.as_ref(), FIRST_CALL.clamp(least, most));
        let given = [
            (&source.least, LEAST_CALLS, most.min(MOST_CALLS), "least"),
            (&source.most, least, MOST_CALLS, "most"),
            (&source.first, least, most, "first"),
        ];
        for (written, low, high, name) in given {
            if let Some(written) = written
                && !(low..=high).contains(&written.value.0)
            {
                let expected = format!("'{low}' to '{high}' for {name}");
                return Err(Mistake::at(
                    &written.place,
                    format!("'{}'", written.value.0),
                    expected,
                ));
            }
        }
        let kind = TrafficKind::Call { from, to, rates: CallRates { first, least, most } };
        let (name, class) = (source.name.value.clone(), source.class);
        let deadline = deadline(source.deadline.as_ref())?;
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline, kind })
    }

    pub(in crate::scenario::file) fn frames(
        &self,
        source: &FrameSource,
    ) -> Result<TrafficSpec, Mistake> {
        let (from, to) = (self.single(&source.from)?, self.single(&source.to)?);
        self.check_ways(&[from], &source.to, &[to], false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let packet = match &source.packet {
            Some(packet) => Some(within(packet, HEADERS + Bytes(1), MOST_DATAGRAM)?),
            None => None,
        };
        let expected = "a CSV file with start_s and size_bytes";
        let trace = match packet {
            Some(_) => load_text(self.data, &source.file, expected, |name, contents| {
                FrameTrace::parse(name, contents, Bytes(1)..=MOST_FRAME)
            }),
            None => load_text(self.data, &source.file, expected, |name, contents| {
                FrameTrace::parse(name, contents, LEAST_DATAGRAM..=MOST_DATAGRAM)
            }),
        }?;
        let count = packets(&trace, packet) as f64;
        if source.repeat && trace.period() == Span::ZERO {
            let expected = "frames of more than one moment, to be repeated";
            return Err(Mistake::at(&source.file.place, "frames of one moment", expected));
        }
        let seconds = if source.repeat { trace.period() } else { self.duration }.as_seconds();
        self.check_arrivals(count / seconds, &source.file.place)?;
        let rate = source.rate.map(|rate| rate.0);
        let sending = FrameSending { packet, rate, repeat: source.repeat };
        let kind = TrafficKind::Frames { from, to, trace: Arc::new(trace), sending };
        let (name, class) = (source.name.value.clone(), source.class);
        let deadline = deadline(source.deadline.as_ref())?;
        let marking = Marking { sender: source.dscp.0, ..Marking::default() };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline, kind })
    }

    pub(in crate::scenario::file) fn greedy(
        &self,
        source: &GreedySource,
    ) -> Result<TrafficSpec, Mistake> {
        let (from, to) = (self.single(&source.from)?, self.single(&source.to)?);
        self.check_ways(&[from], &source.to, &[to], false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let envelope = source.curve.value.0.clone();
        if envelope.largest_packet() < LEAST_DATAGRAM {
            let expected = format!("a curve that lets '{LEAST_DATAGRAM}' pass at once");
            return Err(Mistake::at(&source.curve.place, format!("'{envelope}'"), expected));
        }
        let packet = packet_law(&source.packet, envelope.largest_packet())?;
        let bursts = match (&source.burst, &source.spacing) {
            (None, None) => None,
            (Some(burst), Some(spacing)) => {
                Some(Bursts { length: time_law(burst)?, spacing: time_law(spacing)? })
            }
            (Some(burst), None) => {
                return Err(Mistake::at(&burst.place, "burst alone", "burst and spacing"));
            }
            (None, Some(spacing)) => {
                return Err(Mistake::at(&spacing.place, "spacing alone", "burst and spacing"));
            }
        };
        let per_second = envelope_rate(&envelope) / mean_packet(&packet);
        self.check_arrivals(per_second, &source.curve.place)?;
        if let (Some(bursts), Some(burst)) = (bursts, &source.burst) {
            self.check_arrivals(1.0 / mean_cycle(&bursts), &burst.place)?;
        }
        let profile = GreedyProfile { envelope, packet, bursts };
        let kind = TrafficKind::Greedy { from, to, profile };
        let (name, class) = (source.name.value.clone(), source.class);
        let deadline = deadline(source.deadline.as_ref())?;
        let marking = Marking { sender: source.dscp.0, ..Marking::default() };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline, kind })
    }

    pub(in crate::scenario::file) fn packets(
        &self,
        source: &PacketSource,
    ) -> Result<Vec<TrafficSpec>, Mistake> {
        let (inside, outside) = (self.single(&source.inside)?, self.single(&source.outside)?);
        self.check_ways(&[inside], &source.outside, &[outside], true)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let capture = load(self.data, &source.capture, "a pcap or pcapng file", |name, file| {
            Capture::stream(name, file)
        })?;
        let hosts = local_hosts(&source.local, &capture)?;
        let place = source.local.first().map_or(&source.capture.place, |local| &local.place);
        if !capture.packets.iter().any(|packet| hosts.direction(packet.flow).is_some()) {
            let expected = "packets between the user's addresses (local = [...]) and others";
            return Err(Mistake::at(place, "no packet that crosses the link", expected));
        }
        let capture = Arc::new(capture);
        let parts: Vec<(String, Option<BTreeSet<FlowKey>>, Option<RecordedCall>)> =
            match source.divide {
                None => vec![(source.name.value.clone(), None, None)],
                Some(divide) => {
                    let division = match divide {
                        Divide::Application => Division::Application,
                        Divide::Host => Division::Host,
                        Divide::Calls => Division::Calls,
                    };
                    let parts = capture.divided(&hosts, division);
                    if parts.is_empty() {
                        let expected = "streams of datagrams with the rate of a call";
                        return Err(Mistake::at(&source.capture.place, "no call", expected));
                    }
                    let parts = parts.into_iter();
                    parts.map(|part| (part.name, Some(part.flows), part.call)).collect()
                }
            };
        let deadline = deadline(source.deadline.as_ref())?;
        let specs = parts.into_iter().map(|(name, only, call)| {
            let (capture, hosts) = (capture.clone(), hosts.clone());
            let kind = TrafficKind::Packets { inside, outside, capture, hosts, only, call };
            let (class, marking) = (source.class, Marking::default());
            TrafficSpec { name, start, stop, class, marking, deadline, kind }
        });
        Ok(specs.collect())
    }
}

/// The user's side of a capture: what is `written`, or else what the capture suggests.
pub(super) fn local_hosts(written: &[At<String>], capture: &Capture) -> Result<Hosts, Mistake> {
    if written.is_empty() {
        return Ok(capture.local_hosts());
    }
    let networks = written.iter().map(|network| {
        hosts::network_of(network).map_err(|_| {
            let expected = "an IP address, or a prefix such as 192.0.2.0/24";
            Mistake::at(&network.place, format!("'{}'", network.value), expected)
        })
    });
    Ok(Hosts::within(networks.collect::<Result<Vec<_>, _>>()?))
}

fn deadline(written: Option<&Quantity<Span>>) -> Result<Option<Span>, Mistake> {
    written.map(|deadline| above_zero(deadline, deadline.value.0)).transpose()
}

/// Refuses a time of zero.
fn above_zero<T>(written: &At<T>, span: Span) -> Result<Span, Mistake> {
    if span == Span::ZERO {
        return Err(Mistake::at(&written.place, format!("'{span}'"), "a time above zero"));
    }
    Ok(span)
}

/// The law of packets that can pass a curve that allows `at_once` at once.
fn packet_law(written: &At<PacketLength>, at_once: Bytes) -> Result<PacketLaw, Mistake> {
    let largest = MOST_DATAGRAM.min(at_once);
    let constant = |size: Bytes| {
        if (LEAST_DATAGRAM..=largest).contains(&size) {
            return Ok(PacketLaw::Constant(size));
        }
        let expected = format!("from '{LEAST_DATAGRAM}' to '{largest}', which the curve lets pass");
        Err(Mistake::at(&written.place, format!("'{size}'"), expected))
    };
    let normal = match &written.value {
        PacketLength::Constant(size) => return constant(*size),
        PacketLength::Normal(normal) => normal,
    };
    let most = match &normal.most {
        Some(most) => within(most, LEAST_DATAGRAM, largest)?,
        None => MOST_DRAWN.min(largest),
    };
    let least = match &normal.least {
        Some(least) => within(least, LEAST_DATAGRAM, most)?,
        None => LEAST_DRAWN.min(most),
    };
    let mean = within(&normal.mean, Bytes(1), MOST_DATAGRAM)?;
    let deviation = within(&normal.deviation, Bytes(0), MOST_DATAGRAM)?;
    Ok(PacketLaw::Normal { mean, deviation, least, most })
}

/// A law of times that are not all zero.
fn time_law(written: &At<Lasting>) -> Result<TimeLaw, Mistake> {
    Ok(match &written.value {
        Lasting::Constant(span) => TimeLaw::Constant(above_zero(written, *span)?),
        Lasting::Uniform(law) => {
            let (least, most) = (law.least.0, above_zero(&law.most, law.most.value.0)?);
            if most < least {
                let expected = format!("at least '{least}', as 'least'");
                return Err(Mistake::at(&law.most.place, format!("'{most}'"), expected));
            }
            TimeLaw::Uniform { least, most }
        }
        Lasting::Normal(law) => {
            let mean = above_zero(&law.mean, law.mean.value.0)?;
            TimeLaw::Normal { mean, deviation: law.deviation.0 }
        }
    })
}

/// The rate that a curve allows in the long run, in bytes a second.
fn envelope_rate(envelope: &Envelope) -> f64 {
    let of = |term: &Term| match *term {
        Term::TokenBucket { rate, .. } => rate.0 as f64 / 8.0,
        Term::Staircase { size, period } => size.0 as f64 / period.as_seconds(),
    };
    envelope.terms().iter().map(of).fold(f64::INFINITY, f64::min)
}

/// The mean size of a packet in bytes, ignoring the tails that are cut off.
fn mean_packet(law: &PacketLaw) -> f64 {
    match *law {
        PacketLaw::Constant(size) => size.0 as f64,
        PacketLaw::Normal { mean, least, most, .. } => mean.clamp(least, most).0 as f64,
    }
}

/// The mean time between the starts of two bursts, in seconds.
fn mean_cycle(bursts: &Bursts) -> f64 {
    let mean = |law: &TimeLaw| match *law {
        TimeLaw::Constant(span) => span.as_seconds(),
        TimeLaw::Uniform { least, most } => (least + most).as_seconds() / 2.0,
        TimeLaw::Normal { mean, .. } => mean.as_seconds(),
    };
    mean(&bursts.length) + mean(&bursts.spacing)
}
