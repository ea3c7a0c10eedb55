//! What RFC 8985 (detection by time, tail loss probes), RFC 9937 (how fast a recovery
//! sends) and RFC 6298 (the timeout) make of a burst of which a part is lost once:
//! as the RFCs say it, with every segment looked at for every acknowledgement. As in
//! Linux, a loss reduces the window and not the flight, and the window grows before
//! that if more than half of it is in use.
//!
//! The path takes the same time for everything, the receiver acknowledges each
//! segment, all segments are full, and the window lets the whole burst go. So every
//! measurement gives the same round trip, no segment overtakes another, and
//! acknowledgements tell all that has arrived.

use tidegate_core::{Span, Time};

use crate::{Case, MOST, Outcome};

/// `TLP.max_ack_delay`, and the least that the timeout is above SRTT: Linux has
/// 200 ms for both.
const PATIENCE: Span = Span::millis(200);

#[derive(Clone, Copy)]
struct Segment {
    sent_at: Time,
    /// Place in the order of transmissions.
    order: u32,
    /// The sender knows that it has arrived.
    arrived: bool,
    /// The sender takes it to be lost, and has not sent it again.
    lost: bool,
}

struct Sender {
    round_trip: Span,
    mss: u64,
    segments: Vec<Segment>,
    transmissions: u32,
    /// What is on the way: when its acknowledgement comes, which segment and which
    /// transmission it is.
    flying: Vec<(Time, usize, u32)>,
    /// The latest transmission that has arrived.
    latest: u32,
    /// The congestion window before a recovery.
    window: u64,
    recovery: Option<Recovery>,
    probe_at: Option<Time>,
    reorder_at: Option<Time>,
    timeout_at: Time,
    probes: u64,
    complete_at: Time,
}

/// RFC 9937, in bytes.
#[derive(Clone, Copy, Default)]
struct Recovery {
    window: u64,
    threshold: u64,
    delivered: u64,
    sent: u64,
    /// What may be in the network.
    allowed: u64,
}

impl Sender {
    fn outstanding(&self) -> usize {
        self.segments.iter().filter(|segment| !segment.arrived).count()
    }

    /// How many have arrived from the first on.
    fn acknowledged(&self) -> usize {
        self.segments.iter().take_while(|segment| segment.arrived).count()
    }

    /// `pipe` of RFC 6675.
    fn in_network(&self) -> u64 {
        let there = self.segments.iter().filter(|segment| !segment.arrived && !segment.lost);
        there.count() as u64 * self.mss
    }

    fn sacked(&self) -> usize {
        self.segments.len() - self.outstanding() - self.acknowledged()
    }

    /// RFC 6298 (5.3): the least above SRTT exceeds four variations.
    fn timeout(&self) -> Span {
        self.round_trip + PATIENCE
    }

    fn transmit(&mut self, index: usize, now: Time, arrives: bool) {
        self.transmissions += 1;
        let segment = &mut self.segments[index];
        (segment.sent_at, segment.order, segment.lost) = (now, self.transmissions, false);
        if arrives {
            self.flying.push((now + self.round_trip, index, self.transmissions));
            self.complete_at = self.complete_at.max(now + self.round_trip / 2);
        }
    }

    /// RFC 8985 section 7.2.
    fn schedule_probe(&mut self, now: Time) {
        let timeout = match self.outstanding() {
            0 => None,
            1 => Some(self.round_trip * 2 + PATIENCE),
            _ => Some(self.round_trip * 2),
        };
        let allowed = self.recovery.is_none() && self.sacked() == 0;
        self.probe_at =
            timeout.filter(|_| allowed).map(|timeout| (now + timeout).min(self.timeout_at));
    }

    /// RFC 8985 section 7.3, with no new data: the last segment again.
    fn probe(&mut self, now: Time) {
        self.probes += 1;
        self.probe_at = None;
        self.timeout_at = now + self.timeout();
        self.transmit(self.segments.len() - 1, now, true);
    }

    /// RFC 8985 section 6.2, step 5. Returns how many more are lost.
    fn detect(&mut self, now: Time) -> usize {
        // Step 4: there is no reordering.
        let certain = self.recovery.is_some() || self.sacked() >= 3;
        let window = if certain { Span::ZERO } else { self.round_trip / 4 };
        let mut found = 0;
        self.reorder_at = None;
        for segment in &mut self.segments {
            if segment.arrived || segment.lost || segment.order > self.latest {
                continue;
            }
            let deadline = segment.sent_at + self.round_trip + window;
            if deadline <= now {
                segment.lost = true;
                found += 1;
            } else {
                self.reorder_at = self.reorder_at.max(Some(deadline));
            }
        }
        found
    }

    fn on_arrival(&mut self, now: Time, index: usize, order: u32) {
        let before = self.acknowledged();
        self.segments[index].arrived = true;
        self.latest = self.latest.max(order);
        let progress = self.acknowledged() > before;
        if progress {
            self.timeout_at = now + self.timeout();
        }
        let found = self.detect(now);
        if progress && found == 0 && self.window < 2 * self.segments.len() as u64 * self.mss {
            self.window += self.mss;
        }
        self.repair(now, self.mss, progress && found == 0);
        self.schedule_probe(now);
    }

    fn on_reordering_timer(&mut self, now: Time) {
        self.detect(now);
        self.repair(now, 0, false);
        self.schedule_probe(now);
    }

    /// Sends lost segments again as fast as RFC 9937 section 6.2 allows.
    fn repair(&mut self, now: Time, mut delivered: u64, safe: bool) {
        if self.recovery.is_none() && self.segments.iter().any(|segment| segment.lost) {
            // 717 1 024ths of the window, in whole segments, at least two.
            let window = self.window;
            let threshold = (window / self.mss * 717 / 1_024).max(2) * self.mss;
            self.recovery = Some(Recovery { window, threshold, ..Recovery::default() });
            // The timer that begins a recovery counts as a delivery.
            delivered = delivered.max(self.mss);
        }
        let Some(mut recovery) = self.recovery else { return };
        if delivered > 0 {
            recovery.delivered += delivered;
            let in_network = self.in_network();
            let more = if in_network > recovery.threshold {
                let share = (recovery.delivered * recovery.threshold).div_ceil(recovery.window);
                share.saturating_sub(recovery.sent)
            } else {
                let conserved = recovery.delivered.saturating_sub(recovery.sent).max(delivered);
                let growth = if safe { self.mss } else { 0 };
                (conserved + growth).min(recovery.threshold - in_network)
            };
            let first = if recovery.sent == 0 { self.mss } else { 0 };
            recovery.allowed = in_network + more.max(first);
        }
        let mss = self.mss;
        while let Some(index) = self.segments.iter().position(|segment| segment.lost)
            && self.in_network() + mss <= recovery.allowed
        {
            recovery.sent += mss;
            self.transmit(index, now, true);
        }
        self.recovery = Some(recovery);
    }
}

/// The outcome of a case on a path of `one_way`, without the time of the handshake.
/// `None` when there is a timeout, of which the twin knows nothing.
pub(crate) fn predict(case: Case, one_way: Span, mss: u32) -> Option<Outcome> {
    let round_trip = one_way * 2;
    let unsent = Segment { sent_at: Time::ZERO, order: 0, arrived: false, lost: false };
    let mut sender = Sender {
        round_trip,
        mss: mss.into(),
        segments: vec![unsent; case.segments as usize],
        transmissions: 0,
        flying: Vec::new(),
        latest: 0,
        window: u64::from(MOST * mss),
        recovery: None,
        probe_at: None,
        reorder_at: None,
        timeout_at: Time::ZERO + round_trip + PATIENCE,
        probes: 0,
        complete_at: Time::ZERO,
    };
    for index in 0..case.segments {
        sender.transmit(index as usize, Time::ZERO, !case.loses(index, 0));
    }
    sender.schedule_probe(Time::ZERO);
    while sender.outstanding() > 0 {
        let arrival = sender.flying.iter().map(|(at, _, _)| *at).min();
        let timers = [sender.probe_at, sender.reorder_at, Some(sender.timeout_at)];
        let now = timers.into_iter().chain([arrival]).flatten().min()?;
        if arrival == Some(now) {
            let first = sender.flying.iter().position(|(at, _, _)| *at == now)?;
            let (_, index, order) = sender.flying.remove(first);
            sender.on_arrival(now, index, order);
        } else if sender.probe_at == Some(now) {
            sender.probe(now);
        } else if sender.reorder_at == Some(now) {
            sender.on_reordering_timer(now);
        } else {
            return None;
        }
    }
    Some(Outcome {
        response: sender.complete_at.since(Time::ZERO),
        timeouts: 0,
        probes: Some(sender.probes),
        retransmissions: u64::from(sender.transmissions - case.segments),
    })
}
