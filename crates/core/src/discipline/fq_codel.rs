//! FQ-CoDel: CoDel in each of many queues, which take turns.
//!
//! A flow goes into one of `flows` queues by a hash that depends on the seed.
//! Queues take turns of `quantum` bytes each, so all have the same share of the
//! rate; each is kept short by a CoDel of its own (`RFC 8290 section 4`). Queues
//! that were idle have their first turn before all others (`SparseFirst`): a flow
//! that sends less than a quantum in the time that all others take for one turn
//! waits only for other such flows.
//!
//! A full buffer takes its victims from the head of the queue with the most bytes,
//! half of its packets or `drop_batch` at once (`RFC 8290 section 4.1`); that is
//! usually not the queue of the arriving packet. Among queues with equally many
//! bytes, it is the one that has been backlogged longest.
//!
//! A turn ends when the credits reach zero, as in Linux and ns-3: section 4.2 speaks of
//! a negative number and, in the same sentence, of a queue that has sent at least a
//! quantum.
//!
//! Linux 7.3 (`sch_fq_codel`) and the RFC differ as the law of CoDel does
//! (`codel_law.rs`), and in this:
//!
//! - CoDel leaves a queue alone while no more than a packet is left. In the RFC, as in
//!   ns-3, that is what is left of its own queue. Linux passes the backlog of all queues,
//!   so while others have packets a flow may lose its only one: a handshake or the last
//!   packet of a transfer, which nothing but a timeout brings back.
//! - What a full buffer takes is half of the packets in the RFC, rounded down, but at
//!   least one. Linux takes packets until half of the bytes are gone, and adds their
//!   number to the count of the queue's CoDel, which drops that much faster from then on.
//! - A new queue that turns out to be empty while there are no old ones is forgotten at
//!   once in Linux, and may soon be new again; in the RFC it becomes old.
//!
//! Linux's limit on memory is left out: the buffer may be in bytes.
//!
//! The cost is O(1) per packet while no packet is larger than a few quanta, except
//! with a full buffer, where it is O(log n) in the number of queues that hold
//! packets.

use super::codel_law::{CodelLaw, CodelParameters};
use super::flow_queues::FlowQueues;
use super::form::Form;
use super::sparse_first::SparseFirst;
use super::{Backlog, Discipline, LossReason, Losses};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::flow_table::FlowHash;
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Time};

/// The registry's entry for [`FqCodel`].
pub const ENTRY: Entry = Entry {
    name: "fq-codel",
    summary: "flow queues with CoDel: equal shares, sparse flows first, each queue kept short",
    source: "Linux 7.3, RFC 8290",
    linux: Some("fq_codel"),
    drops: Drops::Early,
    parameters: &[
        Form::OR_RFC,
        FLOWS,
        QUANTUM,
        DROP_BATCH,
        CodelParameters::TARGET,
        CodelParameters::INTERVAL,
        CodelParameters::MTU,
        Parameter { default: "on", ..CodelParameters::ECN },
        CodelParameters::CE_THRESHOLD,
        CE_THRESHOLD_SELECTOR,
    ],
    fixed: &[Form::OR_RFC, FLOWS],
    build: |settings, place, seed| Box::new(FqCodel::in_place(settings, place, seed)),
};

/// `RFC 8290 section 5.2`.
const FLOWS: Parameter = Parameter {
    name: "flows",
    help: "queues that flows are hashed into",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "1024",
};

/// The largest packet (`RFC 8290 section 5.2`; `psched_mtu` in Linux), of which sizes do
/// not include the header of the link here.
const QUANTUM: Parameter = Parameter {
    name: "quantum",
    help: "what a queue may send in one turn",
    kind: Kind::Bytes { least: Bytes(1), most: Bytes(1_000_000) },
    default: "1500 B",
};

/// `RFC 8290 section 4.1`.
const DROP_BATCH: Parameter = Parameter {
    name: "drop_batch",
    help: "the most packets that a full buffer takes from the longest queue at once",
    kind: Kind::Count { least: 1, most: 65_536 },
    default: "64",
};

/// Linux takes a value and a mask for the octet of both codepoints; these two are what
/// they are set to for senders that know no difference, and for L4S.
const CE_THRESHOLD_SELECTOR: Parameter = Parameter {
    name: "ce_threshold_selector",
    help: "what ce_threshold marks: any packet that can be marked, or only ECT(1), low-latency \
           traffic",
    kind: Kind::Choice(&["any", "ect1"]),
    default: "any",
};

/// The values of CoDel's parameters for queues in this place.
fn parameters(settings: &Settings, place: Place) -> CodelParameters {
    CodelParameters {
        ce_threshold_ect1: settings.choice(CE_THRESHOLD_SELECTOR.name) == "ect1",
        ..CodelParameters::in_place(settings, place)
    }
}

/// How queues share the link and the buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Turns {
    /// Number of queues; zero is taken as one.
    pub flows: u32,
    /// What a queue may send in one turn; zero is taken as one byte.
    pub quantum: Bytes,
    /// The most packets that a full buffer takes from a queue at once.
    pub drop_batch: u32,
}

impl Turns {
    fn from_settings(settings: &Settings) -> Turns {
        Turns {
            flows: settings.count(FLOWS.name),
            quantum: settings.bytes(QUANTUM.name),
            drop_batch: settings.count(DROP_BATCH.name),
        }
    }
}

impl Default for Turns {
    /// The defaults of the registered parameters, those of `RFC 8290 section 5.2`.
    fn default() -> Turns {
        Turns::from_settings(&Settings::defaults(ENTRY.parameters))
    }
}

/// Queues that take turns, each with CoDel at its head.
#[derive(Debug)]
pub struct FqCodel {
    turns: Turns,
    parameters: CodelParameters,
    buffer: Buffer,
    hash: FlowHash,
    queues: FlowQueues<CodelLaw>,
    order: SparseFirst,
    /// Whether a full buffer leaves every queue its last packet.
    spares_last: bool,
    /// Whether queues that were idle go first.
    idle_first: bool,
}

impl FqCodel {
    /// Empty queues that together hold at most `buffer`; which flow goes into
    /// which depends on `seed`.
    #[must_use]
    pub fn new(turns: Turns, parameters: CodelParameters, buffer: Buffer, seed: u64) -> FqCodel {
        let Turns { flows, quantum, drop_batch } = turns;
        FqCodel {
            turns: Turns {
                flows: flows.max(1),
                quantum: quantum.max(Bytes(1)),
                drop_batch: drop_batch.max(1),
            },
            parameters,
            buffer,
            hash: FlowHash::new(seed),
            queues: FlowQueues::new(),
            order: SparseFirst::new(parameters.form),
            spares_last: false,
            idle_first: true,
        }
    }

    /// The same, but a full buffer refuses what arrives if the longest queue has one packet,
    /// to find out what that does.
    #[must_use]
    pub fn with_losses_that_spare_the_last(self) -> FqCodel {
        FqCodel { spares_last: true, ..self }
    }

    /// The same, but queues that were idle wait behind all others, to find out what that does.
    #[must_use]
    pub fn with_idle_queues_last(self) -> FqCodel {
        FqCodel { idle_first: false, ..self }
    }

    /// Empty queues with these settings, for a place.
    #[must_use]
    pub fn in_place(settings: &Settings, place: Place, seed: u64) -> FqCodel {
        let turns = Turns::from_settings(settings);
        FqCodel::new(turns, parameters(settings, place), place.buffer, seed)
    }

    fn quantum(&self) -> i128 {
        i128::from(self.turns.quantum.0)
    }

    /// Makes room for what has just come, at the expense of the longest queue.
    fn push_out(&mut self, room: Buffer, (queue, arriving): (u32, &Packet), losses: &mut Losses) {
        while !room.holds(self.queues.backlog()) {
            let Some(longest) = self.queues.fattest() else { return };
            let (packets, bytes) = (self.queues.packets_of(longest), self.queues.bytes_of(longest));
            if self.spares_last && packets < 2 {
                let newest = self.queues.pop_last(queue).expect("it has just come");
                losses.push_out(newest, arriving);
                continue;
            }
            let mut taken = 0;
            while let Some(victim) = self.queues.pop_first(longest) {
                losses.push_out(victim, arriving);
                taken += 1;
                let is_half = match self.parameters.form {
                    Form::Linux => self.queues.bytes_of(longest) <= bytes - bytes / 2,
                    Form::Published => taken >= packets / 2,
                };
                if is_half || taken >= self.turns.drop_batch {
                    break;
                }
            }
            if self.parameters.form == Form::Linux {
                self.queues.state(longest).pushed_out(taken);
            }
        }
    }
}

impl Discipline for FqCodel {
    fn enqueue(&mut self, _now: Time, packet: Packet, losses: &mut Losses) {
        // A packet larger than the whole buffer would push out everything else and
        // still not fit.
        if !self.buffer.has_room(Backlog::default(), packet.size) {
            return losses.push(packet, LossReason::Refused);
        }
        let room = self.buffer.stretched_to(self.queues.backlog());
        let queue = self.hash.bucket(&packet.flow, self.turns.flows);
        self.queues.push(queue, packet);
        let quantum = self.quantum();
        if self.idle_first {
            self.order.arrived(queue, || quantum);
        } else {
            self.order.arrived_last(queue, quantum);
        }
        self.push_out(room, (queue, &packet), losses);
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<Packet> {
        let quantum = self.quantum();
        loop {
            let queue = self.order.next(|_| quantum)?;
            let mut law = *self.queues.state(queue);
            let packet = law.dequeue(&self.parameters, now, losses, || {
                let packet = self.queues.pop_first(queue)?;
                let left = match self.parameters.form {
                    Form::Linux => self.queues.bytes(),
                    Form::Published => self.queues.bytes_of(queue),
                };
                Some((packet, left))
            });
            *self.queues.state(queue) = law;
            match packet {
                Some(packet) => {
                    self.order.spend(queue, i128::from(packet.size.0));
                    return Some(packet);
                }
                None => self.order.found_empty(queue),
            }
        }
    }

    fn reconfigure(&mut self, _now: Time, settings: &Settings, place: Place) {
        self.turns = Turns { flows: self.turns.flows, ..Turns::from_settings(settings) };
        self.parameters = parameters(settings, place);
        self.buffer = place.buffer;
    }

    fn backlog(&self) -> Backlog {
        self.queues.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.order.active()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::trial::Trial;
    use crate::packet::Ecn;
    use crate::units::Span;

    fn fq_codel(given: &[(&str, &str)], packets: u32) -> Trial<FqCodel> {
        let settings = ENTRY.settings(given).unwrap();
        let parameters = CodelParameters::from_settings(&settings);
        let turns = Turns::from_settings(&settings);
        Trial::new(FqCodel::new(turns, parameters, Buffer::packets(packets), 1))
    }

    fn with_quantum(quantum: &str) -> Trial<FqCodel> {
        fq_codel(&[("quantum", quantum)], 100)
    }

    #[test]
    fn turns_are_of_equal_bytes() {
        let mut trial = with_quantum("1500 B");
        trial.arrive_all([('a', 1_500); 2]);
        trial.arrive_all([('b', 500); 6]);
        assert_eq!(trial.drain(), [0, 2, 3, 4, 1, 5, 6, 7]);
        assert_eq!(trial.discipline.flows_tracked(), 0);
    }

    #[test]
    fn with_a_small_quantum_small_packets_pass_large_ones() {
        let mut trial = with_quantum("300 B");
        trial.arrive_all([('a', 1_500); 2]);
        trial.arrive_all([('b', 100); 6]);
        // `a` owes 1200 after its first packet: four turns of 300 only pay that
        // back, and `b` sends three packets in each of its own.
        assert_eq!(trial.drain(), [0, 2, 3, 4, 5, 6, 7, 1]);
    }

    #[test]
    fn a_sparse_flow_goes_first_but_only_once_a_round() {
        let mut trial = fq_codel(&[("quantum", "1514 B"), ("form", "rfc")], 100);
        trial.arrive_all([('a', 500); 20]);
        // Credits 1514: three packets leave 14 of it, and a fourth passes for that.
        assert_eq!([0; 4].map(|_| trial.send()), [0, 1, 2, 3].map(Some));
        trial.arrive('b', 40);
        // `a`, in debt by 486, becomes old and has 1028 again.
        assert_eq!(trial.send(), Some(20));
        // `b` is empty and becomes the last of the old ones.
        assert_eq!(trial.send(), Some(4));
        trial.arrive('b', 40);
        // Were it new once more, it would go now, and so starve `a` in time.
        assert_eq!([0; 3].map(|_| trial.send()), [5, 6, 21].map(Some));
        // Its turn as an old queue finds it empty: it is forgotten.
        assert_eq!(trial.send(), Some(7));
        assert_eq!(trial.discipline.flows_tracked(), 1);
        trial.arrive('b', 40);
        assert_eq!(trial.send(), Some(22));
    }

    #[test]
    fn a_full_buffer_halves_the_longest_queue_from_its_head() {
        // 9 packets: half of them are 4, and half of the bytes are gone with the fifth.
        for (form, batch, victims) in
            [("rfc", "64", 0..4), ("rfc", "2", 0..2), ("linux", "64", 0..5), ("linux", "2", 0..2)]
        {
            let mut trial = fq_codel(&[("form", form), ("drop_batch", batch)], 12);
            trial.arrive_all([('a', 1_500); 9]);
            trial.arrive_all([('b', 100); 4]);
            let victims: Vec<_> = victims.map(|n| (n, LossReason::PushedOut)).collect();
            assert_eq!(trial.lost(), victims, "{form}, {batch}");
        }
    }

    /// Linux counts what a full buffer loses as drops of the law. The first one that
    /// follows is due at once, and the next after 100 ms / sqrt(4), for four had been
    /// lost before; in the RFC's form after 100 ms.
    #[test]
    fn in_linux_what_a_full_buffer_loses_speeds_up_the_law() {
        for (form, count) in [("linux", 4), ("rfc", 0)] {
            let mut trial = fq_codel(&[("form", form)], 8);
            trial.arrive_all([('a', 1_500); 9]);
            assert_eq!(trial.lost().len(), if form == "linux" { 5 } else { 4 });
            let queues = &mut trial.discipline.queues;
            let mut counts = Vec::new();
            queues.each_state(|law, bytes| counts.extend((bytes > 0).then(|| law.count())));
            assert_eq!(counts, [if form == "linux" { count + 1 } else { count }]);
        }
    }

    #[test]
    fn an_arriving_packet_that_makes_the_longest_queue_alone_is_refused() {
        let mut trial = fq_codel(&[], 1);
        trial.arrive_all([('a', 100), ('b', 1_500), ('b', 40)]);
        assert_eq!(trial.lost(), [(1, LossReason::Refused), (0, LossReason::PushedOut)]);
    }

    fn of_packets(packets: u32) -> FqCodel {
        let law = CodelParameters::from_settings(&Settings::defaults(ENTRY.parameters));
        FqCodel::new(Turns::default(), law, Buffer::packets(packets), 1)
    }

    #[test]
    fn a_full_buffer_may_spare_the_last_packet_of_each_queue() {
        for (discipline, lost) in [
            (of_packets(3), (0, LossReason::PushedOut)),
            (of_packets(3).with_losses_that_spare_the_last(), (3, LossReason::Refused)),
        ] {
            let mut trial = Trial::new(discipline);
            trial.arrive_all([('a', 1_500), ('b', 1_500), ('c', 1_500), ('d', 1_500)]);
            assert_eq!(trial.lost(), [lost]);
            // A second packet of `c` makes its queue the longest.
            trial.arrive('c', 1_500);
            assert_eq!(trial.lost(), [(2, LossReason::PushedOut)]);
        }
    }

    #[test]
    fn a_queue_that_was_idle_may_have_to_wait() {
        for (discipline, sent) in
            [(of_packets(9), [4, 1, 3]), (of_packets(9).with_idle_queues_last(), [1, 4, 3])]
        {
            let mut trial = Trial::new(discipline);
            trial.arrive_all([('a', 1_500), ('a', 1_500), ('b', 1_500), ('b', 1_500)]);
            assert_eq!([trial.send(), trial.send()], [Some(0), Some(2)]);
            trial.arrive('c', 40);
            assert_eq!(trial.drain(), sent);
        }
    }

    /// Flow `b` has one packet queued at a time, `a` many.
    #[test]
    fn in_linux_a_flow_may_lose_its_only_packet_and_in_the_rfc_it_keeps_it() {
        for (form, sent, lost) in [
            ("linux", vec![3, 4], vec![(2, LossReason::Early), (19, LossReason::Early)]),
            ("rfc", vec![19, 3], vec![(2, LossReason::Early)]),
        ] {
            let mut trial = fq_codel(&[("form", form), ("quantum", "1514 B")], 100);
            trial.arrive_all([('a', 1_500); 18]);
            trial.arrive_all([('b', 40); 2]);
            trial.now = Time::ZERO + Span::millis(5);
            assert_eq!([0; 3].map(|_| trial.send()), [0, 1, 18].map(Some));
            // Both queues have waited for an interval. In the RFC that of `b` is short and
            // the bytes of `a` do not count there; in Linux they do: packet 19 goes, and
            // then 2, as the head of `a`.
            trial.now = Time(105_000_001);
            assert_eq!([0; 2].map(|_| trial.send().unwrap()).to_vec(), sent, "{form}");
            let mut found = trial.lost();
            found.sort_unstable_by_key(|loss| loss.0);
            assert_eq!(found, lost, "{form}");
        }
    }

    /// Of two packets that waited for longer than the threshold one is marked, or both.
    #[test]
    fn a_selector_spares_packets_of_other_senders() {
        for (selector, marked) in [("ect1", 1), ("any", 2)] {
            let given = [("ce_threshold", "1 ms"), ("ce_threshold_selector", selector)];
            let settings = ENTRY.settings(&given).unwrap();
            let place = Buffer::packets(100).into();
            let (turns, parameters) =
                (Turns::from_settings(&settings), parameters(&settings, place));
            let mut trial = Trial::new(FqCodel::new(turns, parameters, place.buffer, 1));
            for ecn in [Ecn::NotEct, Ecn::Ect0, Ecn::Ect1, Ecn::Ce] {
                trial.arrive_as('a', 1_500, ecn);
            }
            trial.now = Time::ZERO + Span::millis(2);
            assert_eq!(trial.drain(), [0, 1, 2, 3]);
            assert_eq!(trial.marked(), marked, "{selector}");
        }
    }

    #[test]
    fn debts_of_many_rounds_are_paid_back_at_once() {
        let mut trial = with_quantum("1 B");
        trial.arrive_all([('a', u64::MAX), ('a', 10), ('b', 5), ('b', 5)]);
        assert_eq!(trial.drain(), [0, 2, 3, 1]);
    }
}
