//! Packets of calls that adapt: those of the call, and reports on the way back.

use tidegate_core::{Bytes, Time};

use super::Programs;
use super::world::{Content, Segment, World};
use crate::lot::Lot;
use crate::traffic::Datagram;

/// The flow of a call among those of its source, and of reports.
pub(super) const MEDIA: u32 = 0;
const REPORTS: u64 = 1;

impl World<'_> {
    /// Sends the packet of a call with this number, from 0 on.
    pub(crate) fn send_media(&mut self, traffic: usize, packet: &Datagram, number: u32) {
        let sent = self.kernel.now();
        let content = Content::Media { traffic: traffic as u16, number, sent };
        self.send_counted(traffic, packet, MEDIA, content);
    }

    /// Sends the report with this number; it is no datagram of the source's.
    pub(crate) fn send_report(&mut self, traffic: usize, report: &Datagram, number: u32) {
        let class = self.scenario.traffic[traffic].class;
        let lot = Lot::new((traffic as u64) << 32 | REPORTS, u64::from(number) + 1);
        let content = Content::Report { traffic: traffic as u16, number };
        let Datagram { from, to: destination, size, key, dscp, ecn, .. } = *report;
        self.send(from, Segment { key, destination, size, class, dscp, ecn, lot, content });
    }

    /// A packet of a call has arrived.
    pub(super) fn deliver_media(
        &mut self,
        traffic: usize,
        (number, sent): (u32, Time),
        size: Bytes,
        programs: &mut Programs<'_>,
    ) {
        self.end_datagram(traffic, MEDIA, sent, Some(size));
        programs.calls.on_media(self, traffic, number, sent, size);
    }
}
