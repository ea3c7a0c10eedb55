//! Endpoints under random paths and random input.
//!
//! However segments are lost, delayed and doubled, a transfer in both
//! directions ends with exactly the bytes that were written, and on the way no
//! segment leaves the peer's window or, if it is new, the congestion window.

use std::sync::Arc;

use proptest::prelude::*;
use tidegate_core::{Bytes, Ecn, Span, Time};
use tidegate_sim::tcp::congestion::{CONTROLLERS, Entry};
use tidegate_sim::tcp::{
    DelayedAck, Endpoint, Flags, Header, Ns3, SackBlock, TcpConfig, Timestamps,
};

use crate::pair::controllers::{paced_reno, take_log};
use crate::pair::{CLIENT, Fate, Pair, SERVER};

/// Every controller of the list, and one that is paced, slowly or fast.
fn controller() -> impl Strategy<Value = &'static Entry> {
    let paced = [paced_reno::<200_000>(), paced_reno::<20_000_000>()];
    prop::sample::select(CONTROLLERS.iter().chain(paced).collect::<Vec<_>>())
}

fn config() -> impl Strategy<Value = TcpConfig> {
    let switches = (prop::array::uniform6(any::<bool>()), controller());
    let delayed = prop::option::of(
        (2_u32..4).prop_map(|segments| DelayedAck { segments, timeout: Span::millis(40) }),
    );
    let ns3 = any::<[bool; 3]>().prop_map(|[recovery_window, recovery_point, repair_end]| Ns3 {
        recovery_window,
        recovery_point,
        repair_end,
    });
    let sizes = (1_u32..12, prop_oneof![Just(536_u32), Just(1_460)], 3_000_u64..200_000);
    (switches, ns3, delayed, sizes).prop_map(|(switches, ns3, delayed_ack, sizes)| {
        let (initial_window, mss, window) = sizes;
        let (on, congestion) = switches;
        TcpConfig {
            mss,
            mss_option: true,
            initial_window,
            receive_window: Bytes(window),
            sack: on[0],
            rack_tlp: on[1],
            congestion,
            ecn: on[2],
            limited_transmit: on[3],
            timestamps_option: on[4],
            undo: on[5],
            ns3,
            delayed_ack,
            min_rto: Span::millis(200),
            initial_rto: Span::seconds(1),
            max_rto: Span::seconds(4),
            syn_retries: 1_000,
            data_retries: 1_000,
            ..TcpConfig::papers()
        }
    })
}

/// How often the path does something wrong, in per cent.
#[derive(Clone, Copy, Debug)]
struct Path {
    lost: u64,
    doubled: u64,
    delayed: u64,
    marked: u64,
    seed: u64,
}

fn path() -> impl Strategy<Value = Path> {
    (0_u64..20, 0_u64..10, 0_u64..20, 0_u64..10, any::<u64>()).prop_map(
        |(lost, doubled, delayed, marked, seed)| Path { lost, doubled, delayed, marked, seed },
    )
}

/// SplitMix64: numbers that depend on nothing but the seed.
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ *state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ mixed >> 31
}

impl Path {
    fn decide(mut self) -> impl FnMut(usize, &Header, u64) -> Fate {
        move |_, _, _| {
            let dice = random(&mut self.seed) % 100;
            let delay = Span::micros(random(&mut self.seed) % 80_000);
            let borders = [self.lost, self.doubled, self.delayed, self.marked];
            let mut border = 0;
            let fates = [Fate::Lose, Fate::Duplicate, Fate::Delay(delay), Fate::Mark];
            for (share, fate) in borders.into_iter().zip(fates) {
                border += share;
                if dice < border {
                    return fate;
                }
            }
            Fate::Pass
        }
    }
}

/// What one end has sent and been allowed to send, as seen on the wire.
#[derive(Default)]
struct Witness {
    /// One past the highest offset sent.
    highest: u64,
    /// Right edge of the peer's window, as far as this end has been told.
    edge: u64,
    segments: u64,
    data_segments: u64,
    retransmissions: u64,
}

/// Runs a pair step by step under the eyes of two witnesses.
fn watch(pair: &mut Pair, isn: [u32; 2], mss: u64) -> Result<(), TestCaseError> {
    let mut witnesses = [Witness::default(), Witness::default()];
    pair.observe = true;
    pair.poll(CLIENT);
    pair.poll(SERVER);
    loop {
        for (to, header) in std::mem::take(&mut pair.observed_arrived) {
            if header.flags.contains(Flags::ACK) {
                let offset = u64::from(header.acknowledgement.wrapping_sub(isn[to]));
                let edge = offset + u64::from(header.window);
                witnesses[to].edge = witnesses[to].edge.max(edge);
            }
        }
        for (from, header) in std::mem::take(&mut pair.observed_sent) {
            let witness = &mut witnesses[from];
            // Transfers are shorter than the sequence space.
            let start = u64::from(header.sequence.wrapping_sub(isn[from]));
            let fin = u64::from(header.flags.contains(Flags::FIN));
            let syn = u64::from(header.flags.contains(Flags::SYN));
            let payload = u64::from(header.payload);
            let end = start + payload + fin + syn;
            witness.segments += 1;
            witness.data_segments += u64::from(payload > 0);
            prop_assert!(payload <= mss, "{} bytes in a segment of {}", payload, mss);
            let again = end > start && start < witness.highest;
            witness.retransmissions += u64::from(again && syn == 0);
            if payload > 0 && !again {
                prop_assert_eq!(start, witness.highest, "a gap in what is sent");
                // A probe of one byte may leave the window.
                prop_assert!(
                    start + payload <= witness.edge || payload == 1 && start == witness.edge,
                    "{}..{} leaves the window, which ends at {}",
                    start,
                    start + payload,
                    witness.edge
                );
                let sender = &pair.ends[from];
                // Two segments of limited transmit and one tail loss probe.
                prop_assert!(
                    sender.bytes_in_flight() <= sender.congestion_window() + 3 * mss,
                    "{} in flight, window {}",
                    sender.bytes_in_flight(),
                    sender.congestion_window()
                );
            }
            // A refused probe is taken back, and its byte sent as part of more.
            let new = !again || start + 1 == witness.highest && end > witness.highest;
            prop_assert!(header.ecn != Ecn::Ect0 || payload > 0 && new && syn == 0);
            witness.highest = witness.highest.max(end);
        }
        let end = Time(Span::seconds(20_000).0);
        if !pair.step(end) {
            break;
        }
    }
    for (end, witness) in pair.ends.iter().zip(&witnesses) {
        let counted = end.statistics();
        prop_assert_eq!(counted.segments_sent, witness.segments);
        prop_assert_eq!(counted.data_segments_sent, witness.data_segments);
        // A segment that grows out of a refused probe counts as new here and
        // as old there.
        let difference = witness.retransmissions.abs_diff(counted.retransmissions);
        prop_assert!(difference <= u64::from(counted.window_probes));
        prop_assert_eq!(end.bytes_in_flight(), 0);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn every_transfer_completes(
        configs in [config(), config()],
        path in path(),
        up in 0_u64..300_000,
        down in 0_u64..300_000,
        isn in any::<[u32; 2]>(),
        pauses in any::<bool>(),
    ) {
        let mss = u64::from(configs[0].mss.min(configs[1].mss));
        let [client, server] = configs;
        let mut pair = Pair::with_numbers(client, server, isn).deciding(path.decide());
        pair.traced = false;
        pair.ends[CLIENT].write(up);
        pair.ends[SERVER].write(down);
        for end in [CLIENT, SERVER] {
            pair.ends[end].close();
        }
        pair.reading_pauses = pauses;
        watch(&mut pair, isn, mss)?;
        for end in &mut pair.ends {
            end.set_reading(true);
        }
        prop_assert_eq!(pair.ends[SERVER].delivered(), up);
        prop_assert_eq!(pair.ends[CLIENT].delivered(), down);
        for (end, written) in pair.ends.iter().zip([up, down]) {
            prop_assert_eq!(end.acknowledged(), written);
            prop_assert!(end.peer_finished() && end.is_closed() && !end.has_failed());
        }
        take_log();
    }
}

/// Any header at all, mostly near what the endpoint expects.
fn header() -> impl Strategy<Value = Header> {
    let near = prop_oneof![
        4 => 0_u32..60_000,
        1 => any::<u32>(),
        1 => (0_u32..10).prop_map(|n| u32::MAX - n),
    ];
    let numbers = prop::array::uniform2(near.clone());
    let blocks = prop::collection::vec((near.clone(), near), 0..5);
    let payload = prop_oneof![Just(0_u32), 1_u32..3_000, any::<u32>()];
    let window = prop_oneof![Just(0_u32), 0_u32..70_000, any::<u32>()];
    (numbers, any::<u16>(), any::<bool>(), payload, window, blocks).prop_map(
        |([sequence, acknowledgement], bits, likely, payload, window, blocks)| {
            let mut header = Header {
                sequence,
                acknowledgement,
                payload,
                window,
                flags: if likely { Flags::ACK } else { Flags::from_bits(bits) },
                ..Header::default()
            };
            header.options.sack_permitted = bits & 1 != 0;
            header.options.mss = (bits & 0xff) * 10;
            header.timestamps = Timestamps { value: sequence, echo: acknowledgement };
            for (start, end) in blocks {
                header.sack.push(SackBlock { start, end });
            }
            header
        },
    )
}

#[derive(Clone, Debug)]
enum Action {
    Segment(Header, bool),
    Write(u64),
    Close,
    Read(bool),
    Wait(u64),
}

fn action() -> impl Strategy<Value = Action> {
    prop_oneof![
        10 => (header(), any::<bool>()).prop_map(|(header, marked)| Action::Segment(header, marked)),
        2 => prop_oneof![0_u64..20_000, any::<u64>()].prop_map(Action::Write),
        1 => Just(Action::Close),
        1 => any::<bool>().prop_map(Action::Read),
        4 => (0_u64..3_000_000_000).prop_map(Action::Wait),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    /// No input makes an endpoint panic, send without end, or take back what
    /// it has delivered.
    #[test]
    fn no_input_breaks_an_endpoint(
        config in config(),
        opens in any::<bool>(),
        established in any::<bool>(),
        actions in prop::collection::vec(action(), 0..60),
    ) {
        let config = Arc::new(TcpConfig { data_retries: 5, ..config });
        let mut endpoint = if opens {
            Endpoint::connect(config.clone(), 0)
        } else {
            Endpoint::listen(config.clone(), 0)
        };
        let mut out = Vec::new();
        let mut now = Time::ZERO;
        endpoint.poll(now, &mut out);
        if established {
            // The peer's numbers start at zero as well.
            let mut syn = Header {
                flags: if opens { Flags::SYN | Flags::ACK } else { Flags::SYN },
                acknowledgement: 1,
                window: 65_535,
                ..Header::default()
            };
            syn.options.sack_permitted = true;
            endpoint.on_segment(now, &syn, false, &mut out);
            let ack = Header { sequence: 1, flags: Flags::ACK, ..syn };
            endpoint.on_segment(now, &ack, false, &mut out);
            prop_assert!(endpoint.is_established());
        }
        let mut delivered = 0;
        for action in actions {
            out.clear();
            match action {
                Action::Segment(header, marked) => {
                    endpoint.on_segment(now, &header, marked, &mut out);
                }
                Action::Write(bytes) => endpoint.write(bytes),
                Action::Close => endpoint.close(),
                Action::Read(reads) => endpoint.set_reading(reads),
                Action::Wait(span) => {
                    now += Span(span);
                    endpoint.on_timer(now, &mut out);
                }
            }
            endpoint.poll(now, &mut out);
            prop_assert!(out.len() < 20_000, "{} segments at once", out.len());
            prop_assert!(endpoint.delivered() >= delivered);
            delivered = endpoint.delivered();
            if let Some(at) = endpoint.next_timer() {
                endpoint.on_timer(at.max(now), &mut out);
                now = now.max(at);
            }
        }
    }
}
