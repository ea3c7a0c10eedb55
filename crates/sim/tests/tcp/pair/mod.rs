//! Two endpoints and the path between them, stepped by hand, with a trace that
//! a person can check.
//!
//! The path delays every segment by the same time and, on request, sends the
//! client's segments through a bottleneck with an endless queue. A function
//! decides what happens to a segment; it sees how many segments with payload
//! the sending end has sent so far, retransmissions included.
//!
//! In traces, data is numbered in segments of the client's MSS from 1, and so
//! are acknowledgements (the next segment expected) and SACK blocks (first and
//! last segment); bytes that are no whole number of segments are written `b17`.
//! Windows are in segments, to a hundredth, rounded down. Times are in
//! milliseconds. The state at the end of a line is the client's, after the call
//! that sent the segment.

// Losses at the end of a transfer are tested apart, with a part of this file.
#![allow(dead_code)]

pub(crate) mod controllers;

use std::collections::BTreeMap;
use std::fmt::Write;
use std::sync::Arc;

use tidegate_core::{Rate, Span, Time};
use tidegate_sim::tcp::{Endpoint, Flags, Header, TcpConfig};

/// What the path does to a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fate {
    /// Delivers it.
    Pass,
    /// Loses it.
    Lose,
    /// Delivers it with a congestion mark, if it is ECN-capable.
    Mark,
    /// Delivers it so much later.
    Delay(Span),
    /// Delivers it twice.
    Duplicate,
}

/// Index of the end that opens.
pub(crate) const CLIENT: usize = 0;
/// Index of the end that listens.
pub(crate) const SERVER: usize = 1;

/// Decides on a segment from an end: its header, and the number of segments
/// with payload that this end has sent, this one included.
pub(crate) type Decide = Box<dyn FnMut(usize, &Header, u64) -> Fate>;

pub(crate) struct Pair {
    pub(crate) ends: [Endpoint; 2],
    pub(crate) now: Time,
    /// How long the path takes one way.
    pub(crate) delay: Span,
    pub(crate) bottleneck: Option<Rate>,
    pub(crate) decide: Decide,
    pub(crate) trace: String,
    /// Whether to write the trace.
    pub(crate) traced: bool,
    /// The server closes when it has the client's FIN.
    pub(crate) server_follows: bool,
    /// Whether both applications stop and start reading in turns of 137 ms.
    pub(crate) reading_pauses: bool,
    /// Whether to note what is sent and what arrives.
    pub(crate) observe: bool,
    pub(crate) observed_sent: Vec<(usize, Header)>,
    pub(crate) observed_arrived: Vec<(usize, Header)>,
    mss: u64,
    isn: [u32; 2],
    free_at: Time,
    data_segments: [u64; 2],
    flying: BTreeMap<(Time, u64), (usize, Header, bool)>,
    sent: u64,
    out: Vec<Header>,
}

/// Initial sequence numbers of the two ends.
pub(crate) const ISN: [u32; 2] = [1_000_000, 3_000_000_000];

impl Pair {
    pub(crate) fn new(client: TcpConfig, server: TcpConfig) -> Pair {
        Pair::with_numbers(client, server, ISN)
    }

    pub(crate) fn with_numbers(client: TcpConfig, server: TcpConfig, isn: [u32; 2]) -> Pair {
        let mss = u64::from(client.mss);
        Pair {
            ends: [
                Endpoint::connect(Arc::new(client), isn[CLIENT]),
                Endpoint::listen(Arc::new(server), isn[SERVER]),
            ],
            now: Time::ZERO,
            delay: Span::millis(50),
            bottleneck: None,
            decide: Box::new(|_, _, _| Fate::Pass),
            trace: String::new(),
            traced: true,
            server_follows: false,
            reading_pauses: false,
            observe: false,
            observed_sent: Vec::new(),
            observed_arrived: Vec::new(),
            mss,
            isn,
            free_at: Time::ZERO,
            data_segments: [0, 0],
            flying: BTreeMap::new(),
            sent: 0,
            out: Vec::new(),
        }
    }

    /// Loses the client's data segments of these numbers, retransmissions counted.
    pub(crate) fn losing(mut self, numbers: &[u64]) -> Pair {
        let numbers = numbers.to_vec();
        self.decide = Box::new(move |from, header, number| {
            let lost = from == CLIENT && header.payload > 0 && numbers.contains(&number);
            if lost { Fate::Lose } else { Fate::Pass }
        });
        self
    }

    pub(crate) fn deciding(
        mut self,
        decide: impl FnMut(usize, &Header, u64) -> Fate + 'static,
    ) -> Pair {
        self.decide = Box::new(decide);
        self
    }

    /// The client sends `bytes` and closes; the server closes after it.
    pub(crate) fn transfer(mut self, bytes: u64) -> Pair {
        self.ends[CLIENT].write(bytes);
        self.ends[CLIENT].close();
        self.server_follows = true;
        self
    }

    /// The client sends `bytes` and stays open.
    pub(crate) fn upload(mut self, bytes: u64) -> Pair {
        self.ends[CLIENT].write(bytes);
        self
    }

    pub(crate) fn poll(&mut self, end: usize) {
        let mut out = std::mem::take(&mut self.out);
        self.ends[end].poll(self.now, &mut out);
        self.transmit(end, &mut out);
        self.out = out;
    }

    /// Runs until nothing more happens, or the time is over.
    pub(crate) fn run_until(&mut self, end: Time) -> &mut Pair {
        if self.now == Time::ZERO && self.sent == 0 {
            self.poll(CLIENT);
            self.poll(SERVER);
        }
        while self.step(end) {}
        self
    }

    pub(crate) fn run(&mut self) -> &mut Pair {
        self.run_until(Time(3_600_000_000_000))
    }

    /// The next arrival or timer, if it is not after `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        let arrival = self.flying.first_key_value().map(|(key, _)| key.0);
        let timers = [0, 1].map(|end| self.ends[end].next_timer());
        let next = [arrival, timers[0], timers[1]].into_iter().flatten().min();
        let Some(next) = next.filter(|next| *next <= end) else { return false };
        assert!(next >= self.now, "a timer in the past");
        self.now = next;
        let mut out = std::mem::take(&mut self.out);
        if arrival == Some(next) {
            let (_, (to, header, marked)) = self.flying.pop_first().expect("one has arrived");
            if self.observe {
                self.observed_arrived.push((to, header));
            }
            if self.reading_pauses {
                // No timeout of a few seconds is a multiple of this.
                let pause = self.now.0 / 137_000_000 % 2 == 1;
                self.ends[to].set_reading(!pause || self.ends[to].peer_finished());
            }
            self.ends[to].on_segment(self.now, &header, marked, &mut out);
            if self.server_follows && self.ends[SERVER].peer_finished() {
                self.server_follows = false;
                self.ends[SERVER].close();
                self.ends[SERVER].poll(self.now, &mut out);
            }
            self.transmit(to, &mut out);
        } else {
            let end = usize::from(timers[0] != Some(next));
            if self.traced {
                writeln!(self.trace, "{} {} timer", self.clock(), ["client", "server"][end])
                    .expect("a string takes everything");
            }
            self.ends[end].on_timer(self.now, &mut out);
            self.transmit(end, &mut out);
            assert_ne!(self.ends[end].next_timer(), Some(next), "a timer that stays");
        }
        self.out = out;
        true
    }

    /// Segments that are on their way, in either direction.
    pub(crate) fn in_transit(&self) -> usize {
        self.flying.len()
    }

    fn transmit(&mut self, from: usize, out: &mut Vec<Header>) {
        for header in out.drain(..) {
            self.data_segments[from] += u64::from(header.payload > 0);
            let fate = (self.decide)(from, &header, self.data_segments[from]);
            self.write(from, &header, fate);
            if self.observe {
                self.observed_sent.push((from, header));
            }
            if fate == Fate::Lose {
                continue;
            }
            let mut leaves = self.now;
            if let (Some(rate), CLIENT) = (self.bottleneck, from) {
                leaves = leaves.max(self.free_at) + rate.transmission(header.wire_size());
                self.free_at = leaves;
            }
            let mut arrives = leaves + self.delay;
            if let Fate::Delay(span) = fate {
                arrives += span;
            }
            let marked = fate == Fate::Mark && header.ecn.is_markable();
            for _ in 0..if fate == Fate::Duplicate { 2 } else { 1 } {
                self.sent += 1;
                self.flying.insert((arrives, self.sent), (1 - from, header, marked));
            }
        }
    }

    fn clock(&self) -> String {
        let micros = self.now.0 / 1_000;
        format!("{:>6}.{:03}", micros / 1_000, micros % 1_000)
    }

    /// An offset of `end`'s sequence space in segments.
    fn segment(&self, end: usize, wire: u32) -> String {
        let offset = u64::from(wire.wrapping_sub(self.isn[end]));
        match offset.checked_sub(1) {
            Some(bytes) if bytes % self.mss == 0 => (bytes / self.mss + 1).to_string(),
            _ => format!("b{offset}"),
        }
    }

    fn write(&mut self, from: usize, header: &Header, fate: Fate) {
        if !self.traced {
            return;
        }
        let mut line = format!("{} {}", self.clock(), ['>', '<'][from]);
        let flags = header.flags;
        for (flag, name) in [
            (Flags::SYN, "SYN"),
            (Flags::FIN, "FIN"),
            (Flags::RST, "RST"),
            (Flags::AE, "AE"),
            (Flags::ECE, "ECE"),
            (Flags::CWR, "CWR"),
        ] {
            if flags.contains(flag) {
                line += " ";
                line += name;
            }
        }
        if header.payload > 0 {
            line += " data ";
            line += &self.segment(from, header.sequence);
            if u64::from(header.payload) != self.mss {
                line += &format!("({})", header.payload);
            }
        }
        // Acknowledgements are written only where they say something: most traces
        // have no data from the server.
        if flags.contains(Flags::ACK) && (from == SERVER || header.payload == 0) {
            line += " ack ";
            line += &self.segment(1 - from, header.acknowledgement);
        }
        for block in header.sack.as_slice() {
            let last = block.end.wrapping_sub(self.mss as u32);
            let (start, last) = (self.segment(1 - from, block.start), self.segment(1 - from, last));
            line += &if start == last {
                format!(" sack {start}")
            } else {
                format!(" sack {start}-{last}")
            };
        }
        if header.window < 20_000 && !flags.contains(Flags::RST) {
            line += &format!(" win {}", header.window);
        }
        match fate {
            Fate::Pass => {}
            Fate::Lose => line += " LOST",
            Fate::Mark => line += if header.ecn.is_markable() { " MARKED" } else { "" },
            Fate::Delay(span) => line += &format!(" DELAYED {span}"),
            Fate::Duplicate => line += " DUPLICATED",
        }
        if from == CLIENT {
            let client = &self.ends[CLIENT];
            let segments = |bytes: u64| {
                let hundredths = bytes * 100 / self.mss;
                format!("{}.{:02}", hundredths / 100, hundredths % 100)
            };
            line = format!("{line:<36} cwnd {}", segments(client.congestion_window()));
            if client.slow_start_threshold() < 1 << 40 {
                line += &format!(" ssthresh {}", segments(client.slow_start_threshold()));
            }
        }
        self.trace += line.trim_end();
        self.trace += "\n";
    }
}
