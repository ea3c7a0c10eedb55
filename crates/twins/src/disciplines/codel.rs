//! CoDel, derived from a record of its queue (RFC 8289 section 5), or with Linux's
//! root derived from all numbers that it was ever improved for.
//!
//! Where the real one keeps five variables, this one keeps every packet that was
//! ever taken out and every time that it dropped, and derives the answers from
//! those. It shares with the real one that a time after the end of time is the end
//! of time.

use tidegate_core::entry::Place;
use tidegate_core::setting::Settings;
use tidegate_core::units::Amount;
use tidegate_core::{
    Backlog, Buffer, Bytes, Discipline, Ecn, LossReason, Losses, Packet, Rate, Span, Time,
};

/// One queue with CoDel at its head.
pub(super) struct Codel {
    buffer: Buffer,
    rules: Rules,
    law: Law,
    queue: Vec<Packet>,
}

impl Codel {
    pub(super) fn boxed(settings: &Settings, place: Place) -> Box<dyn Discipline> {
        let rules = Rules::new(settings, place.rate);
        let law = Law::new(&rules);
        Box::new(Codel { buffer: place.buffer, rules, law, queue: Vec::new() })
    }
}

impl Discipline for Codel {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        self.queue.push(packet);
        let too_much = match self.buffer.amount() {
            Amount::Packets(limit) => self.queue.len() > limit as usize,
            Amount::Bytes(limit) => bytes(&self.queue) > u128::from(limit.0),
        };
        if too_much {
            losses.push(packet, LossReason::Refused);
            self.queue.pop();
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        self.law.dequeue(&self.rules, &mut self.queue, 0, now, losses)
    }

    fn reconfigure(&mut self, _now: Time, _settings: &Settings, _place: Place) {
        // A twin is only ever set to what it is set to already.
    }

    fn backlog(&self) -> Backlog {
        backlog(&self.queue)
    }
}

pub(super) fn bytes(queue: &[Packet]) -> u128 {
    queue.iter().map(|packet| u128::from(packet.size.0)).sum()
}

pub(super) fn backlog(queue: &[Packet]) -> Backlog {
    let bytes = u64::try_from(bytes(queue)).unwrap_or(u64::MAX);
    Backlog { packets: queue.len() as u32, bytes: Bytes(bytes) }
}

/// What the settings say.
#[derive(Clone, Copy)]
pub(super) struct Rules {
    pub(super) is_linux: bool,
    pub(super) target: Span,
    pub(super) interval: Span,
    pub(super) mtu: u128,
    pub(super) ecn: bool,
    pub(super) ce_threshold: Span,
    pub(super) ce_only_ect1: bool,
}

impl Rules {
    pub(super) fn new(settings: &Settings, rate: Option<Rate>) -> Rules {
        // The time of one and a half packets of the mtu, in 128 bits and rounded up
        // and down where the real one does.
        let is_linux = settings.choice("form") == "linux";
        let packets = rate.filter(|_| !is_linux).map_or(0, |rate| {
            let bit_nanos = u128::from(settings.bytes("mtu").0) * 8_000_000_000;
            bit_nanos.div_ceil(u128::from(rate.0)) * 3 / 2
        });
        let packets = Span(u64::try_from(packets).expect("slower than any rate that is tried"));
        Rules {
            is_linux,
            target: settings.span("target").max(packets),
            interval: settings.span("interval"),
            mtu: u128::from(settings.bytes("mtu").0),
            ecn: settings.switch("ecn"),
            ce_threshold: settings.span("ce_threshold"),
            ce_only_ect1: false,
        }
    }

    fn tell(&self, packet: Packet, losses: &mut Losses) -> Option<Packet> {
        if self.ecn {
            losses.signal(packet)
        } else {
            losses.push(packet, LossReason::Early);
            None
        }
    }

    /// The largest number of nanoseconds that is at most `interval / sqrt(count)`,
    /// by bisection.
    fn spacing(&self, count: u64) -> u128 {
        let interval = u128::from(self.interval.0);
        let (mut fits, mut exceeds) = (0, interval + 1);
        while exceeds - fits > 1 {
            let middle = (fits + exceeds) / 2;
            if middle * middle * u128::from(count) <= interval * interval {
                fits = middle;
            } else {
                exceeds = middle;
            }
        }
        fits
    }
}

/// The law of one queue, in either form.
pub(super) enum Law {
    Rfc(Record),
    Linux(Vars),
}

impl Law {
    pub(super) fn new(rules: &Rules) -> Law {
        if rules.is_linux { Law::Linux(Vars::default()) } else { Law::Rfc(Record::default()) }
    }

    /// What leaves `queue` at `now`, while other queues hold this many bytes.
    pub(super) fn dequeue(
        &mut self,
        rules: &Rules,
        queue: &mut Vec<Packet>,
        elsewhere: u128,
        now: Time,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let packet = match self {
            Law::Rfc(record) => record.dequeue(rules, queue, now, losses),
            Law::Linux(vars) => vars.dequeue(rules, queue, elsewhere, now, losses),
        }?;
        let waited = now.0 - packet.arrived.0;
        let wanted = rules.ce_threshold.0 > 0 && waited > rules.ce_threshold.0;
        match packet.ecn {
            Ecn::Ect0 if wanted && !rules.ce_only_ect1 => losses.signal(packet),
            Ecn::Ect1 if wanted => losses.signal(packet),
            _ => Some(packet),
        }
    }

    /// A full buffer has lost so many packets of the queue.
    pub(super) fn pushed_out(&mut self, packets: u32) {
        if let Law::Linux(vars) = self {
            vars.count = vars.count.saturating_add(packets);
        }
    }
}

/// Linux's `codel_vars`.
#[derive(Default)]
pub(super) struct Vars {
    count: u32,
    lastcount: u32,
    dropping: bool,
    /// The counts for which the root was improved since it was last one.
    improved_for: Vec<u32>,
    first_above_time: Option<Time>,
    drop_next: Time,
}

impl Vars {
    /// `1 / sqrt(count)` in 2^-16: Newton's steps from the start, in 64 bits of 128.
    fn root(&self) -> u64 {
        const WORD: u128 = 1 << 64;
        self.improved_for.iter().fold(0xffff, |root, count| {
            let x = u128::from(root) * 65_536;
            let square = x * x / (1 << 32);
            let rest = (3 * (1 << 32) + WORD * (1 << 32) - u128::from(*count) * square) % WORD;
            let next = (rest / 4 * x) % WORD / (1 << 31) / 65_536;
            (next % 65_536) as u64
        })
    }

    fn after(&self, rules: &Rules, time: Time) -> Time {
        let spacing = u128::from(rules.interval.0) * u128::from(self.root()) / 65_536;
        let then = u128::from(time.0) + spacing.max(1_024);
        Time(u64::try_from(then).unwrap_or(u64::MAX))
    }

    fn should_drop(
        &mut self,
        rules: &Rules,
        packet: Option<Packet>,
        backlog: u128,
        now: Time,
    ) -> bool {
        let above = packet
            .is_some_and(|packet| now.since(packet.arrived) >= rules.target && backlog > rules.mtu);
        match self.first_above_time {
            _ if !above => self.first_above_time = None,
            None => self.first_above_time = Some(now + rules.interval),
            Some(time) => return now > time,
        }
        false
    }

    fn dequeue(
        &mut self,
        rules: &Rules,
        queue: &mut Vec<Packet>,
        elsewhere: u128,
        now: Time,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let take = |queue: &mut Vec<Packet>| (!queue.is_empty()).then(|| queue.remove(0));
        let mut head = take(queue);
        let mut late = self.should_drop(rules, head, bytes(queue) + elsewhere, now);
        if head.is_none() || self.dropping && !late {
            self.dropping = false;
            return head;
        }
        if !self.dropping {
            if !late {
                return head;
            }
            head = rules.tell(head?, losses).or_else(|| {
                let next = take(queue);
                self.should_drop(rules, next, bytes(queue) + elsewhere, now);
                next
            });
            let delta = self.count - self.lastcount;
            let since = now.0.saturating_sub(self.drop_next.0);
            let recent = u128::from(since) < 16 * u128::from(rules.interval.0);
            if delta > 1 && recent && self.lastcount > 0 {
                self.count = delta;
                self.improved_for.push(delta);
            } else {
                self.count = 1;
                self.improved_for.clear();
            }
            self.dropping = true;
            self.lastcount = self.count;
            self.drop_next = self.after(rules, now);
            return head;
        }
        for drops in 1.. {
            if !late {
                self.dropping = false;
                break;
            }
            if now < self.drop_next {
                break;
            }
            if drops == 257 {
                self.drop_next = self.after(rules, now);
                break;
            }
            self.count += 1;
            self.improved_for.push(self.count);
            if let Some(marked) = rules.tell(head?, losses) {
                self.drop_next = self.after(rules, self.drop_next);
                return Some(marked);
            }
            head = take(queue);
            late = self.should_drop(rules, head, bytes(queue) + elsewhere, now);
            if late {
                self.drop_next = self.after(rules, self.drop_next);
            }
        }
        head
    }
}

/// What has happened at the head of a queue.
#[derive(Default)]
pub(super) struct Record {
    /// Each time that a packet was taken out: when, and whether it had waited
    /// for the target and left more than a packet behind.
    taken: Vec<(Time, bool)>,
    /// The periods of dropping, the last of which may still be going on.
    times: Vec<Dropping>,
}

struct Dropping {
    since: Time,
    /// What the count started from.
    base: u64,
    /// Drops and marks after the first one.
    more: u64,
    /// Whether it has ended, and whether with a drop: that drop is counted, but
    /// none was planned after it.
    ended: Option<bool>,
}

impl Dropping {
    fn count(&self) -> u64 {
        self.base + self.more
    }

    /// When the next one is, or would have been, due.
    fn next(&self, rules: &Rules) -> Time {
        let planned = self.more - u64::from(self.ended == Some(true));
        let span: u128 = (self.base..=self.base + planned).map(|count| rules.spacing(count)).sum();
        Time(u64::try_from(u128::from(self.since.0) + span).unwrap_or(u64::MAX))
    }
}

impl Record {
    pub(super) fn dequeue(
        &mut self,
        rules: &Rules,
        queue: &mut Vec<Packet>,
        now: Time,
        losses: &mut Losses,
    ) -> Option<Packet> {
        let mut packet = self.take(rules, queue, now)?;
        let going_on = self.times.last().is_some_and(|time| time.ended.is_none());
        if !going_on {
            if self.is_late(rules) {
                let kept = rules.tell(packet, losses);
                packet = match kept {
                    Some(marked) => marked,
                    None => self.take(rules, queue, now).expect("a late one is not the last"),
                };
                let base = self.base(rules, now);
                self.times.push(Dropping { since: now, base, more: 0, ended: None });
            }
            return Some(packet);
        }
        let mut dropped = false;
        loop {
            let late = self.is_late(rules);
            let time = self.times.last_mut().expect("it goes on");
            if !late {
                time.ended = Some(dropped);
                return Some(packet);
            }
            if now < time.next(rules) {
                return Some(packet);
            }
            time.more += 1;
            if let Some(marked) = rules.tell(packet, losses) {
                return Some(marked);
            }
            dropped = true;
            packet = self.take(rules, queue, now).expect("a late one is not the last");
        }
    }

    fn take(&mut self, rules: &Rules, queue: &mut Vec<Packet>, now: Time) -> Option<Packet> {
        if queue.is_empty() {
            // This counts as a wait below the target.
            self.taken.push((now, false));
            if let Some(time) = self.times.last_mut().filter(|time| time.ended.is_none()) {
                time.ended = Some(false);
            }
            return None;
        }
        let packet = queue.remove(0);
        let above = now.since(packet.arrived) >= rules.target && bytes(queue) > rules.mtu;
        self.taken.push((now, above));
        Some(packet)
    }

    /// Whether all packets for an interval, up to the last one taken, were above.
    fn is_late(&self, rules: &Rules) -> bool {
        let run = self.taken.iter().rev().take_while(|(_, above)| *above).count();
        let first = self.taken.len() - run;
        run > 1 && self.taken[self.taken.len() - 1].0 >= self.taken[first].0 + rules.interval
    }

    fn base(&self, rules: &Rules, now: Time) -> u64 {
        let Some(last) = self.times.last() else { return 1 };
        let recent =
            u128::from(now.0) < u128::from(last.next(rules).0) + 16 * u128::from(rules.interval.0);
        // How far the count has got beyond what it started from.
        let gained = last.count() - last.base;
        if recent && gained > 1 { gained } else { 1 }
    }
}
