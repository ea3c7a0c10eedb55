//! Sources of transfers over QUIC.

use tidegate_core::Rate;

use super::super::syntax::{Control, QuicSource, Tcp};
use super::super::values::At;
use super::{Reader, WrittenArrivals};
use crate::scenario::{
    MOST_OPEN_QUIC, Marking, Opener, QuicControl, QuicProfile, TrafficKind, TrafficSpec,
};
use tidegate_files::Mistake;

/// A full packet on the wire.
const PACKET: f64 = 1_500.0;
/// The data in it: without 28 bytes of IPv4 and UDP, 11 of a short header with a packet
/// number of two bytes, 16 of a tag, and 6 of a stream frame with an offset of four bytes.
const DATA: f64 = 1_439.0;

impl Reader<'_> {
    pub(in crate::scenario::file) fn quic(
        &self,
        source: &At<QuicSource>,
    ) -> Result<TrafficSpec, Mistake> {
        let opened_by = source
            .request
            .map_or(Opener::Sender, |request| Opener::Receiver { request: request.0 });
        let tcp = Tcp::default();
        let transfer = self.transfer(&source.from, &source.to, opened_by, &tcp, source.follow)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let written = WrittenArrivals {
            place: &source.place,
            load: source.load.as_ref(),
            per_second: source.per_second.as_ref(),
            count: source.count.as_ref(),
            spread: source.spread.as_ref(),
            log: source.log.as_ref(),
            local: &source.local,
            sizes: source.sizes.as_ref(),
            most_open: MOST_OPEN_QUIC,
        };
        let (arrivals, sizes) = self.arrivals(&written, opened_by, per_second_of)?;
        let congestion = match source.congestion {
            Some(Control::Reno) => QuicControl::Reno,
            Some(Control::Cubic) | None => QuicControl::Cubic,
            Some(Control::Bbr) => QuicControl::Bbr,
        };
        let streams = source.streams.map_or(1, |streams| streams.0 as u16);
        let profile = QuicProfile { congestion, streams };
        let kind = TrafficKind::Quic { transfer, profile, arrivals, sizes };
        let (name, class) = (source.name.value.clone(), source.class);
        let marking = Marking { sender: source.dscp.0, receiver: source.reply_dscp.0 };
        Ok(TrafficSpec { name, start, stop, class, marking, deadline: None, kind })
    }
}

/// The number of transfers a second, of so many bytes on average, that make up `load` on the
/// wire, each counted in full packets.
fn per_second_of(load: Rate, mean: f64) -> f64 {
    load.0 as f64 / (8.0 * mean * PACKET / DATA)
}
