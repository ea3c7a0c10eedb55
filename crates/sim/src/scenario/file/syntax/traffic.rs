//! The sources of traffic of a scenario, as written in the file.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_core::{Bytes, Rate, Span};

use super::super::traffic::Reader;
use super::super::values::{At, CodePoint, Names, Positive, Quantity, Text};
use super::call::CallSource;
use super::dns::DnsSource;
use super::greedy::GreedySource;
use super::pages::PageSource;
use super::quic::QuicSource;
use super::video::VideoSource;
use super::{Sizes, Tcp, Transfers};
use crate::scenario::TrafficSpec;
use tidegate_files::Mistake;

/// Sources of traffic, each kind in a list of its own; reports show them in the order of the file.
#[derive(Debug, Default, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct Traffic {
    /// TCP transfers that begin independently of each other.
    #[serde(default)]
    pub(in crate::scenario::file) transfers: Vec<At<TransferSource>>,
    /// Transfers over QUIC that begin independently of each other.
    #[serde(default)]
    pub(in crate::scenario::file) quic: Vec<At<QuicSource>>,
    /// Web sessions: pages of objects, each object a transfer of its own.
    #[serde(default)]
    pub(in crate::scenario::file) web: Vec<At<WebSource>>,
    /// Pages of objects, as browsers load them over connections that carry many
    /// responses.
    #[serde(default)]
    pub(in crate::scenario::file) pages: Vec<At<PageSource>>,
    /// Video in segments, whose viewers' players choose a quality for each.
    #[serde(default)]
    pub(in crate::scenario::file) video: Vec<At<VideoSource>>,
    /// Datagrams of one size at a constant rate, like those of a call.
    #[serde(default)]
    pub(in crate::scenario::file) cbr: Vec<At<CbrSource>>,
    /// Video calls that adapt to what the path carries, one direction each.
    #[serde(default)]
    pub(in crate::scenario::file) call: Vec<At<CallSource>>,
    /// Lookups of names: a query and an answer over UDP, each lookup a flow of its own.
    #[serde(default)]
    pub(in crate::scenario::file) dns: Vec<At<DnsSource>>,
    /// The frames of a recorded stream: a video, or a call.
    #[serde(default)]
    pub(in crate::scenario::file) frames: Vec<At<FrameSource>>,
    /// Datagrams, as many and as early as an arrival curve allows, in bursts.
    #[serde(default)]
    pub(in crate::scenario::file) greedy: Vec<At<GreedySource>>,
    /// The packets of a capture, at the times at which they were captured.
    #[serde(default)]
    pub(in crate::scenario::file) packets: Vec<At<PacketSource>>,
}

/// A source that was read, with its name and its place in the file.
type Read<'a> = (&'a At<String>, usize, TrafficSpec);

impl Traffic {
    /// What there is to choose from.
    pub(in crate::scenario::file) const KINDS: &str = "[[traffic.transfers]], [[traffic.quic]], [[traffic.web]], [[traffic.pages]], [[traffic.video]], \
         [[traffic.cbr]], [[traffic.call]], [[traffic.dns]], [[traffic.frames]], [[traffic.greedy]] or [[traffic.packets]]";

    /// All sources with their names and places in the file.
    pub(in crate::scenario::file) fn read(
        &self,
        reader: &Reader<'_>,
    ) -> Result<Vec<Read<'_>>, Mistake> {
        let mut sources: Vec<Read<'_>> = Vec::new();
        for source in &self.transfers {
            sources.push((&source.name, source.place.start, reader.transfers(source)?));
        }
        for source in &self.quic {
            sources.push((&source.name, source.place.start, reader.quic(source)?));
        }
        for source in &self.web {
            sources.push((&source.name, source.place.start, reader.web(source)?));
        }
        for source in &self.pages {
            sources.push((&source.name, source.place.start, reader.pages(source)?));
        }
        for source in &self.video {
            sources.push((&source.name, source.place.start, reader.video(source)?));
        }
        for source in &self.cbr {
            sources.push((&source.name, source.place.start, reader.cbr(source)?));
        }
        for source in &self.call {
            sources.push((&source.name, source.place.start, reader.call(source)?));
        }
        for source in &self.dns {
            sources.push((&source.name, source.place.start, reader.dns(source)?));
        }
        for source in &self.frames {
            sources.push((&source.name, source.place.start, reader.frames(source)?));
        }
        for source in &self.greedy {
            sources.push((&source.name, source.place.start, reader.greedy(source)?));
        }
        for source in &self.packets {
            let parts = reader.packets(source)?.into_iter();
            sources.extend(parts.map(|part| (&source.name, source.place.start, part)));
        }
        Ok(sources)
    }
}

/// TCP transfers. Exactly one of `load`, `per_second`, `count` and `log` sets their number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct TransferSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Senders of the data; each transfer has one of them at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Receivers of the data; each transfer has one of them at random.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it stops opening transfers. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Transfers begin at random; together they amount to this rate on the
    /// wire, counted in full packets, without retransmissions.
    pub(in crate::scenario::file) load: Option<Quantity<Rate>>,
    /// Transfers begin at random, on average this many a second.
    pub(in crate::scenario::file) per_second: Option<At<Positive>>,
    /// This many transfers, all when the source starts.
    pub(in crate::scenario::file) count: Option<At<Transfers>>,
    /// With `count`: each begins at a random moment of this time after the source
    /// starts. Default: 0 s.
    pub(in crate::scenario::file) spread: Option<Quantity<Span>>,
    /// A CSV file with the columns start_s and size_bytes, or another recording:
    /// an HTTP log, page loads (HAR), a log of connections (Zeek, tcptrace) or a
    /// capture. Of the last two, a source with `request` takes the downloads,
    /// and one without it the uploads. The first transfer of the recording
    /// begins when the source starts.
    pub(in crate::scenario::file) log: Option<At<String>>,
    /// IP addresses and prefixes of the user's side of a capture in `log`.
    /// Default: found from the capture.
    #[serde(default)]
    pub(in crate::scenario::file) local: Vec<At<String>>,
    /// Sizes of the transfers; not with `log`.
    pub(in crate::scenario::file) sizes: Option<At<Sizes>>,
    /// The receiver opens the connection and sends a request of this size, as
    /// for a download. Default: the sender opens the connection, as for an
    /// upload.
    pub(in crate::scenario::file) request: Option<Text<Bytes>>,
    /// Differences from the scenario's TCP.
    #[serde(default)]
    pub(in crate::scenario::file) tcp: Tcp,
    /// Record the progress of each of its flows.
    #[serde(default)]
    pub(in crate::scenario::file) follow: bool,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
    /// Codepoint of what `to` sends, requests and acknowledgements.
    #[serde(default)]
    pub(in crate::scenario::file) reply_dscp: CodePoint,
}

/// Web sessions (`LAS section 5`, Table 1); all counts and times between starts
/// are exponential with the given means. Either `load` or `between_sessions`
/// sets their number.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct WebSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// Servers; each object comes from one at random.
    pub(in crate::scenario::file) from: At<Names>,
    /// Clients; each object goes to one at random.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it stops beginning sessions. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// All objects together amount to this rate on the wire, counted in full
    /// packets, without retransmissions.
    pub(in crate::scenario::file) load: Option<Quantity<Rate>>,
    /// Mean time between the starts of two sessions.
    pub(in crate::scenario::file) between_sessions: Option<Quantity<Span>>,
    /// Mean number of pages of a session.
    pub(in crate::scenario::file) pages: Positive,
    /// Mean time between the starts of two pages of a session.
    pub(in crate::scenario::file) between_pages: Text<Span>,
    /// Mean number of objects of a page.
    pub(in crate::scenario::file) objects: Positive,
    /// Mean time between the starts of two objects of a page.
    pub(in crate::scenario::file) between_objects: Text<Span>,
    /// Sizes of the objects.
    pub(in crate::scenario::file) sizes: At<Sizes>,
    /// Size of the request for each object. Default: 400 B.
    pub(in crate::scenario::file) request: Option<Text<Bytes>>,
    /// Differences from the scenario's TCP.
    #[serde(default)]
    pub(in crate::scenario::file) tcp: Tcp,
    /// Record the progress of each of its flows.
    #[serde(default)]
    pub(in crate::scenario::file) follow: bool,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of what `from` sends: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
    /// Codepoint of what `to` sends, requests and acknowledgements.
    #[serde(default)]
    pub(in crate::scenario::file) reply_dscp: CodePoint,
}

/// UDP datagrams of one size at a constant rate.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct CbrSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// The sender.
    pub(in crate::scenario::file) from: At<Names>,
    /// The receiver.
    pub(in crate::scenario::file) to: At<Names>,
    /// When it begins. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it ends. Default: never.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// Rate on the wire, including headers.
    pub(in crate::scenario::file) rate: Text<Rate>,
    /// Size of each datagram on the wire, including headers.
    pub(in crate::scenario::file) packet: Quantity<Bytes>,
    /// Datagrams that take longer than this from end to end are late, and so
    /// are lost ones. Default: no deadline.
    pub(in crate::scenario::file) deadline: Option<Quantity<Span>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
}

/// The frames of a recorded stream, as UDP datagrams: a video, or a call.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct FrameSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// The sender.
    pub(in crate::scenario::file) from: At<Names>,
    /// The receiver.
    pub(in crate::scenario::file) to: At<Names>,
    /// When the first frame is sent. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it stops sending frames. Default: at the end of the file, or never with `repeat`.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// A CSV file with the columns start_s and size_bytes; the first of its
    /// frames is sent when the source starts.
    pub(in crate::scenario::file) file: At<String>,
    /// Frames are cut into packets of at most this size on the wire, each with
    /// 40 bytes of IPv4, UDP and RTP headers around its part of the frame.
    /// Default: each frame is one packet, including headers.
    pub(in crate::scenario::file) packet: Option<Quantity<Bytes>>,
    /// The packets of a frame follow each other at this rate. Default: at once.
    pub(in crate::scenario::file) rate: Option<Text<Rate>>,
    /// Begin again at the end of the file.
    #[serde(default)]
    pub(in crate::scenario::file) repeat: bool,
    /// Datagrams that take longer than this from end to end are late, and so
    /// are lost ones. Default: no deadline.
    pub(in crate::scenario::file) deadline: Option<Quantity<Span>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
    /// Codepoint of its packets: EF, CS1, AF41, LE and so on, or a number.
    #[serde(default)]
    pub(in crate::scenario::file) dscp: CodePoint,
}

/// The packets of a capture: those of the user's hosts in one direction, the
/// others in the other. Nothing reacts to what happens to them.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(in crate::scenario::file) struct PacketSource {
    /// Name in tables and files.
    pub(in crate::scenario::file) name: At<String>,
    /// The user's side.
    pub(in crate::scenario::file) inside: At<Names>,
    /// The network's side.
    pub(in crate::scenario::file) outside: At<Names>,
    /// When the first packet is sent. Default: 0 s.
    pub(in crate::scenario::file) start: Option<Quantity<Span>>,
    /// When it ends. Default: at the end of the capture.
    pub(in crate::scenario::file) stop: Option<Quantity<Span>>,
    /// A pcap or pcapng file.
    pub(in crate::scenario::file) capture: At<String>,
    /// IP addresses and prefixes of the user's side. Default: found from the
    /// capture.
    #[serde(default)]
    pub(in crate::scenario::file) local: Vec<At<String>>,
    /// Divides it into sources of their own, two for each application or host:
    /// one for each direction. Default: one source.
    pub(in crate::scenario::file) divide: Option<Divide>,
    /// Datagrams that take longer than this from end to end are late, and so
    /// are lost ones. Default: no deadline.
    pub(in crate::scenario::file) deadline: Option<Quantity<Span>>,
    /// Class of its packets, for disciplines with classes; 0 is ordinary.
    #[serde(default)]
    pub(in crate::scenario::file) class: u16,
}

/// How a capture is divided.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub(in crate::scenario::file) enum Divide {
    /// By the server's name or port, and calls apart.
    Application,
    /// By the addresses of the user's side.
    Host,
    /// Into calls; all other packets are left out.
    Calls,
}
