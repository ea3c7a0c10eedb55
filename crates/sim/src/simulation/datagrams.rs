//! Datagrams of a run: their sending, and whether they arrive in time.

use tidegate_core::{Bytes, Time};

use super::calls::MEDIA;
use super::world::{Content, Segment, World};
use crate::lot::Lot;
use crate::traffic::Datagram;

impl World<'_> {
    pub(crate) fn send_datagram(&mut self, traffic: usize, datagram: &Datagram) {
        let content = Content::Datagram {
            traffic: traffic as u16,
            flow: datagram.flow,
            sent: self.kernel.now(),
            tcp: datagram.tcp,
        };
        self.send_counted(traffic, datagram, datagram.flow, content);
    }

    /// Sends a datagram, and counts it in its flow.
    pub(super) fn send_counted(
        &mut self,
        traffic: usize,
        datagram: &Datagram,
        flow: u32,
        content: Content,
    ) {
        let now = self.kernel.now();
        let number = self.datagrams[traffic].sent(flow, now);
        let lot = Lot::new((traffic as u64) << 32 | u64::from(flow), number);
        let class = self.scenario.traffic[traffic].class;
        if now >= Time(self.scenario.warm_up.0) {
            self.summary.note(now, |it| it.traffic[traffic].datagrams += 1);
        }
        if self.due(traffic, now).is_some() {
            self.summary.traffic[traffic].due += 1;
        }
        let Datagram { from, to: destination, size, key, dscp, ecn, .. } = *datagram;
        self.send(from, Segment { key, destination, size, class, dscp, ecn, lot, content });
    }

    /// The time by which a datagram that was sent at `sent` has to arrive;
    /// `None` if that does not count: without a deadline, in the warm-up, or if
    /// the run ends before and leaves it open.
    fn due(&self, traffic: usize, sent: Time) -> Option<Time> {
        let due = sent + self.scenario.traffic[traffic].deadline?;
        let counts = sent >= Time(self.scenario.warm_up.0) && due <= Time(self.scenario.duration.0);
        counts.then_some(due)
    }

    fn count_late(&mut self, traffic: usize, flow: u32) {
        self.summary.traffic[traffic].late += 1;
        self.datagrams[traffic].late(flow);
    }

    /// A datagram that was sent at `sent` has arrived with its size, or is lost.
    pub(super) fn end_datagram(
        &mut self,
        traffic: usize,
        flow: u32,
        sent: Time,
        arrived: Option<Bytes>,
    ) {
        let now = self.kernel.now();
        if sent >= Time(self.scenario.warm_up.0) {
            self.summary.note(sent, |it| match arrived {
                Some(_) => it.traffic[traffic].delay.record(now.since(sent)),
                None => it.traffic[traffic].datagrams_lost += 1,
            });
        }
        let is_late = |due: Time| arrived.is_none() || now > due;
        if self.due(traffic, sent).is_some_and(is_late) {
            self.count_late(traffic, flow);
        }
        let ended = match arrived {
            Some(size) => self.datagrams[traffic].arrived(flow, sent, now, size),
            None => self.datagrams[traffic].lost(flow),
        };
        if ended {
            let row = self.datagrams[traffic].record(traffic, flow);
            self.report(&row, now);
        }
    }

    /// Datagrams that are still on the way at `end` are late if they were due.
    /// The fate of the others is unknown if the run was cut short.
    pub(super) fn judge_datagrams_on_the_way(&mut self, end: Time) {
        let on_the_way: Vec<_> = self.segments.values().map(|segment| segment.content).collect();
        for content in on_the_way {
            let (traffic, flow, sent) = match content {
                Content::Datagram { traffic, flow, sent, .. } => (traffic, flow, sent),
                Content::Media { traffic, sent, .. } => (traffic, MEDIA, sent),
                Content::Tcp { .. }
                | Content::Quic { .. }
                | Content::Report { .. }
                | Content::Lookup(_) => continue,
            };
            let traffic = usize::from(traffic);
            match self.due(traffic, sent) {
                Some(due) if due <= end => self.count_late(traffic, flow),
                Some(_) => self.summary.traffic[traffic].due -= 1,
                None => {}
            }
        }
    }
}
