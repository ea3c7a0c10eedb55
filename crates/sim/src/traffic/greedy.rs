//! A source that sends as early as its arrival curve allows, in bursts
//! (`BE appendix B`).
//!
//! In a burst, each packet leaves at the first moment at which the curve's policer
//! lets it pass. Between bursts nothing is sent and the policer's tokens recover,
//! so a burst begins with packets back to back and moves to the curve's lower
//! rates: without pauses, only the lowest would appear.
//!
//! The paper leaves three points open. The first burst begins with the source. A
//! packet belongs to the burst if it leaves before the burst's end. A packet that
//! would leave later waits for the next burst with the length that it has: drawing
//! another would prefer small packets at the end of bursts, and the lengths sent
//! would not follow the law. A burst in which the curve lets nothing pass goes by
//! empty.
//!
//! Lengths of packets and times come from the source's own stream; a packet's
//! length is drawn when the packet before has left.

use tidegate_core::contract::Policer;
use tidegate_core::{Bytes, Span, Stream, Time};

use super::{Action, Datagram, DatagramFlow, Source};
use crate::scenario::{Bursts, GreedyProfile, PacketLaw, TimeLaw, TrafficSpec};

pub(super) struct Greedy {
    template: Datagram,
    policer: Policer,
    packet: PacketLaw,
    bursts: Option<Bursts>,
    stream: Stream,
    stop: Time,
    /// The present burst, or the next one.
    from: Time,
    until: Time,
    /// The packet that leaves next, and when.
    due: Option<(Time, Bytes)>,
}

impl Greedy {
    pub(super) fn new(
        spec: &TrafficSpec,
        template: Datagram,
        profile: &GreedyProfile,
        mut stream: Stream,
    ) -> Greedy {
        let (from, stop) = (spec.start, spec.stop);
        let bursts = profile.bursts;
        let until = bursts.map_or(stop, |bursts| from + bursts.length.draw(&mut stream));
        let policer = Policer::new(&profile.envelope);
        let packet = profile.packet;
        Greedy { template, policer, packet, bursts, stream, stop, from, until, due: None }
    }

    /// Makes the next packet and finds out when it leaves.
    fn prepare(&mut self, now: Time) -> Option<Time> {
        let size = self.packet.draw(&mut self.stream);
        let conforms = self.policer.conforms_at(now, size);
        self.due = conforms.and_then(|at| self.in_burst(at)).map(|at| (at, size));
        self.due.map(|(at, _)| at)
    }

    /// The first moment from `at` on that is in a burst.
    fn in_burst(&mut self, at: Time) -> Option<Time> {
        while at >= self.until && self.from < self.stop {
            let bursts = self.bursts?;
            self.from = self.until + bursts.spacing.draw(&mut self.stream);
            self.until = self.from + bursts.length.draw(&mut self.stream);
        }
        Some(at.max(self.from)).filter(|at| *at < self.stop)
    }
}

impl Source for Greedy {
    fn first(&mut self) -> Option<Time> {
        self.prepare(self.from)
    }

    fn wake(&mut self, now: Time, actions: &mut Vec<Action>) -> Option<Time> {
        let (_, size) = self.due.expect("it is woken when a packet is due");
        let passes = self.policer.admit(now, size);
        assert!(passes, "a packet conforms when the policer said that it would");
        actions.push(Action::Send(Datagram { size, ..self.template }));
        self.prepare(now)
    }

    fn datagram_flows(&self) -> Vec<DatagramFlow> {
        vec![DatagramFlow::default()]
    }
}

impl PacketLaw {
    fn draw(&self, stream: &mut Stream) -> Bytes {
        match *self {
            PacketLaw::Constant(size) => size,
            PacketLaw::Normal { mean, deviation, least, most } => {
                let size = mean.0 as f64 + deviation.0 as f64 * stream.normal();
                // `as` takes what is negative to zero.
                Bytes(libm::round(size) as u64).clamp(least, most)
            }
        }
    }
}

impl TimeLaw {
    fn draw(&self, stream: &mut Stream) -> Span {
        match *self {
            TimeLaw::Constant(span) => span,
            TimeLaw::Uniform { least, most } => {
                least + Span(((most - least).0 as f64 * stream.uniform()) as u64)
            }
            TimeLaw::Normal { mean, deviation } => {
                Span((mean.0 as f64 + deviation.0 as f64 * stream.normal()) as u64)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::scenario::{Marking, NodeId, TrafficKind};
    use crate::traffic::source;
    use proptest::prelude::*;
    use tidegate_core::contract::Envelope;
    use tidegate_core::curve::PER_BYTE;

    fn envelope(text: &str) -> Envelope {
        text.parse().expect("the curve is right")
    }

    fn spec(profile: GreedyProfile, stop: Time) -> TrafficSpec {
        let kind = TrafficKind::Greedy { from: NodeId(0), to: NodeId(1), profile };
        TrafficSpec {
            name: "greedy".into(),
            start: Time(7),
            stop,
            class: 0,
            marking: Marking::default(),
            deadline: None,
            kind,
        }
    }

    /// Times and sizes of the first so many packets.
    fn sent(spec: &TrafficSpec, seed: u64, most: usize) -> Vec<(Time, Bytes)> {
        let mut source = source(spec, seed, 0);
        let (mut packets, mut actions) = (Vec::new(), Vec::new());
        let mut at = source.first();
        while let Some(now) = at.filter(|_| packets.len() < most) {
            at = source.wake(now, &mut actions);
            packets.extend(actions.drain(..).map(|action| match action {
                Action::Send(datagram) => (now, datagram.size),
                Action::Open { .. } => panic!("it opens nothing"),
            }));
        }
        packets
    }

    #[test]
    fn a_burst_starts_with_what_the_curve_lets_through_and_goes_on_at_its_rate() {
        let profile = GreedyProfile {
            envelope: envelope("300 B + 8 Mbit/s"),
            packet: PacketLaw::Constant(Bytes(100)),
            bursts: Some(Bursts {
                length: TimeLaw::Constant(Span(250_000)),
                spacing: TimeLaw::Constant(Span(150_000)),
            }),
        };
        // 100 bytes at 8 Mbit/s are 100 us. The fifth packet of a burst fits in
        // it. In the pause of 150 us and the 50 us before it two come back; a
        // third could go half way through the pause after the second burst.
        let at = |micros: u64| (Time(7 + micros * 1_000), Bytes(100));
        let first = [0, 0, 0, 100, 200].map(at);
        let second = [400, 400, 500, 600].map(at);
        let third = [800, 800, 900].map(at);
        let packets = sent(&spec(profile, Time::FAR_FUTURE), 1, 12);
        assert_eq!(packets, [&first[..], &second[..], &third[..]].concat());
    }

    #[test]
    fn the_end_of_a_burst_is_no_longer_in_it() {
        let profile = GreedyProfile {
            envelope: envelope("100 B + 8 Mbit/s"),
            packet: PacketLaw::Constant(Bytes(100)),
            bursts: Some(Bursts {
                length: TimeLaw::Constant(Span(100_000)),
                spacing: TimeLaw::Constant(Span(50_000)),
            }),
        };
        let times = [7, 150_007, 300_007].map(|at| (Time(at), Bytes(100)));
        assert_eq!(sent(&spec(profile.clone(), Time(450_007)), 1, 9), times);
        assert_eq!(sent(&spec(profile, Time(300_007)), 1, 9), times[..2]);
    }

    #[test]
    fn a_packet_that_finds_no_room_keeps_its_length() {
        // Of the lengths drawn from one stream, as many as are sent are the first.
        let law = PacketLaw::Normal {
            mean: Bytes(700),
            deviation: Bytes(300),
            least: Bytes(40),
            most: Bytes(1_536),
        };
        let lengths = |bursts| {
            let envelope = envelope("1536 B + 1 Mbit/s");
            let profile = GreedyProfile { envelope, packet: law, bursts };
            let packets = sent(&spec(profile, Time::FAR_FUTURE), 3, 500);
            packets.into_iter().map(|(_, size)| size).collect::<Vec<_>>()
        };
        // Laws of times without a draw leave the stream to the lengths.
        let bursts = Bursts {
            length: TimeLaw::Constant(Span::millis(5)),
            spacing: TimeLaw::Constant(Span::millis(3)),
        };
        assert_eq!(lengths(Some(bursts)), lengths(None));
    }

    #[test]
    fn drawn_lengths_and_times_keep_to_their_laws() {
        const DRAWS: usize = 100_000;
        let mut stream = Stream::new(1, "laws");
        let law = PacketLaw::Normal {
            mean: Bytes(1_700),
            deviation: Bytes(200),
            least: Bytes(40),
            most: Bytes(1_536),
        };
        let draws: Vec<u64> = (0..DRAWS).map(|_| law.draw(&mut stream).0).collect();
        // 1 535.5 is 0.8225 deviations below the mean: 79.46% of a normal law are above.
        let full = draws.iter().filter(|size| **size == 1_536).count() as f64 / DRAWS as f64;
        assert!((full - 0.794_6).abs() < 0.006, "{full}");
        assert!(draws.iter().all(|size| (40..=1_536).contains(size)));

        let uniform = TimeLaw::Uniform { least: Span::millis(5), most: Span::millis(35) };
        let normal = TimeLaw::Normal { mean: Span::millis(20), deviation: Span::millis(4) };
        for (law, deviation) in [(uniform, 8.66), (normal, 4.0)] {
            let draws: Vec<f64> =
                (0..DRAWS).map(|_| law.draw(&mut stream).as_seconds() * 1e3).collect();
            let mean = draws.iter().sum::<f64>() / DRAWS as f64;
            let square = draws.iter().map(|draw| (draw - mean).powi(2)).sum::<f64>();
            assert!((mean - 20.0).abs() < 5.0 * deviation / (DRAWS as f64).sqrt(), "{mean}");
            assert!(((square / DRAWS as f64).sqrt() - deviation).abs() < 0.1, "{law:?}");
        }
    }

    fn curve_text() -> impl Strategy<Value = String> {
        let term = prop_oneof![
            (1_600_u64..20_000, 100_000_u64..20_000_000)
                .prop_map(|(burst, rate)| format!("{burst} B + {rate} bit/s")),
            (1_600_u64..20_000, 500_000_u64..40_000_000)
                .prop_map(|(size, period)| format!("{size} B every {period} ns")),
        ];
        prop::collection::vec(term, 1..4).prop_map(|terms| terms.join(", "))
    }

    fn packet_law() -> impl Strategy<Value = PacketLaw> {
        prop_oneof![
            (40_u64..1_536).prop_map(|size| PacketLaw::Constant(Bytes(size))),
            (40_u64..1_900, 0_u64..500).prop_map(|(mean, deviation)| PacketLaw::Normal {
                mean: Bytes(mean),
                deviation: Bytes(deviation),
                least: Bytes(40),
                most: Bytes(1_536),
            }),
        ]
    }

    fn time_law() -> impl Strategy<Value = TimeLaw> {
        prop_oneof![
            (1_u64..20_000_000).prop_map(|span| TimeLaw::Constant(Span(span))),
            (0_u64..10_000_000, 1_u64..20_000_000).prop_map(|(least, wide)| TimeLaw::Uniform {
                least: Span(least),
                most: Span(least + wide),
            }),
            (1_u64..20_000_000, 0_u64..20_000_000).prop_map(|(mean, deviation)| TimeLaw::Normal {
                mean: Span(mean),
                deviation: Span(deviation),
            }),
        ]
    }

    proptest! {
        /// Against the definition of an arrival curve: every stretch of time from
        /// one packet to another. Always on, no packet could have left earlier.
        #[test]
        fn no_stretch_of_time_sees_more_than_the_curve(
            text in curve_text(),
            packet in packet_law(),
            bursts in prop::option::of((time_law(), time_law())),
            seed in any::<u64>(),
        ) {
            let bursts = bursts.map(|(length, spacing)| Bursts { length, spacing });
            let envelope = envelope(&text);
            let curve = envelope.curve().expect("few pieces");
            let always_on = bursts.is_none();
            let spec = spec(GreedyProfile { envelope, packet, bursts }, Time(2_000_000_000));
            let packets = sent(&spec, seed, 150);
            prop_assert!(packets.is_sorted_by_key(|(at, _)| *at));
            prop_assert_eq!(&packets, &sent(&spec, seed, 150));
            let allowed = |from: Time, to: Time, bytes: u64| {
                curve.value(to.since(from).0) >= i128::from(bytes) * PER_BYTE
            };
            for (last, (to, size)) in packets.iter().enumerate() {
                let mut bytes = 0;
                let mut earlier = to.0 > 7 && size.0 <= 1_536;
                for (from, size) in packets[..=last].iter().rev() {
                    bytes += size.0;
                    prop_assert!(allowed(*from, *to, bytes), "{bytes} B in {}", to.since(*from));
                    // A nanosecond before, with what came until then.
                    earlier &= from == to || allowed(*from, Time(to.0 - 1), bytes);
                }
                let behind = last == 0 || packets[last - 1].0 < *to;
                prop_assert!(!(always_on && behind && earlier), "packet {last} could go earlier");
            }
        }
    }
}
