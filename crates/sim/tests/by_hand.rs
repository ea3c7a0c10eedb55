//! Runs whose results can be worked out on paper, and are here: from the bits on a
//! wire, the propagation of light, the rounds of slow start and the clauses of
//! IEEE 802.11. Nothing here calls the code that it judges, except to run it.
//!
//! The third such case, the waiting time of each packet in a queue by Lindley's
//! recursion, stands with queueing theory in `queueing.rs`.

use std::collections::VecDeque;
use std::sync::atomic::AtomicBool;

use tidegate_core::{Span, discipline::fifo};
use tidegate_sim::metrics::{FlowRecord, Recorder, RunSummary};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;

/// Keeps the response time of the last flow to end.
struct Last(Option<Span>);

impl Recorder for Last {
    fn flow(&mut self, row: &FlowRecord) {
        self.0 = row.response;
    }
}

fn run(text: &str) -> (RunSummary, Option<Span>) {
    let scenario = file::parse("hand.toml", text, &Folder(".".into()));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let fifo = DisciplineChoice::with_defaults(&fifo::ENTRY);
    let mut last = Last(None);
    let summary = simulation::run(&scenario, &fifo, 1, &mut last, &AtomicBool::new(false));
    (summary, last.0)
}

/// A TCP as far as it matters on a link that loses nothing.
#[derive(Clone, Copy, Debug)]
struct Tcp {
    profile: &'static str,
    /// Payload of a full segment, in bytes.
    mss: u64,
    /// IP packets without payload: a SYN or its answer, and any other.
    syn: u64,
    headers: u64,
    initial_window: u64,
    /// Segments by which one acknowledgement opens the window at most.
    growth: u64,
    /// The time for which every other acknowledgement is held back, in milliseconds.
    delayed: Option<u64>,
}

/// RFC 5681 without options; whether acknowledgements are delayed varies.
const fn papers(initial_window: u64, delayed: Option<u64>) -> Tcp {
    Tcp { profile: "papers", mss: 1_460, syn: 40, headers: 40, initial_window, growth: 1, delayed }
}

/// Timestamps take 12 bytes of each segment. The four options of a SYN take 20. An
/// acknowledgement of two segments opens the window by both. Nothing is paced. What
/// depends on measured times is off: HyStart, and quick acknowledgements.
const TODAY: Tcp = Tcp {
    profile: "today",
    mss: 1_448,
    syn: 60,
    headers: 52,
    initial_window: 10,
    growth: 2,
    delayed: Some(40),
};

/// A link with these properties in each direction.
#[derive(Clone, Copy, Debug)]
struct Path {
    mbits: u64,
    delay_ms: u64,
}

impl Path {
    fn delay(self) -> u64 {
        self.delay_ms * 1_000_000
    }

    /// The nanoseconds in which a packet leaves; for these rates a whole number.
    fn serialization(self, bytes: u64) -> u64 {
        assert_eq!(bytes * 8_000 % self.mbits, 0);
        bytes * 8_000 / self.mbits
    }
}

/// Nanoseconds from the SYN until the last byte of `size` is there: segment by segment,
/// each as soon as the window has room for it and the link is free.
fn worked_out(path: Path, tcp: Tcp, size: u64) -> u64 {
    // The SYN, and its answer.
    let asked = path.serialization(tcp.syn) + path.delay();
    let mut back_is_free = asked + path.serialization(tcp.syn);
    let mut now = back_is_free + path.delay();
    // The third packet of the handshake leaves ahead of the data.
    let mut forth_is_free = now + path.serialization(tcp.headers);
    let (mut window, mut sent, mut acknowledged) = (tcp.initial_window * tcp.mss, 0, 0);
    // Acknowledgements on their way: when they are here, and up to which byte.
    let mut acks = VecDeque::new();
    let mut acknowledge = |at: u64, up_to: u64, acks: &mut VecDeque<(u64, u64)>| {
        back_is_free = at.max(back_is_free) + path.serialization(tcp.headers);
        acks.push_back((back_is_free + path.delay(), up_to));
    };
    // When a segment came in that has no acknowledgement yet.
    let mut held_back: Option<u64> = None;
    let timeout = tcp.delayed.unwrap_or(0) * 1_000_000;
    loop {
        let payload = tcp.mss.min(size - sent);
        while sent + payload > acknowledged + window {
            if acks.is_empty() {
                let since = held_back.take().expect("something is outstanding");
                acknowledge(since + timeout, sent, &mut acks);
            }
            let (at, up_to) = acks.pop_front().expect("there is one now");
            now = at;
            window += (up_to - acknowledged).min(tcp.growth * tcp.mss);
            acknowledged = up_to;
        }
        forth_is_free = now.max(forth_is_free) + path.serialization(tcp.headers + payload);
        let arrival = forth_is_free + path.delay();
        if let Some(since) = held_back.filter(|since| since + timeout < arrival) {
            acknowledge(since + timeout, sent, &mut acks);
            held_back = None;
        }
        sent += payload;
        if sent == size {
            return arrival;
        }
        if tcp.delayed.is_none() || held_back.take().is_some() {
            acknowledge(arrival, sent, &mut acks);
        } else {
            held_back = Some(arrival);
        }
    }
}

/// The same as the simulator has it.
fn simulated(path: Path, tcp: Tcp, size: u64) -> Option<Span> {
    let Path { mbits, delay_ms } = path;
    let Tcp { profile, initial_window, .. } = tcp;
    let delayed = match tcp.delayed {
        Some(timeout) => format!("delayed_ack_timeout = \"{timeout} ms\""),
        None => "delayed_ack_segments = 1".into(),
    };
    let text = format!(
        r#"
        title = "a lone transfer"
        duration = "60 s"
        disciplines = ["fifo"]
        [tcp]
        profile = "{profile}"
        slow_start = "classic"
        quick_acks = false
        initial_window = {initial_window}
        {delayed}
        [[link]]
        from = "a"
        to = "b"
        rate = "{mbits} Mbit/s"
        delay = "{delay_ms} ms"
        queue = "tested"
        buffer = "1000 packets"
        [[traffic.transfers]]
        name = "one"
        from = "a"
        to = "b"
        count = 1
        sizes = "{size} B"
        "#
    );
    run(&text).1
}

#[test]
fn a_lone_transfer_takes_what_rounds_of_slow_start_take() {
    // Ten segments at 100 Mbit/s and 50 ms, two at first, each acknowledged: rounds
    // of 2, 4 and 4. A round waits for the acknowledgement of the first segment
    // before it; within a round segments leave back to back. A full packet takes
    // 120 us, one without payload 3.2 us.
    let handshake = 2 * (3_200 + 50_000_000) + 3_200;
    let rounds = 2 * (120_000 + 50_000_000 + 3_200 + 50_000_000);
    let expected = handshake + rounds + 4 * 120_000 + 50_000_000;
    let path = Path { mbits: 100, delay_ms: 50 };
    assert_eq!(simulated(path, papers(2, None), 14_600), Some(Span(expected)));
    // At 1 Mbit/s and 1 ms the link never rests once data flow.
    let expected = 2 * (320_000 + 1_000_000) + 320_000 + 10 * 12_000_000 + 1_000_000;
    let path = Path { mbits: 1, delay_ms: 1 };
    assert_eq!(simulated(path, papers(2, None), 14_600), Some(Span(expected)));
    // One segment, of which nobody has to know that it has arrived.
    let expected = 2 * (320_000 + 1_000_000) + 320_000 + (100 + 40) * 8_000 + 1_000_000;
    assert_eq!(simulated(path, papers(2, Some(200)), 100), Some(Span(expected)));
}

#[test]
fn lone_transfers_take_what_arithmetic_says_to_the_nanosecond() {
    let mut cases = 0;
    for size in [2_921, 50_000] {
        for mbits in [1, 20] {
            for delay_ms in [2, 40] {
                for initial_window in [1, 2, 10] {
                    for delayed in [None, Some(200)] {
                        let path = Path { mbits, delay_ms };
                        let tcp = papers(initial_window, delayed);
                        let expected = Some(Span(worked_out(path, tcp, size)));
                        let case = format!("{size} B, {path:?}, {tcp:?}");
                        assert_eq!(simulated(path, tcp, size), expected, "{case}");
                        cases += 1;
                    }
                }
            }
        }
    }
    assert_eq!(cases, 48);
}

#[test]
fn lone_transfers_of_today_take_what_arithmetic_says_to_the_nanosecond() {
    for size in [100, 14_480, 14_481, 100_000, 400_000] {
        for (mbits, delay_ms) in [(20, 10), (20, 40), (100, 10), (100, 40)] {
            let path = Path { mbits, delay_ms };
            let expected = Some(Span(worked_out(path, TODAY, size)));
            assert_eq!(simulated(path, TODAY, size), expected, "{size} B, {path:?}");
        }
    }
}

#[test]
fn another_window_rate_or_acknowledgement_does_not_go_unnoticed() {
    let (path, tcp) = (Path { mbits: 20, delay_ms: 40 }, papers(2, Some(200)));
    let right = simulated(path, tcp, 50_000);
    for (path, tcp) in [
        (path, papers(3, Some(200))),
        (path, papers(2, None)),
        (path, Tcp { growth: 2, ..tcp }),
        (path, Tcp { headers: 52, ..tcp }),
        (path, Tcp { syn: 60, ..tcp }),
        (Path { mbits: 40, ..path }, tcp),
        (Path { delay_ms: 41, ..path }, tcp),
    ] {
        assert_ne!(right, Some(Span(worked_out(path, tcp, 50_000))), "{path:?}, {tcp:?}");
    }
}

/// IEEE 802.11-2016 Table 17-4: the rate in Mbit/s, and the data bits of a symbol.
const OFDM: [(u64, u64); 8] =
    [(6, 24), (9, 36), (12, 48), (18, 72), (24, 96), (36, 144), (48, 192), (54, 216)];
/// Table 17-21: a slot, and the gap before an acknowledgement, in microseconds.
const SLOT: f64 = 9.0;
const SIFS: f64 = 16.0;
/// Section 10.3.7: SIFS and two slots.
const DIFS: f64 = SIFS + 2.0 * SLOT;
/// Table 17-21: the back-off of a frame that nothing has hit is one of 0 to 15 slots.
const WINDOW: f64 = 15.0;

/// Microseconds of a MAC frame: 16 of preamble and 4 of SIGNAL, then symbols of 4 for
/// 16 bits of SERVICE, the frame, and 6 bits of tail (clause 17.3).
fn on_the_air(frame: u64, bits_per_symbol: u64) -> f64 {
    (16 + 4 + 4 * (16 + 8 * frame + 6).div_ceil(bits_per_symbol)) as f64
}

/// The mean microseconds of an IP packet of `size` bytes, with everything that goes
/// with it.
fn exchange(size: u64, mbits: u64, bits_per_symbol: u64) -> f64 {
    // 24 bytes of MAC header, 8 of LLC and SNAP, 4 of check sum.
    let data = on_the_air(24 + 8 + size + 4, bits_per_symbol);
    // 14 bytes at the highest of 6, 12 and 24 Mbit/s that is not above the data's.
    let acknowledgement =
        on_the_air(14, [96, 48, 24][usize::from(mbits < 24) + usize::from(mbits < 12)]);
    DIFS + SLOT * WINDOW / 2.0 + data + SIFS + acknowledgement
}

#[test]
fn a_station_that_always_sends_gets_what_the_standard_leaves_it_at_every_rate() {
    const SECONDS: f64 = 4.0;
    for (size, offered) in [(1_500, 60), (300, 30)] {
        for (mbits, bits_per_symbol) in OFDM {
            let text = format!(
                r#"
                title = "one station"
                duration = "{SECONDS} s"
                disciplines = ["fifo"]
                wifi = {{ stations = 1, rates = ["{mbits} Mbit/s"] }}
                [[traffic.cbr]]
                name = "datagrams"
                from = "station1"
                to = "host1"
                rate = "{offered} Mbit/s"
                packet = "{size} B"
                "#
            );
            let carried = run(&text).0.traffic[0].delivered.0 as f64 / size as f64;
            let expected = exchange(size, mbits, bits_per_symbol);
            let measured = SECONDS * 1e6 / carried;
            // Five standard errors of the mean of as many uniform draws of 16 values,
            // and the part of an exchange at either end.
            let deviation = SLOT * ((16.0_f64 * 16.0 - 1.0) / 12.0).sqrt();
            let error = 5.0 * deviation / carried.sqrt() + 2.0 * expected / carried;
            let off = measured - expected;
            assert!(off.abs() < error, "{mbits} Mbit/s, {size} B: {off} +- {error} us");
            // One slot more or less in each exchange would be seen.
            assert!(error < SLOT, "{mbits} Mbit/s, {size} B: {error} us");
        }
    }
}
