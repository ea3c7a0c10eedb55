//! Calls that adapt: who sends frames at the rate that the other end asks for.
//!
//! Each source is one direction of a call, under the control of [`crate::gcc`]. The sender
//! has about 30 frames a second, each about as large as its rate allows at that moment: both
//! vary as RFC 8593 section 4 has it, by a Laplace distribution with a scale of 15% (without
//! that, what a receiver sees repeats from frame to frame, and it can stay for ever at a rate
//! that fits). It cuts frames into packets and lets these leave two and a half times as fast as
//! the rate, as a browser's pacer does. The receiver reports the rate that it asks for and what was lost: the rate at once
//! when it asks for clearly less than before, and otherwise both every second. Reports are packets of their
//! own on the way back, and can be late or lost; a sender that hears nothing keeps its rate.
//!
//! Left out: the encoder's own delay, key frames, sound, repetitions and redundancy for what is lost.

use std::collections::VecDeque;

use tidegate_core::{Bytes, Rate, Span, Stream, Time};

use super::App;
use crate::connections::{AppId, Connection, ConnectionId, Over, Side};
use crate::gcc::{self, media};
use crate::scenario::{CallRates, Scenario, TrafficKind};
use crate::simulation::World;
use crate::traffic::{Datagram, stream_of_datagrams};

/// A receiver that asks for less than this part of what it asked for says so at once.
const CLEARLY_LESS: f64 = 0.97;
/// Otherwise it reports as often as this, and so does one that does not ask yet.
const BETWEEN_REPORTS: Span = Span::seconds(1);
/// The scale of what frames vary by, in size and in time, and the least of both.
const VARIES: f64 = 0.15;
const LEAST: f64 = 0.1;

/// The calls of a run, one direction each.
pub(crate) struct Calls {
    /// By the place of their source; `None` for sources of another kind.
    calls: Vec<Option<Call>>,
}

struct Call {
    start: Time,
    stop: Time,
    /// A packet of the call, and a report.
    packet: Datagram,
    report: Datagram,
    sender: gcc::Sender,
    receiver: gcc::Receiver,
    /// When the next frame is due, and what of the last one is left, with the time at
    /// which its next packet leaves.
    frame: Time,
    left: Bytes,
    leaves: Time,
    stream: Stream,
    /// Packets sent so far.
    sent: u32,
    heard: Heard,
    /// Reports on their way, by number.
    reports: VecDeque<(u32, Report)>,
    reported: u32,
}

/// What a receiver has heard of a call.
#[derive(Default)]
struct Heard {
    /// One more than the number of the last packet, and how many there were.
    end: u32,
    arrived: u32,
    /// Both when it last told what was lost, and when that was.
    end_before: u32,
    arrived_before: u32,
    told: Option<Time>,
    /// What it last asked for, and what it would ask for now.
    asked: Option<Rate>,
    wants: Option<Rate>,
}

#[derive(Clone, Copy)]
struct Report {
    asked: Option<Rate>,
    lost: Option<f64>,
}

impl Call {
    fn new(scenario: &Scenario, seed: u64, index: usize) -> Option<Call> {
        let spec = &scenario.traffic[index];
        let TrafficKind::Call { from, to, rates } = &spec.kind else { return None };
        let CallRates { first, least, most } = *rates;
        let packet = stream_of_datagrams(spec, *from, *to, Bytes::ZERO, index);
        let (from, to, key) = (packet.to, packet.from, packet.key.reversed());
        let (size, dscp) = (media::REPORT, spec.marking.receiver);
        Some(Call {
            start: spec.start,
            stop: spec.stop,
            report: Datagram { from, to, key, size, dscp, ..packet },
            packet,
            sender: gcc::Sender::new(first, least, most),
            receiver: gcc::Receiver::default(),
            frame: spec.start,
            left: Bytes::ZERO,
            leaves: spec.start,
            stream: Stream::new(seed, &spec.name),
            sent: 0,
            heard: Heard::default(),
            reports: VecDeque::new(),
            reported: 0,
        })
    }

    /// The size of the packet that leaves at `now`, and when the next one does.
    fn next(&mut self, now: Time) -> (Option<Bytes>, Time) {
        if self.left == Bytes::ZERO && self.frame <= now {
            let size = self.sender.rate().volume(media::BETWEEN_FRAMES).0 as f64 * self.varied();
            self.left = Bytes(size as u64).max(Bytes(1));
            let between = media::BETWEEN_FRAMES.as_seconds() * self.varied();
            self.frame += Span::from_seconds(between);
        }
        if self.left == Bytes::ZERO || self.leaves > now {
            return (None, self.due());
        }
        let payload = self.left.min(media::PAYLOAD);
        self.left -= payload;
        let size = payload + media::HEADERS;
        let pace = Rate(self.sender.rate().0 * media::PACING_PERCENT / 100);
        self.leaves = now + pace.transmission(size);
        (Some(size), self.due())
    }

    /// About 1: what a frame has of its mean.
    fn varied(&mut self) -> f64 {
        let off = self.stream.exponential() - self.stream.exponential();
        (1.0 + VARIES * off).max(LEAST)
    }

    fn due(&self) -> Time {
        if self.left > Bytes::ZERO { self.leaves } else { self.frame.max(self.leaves) }
    }
}

impl Heard {
    /// Takes the packet of this number; returns a report if it is time for one.
    fn take(&mut self, now: Time, number: u32, asked: Option<Rate>) -> Option<Report> {
        self.end = self.end.max(number + 1);
        self.arrived += 1;
        self.wants = asked.or(self.wants);
        let clearly_less = |asked: Rate| {
            self.asked.is_none_or(|before| (asked.0 as f64) < CLEARLY_LESS * before.0 as f64)
        };
        let is_due = self.told.is_none_or(|at| now.since(at) >= BETWEEN_REPORTS);
        if !asked.is_some_and(clearly_less) && !is_due {
            return None;
        }
        self.asked = self.wants;
        Some(Report { asked: self.asked, lost: is_due.then(|| self.lost(now)) })
    }

    /// The part of packets that were lost since it last told it.
    fn lost(&mut self, now: Time) -> f64 {
        let due = self.end - self.end_before;
        let came = self.arrived - self.arrived_before;
        (self.end_before, self.arrived_before) = (self.end, self.arrived);
        self.told = Some(now);
        1.0 - f64::from(came.min(due)) / f64::from(due.max(1))
    }
}

impl Calls {
    pub(crate) fn new(scenario: &Scenario, seed: u64) -> Calls {
        let calls = (0..scenario.traffic.len()).map(|it| Call::new(scenario, seed, it));
        Calls { calls: calls.collect() }
    }

    /// A packet of a call has arrived, which was sent at `sent` as the one of this number.
    pub(crate) fn on_media(
        &mut self,
        world: &mut World<'_>,
        traffic: usize,
        number: u32,
        sent: Time,
        size: Bytes,
    ) {
        let now = world.now();
        let Some(call) = &mut self.calls[traffic] else { return };
        let asked = call.receiver.arrived(now, sent, size - media::HEADERS);
        if let Some(report) = call.heard.take(now, number, asked) {
            call.reports.push_back((call.reported, report));
            let (report, number) = (call.report, call.reported);
            call.reported += 1;
            world.send_report(traffic, &report, number);
        }
    }

    /// The report of this number has arrived.
    pub(crate) fn on_report(&mut self, traffic: usize, number: u32) {
        let Some(call) = &mut self.calls[traffic] else { return };
        // Those before it are lost.
        while let Some(&(at, report)) = call.reports.front()
            && at <= number
        {
            call.reports.pop_front();
            if at == number {
                call.sender.heard(report.asked, report.lost);
            }
        }
    }
}

impl App for Calls {
    fn start(&mut self, world: &mut World<'_>) {
        for (traffic, call) in self.calls.iter().enumerate() {
            if let Some(call) = call {
                world.wake(AppId::Calls, call.start, traffic as u64);
            }
        }
    }

    fn on_wake(&mut self, world: &mut World<'_>, number: u64) {
        let (now, traffic) = (world.now(), number as usize);
        let Some(call) = &mut self.calls[traffic] else { return };
        if now >= call.stop {
            return;
        }
        let (size, due) = call.next(now);
        if let Some(size) = size {
            let packet = Datagram { size, ..call.packet };
            let number = call.sent;
            call.sent += 1;
            world.send_media(traffic, &packet, number);
        }
        world.wake(AppId::Calls, due, traffic as u64);
    }

    fn on_segment(&mut self, _: &mut World<'_>, _: ConnectionId, _: Side) -> bool {
        unreachable!("calls have no connections")
    }

    fn on_over(&mut self, _: &mut World<'_>, _: &mut Connection, _: Side, _: Over) {
        unreachable!("calls have no connections")
    }
}
