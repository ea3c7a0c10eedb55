//! The segments between SND.UNA and SND.NXT: one record each, in order.
//!
//! One board serves every recovery algorithm. Records are contiguous, so a
//! cumulative acknowledgement pops from the front and costs nothing for the
//! segments that are left, and a SACK block finds its records by binary search.
//! The bytes in the network (`pipe` in RFC 6675) are counted as flags change and
//! never summed up.

use std::collections::VecDeque;

use tidegate_core::Time;

use super::delivery::Delivery;

/// The peer has it, beyond a hole.
const SACKED: u8 = 1;
/// Deemed to have left the network.
const LOST: u8 = 2;
/// Has been sent more than once (Karn's algorithm).
const RETRANSMITTED: u8 = 4;
/// A retransmission is in the network besides the first transmission, which
/// is counted too unless it is deemed lost.
const REPEATED: u8 = 8;
/// Carries the FIN.
const FIN: u8 = 16;
/// SACK has reported it once, even if that was forgotten after a timeout.
const REPORTED: u8 = 32;

/// One segment as it was sent: 24 bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    pub(super) start: u64,
    /// Of its last transmission.
    pub(super) sent_at: Time,
    /// The last transmission's place in the order of all transmissions: many have
    /// the same time.
    pub(super) order: u32,
    payload: u16,
    flags: u8,
}

impl Record {
    /// One past the last sequence number: the FIN counts.
    pub(super) fn end(&self) -> u64 {
        self.start + u64::from(self.payload) + u64::from(self.fin())
    }

    pub(super) fn payload(&self) -> u32 {
        u32::from(self.payload)
    }

    pub(super) fn fin(&self) -> bool {
        self.flags & FIN != 0
    }

    pub(super) fn sacked(&self) -> bool {
        self.flags & SACKED != 0
    }

    pub(super) fn reported(&self) -> bool {
        self.flags & REPORTED != 0
    }

    pub(super) fn lost(&self) -> bool {
        self.flags & LOST != 0
    }

    pub(super) fn retransmitted(&self) -> bool {
        self.flags & RETRANSMITTED != 0
    }

    /// Whether a retransmission is in the network.
    pub(super) fn repeated(&self) -> bool {
        self.flags & REPEATED != 0
    }

    /// Deemed lost, and not yet sent again.
    fn awaits_retransmission(&self) -> bool {
        self.flags & (LOST | REPEATED | SACKED) == LOST
    }

    /// Bytes in the network (RFC 6675 section 4, `SetPipe`). The FIN does not
    /// count: congestion control is about bytes, and if it counted, the last full
    /// segment would not fit into a window of whole segments.
    fn pipe(&self) -> u64 {
        if self.sacked() {
            return 0;
        }
        let copies = u64::from(!self.lost()) + u64::from(self.repeated());
        copies * u64::from(self.payload)
    }
}

/// What a cumulative acknowledgement has taken off the board.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Taken {
    /// When the oldest segment taken was sent, if none had been retransmitted.
    /// One retransmission spoils the sample (Karn's algorithm): the other segments
    /// were waiting for it at the receiver, not travelling.
    pub(super) timed: Option<Time>,
    /// When the latest of them was sent, on the same condition.
    pub(super) latest: Option<Time>,
    /// Bytes that no SACK block had reported before.
    pub(super) delivered: u64,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Scoreboard {
    records: VecDeque<Record>,
    /// Bytes in the network.
    pipe: u64,
    /// No record below this offset awaits retransmission.
    hint: u64,
    /// Records that await retransmission.
    awaiting: u32,
    /// Records that SACK has reported.
    sacked: u32,
    /// Records with a retransmission in the network.
    repeated: u32,
    /// Transmissions so far, wrapping.
    order: u32,
    /// Bytes that were found lost.
    lost: u64,
    /// How fast data arrives, if the controller wants to know.
    pub(super) delivery: Option<Box<Delivery>>,
}

/// Whether the transmission `later` was made after `earlier`, both less than
/// 2^31 apart.
pub(super) fn sent_after(later: u32, earlier: u32) -> bool {
    later.wrapping_sub(earlier).cast_signed() > 0
}

impl Scoreboard {
    pub(super) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    pub(super) fn pipe(&self) -> u64 {
        self.pipe
    }

    /// Bytes that were found lost, over the connection: those of a retransmission that
    /// is lost too count again.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }

    /// Whether a segment deemed lost has not been sent again.
    pub(super) fn has_awaiting(&self) -> bool {
        self.awaiting > 0
    }

    /// Segments deemed lost that have not been sent again.
    pub(super) fn awaiting(&self) -> u32 {
        self.awaiting
    }

    /// Segments with a retransmission in the network.
    pub(super) fn repeated(&self) -> u32 {
        self.repeated
    }

    /// Records that SACK has reported and no cumulative acknowledgement yet.
    pub(super) fn sacked(&self) -> u32 {
        self.sacked
    }

    pub(super) fn get(&self, index: usize) -> Option<&Record> {
        self.records.get(index)
    }

    /// The index of the record that holds `offset`, or the length of the board when
    /// none does.
    pub(super) fn index_of(&self, offset: u64) -> usize {
        // Most questions are about the front.
        match self.records.front() {
            Some(first) if offset < first.end() => 0,
            _ => self.records.partition_point(|record| record.end() <= offset),
        }
    }

    #[inline]
    pub(super) fn push(&mut self, now: Time, start: u64, payload: u16, fin: bool) {
        let flags = if fin { FIN } else { 0 };
        let order = self.next_order();
        let first = self.records.is_empty();
        self.records.push_back(Record { start, sent_at: now, order, payload, flags });
        self.pipe += u64::from(payload);
        if let Some(delivery) = &mut self.delivery {
            delivery.on_sent(now, self.pipe, first);
        }
    }

    fn next_order(&mut self) -> u32 {
        self.order = self.order.wrapping_add(1);
        self.order
    }

    /// Takes everything below `offset` off the board, and shows `delivered` each
    /// record that the acknowledgement completes.
    #[inline]
    pub(super) fn acknowledge(&mut self, offset: u64, mut delivered: impl FnMut(&Record)) -> Taken {
        let mut oldest = None;
        let mut latest = None;
        let mut spoilt = false;
        let mut bytes = 0;
        while let Some(record) = self.records.front_mut() {
            if record.end() > offset {
                if record.start < offset {
                    // Cut inside a segment, as after a window probe.
                    self.pipe -= record.pipe();
                    if !record.reported() {
                        bytes += offset - record.start;
                    }
                    record.payload -= (offset - record.start) as u16;
                    record.start = offset;
                    self.pipe += record.pipe();
                    spoilt |= record.retransmitted();
                }
                break;
            }
            self.pipe -= record.pipe();
            self.awaiting -= u32::from(record.awaits_retransmission());
            self.sacked -= u32::from(record.sacked());
            self.repeated -= u32::from(record.repeated());
            spoilt |= record.retransmitted();
            // A record that SACK had reported was delivered then.
            if !record.sacked() {
                oldest = oldest.or(Some(record.sent_at));
                latest = Some(record.sent_at);
                delivered(record);
            }
            if let Some(delivery) = &mut self.delivery {
                if !record.reported() {
                    delivery.on_arrival(0, record);
                }
                delivery.forget_first();
            }
            if !record.reported() {
                bytes += u64::from(record.payload);
            }
            self.records.pop_front();
        }
        let (timed, latest) = if spoilt { (None, None) } else { (oldest, latest) };
        Taken { timed, latest, delivered: bytes }
    }

    /// Changes the flags of a record and keeps the counts.
    fn change(&mut self, index: usize, set: u8, clear: u8) {
        let record = &mut self.records[index];
        self.pipe -= record.pipe();
        self.awaiting -= u32::from(record.awaits_retransmission());
        self.sacked -= u32::from(record.sacked());
        self.repeated -= u32::from(record.repeated());
        record.flags = record.flags & !clear | set;
        self.pipe += record.pipe();
        self.sacked += u32::from(record.sacked());
        self.repeated += u32::from(record.repeated());
        if record.awaits_retransmission() {
            self.awaiting += 1;
            self.hint = self.hint.min(record.start);
        }
    }

    /// Marks the records inside `run` that overlap `fresh` and are not marked yet,
    /// and shows `delivered` each of them. Returns whether there were any.
    pub(super) fn sack(
        &mut self,
        run: (u64, u64),
        fresh: (u64, u64),
        mut delivered: impl FnMut(&Record),
    ) -> bool {
        let mut any = false;
        let mut index = self.index_of(fresh.0);
        while let Some(record) = self.records.get(index) {
            if record.start >= fresh.1 {
                break;
            }
            if !record.sacked() && run.0 <= record.start && record.end() <= run.1 {
                delivered(record);
                if let Some(delivery) = &mut self.delivery
                    && !record.reported()
                {
                    delivery.on_arrival(index, record);
                }
                self.change(index, SACKED | REPORTED, REPEATED);
                any = true;
            }
            index += 1;
        }
        any
    }

    /// Deems a record lost, its retransmission too if there was one.
    pub(super) fn mark_lost(&mut self, index: usize) {
        self.count_lost(index);
        self.change(index, LOST, REPEATED);
    }

    /// Counts a record as lost unless it has left the network already. Its flags stay
    /// as they are: without SACK a retransmission takes the place of what is lost.
    pub(super) fn count_lost(&mut self, index: usize) {
        let record = &self.records[index];
        if record.pipe() == 0 {
            return;
        }
        let bytes = u64::from(record.payload);
        self.lost += bytes;
        if let Some(delivery) = &mut self.delivery {
            delivery.on_loss(index, record.start, bytes);
        }
    }

    /// After a timeout: everything is deemed lost, and what the peer has
    /// reported is forgotten (RFC 2018 section 8).
    pub(super) fn mark_all_lost(&mut self) {
        for index in 0..self.records.len() {
            self.count_lost(index);
            self.change(index, LOST, REPEATED | SACKED);
        }
    }

    /// Deems nothing lost any more. A retransmission is in the network besides.
    pub(super) fn unmark_lost(&mut self) {
        for index in 0..self.records.len() {
            self.change(index, 0, LOST);
        }
    }

    /// The first record that awaits retransmission.
    pub(super) fn first_awaiting(&mut self) -> Option<usize> {
        if self.awaiting == 0 {
            return None;
        }
        let from = self.index_of(self.hint);
        let found = from
            + self
                .records
                .range(from..)
                .position(Record::awaits_retransmission)
                .expect("the hint is at or below every record that is counted as awaiting");
        self.hint = self.records[found].start;
        Some(found)
    }

    /// Notes that a record is sent again. If `counted`, the copy is in the network
    /// besides the original; otherwise it takes the original's place.
    pub(super) fn retransmit(&mut self, index: usize, now: Time, counted: bool) -> Record {
        let repeated = if counted { REPEATED } else { 0 };
        self.change(index, RETRANSMITTED | repeated, 0);
        let order = self.next_order();
        let record = &mut self.records[index];
        record.sent_at = now;
        record.order = order;
        let record = *record;
        if let Some(delivery) = &mut self.delivery {
            delivery.on_sent_again(index, self.pipe);
        }
        record
    }

    /// Forgets everything that was sent.
    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.pipe = 0;
        self.awaiting = 0;
        self.sacked = 0;
        self.repeated = 0;
        if let Some(delivery) = &mut self.delivery {
            delivery.clear();
        }
    }
}
