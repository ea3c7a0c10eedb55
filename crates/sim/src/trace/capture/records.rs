//! The two file formats: how records are framed, and their time stamps.
//!
//! Both formats state the length of a record before the record. It is read
//! first and checked here, so that a hostile length allocates nothing and a
//! file that breaks off is told apart from a corrupt one; `pcap-parser` then reads
//! the whole record. Blocks of pcapng that are of no use here (name tables,
//! statistics, keys, comments of vendors) are passed over without being kept,
//! however large they are.

use std::io::{self, BufReader, Read};

use pcap_parser::pcapng::{
    InterfaceDescriptionBlock, parse_enhancedpacketblock_be, parse_enhancedpacketblock_le,
    parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_sectionheaderblock, parse_simplepacketblock_be, parse_simplepacketblock_le,
};
use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{OptionCode, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_header};
use tidegate_wire::Link;

use super::{Collector, Cut, MOST_RECORDS, Record, Stamp};
use crate::trace::ReadError;
use crate::trace::error::{Mismatch, quote};

/// The largest packet of a pcap file, as in libpcap (`MAXIMUM_SNAPLEN`).
const LARGEST_PACKET: u32 = 262_144;
/// The largest pcapng block that is read: the largest packet with comments.
const LARGEST_BLOCK: u32 = 1 << 20;

const PCAP_HEADER: usize = 24;
const PCAP_RECORD_HEADER: usize = 16;
const PCAPNG_MAGIC: [u8; 4] = [0x0a, 0x0d, 0x0d, 0x0a];

/// Reads all records of `reader` into `collector`.
pub(super) fn read(
    file: &str,
    reader: impl Read,
    collector: &mut Collector,
) -> Result<(), ReadError> {
    let mut source = Source::new(file, reader);
    source.extend(4)?;
    let magic = source.record.as_slice();
    if magic == PCAPNG_MAGIC {
        return pcapng(&mut source, collector);
    }
    // The four magic numbers: two byte orders, micro- and nanoseconds.
    let (big_endian, tick) = match *magic {
        [0xd4, 0xc3, 0xb2, 0xa1] => (false, 1_000),
        [0xa1, 0xb2, 0xc3, 0xd4] => (true, 1_000),
        [0x4d, 0x3c, 0xb2, 0xa1] => (false, 1),
        [0xa1, 0xb2, 0x3c, 0x4d] => (true, 1),
        _ => {
            let found = match magic {
                [] => "an empty file".into(),
                start => quote(start),
            };
            let expected = "the magic number of pcap or pcapng";
            return Err(Mismatch::new(found, expected).at_header(file, 0));
        }
    };
    pcap(&mut source, collector, big_endian, tick)
}

/// A stream with the record that is being read.
struct Source<'a, R: Read> {
    file: &'a str,
    reader: BufReader<R>,
    record: Vec<u8>,
    /// Where the record starts in the file.
    start: u64,
    /// The record's packet, or the next one after a record that is none;
    /// counted from 1, as other tools do.
    packet: u64,
}

impl<'a, R: Read> Source<'a, R> {
    fn new(file: &'a str, reader: R) -> Source<'a, R> {
        Source { file, reader: BufReader::new(reader), record: Vec::new(), start: 0, packet: 1 }
    }

    /// Adds `count` bytes to the record; fewer when the file ends, even in the middle of
    /// its compressed data.
    fn extend(&mut self, count: usize) -> Result<(), ReadError> {
        let mut wanted = (&mut self.reader).take(count as u64);
        match wanted.read_to_end(&mut self.record) {
            Err(reason) if reason.kind() != io::ErrorKind::UnexpectedEof => {
                Err(self.unreadable(reason))
            }
            _ => Ok(()),
        }
    }

    /// Makes the record at least `length` bytes long; false if the file ends within it.
    fn complete(&mut self, length: usize) -> Result<bool, ReadError> {
        self.extend(length.saturating_sub(self.record.len()))?;
        Ok(self.record.len() >= length)
    }

    /// Passes over the rest of a record of `length` bytes without keeping it; false if
    /// the file ends within it.
    fn pass(&mut self, length: u64) -> Result<bool, ReadError> {
        let left = length.saturating_sub(self.record.len() as u64);
        let mut rest = (&mut self.reader).take(left);
        match io::copy(&mut rest, &mut io::sink()) {
            Ok(passed) => Ok(passed == left),
            Err(reason) if reason.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(reason) => Err(self.unreadable(reason)),
        }
    }

    /// The end of the file within the record.
    fn cut(&self) -> Option<Cut> {
        Some(Cut { packet: self.packet, offset: self.start })
    }

    /// A packet was read.
    fn count(&mut self) -> Result<(), ReadError> {
        if self.packet == MOST_RECORDS {
            let expected = format!("at most {MOST_RECORDS}");
            return Err(self.mismatch("one packet more", expected));
        }
        self.packet += 1;
        Ok(())
    }

    /// Goes to the next record, `length` bytes after the start of this one.
    fn next(&mut self, length: u64) {
        self.start = self.start.saturating_add(length);
        self.record.clear();
    }

    /// Whether the file ends where the record would begin; reads `count` bytes of it.
    fn at_end(&mut self, count: usize) -> Result<bool, ReadError> {
        self.extend(count)?;
        Ok(self.record.is_empty())
    }

    fn unreadable(&self, reason: io::Error) -> ReadError {
        ReadError::Unreadable { file: self.file.into(), reason }
    }

    fn mismatch(&self, found: impl Into<String>, expected: impl Into<String>) -> ReadError {
        Mismatch::new(found, expected).at_packet(self.file, self.packet, self.start)
    }
}

fn unknown_link(number: u32) -> Mismatch {
    Mismatch::new(format!("link type {number}"), Link::KNOWN)
}

/// Reads a pcap file whose magic number has been read; `tick` is the unit of
/// its time stamps' fractions in nanoseconds.
fn pcap<R: Read>(
    source: &mut Source<R>,
    collector: &mut Collector,
    big_endian: bool,
    tick: u32,
) -> Result<(), ReadError> {
    source.extend(PCAP_HEADER - source.record.len())?;
    let Ok((_, header)) = parse_pcap_header(&source.record) else {
        let found = format!("the end of the file after {} bytes", source.record.len());
        let expected = format!("{PCAP_HEADER} bytes of file header");
        return Err(Mismatch::new(found, expected).at_header(source.file, 0));
    };
    // The upper half of the field tells of frame checksums, not of the link.
    let number = header.network.0.cast_unsigned() & 0xffff;
    let Some(link) = Link::from_number(number) else {
        return Err(unknown_link(number).at_header(source.file, 20));
    };
    source.next(PCAP_HEADER as u64);

    while !source.at_end(PCAP_RECORD_HEADER)? {
        if !source.complete(PCAP_RECORD_HEADER)? {
            collector.capture.cut = source.cut();
            break;
        }
        let field = |at: usize| u32_at(&source.record, at, big_endian);
        let (fraction, captured) = (field(4), field(8));
        if captured > LARGEST_PACKET {
            let expected = format!("at most {LARGEST_PACKET}");
            return Err(source.mismatch(format!("a packet of {captured} bytes"), expected));
        }
        let ticks = 1_000_000_000 / tick;
        if fraction >= ticks {
            let expected = format!("a fraction of a second below {ticks}");
            return Err(source.mismatch(format!("a time stamp with {fraction}"), expected));
        }
        let length = PCAP_RECORD_HEADER + captured as usize;
        if !source.complete(length)? {
            collector.capture.cut = source.cut();
            break;
        }
        let parse = if big_endian { parse_pcap_frame_be } else { parse_pcap_frame };
        let (_, frame) = parse(&source.record).expect("the record is as long as it says");
        let stamp = Stamp::from(frame.ts_sec) * 1_000_000_000
            + Stamp::from(frame.ts_usec) * Stamp::from(tick);
        collector.take(&Record {
            stamp: Some(stamp),
            link: Some(link),
            frame: frame.data,
            wire_length: frame.origlen.into(),
        });
        source.count()?;
        source.next(length as u64);
    }
    Ok(())
}

/// What a pcapng section says of one of its interfaces.
#[derive(Clone, Copy)]
struct Interface {
    link: Option<Link>,
    /// `if_tsresol`: a power of ten, or with the highest bit set of two.
    resolution: u8,
    /// `if_tsoffset`, in seconds.
    offset: i64,
}

impl Interface {
    /// Microseconds, when the block does not say.
    const DEFAULT_RESOLUTION: u8 = 6;

    // The options are read here and not taken from the parsed block: there the
    // offset is little-endian in every file, and binary resolutions are refused.
    fn new(block: &InterfaceDescriptionBlock, big_endian: bool) -> Interface {
        let option = |code| block.options.iter().find(|option| option.code == code);
        let resolution = option(OptionCode::IfTsresol)
            .and_then(|option| option.value().first().copied())
            .unwrap_or(Self::DEFAULT_RESOLUTION);
        let offset = option(OptionCode::IfTsoffset)
            .and_then(|option| option.value().first_chunk::<8>().copied())
            .map_or(0, if big_endian { i64::from_be_bytes } else { i64::from_le_bytes });
        let link = u32::try_from(block.linktype.0).ok().and_then(Link::from_number);
        Interface { link, resolution, offset }
    }

    fn stamp(self, high: u32, low: u32) -> Stamp {
        let ticks = u128::from(high) << 32 | u128::from(low);
        let exponent = u32::from(self.resolution & 0x7f);
        let nanos = if self.resolution & 0x80 != 0 {
            // Below 2^94, and the shift is at most 127.
            (ticks * 1_000_000_000) >> exponent
        } else if exponent <= 9 {
            ticks * 10_u128.pow(9 - exponent)
        } else {
            // A tick that is too fine for 128 bits counts as no time at all.
            10_u128.checked_pow(exponent - 9).map_or(0, |divisor| ticks / divisor)
        };
        let nanos = Stamp::try_from(nanos).expect("64 bits of ticks and 30 bits of factor");
        nanos + Stamp::from(self.offset) * 1_000_000_000
    }
}

/// The blocks that are read.
#[derive(Clone, Copy)]
enum BlockKind {
    Section,
    Interface,
    Simple,
    Enhanced,
}

/// Reads a pcapng file whose first four bytes have been read.
fn pcapng<R: Read>(source: &mut Source<R>, collector: &mut Collector) -> Result<(), ReadError> {
    /// Type and length; a section header has its byte order in the next four.
    const BLOCK_HEADER: usize = 12;
    let mut big_endian = false;
    let mut interfaces: Vec<Interface> = Vec::new();

    while !source.at_end(BLOCK_HEADER - source.record.len())? {
        if !source.complete(BLOCK_HEADER)? {
            if source.start == 0 {
                let found = format!("the end of the file after {} bytes", source.record.len());
                let expected = format!("{BLOCK_HEADER} bytes of section header");
                return Err(Mismatch::new(found, expected).at_header(source.file, 0));
            }
            collector.capture.cut = source.cut();
            break;
        }
        let kind = if source.record.starts_with(&PCAPNG_MAGIC) {
            big_endian = match source.record[8..BLOCK_HEADER] {
                [0x1a, 0x2b, 0x3c, 0x4d] => true,
                [0x4d, 0x3c, 0x2b, 0x1a] => false,
                ref other => {
                    let expected = "the byte-order mark of a section";
                    return Err(source.mismatch(quote(other), expected));
                }
            };
            interfaces.clear();
            Some(BlockKind::Section)
        } else {
            match u32_at(&source.record, 0, big_endian) {
                1 => Some(BlockKind::Interface),
                3 => Some(BlockKind::Simple),
                6 => Some(BlockKind::Enhanced),
                _ => None,
            }
        };
        let length = u32_at(&source.record, 4, big_endian);
        if length < 12 || !length.is_multiple_of(4) {
            let expected = "a multiple of 4, at least 12";
            return Err(source.mismatch(format!("a block of {length} bytes"), expected));
        }
        let Some(kind) = kind else {
            if !source.pass(length.into())? {
                collector.capture.cut = source.cut();
                break;
            }
            source.next(length.into());
            continue;
        };
        if length > LARGEST_BLOCK {
            let expected = format!("at most {LARGEST_BLOCK}");
            return Err(source.mismatch(format!("a block of {length} bytes"), expected));
        }
        if !source.complete(length as usize)? {
            collector.capture.cut = source.cut();
            break;
        }
        if block(kind, &source.record, big_endian, &mut interfaces, collector)
            .map_err(|wrong| wrong.at_packet(source.file, source.packet, source.start))?
        {
            source.count()?;
        }
        source.next(length.into());
    }
    Ok(())
}

/// Reads one whole block; says whether it was a packet.
fn block(
    kind: BlockKind,
    bytes: &[u8],
    big_endian: bool,
    interfaces: &mut Vec<Interface>,
    collector: &mut Collector,
) -> Result<bool, Mismatch> {
    let contradiction =
        |name: &str| Mismatch::new(format!("{name} whose lengths contradict"), "a valid block");
    let interface = |interfaces: &[Interface], number: u32| {
        interfaces.get(number as usize).copied().ok_or_else(|| {
            let found = format!("a packet of interface {number}");
            Mismatch::new(found, format!("one of the {} described before", interfaces.len()))
        })
    };
    match kind {
        BlockKind::Section => {
            parse_sectionheaderblock(bytes).map_err(|_| contradiction("a section header"))?;
            Ok(false)
        }
        BlockKind::Interface => {
            let parse = if big_endian {
                parse_interfacedescriptionblock_be
            } else {
                parse_interfacedescriptionblock_le
            };
            let (_, block) = parse(bytes).map_err(|_| contradiction("an interface description"))?;
            interfaces.push(Interface::new(&block, big_endian));
            Ok(false)
        }
        BlockKind::Enhanced => {
            let parse = if big_endian {
                parse_enhancedpacketblock_be
            } else {
                parse_enhancedpacketblock_le
            };
            let (_, block) = parse(bytes).map_err(|_| contradiction("a packet block"))?;
            let interface = interface(interfaces, block.if_id)?;
            collector.take(&Record {
                stamp: Some(interface.stamp(block.ts_high, block.ts_low)),
                link: interface.link,
                frame: block.packet_data(),
                wire_length: block.origlen.into(),
            });
            Ok(true)
        }
        BlockKind::Simple => {
            let parse =
                if big_endian { parse_simplepacketblock_be } else { parse_simplepacketblock_le };
            let (_, block) = parse(bytes).map_err(|_| contradiction("a simple packet block"))?;
            // Simple blocks belong to the section's first interface.
            let interface = interface(interfaces, 0)?;
            collector.take(&Record {
                stamp: None,
                link: interface.link,
                frame: block.packet_data(),
                wire_length: block.origlen.into(),
            });
            Ok(true)
        }
    }
}

fn u32_at(bytes: &[u8], at: usize, big_endian: bool) -> u32 {
    let word = [bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]];
    if big_endian { u32::from_be_bytes(word) } else { u32::from_le_bytes(word) }
}
