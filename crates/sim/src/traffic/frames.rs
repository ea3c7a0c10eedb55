//! The frames of a recorded stream, each in one packet or in several.
//!
//! A frame that is larger than a packet is cut into full packets and a rest. They
//! leave back to back, as fast as the first link takes them, or as a sender with
//! pacing releases them: each as long after the previous one as that one takes at
//! the given rate. A frame that comes while the previous one is still being paced
//! out waits for it, as it would in the sender. A datagram counts as sent when it
//! leaves, so the cost of pacing is not part of its delay.

use std::sync::Arc;

use tidegate_core::{Bytes, Span, Time};

use super::{Action, Datagram, DatagramFlow, Source};
use crate::scenario::{FrameSending, TrafficSpec};
use crate::trace::frames::{Frame, FrameTrace};

/// Around each piece of a frame that is cut: IPv4, UDP (RFC 768) and RTP
/// (RFC 3550 section 5.1).
pub(crate) const HEADERS: Bytes = Bytes(20 + 8 + 12);

pub(super) struct Frames {
    template: Datagram,
    trace: Arc<FrameTrace>,
    sending: FrameSending,
    start: Time,
    stop: Time,
    /// How often the recording has begun again.
    rounds: u64,
    /// The index of the frame that is being sent.
    next: usize,
    /// How much of it has been sent.
    sent: Bytes,
    /// When the previous packet has left, for a sender that paces.
    free: Time,
}

impl Frames {
    pub(super) fn new(
        spec: &TrafficSpec,
        template: Datagram,
        trace: Arc<FrameTrace>,
        sending: FrameSending,
    ) -> Frames {
        let (start, stop) = (spec.start, spec.stop);
        let (rounds, next, sent, free) = (0, 0, Bytes::ZERO, Time::ZERO);
        Frames { template, trace, sending, start, stop, rounds, next, sent, free }
    }

    /// When the next packet leaves. A frame that begins before the stop is sent in
    /// full.
    fn due(&self) -> Option<Time> {
        let frame = self.frame()?;
        let at = self.start + self.trace.period() * self.rounds + Span(frame.at.0);
        (at < self.stop).then(|| at.max(self.free))
    }

    fn frame(&self) -> Option<&Frame> {
        self.trace.frames().get(self.next)
    }

    /// Takes the next packet from its frame; returns its size on the wire.
    fn cut(&mut self) -> Bytes {
        let frame = self.frame().expect("a packet is due").size;
        let (size, payload) = match self.sending.packet {
            None => (frame, frame),
            Some(packet) => {
                let payload = (frame - self.sent).min(packet - HEADERS);
                (payload + HEADERS, payload)
            }
        };
        self.sent += payload;
        if self.sent == frame {
            self.sent = Bytes::ZERO;
            self.next += 1;
            if self.sending.repeat && self.frame().is_none() {
                self.next = 0;
                self.rounds += 1;
            }
        }
        size
    }
}

impl Source for Frames {
    fn first(&mut self) -> Option<Time> {
        self.due()
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        while self.due().is_some_and(|at| at <= now) {
            let size = self.cut();
            self.free = now + self.sending.rate.map_or(Span::ZERO, |rate| rate.transmission(size));
            actions.push(Action::Send(Datagram { size, ..self.template }));
        }
        self.due()
    }

    /// One flow, which counts from the end of the warm-up, as a call does, and
    /// therefore has no planned end.
    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        vec![DatagramFlow::default()]
    }
}

/// The number of packets that the frames of `trace` take.
pub(crate) fn packets(trace: &FrameTrace, packet: Option<Bytes>) -> u64 {
    let of = |frame: &Frame| packet.map_or(1, |packet| frame.size.0.div_ceil((packet - HEADERS).0));
    trace.frames().iter().map(of).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Marking, NodeId, TrafficKind};
    use tidegate_core::Rate;

    /// The times and sizes of the first so many packets.
    fn sent(frames: &str, sending: FrameSending, stop: Time, most: usize) -> Vec<(u64, u64)> {
        let text = format!("start_s,size_bytes\n{frames}");
        let sizes = Bytes(1)..=Bytes(1_000_000);
        let trace = FrameTrace::parse("frames", text.as_bytes(), sizes).expect("frames");
        let trace = Arc::new(trace);
        let (from, to) = (NodeId(0), NodeId(1));
        let spec = TrafficSpec {
            name: "video".into(),
            start: Time(1_000),
            stop,
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind: TrafficKind::Frames { from, to, trace: trace.clone(), sending },
        };
        let mut source = crate::traffic::source(&spec, 1, 0);
        let (mut packets, mut actions) = (Vec::new(), Vec::new());
        let mut at = source.first();
        while let Some(now) = at.filter(|_| packets.len() < most) {
            at = source.wake(now, &mut actions);
            packets.extend(actions.drain(..).map(|action| match action {
                Action::Send(datagram) => (now.0, datagram.size.0),
                Action::Open { .. } => panic!("a stream opens nothing"),
            }));
        }
        packets
    }

    const WHOLE: FrameSending = FrameSending { packet: None, rate: None, repeat: false };
    const CUT: FrameSending = FrameSending { packet: Some(Bytes(100)), ..WHOLE };
    const END: Time = Time::FAR_FUTURE;

    #[test]
    fn frames_are_packets_unless_they_are_to_be_cut() {
        let frames = "5,60\n5.000000002,61\n5.000000004,180\n";
        assert_eq!(sent(frames, WHOLE, END, 9), [(1_000, 60), (1_002, 61), (1_004, 180)]);
        let cut = [(1_000, 100), (1_002, 100), (1_002, 41)];
        let last = [(1_004, 100), (1_004, 100), (1_004, 100)];
        assert_eq!(sent(frames, CUT, END, 9), [cut, last].concat());
    }

    #[test]
    fn pacing_holds_back_the_rest_of_a_frame_and_the_next_one() {
        // 100 bytes at 8 Gbit/s take 100 ns, 50 bytes 50.
        let paced = FrameSending { rate: Some(Rate(8_000_000_000)), ..CUT };
        let expected = [(1_000, 100), (1_100, 50), (1_150, 100), (9_000, 41)];
        assert_eq!(sent("0,70\n0.000000020,60\n0.000008,1\n", paced, END, 9), expected);
    }

    #[test]
    fn it_begins_again_after_a_period_and_sends_the_last_frame_whole() {
        // Two frames 200 ns apart: a period of 400 ns.
        let round = FrameSending { repeat: true, ..CUT };
        let frames = "0,120\n0.0000002,60\n";
        let first = [(1_000, 100), (1_000, 100), (1_200, 100)];
        let second = first.map(|(at, size)| (at + 400, size));
        assert_eq!(sent(frames, round, END, 6), [first, second].concat());
        assert_eq!(sent(frames, round, Time(1_401), 9), [&first[..], &second[..2]].concat());
        assert_eq!(sent(frames, round, Time(1_400), 9), first);
    }

    #[test]
    fn packets_are_counted_as_they_are_sent() {
        let frames = "0,1\n1,60\n2,61\n3,120\n4,1000\n";
        let text = format!("start_s,size_bytes\n{frames}");
        let trace = FrameTrace::parse("frames", text.as_bytes(), Bytes(1)..=Bytes(1_000));
        let trace = trace.expect("frames");
        assert_eq!(packets(&trace, CUT.packet), sent(frames, CUT, END, 99).len() as u64);
        assert_eq!(packets(&trace, None), 5);
    }
}
