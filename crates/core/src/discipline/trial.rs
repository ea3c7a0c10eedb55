//! Drives one discipline by hand in unit tests.

use super::{Discipline, Loss, LossReason, Losses};
use crate::packet::{Ecn, FlowKey, Packet, TcpFacts};
use crate::units::{Bytes, Time};

/// A discipline and the time. Packets are identified by the order of their arrival,
/// 0, 1, 2 and so on, and flows by a letter.
pub(crate) struct Trial<D> {
    pub(crate) discipline: D,
    pub(crate) now: Time,
    /// The class of packets to come.
    pub(crate) class: u16,
    arrivals: u64,
    losses: Losses,
}

impl<D: Discipline> Trial<D> {
    pub(crate) fn new(discipline: D) -> Trial<D> {
        Trial { discipline, now: Time::ZERO, class: 0, arrivals: 0, losses: Losses::new() }
    }

    pub(crate) fn arrive(&mut self, flow: char, size: u64) {
        self.arrive_as(flow, size, Ecn::NotEct);
    }

    pub(crate) fn arrive_as(&mut self, flow: char, size: u64, ecn: Ecn) {
        self.enqueue(flow, size, |plain| Packet { ecn, ..plain });
    }

    /// An acknowledgement of 40 bytes without payload.
    pub(crate) fn acknowledge(&mut self, flow: char, number: u32) {
        let tcp = TcpFacts {
            sequence: 1,
            acknowledgement: Some(number),
            payload: 0,
            syn: false,
            fin: false,
            plain: true,
        };
        self.enqueue(flow, 40, |plain| Packet { tcp: Some(tcp), ..plain });
    }

    fn enqueue(&mut self, flow: char, size: u64, complete: impl FnOnce(Packet) -> Packet) {
        let port = u16::try_from(u32::from(flow)).expect("flows are named by ASCII letters");
        let key = FlowKey::v4([192, 0, 2, 1], port, [198, 51, 100, 1], 443, FlowKey::TCP);
        let plain = Packet::new(self.arrivals, key, Bytes(size));
        let packet = complete(Packet { arrived: self.now, class: self.class, ..plain });
        self.arrivals += 1;
        self.discipline.enqueue(self.now, packet, &mut self.losses);
    }

    pub(crate) fn arrive_all(&mut self, packets: impl IntoIterator<Item = (char, u64)>) {
        for (flow, size) in packets {
            self.arrive(flow, size);
        }
    }

    pub(crate) fn send(&mut self) -> Option<u64> {
        self.discipline.dequeue(self.now, &mut self.losses).map(|packet| packet.handle)
    }

    pub(crate) fn drain(&mut self) -> Vec<u64> {
        std::iter::from_fn(|| self.send()).collect()
    }

    pub(crate) fn lost(&mut self) -> Vec<(u64, LossReason)> {
        self.losses.drain().map(|loss| (loss.packet.handle, loss.reason)).collect()
    }

    /// The losses since [`Trial::lost`] was last called.
    pub(crate) fn losses(&self) -> &[Loss] {
        self.losses.as_slice()
    }

    /// The packets marked since then.
    pub(crate) fn marked(&self) -> u32 {
        self.losses.marked()
    }
}
