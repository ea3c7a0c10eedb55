//! Whether a loss was one, and what it has cost given back (Linux 7.3, tcp_input:
//! `tcp_process_loss` and the functions `tcp_try_undo`).
//!
//! Behind a queue of seconds the timer runs out for segments that are only late. A sender
//! that takes them to be lost sends them all again, into the same queue, with a window of
//! one. Three things tell it better:
//!
//! - an acknowledgement echoes a timestamp from before the first retransmission: the
//!   original has arrived (Eifel, RFC 3522);
//! - every retransmission has arrived as a duplicate (RFC 2883, RFC 3708);
//! - after a timeout, something is acknowledged that was not sent again. So that there may
//!   be such a thing, the first acknowledgement after a timeout releases new data and no
//!   retransmission (F-RTO, RFC 5682).
//!
//! The window and the threshold then become what they were before, and what was deemed
//! lost and not sent again is in the network.
//!
//! The last of the three may be wrong, in Linux too: what left shortly before the timer ran
//! out, and arrives, says that not all was lost, though the timer waited for other data.

use crate::tcp::congestion::Before;
use crate::tcp::header::{echoes_before, timestamp};
use crate::tcp::scoreboard::Record;
use crate::tcp::sender::{Phase, Sender};

use super::rack::Rack;
use super::sack::{Report, Sack};

/// What goes out until the next acknowledgement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::tcp) enum Next {
    /// What is lost, then new data.
    #[default]
    Repairs,
    /// New data; what is lost only if there is none (F-RTO, step 2b).
    NewFirst,
    /// New data only: what was sent again need not have been.
    NewOnly,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the window was reduced, while that may be undone (`undo_marker`).
    marker: Option<u64>,
    /// What the reduction has left behind; nothing if the window had been reduced before.
    before: Option<Before>,
    /// Retransmissions that have not arrived as duplicates, once there are any
    /// (`undo_retrans`).
    unproven: Option<u32>,
    /// Timestamp of the first retransmission of the episode, zero for none (`retrans_stamp`).
    /// An episode ends when no retransmission can be in the network any more, which may be
    /// after the end of its recovery.
    first_repeat: u32,
    /// The timeout may prove spurious by what is acknowledged next (`frto`).
    forward: bool,
    pub(super) next: Next,
}

/// One acknowledgement, as far as it tells of losses that were none.
#[derive(Clone, Copy, Debug)]
pub(super) struct Evidence {
    /// It covers new data.
    pub(super) progress: bool,
    /// The timestamp that it echoes, zero for none.
    pub(super) echo: u32,
    /// It is the first to report something that had not been sent again, from before the
    /// timeout.
    pub(super) original: bool,
    pub(super) report: Report,
}

impl Undo {
    pub(super) fn forget(&mut self) {
        self.marker = None;
    }

    pub(super) fn on_retransmission(&mut self, record: &Record) {
        *self.unproven.get_or_insert(0) += 1;
        if self.first_repeat == 0 {
            self.first_repeat = timestamp(record.sent_at);
        }
    }

    /// A timeout; `forward` says that nothing else was being repaired.
    pub(super) fn on_timeout(&mut self, forward: bool) {
        self.forward = forward;
        self.next = Next::Repairs;
    }

    fn on_duplicate(&mut self, end: u64) {
        if let (Some(marker), Some(count)) = (self.marker, &mut self.unproven)
            && end > marker
        {
            *count = count.saturating_sub(1);
        }
    }

    fn all_proven(&self) -> bool {
        self.marker.is_some() && self.unproven == Some(0)
    }

    /// The acknowledgement answers what was sent before the first retransmission.
    fn was_delayed(&self, echo: u32) -> bool {
        let first = self.first_repeat;
        self.marker.is_some() && (first == 0 || echoes_before(echo, first))
    }
}

impl Sender {
    /// Looks whether an acknowledgement shows that what was deemed lost was not, before it
    /// is looked at for losses.
    pub(super) fn look_back(&mut self, sack: &mut Sack, evidence: Evidence) {
        let Evidence { progress, echo, original, report } = evidence;
        let undo = &mut sack.undo;
        undo.next = Next::Repairs;
        if let Some((_, end)) = report.duplicate {
            undo.on_duplicate(end);
        }
        let recovered = self.unacknowledged >= self.recover;
        let proven = undo.all_proven();
        let delayed = progress && undo.was_delayed(echo);
        match self.phase {
            Phase::Open => {
                self.end_episode(&mut sack.undo);
                if proven {
                    self.undo(sack, false);
                }
            }
            Phase::Recovery if recovered && (proven || delayed) => self.undo(sack, false),
            Phase::Recovery if delayed && self.board.repeated() > 0 => undo.next = Next::NewOnly,
            Phase::Recovery if delayed => self.undo(sack, true),
            Phase::Recovery if proven => self.undo(sack, false),
            Phase::Recovery => {}
            Phase::Loss if progress && (proven || delayed) => self.undo(sack, true),
            Phase::Loss if undo.forward && original => self.undo(sack, true),
            Phase::Loss if undo.forward && self.next > self.recover => {
                // Step 3a: the loss was one.
                undo.forward = !report.fresh && progress;
            }
            Phase::Loss if undo.forward && progress && !recovered => undo.next = Next::NewFirst,
            Phase::Loss => {}
        }
    }

    /// Gives back what the latest reduction has taken. With `unmark`, nothing is lost.
    fn undo(&mut self, sack: &mut Sack, unmark: bool) {
        if unmark {
            self.board.unmark_lost();
            sack.reexamine();
        }
        sack.undo.marker = None;
        sack.undo.forward = false;
        self.phase = Phase::Open;
        self.statistics.undone_recoveries += 1;
        match sack.undo.before.take() {
            Some(before) => {
                self.congestion.on_spurious_recovery(&before);
                self.reduction_untold = false;
            }
            None => self.congestion.on_recovered(self.congestion.window),
        }
    }

    /// Forgets when the first retransmission was sent, unless there is one whose
    /// acknowledgement may still come. Of those that were found lost only the first segment
    /// is looked at, as in Linux (`tcp_any_retrans_done`).
    fn end_episode(&self, undo: &mut Undo) {
        let head = || self.board.get(0).is_some_and(Record::retransmitted);
        if undo.first_repeat != 0 && self.board.repeated() == 0 && !head() {
            undo.first_repeat = 0;
        }
    }

    /// Notes what the window is before it is reduced, for the case that it was needless.
    pub(in crate::tcp) fn note_reduction(&mut self) {
        let Some(mut sack) = self.sack.take() else { return };
        self.end_episode(&mut sack.undo);
        // Duplicates of what is in the network already prove nothing of this reduction. A
        // probe may be, although what it repeats has been reported.
        let unproven = self.board.repeated().max(sack.rack.as_ref().map_or(0, Rack::probes_out));
        sack.undo.unproven = (unproven > 0).then_some(unproven);
        sack.undo.marker = Some(self.unacknowledged);
        let reduces = self.unacknowledged >= self.reduced_until;
        sack.undo.before = reduces.then(|| self.before_reduction());
        self.sack = Some(sack);
    }

    /// What the window is before a reduction. A recovery aims below its window; otherwise
    /// three quarters of it are a threshold (`tcp_current_ssthresh`).
    fn before_reduction(&self) -> Before {
        let (window, threshold) = (self.congestion.window, self.congestion.threshold());
        let aim = if self.phase == Phase::Recovery { 0 } else { window / 4 * 3 };
        Before { window, threshold: threshold.max(aim) }
    }

    /// Which of lost segments and new data may leave.
    #[inline]
    pub(in crate::tcp) fn order(&self) -> Next {
        self.sack.as_ref().map_or(Next::Repairs, |sack| sack.undo.next)
    }

    /// There is no new data that could show whether the timeout was needed.
    pub(in crate::tcp) fn repair_after_all(&mut self) {
        if let Some(sack) = &mut self.sack {
            sack.undo.next = Next::Repairs;
            sack.undo.forward = false;
        }
    }
}
