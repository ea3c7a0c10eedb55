//! Captures: written here by hand in every form that the readers accept, broken in
//! every conceivable way, and two real ones.

mod broken;
mod formats;
mod headers;
mod hosts;
mod real;
mod writer;

use tidegate_sim::trace::{Capture, CapturedPacket};

/// Reads a capture that is expected to be whole.
fn read(contents: &[u8]) -> Capture {
    Capture::parse("test", contents).unwrap_or_else(|error| panic!("{error}"))
}

/// Reads a frame that gives one packet.
fn read_one(link: u16, frame: Vec<u8>) -> CapturedPacket {
    let frames = [writer::Frame::new(0, frame)];
    let capture = read(&writer::pcap(writer::Order { big: false }, false, link, &frames));
    assert_eq!(capture.skipped.total(), 0, "{:?}", capture.skipped);
    capture.packets[0]
}

/// What a broken capture's error says.
fn error(contents: &[u8]) -> String {
    let error = Capture::parse("test", contents).expect_err("the capture is broken").to_string();
    assert!(!error.contains('\n'), "{error}");
    error
}
