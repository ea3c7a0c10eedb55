//! What programs do at the streams of QUIC: write so many bytes and the end, and read what has
//! come.

use bytes::Bytes;
use quinn_proto::{Connection, StreamId};

use crate::connections::Side;

/// What is sent: it says nothing, so all of it is the same bytes, which are never copied but
/// into packets.
static ZEROS: [u8; 65_536] = [0; 65_536];

/// What goes over one stream.
pub(super) struct Exchange {
    /// By side: what it sends there.
    parts: [u64; 2],
    /// By side: what it has still to write; `None` before and after.
    left: [Option<u64>; 2],
}

impl Exchange {
    /// The opener sends the first part, and the acceptor the second.
    pub(super) fn new(parts: [u64; 2]) -> Exchange {
        Exchange { parts, left: [None; 2] }
    }

    /// A side begins to write its part, and the end behind it.
    pub(super) fn begin(&mut self, quinn: &mut Connection, side: Side, id: StreamId) {
        self.left[side as usize] = Some(self.parts[side as usize]);
        self.write(quinn, side, id);
    }

    /// A side writes what it has begun, as far as there is room.
    pub(super) fn write(&mut self, quinn: &mut Connection, side: Side, id: StreamId) {
        let Some(left) = &mut self.left[side as usize] else { return };
        let mut stream = quinn.send_stream(id);
        while *left > 0 {
            let most = (*left).min(ZEROS.len() as u64) as usize;
            match stream.write_chunks(&mut [Bytes::from_static(&ZEROS[..most])]) {
                Ok(written) if written.bytes > 0 => *left -= written.bytes as u64,
                // There is no room for now, or the connection is at its end.
                _ => return,
            }
        }
        self.left[side as usize] = None;
        // It fails only when the connection is at its end.
        let _ = stream.finish();
    }
}

/// Takes what has come over a stream: how many bytes, and whether its end has.
pub(super) fn read(quinn: &mut Connection, id: StreamId) -> (u64, bool) {
    let (mut count, mut ended) = (0, false);
    if let Ok(mut chunks) = quinn.recv_stream(id).read(true) {
        loop {
            match chunks.next(usize::MAX) {
                Ok(Some(chunk)) => count += chunk.bytes.len() as u64,
                Ok(None) => break ended = true,
                Err(_) => break,
            }
        }
        // What it tells the peer of its window goes out with the next packets.
        let _ = chunks.finalize();
    }
    (count, ended)
}
