//! What this crate reads agrees with what tshark says about frames.
//!
//! `expect.sh` wrote each pair of `<name>.pcapng` and `<name>.tsv` in this folder;
//! README.md says from which captures.

use std::collections::HashMap;
use std::fs;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::str::FromStr;

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapNGSlice};
use tidegate_core::{Bytes, Dscp, Ecn, FlowKey, TcpFacts};
use tidegate_wire::{FrameError, Headers, Link};

/// A frame as `pcapng` has it.
struct Frame {
    link: Option<Link>,
    captured: Vec<u8>,
    wire_length: u64,
}

fn frames(file: &[u8]) -> Vec<Frame> {
    let mut links = Vec::new();
    let mut frames = Vec::new();
    for block in PcapNGSlice::from_slice(file).expect("the file is pcapng") {
        match block.expect("the blocks are whole") {
            PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                links.push(Link::from_number(interface.linktype.0 as u32));
            }
            PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => frames.push(Frame {
                link: links[packet.if_id as usize],
                captured: packet.packet_data().to_vec(),
                wire_length: packet.origlen.into(),
            }),
            _ => {}
        }
    }
    frames
}

/// What tshark says of one frame: its fields by name.
struct Row<'a>(HashMap<&'a str, &'a str>);

impl Row<'_> {
    /// The field, of the `index`th header that has it; nothing where it is empty.
    fn nth<T: FromStr>(&self, field: &str, index: usize) -> Option<T> {
        let text = self.0[field].split(',').nth(index)?;
        text.parse().ok()
    }

    /// The field of the outermost header that has it.
    fn outer<T: FromStr>(&self, field: &str) -> Option<T> {
        self.nth(field, 0)
    }
}

/// The names of protocols that may stand in front of IP.
const LINK_LAYERS: [&str; 10] =
    ["eth", "ethertype", "vlan", "ieee8021ad", "pppoes", "ppp", "sll", "null", "loop", "raw"];

/// What should be read of a frame; it is malformed where tshark finds no whole
/// IP header after the link layer.
#[derive(Debug)]
enum Expected {
    OtherProtocol,
    Malformed,
    Packet(Headers),
}

fn expected(row: &Row) -> Expected {
    let mut protocols =
        row.0["frame.protocols"].split(':').skip_while(|name| LINK_LAYERS.contains(name));
    let packet = match protocols.next() {
        Some("ip") => packet(row, protocols, |v4, _| v4),
        Some("ipv6") => packet(row, protocols, |_, v6| v6),
        _ => return Expected::OtherProtocol,
    };
    packet.map_or(Expected::Malformed, Expected::Packet)
}

/// The packet of a row; `protocols` are those above IP, and `field` chooses
/// between what a field is called for IPv4 and for IPv6.
fn packet<'a>(
    row: &Row,
    protocols: impl Iterator<Item = &'a str>,
    field: fn(&'static str, &'static str) -> &'static str,
) -> Option<Headers> {
    let mut protocols = protocols.peekable();
    // Of a packet that is routed by its source tshark names the last
    // destination, and the header's own by another name.
    let destination: Option<IpAddr> = row.outer("ip.cur_rt");
    let destination = destination.or_else(|| row.outer(field("ip.dst", "ipv6.dst")))?;

    let mut protocol = row.outer(field("ip.proto", "ipv6.nxt"))?;
    let mut seen: HashMap<&str, usize> = HashMap::new();
    while let Some(extension) = protocols.peek().and_then(|name| next_header_of(name)) {
        let index = seen.entry(extension).or_default();
        // A header that is cut says nothing of what follows.
        let Some(next) = row.nth(extension, *index) else { break };
        protocol = next;
        *index += 1;
        protocols.next();
    }

    let more = field("ip.flags.mf", "ipv6.fraghdr.more");
    let offset = field("ip.frag_offset", "ipv6.fraghdr.offset");
    let fragment = [more, offset].iter().any(|name| row.outer::<u32>(name).unwrap_or(0) > 0);
    if fragment {
        protocol = row.outer(field("ip.proto", "ipv6.fraghdr.nxt"))?;
    }

    let transport = protocols.next().filter(|_| !fragment);
    let port = |name: &str| row.outer(name).unwrap_or(0);
    let (source_port, destination_port) = match transport {
        Some("tcp") => (port("tcp.srcport"), port("tcp.dstport")),
        Some("udp" | "udplite") => (port("udp.srcport"), port("udp.dstport")),
        Some("sctp") => (port("sctp.srcport"), port("sctp.dstport")),
        Some("dccp") => (port("dccp.srcport"), port("dccp.dstport")),
        _ => (0, 0),
    };
    let length: u64 = row.outer(field("ip.len", "ipv6.plen"))?;
    Some(Headers {
        flow: FlowKey::new(
            SocketAddr::new(row.outer(field("ip.src", "ipv6.src"))?, source_port),
            SocketAddr::new(destination, destination_port),
            protocol,
        ),
        ip_length: Bytes(if destination.is_ipv4() { length } else { 40 + length }),
        // tshark does not say.
        link_header: 0,
        fragment,
        dscp: Dscp::new(row.outer(field("ip.dsfield.dscp", "ipv6.tclass.dscp"))?)?,
        ecn: Ecn::of_octet(row.outer(field("ip.dsfield.ecn", "ipv6.tclass.ecn"))?),
        tcp: if transport == Some("tcp") { tcp(row) } else { None },
    })
}

/// The field of an extension header that tells what follows it.
fn next_header_of(protocol: &str) -> Option<&'static str> {
    match protocol {
        "ah" => Some("ah.next_header"),
        "ipv6.hopopts" => Some("ipv6.hopopts.nxt"),
        "ipv6.dstopts" => Some("ipv6.dstopts.nxt"),
        "ipv6.routing" => Some("ipv6.routing.nxt"),
        "ipv6.fraghdr" => Some("ipv6.fraghdr.nxt"),
        _ => None,
    }
}

fn tcp(row: &Row) -> Option<TcpFacts> {
    const FIN: u16 = 1;
    const SYN: u16 = 2;
    const ACK: u16 = 16;
    let flags = row.0["tcp.flags"].strip_prefix("0x")?;
    let flags = u16::from_str_radix(flags, 16).expect("flags are in hexadecimal");
    // End, nothing and timestamps.
    let options = row.0["tcp.option_kind"].split(',');
    let harmless =
        options.filter(|kind| !kind.is_empty()).all(|kind| ["0", "1", "8"].contains(&kind));
    Some(TcpFacts {
        sequence: row.outer("tcp.seq_raw")?,
        acknowledgement: row.outer("tcp.ack_raw").filter(|_| flags & ACK != 0),
        payload: row.outer("tcp.len")?,
        syn: flags & SYN != 0,
        fin: flags & FIN != 0,
        plain: flags == ACK && harmless,
    })
}

/// The frames that are read otherwise than the table says.
fn disagreements(name: &str, frames: &[Frame], table: &str) -> Vec<String> {
    let mut lines = table.lines();
    let names: Vec<_> = lines.next().expect("the table has a head").split('\t').collect();
    let rows = lines.map(|line| Row(names.iter().copied().zip(line.split('\t')).collect()));
    let rows: Vec<_> = rows.collect();
    assert_eq!(rows.len(), frames.len(), "{name}");
    let mut disagreements = Vec::new();
    for (index, (frame, row)) in frames.iter().zip(&rows).enumerate() {
        let what = format!("{name}, frame {}: {}", index + 1, row.0["frame.protocols"]);
        let Some(link) = frame.link else { continue };
        let read = Headers::read_captured(link, &frame.captured, frame.wire_length);
        let agree = match (read, expected(row)) {
            (Ok(read), Expected::Packet(expected)) => {
                read == Headers { link_header: read.link_header, ..expected }
            }
            (Err(error), Expected::OtherProtocol) => error.is_other_protocol(),
            (Err(error), Expected::Malformed) => !error.is_other_protocol(),
            _ => false,
        };
        if !agree {
            disagreements.push(format!("{what}: {read:?}, not {:?}", expected(row)));
        }
        if frame.captured.len() as u64 == frame.wire_length {
            let whole = Headers::read(link, &frame.captured);
            let ends = read.map(|read| read.link_header as u64 + read.ip_length.0);
            if ends.is_ok_and(|end| end > frame.wire_length) {
                let short = matches!(whole, Err(FrameError::Short { part: "IP packet", .. }));
                assert!(short, "{what}: {whole:?}");
            } else {
                assert_eq!(whole, read, "{what}");
            }
        }
    }
    disagreements
}

#[test]
fn every_frame_is_read_as_tshark_reads_it() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tshark");
    let mut pairs = 0;
    let mut found = Vec::new();
    for entry in fs::read_dir(&folder).expect("the folder is there") {
        let table = entry.expect("a listed file can be read").path();
        if table.extension().is_none_or(|extension| extension != "tsv") {
            continue;
        }
        let captures = fs::read(table.with_extension("pcapng")).expect("it is beside its table");
        let name = table.file_stem().expect("it has a name").display().to_string();
        let table = fs::read_to_string(&table).expect("it is a text");
        found.extend(disagreements(&name, &frames(&captures), &table));
        pairs += 1;
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
    assert!(pairs > 0, "{} is empty", folder.display());
}
