//! Files that are cut, corrupt or something else: each error says where and what.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use tidegate_sim::trace::{Cut, Recording};

use super::writer::*;
use super::{error, read};

const ORDER: Order = Order { big: false };

fn two_packets() -> Vec<u8> {
    let frames = [1, 2].map(|second| Frame::new(second * 1_000_000_000, any_packet()));
    pcap(ORDER, false, RAW_IP, &frames)
}

/// A pcapng file of two packets, and where each block starts.
fn two_blocks() -> (Vec<u8>, [usize; 4]) {
    let mut file = Pcapng::new(ORDER);
    let interface = file.bytes.len();
    file.interface(RAW_IP, &[]);
    let first = file.bytes.len();
    file.enhanced(0, 1, &Frame::new(0, any_packet()));
    let second = file.bytes.len();
    file.enhanced(0, 2, &Frame::new(0, any_packet()));
    (file.bytes, [0, interface, first, second])
}

fn with(mut file: Vec<u8>, at: usize, bytes: &[u8]) -> Vec<u8> {
    file[at..at + bytes.len()].copy_from_slice(bytes);
    file
}

#[test]
fn a_file_that_is_no_capture_says_what_it_is() {
    let magic = "expected the magic number of pcap or pcapng";
    let header = "test: header at byte 0: found ";
    assert_eq!(error(b""), format!("{header}an empty file, {magic}"));
    assert_eq!(error(b"GET / HTTP/1.1\r\n"), format!("{header}'GET ', {magic}"));
    assert_eq!(
        error(&[0x1f, 0x8b, 0x08, 0x00]),
        format!("{header}'\\u{{1f}}\u{fffd}\\u{{8}}\\0', {magic}")
    );
    let known = "expected Ethernet (1), raw IP (101), Linux cooked (113, 276) or loopback (0, 108)";
    assert_eq!(
        error(&pcap(ORDER, false, 105, &[])),
        format!("test: header at byte 20: found link type 105, {known}")
    );
}

/// The packets in front of the cut, and where that is.
fn cut(bytes: &[u8]) -> (usize, Option<Cut>) {
    let capture = read(bytes);
    (capture.packets.len(), capture.cut)
}

#[test]
fn a_pcap_that_breaks_off_gives_what_is_there_and_says_where_it_ends() {
    let file = two_packets();
    assert_eq!(
        error(&file[..23]),
        "test: header at byte 0: found the end of the file after 23 bytes, expected 24 bytes of \
         file header"
    );
    assert_eq!(cut(&file[..file.len() - 1]), (1, Some(Cut { packet: 2, offset: 168 })));
    assert_eq!(cut(&file[..24 + 15]), (0, Some(Cut { packet: 1, offset: 24 })));
    let words = "the file breaks off within packet 2, which starts at byte 168";
    assert_eq!(read(&file[..200]).cut.expect("it is cut").to_string(), words);
    // Between two packets a capture may end.
    assert_eq!(cut(&file[..168]), (1, None));
    assert_eq!(cut(&file[..24]), (0, None));
}

#[test]
fn a_compressed_capture_that_breaks_off_gives_what_is_there() {
    // `gzip` of 200 packets, without its last bytes.
    let frames: Vec<_> = (0..200).map(|n| Frame::new(n * 1_000_000_000, any_packet())).collect();
    let file = pcap(ORDER, false, RAW_IP, &frames);
    let mut packed = GzEncoder::new(Vec::new(), Compression::none());
    packed.write_all(&file).expect("memory takes everything");
    let packed = packed.finish().expect("memory takes everything");
    let whole = Recording::stream("test", &packed[..]).expect("a capture");
    assert_eq!(whole, Recording::Capture(read(&file)));
    let Ok(Recording::Capture(half)) = Recording::stream("test", &packed[..packed.len() / 2])
    else {
        panic!("a capture is expected");
    };
    assert!((90..110).contains(&half.packets.len()), "{}", half.packets.len());
    assert!(half.cut.is_some());
}

#[test]
fn hostile_lengths_are_refused_before_anything_is_allocated() {
    let file = two_packets();
    assert_eq!(
        error(&with(file.clone(), 168 + 8, &u32::MAX.to_le_bytes())),
        "test: packet 2 at byte 168: found a packet of 4294967295 bytes, expected at most 262144"
    );
    let (file, [_, _, _, second]) = two_blocks();
    assert_eq!(
        error(&with(file.clone(), second + 4, &0xffff_fffc_u32.to_le_bytes())),
        format!(
            "test: packet 2 at byte {second}: found a block of 4294967292 bytes, expected at most \
             1048576"
        )
    );
    // A block that is passed over may be of any size.
    let unknown = with(file, second, &0xbad_u32.to_le_bytes());
    let unknown = with(unknown, second + 4, &0xffff_fffc_u32.to_le_bytes());
    assert_eq!(cut(&unknown), (1, Some(Cut { packet: 2, offset: second as u64 })));
}

#[test]
fn a_corrupt_time_stamp_is_found() {
    assert_eq!(
        error(&with(two_packets(), 24 + 4, &1_000_000_u32.to_le_bytes())),
        "test: packet 1 at byte 24: found a time stamp with 1000000, expected a fraction of a \
         second below 1000000"
    );
}

#[test]
fn a_corrupt_pcapng_names_the_packet_and_the_byte() {
    let (file, [_, interface, first, second]) = two_blocks();
    let at = |offset: usize, bytes: &[u8]| error(&with(file.clone(), offset, bytes));
    for end in [file.len() - 3, second + 5] {
        assert_eq!(cut(&file[..end]), (1, Some(Cut { packet: 2, offset: second as u64 })));
    }
    for length in [0_u32, 8, 161] {
        assert_eq!(
            at(second + 4, &length.to_le_bytes()),
            format!(
                "test: packet 2 at byte {second}: found a block of {length} bytes, expected a \
                 multiple of 4, at least 12"
            )
        );
    }
    assert_eq!(
        at(first + 8, &3_u32.to_le_bytes()),
        format!(
            "test: packet 1 at byte {first}: found a packet of interface 3, expected one of the 1 \
             described before"
        )
    );
    for caplen in [1_000_u32, u32::MAX - 3, u32::MAX] {
        assert_eq!(
            at(first + 20, &caplen.to_le_bytes()),
            format!(
                "test: packet 1 at byte {first}: found a packet block whose lengths contradict, \
                 expected a valid block"
            )
        );
    }
    assert_eq!(
        at(interface + 4, &12_u32.to_le_bytes()),
        format!(
            "test: packet 1 at byte {interface}: found an interface description whose lengths \
             contradict, expected a valid block"
        )
    );
    assert_eq!(
        at(8, b"abcd"),
        "test: packet 1 at byte 0: found 'abcd', expected the byte-order mark of a section"
    );
    assert_eq!(
        error(&file[..8]),
        "test: header at byte 0: found the end of the file after 8 bytes, expected 12 bytes of \
         section header"
    );
}

#[test]
fn every_cut_of_a_capture_gives_its_packets_or_an_error() {
    let (pcapng, _) = two_blocks();
    for file in [two_packets(), pcapng] {
        for length in 0..file.len() {
            if let Ok(capture) = tidegate_sim::trace::Capture::parse("test", &file[..length]) {
                assert!(capture.packets.len() < 2, "{length}");
            }
        }
    }
}

#[test]
fn a_file_that_is_not_there_says_so() {
    let error = tidegate_sim::trace::Capture::read("no/such/file.pcap".as_ref());
    let error = error.expect_err("there is no such file").to_string();
    assert!(error.starts_with("no/such/file.pcap: cannot be read: "), "{error}");
}
