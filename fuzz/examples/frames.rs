//! Writes the frames of captures as inputs of two fuzz targets, to start a search from:
//!
//! ```sh
//! cargo run --release -p tidegate-fuzz --example frames -- out/frames *.pcap
//! tools/fuzz.sh wire 3600 out/frames/wire
//! tools/fuzz.sh link 3600 out/frames/link
//! ```
//!
//! Of `wire`, an input is a frame; of `link`, frames that arrive one after the other.

use std::error::Error;
use std::fs::{self, File};
use std::path::{Path, PathBuf};

use pcap_parser::traits::PcapNGPacketBlock;
use pcap_parser::{Block, PcapBlockOwned, PcapError, create_reader};
use tidegate_fuzz::link::arrivals;
use tidegate_fuzz::wire::LINKS;
use tidegate_wire::Link;

/// The largest block of a capture.
const MOST_BLOCK: usize = 1 << 20;
/// What a search can still change at many places within its time. Of longer frames, `wire`
/// gets the beginning and how much is missing, and `link` nothing.
const MOST_FRAME: usize = 400;
/// Frames of an input of `link`.
const TOGETHER: usize = 16;

/// A captured frame.
struct Frame {
    /// What stands in front of IP.
    link: Link,
    bytes: Vec<u8>,
    /// Bytes that it had more.
    missing: u16,
}

fn frames(path: &Path) -> Result<Vec<Frame>, Box<dyn Error>> {
    let mut reader = create_reader(MOST_BLOCK, File::open(path)?)?;
    let (mut links, mut frames) = (Vec::new(), Vec::new());
    loop {
        match reader.next() {
            Ok((read, block)) => {
                let (interface, frame) = match &block {
                    PcapBlockOwned::LegacyHeader(header) => {
                        links.push(Link::from_number(header.network.0 as u32));
                        (0, &[][..])
                    }
                    PcapBlockOwned::Legacy(packet) => (0, packet.data),
                    PcapBlockOwned::NG(Block::InterfaceDescription(interface)) => {
                        links.push(Link::from_number(interface.linktype.0 as u32));
                        (0, &[][..])
                    }
                    PcapBlockOwned::NG(Block::EnhancedPacket(packet)) => {
                        (packet.if_id as usize, packet.packet_data())
                    }
                    PcapBlockOwned::NG(_) => (0, &[][..]),
                };
                if let Some(Some(link)) = links.get(interface)
                    && !frame.is_empty()
                {
                    let bytes = frame[..frame.len().min(MOST_FRAME)].to_vec();
                    let missing = u16::try_from(frame.len() - bytes.len()).unwrap_or(u16::MAX);
                    frames.push(Frame { link: *link, bytes, missing });
                }
                reader.consume(read);
            }
            Err(PcapError::Eof) => return Ok(frames),
            Err(PcapError::Incomplete(_)) => {
                reader.refill().map_err(|error| format!("{}: {error}", path.display()))?;
            }
            Err(error) => return Err(format!("{}: {error:?}", path.display()).into()),
        }
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let out = arguments.next().ok_or("expected a folder, and captures")?;
    let folders = ["wire", "link"].map(|target| out.join(target));
    for folder in &folders {
        fs::create_dir_all(folder)?;
    }
    let [wire, link] = folders;
    let mut written = [0, 0];
    for path in arguments {
        let frames = frames(&path)?;
        for Frame { link, bytes, missing } in &frames {
            let number = LINKS.iter().position(|it| it == link).expect("every layer has one");
            let [high, low] = missing.to_be_bytes();
            let input = [&[number as u8, high, low], &bytes[..]].concat();
            fs::write(wire.join(written[0].to_string()), input)?;
            written[0] += 1;
        }
        let whole = frames.iter().filter(|it| it.link == Link::Ethernet && it.missing == 0);
        let ethernet: Vec<_> = whole.map(|frame| &frame.bytes[..]).collect();
        for (number, frames) in ethernet.chunks(TOGETHER).enumerate() {
            fs::write(link.join(written[1].to_string()), arrivals(number as u8, frames))?;
            written[1] += 1;
        }
    }
    println!("{} inputs of wire, {} of link, in {}", written[0], written[1], out.display());
    Ok(())
}
