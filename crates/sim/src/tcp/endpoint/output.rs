//! What leaves, and the headers that it gets.
//!
//! A segment is built when it leaves, so that acknowledgement, window and timestamp are
//! those of the moment.

use tidegate_core::{Bytes, Ecn, Time};

use super::super::accurate_ecn;
use super::super::header::{Flags, Header, Options, Timestamps, timestamp};
use super::super::sender::Outgoing;
use super::{Endpoint, State};

impl Endpoint {
    /// Sends everything that may be sent now: a lone acknowledgement, then data,
    /// then an acknowledgement if no data has carried it.
    #[inline]
    pub(super) fn flush(&mut self, now: Time, out: &mut Vec<Header>) {
        match self.state {
            State::SynSent | State::SynReceived => {
                if self.syn_due {
                    self.emit_syn(now, out);
                }
                return;
            }
            State::Listen => return,
            State::Closed if self.failed => return,
            // The other states that are over may still owe an acknowledgement.
            _ => {}
        }
        if self.receiver.owes_alone() {
            self.emit_acknowledgement(now, out);
        }
        while let Some(segment) = self.sender.next_segment(&self.config, now) {
            if segment.payload > 0 {
                self.receiver.on_answer(now);
            }
            self.emit(now, segment, out);
        }
        if self.receiver.owes_now() {
            self.emit_acknowledgement(now, out);
        }
    }

    fn emit_syn(&mut self, now: Time, out: &mut Vec<Header>) {
        self.syn_due = false;
        let answers = self.state == State::SynReceived;
        let ecn = match (self.ecn, self.accurate, answers) {
            (false, _, _) => Flags::empty(),
            (true, false, false) => Flags::ECE | Flags::CWR,
            (true, false, true) => Flags::ECE,
            (true, true, false) => accurate_ecn::REQUEST,
            (true, true, true) => accurate_ecn::answer(self.syn_came_as),
        };
        let mss = self.config.segment_size() as u16;
        let mut header = Header {
            sequence: self.own.wire(0),
            flags: Flags::SYN | Flags::ACK.when(answers) | ecn,
            options: Options {
                mss: if self.config.mss_option { mss } else { 0 },
                sack_permitted: self.sack,
                window_scale: self.config.receive_window > Bytes(65_535),
                timestamps: self.timestamps,
            },
            timestamps: self.stamps(now),
            ecn: self.codepoint(false),
            ..Header::default()
        };
        if answers {
            self.receiver.acknowledge(&mut header, self.peer, self.mss);
        }
        header.window = self.receiver.unscaled_window();
        self.sender.on_syn_sent(&self.config, now);
        self.sender.statistics.segments_sent += 1;
        out.push(header);
    }

    /// A segment with our data or FIN.
    #[inline]
    pub(super) fn emit(&mut self, now: Time, segment: Outgoing, out: &mut Vec<Header>) {
        let reduced = self.is_classic() && segment.new_data && self.sender.take_reduction();
        let statistics = &mut self.sender.statistics;
        statistics.segments_sent += 1;
        statistics.data_segments_sent += u64::from(segment.payload > 0);
        let mut header = self.header(now, segment.start);
        header.payload = segment.payload;
        header.ecn = self.codepoint(segment.new_data);
        header.flags = header.flags
            | Flags::CWR.when(reduced)
            | Flags::FIN.when(segment.fin)
            | Flags::PSH.when(self.sender.ends_write(&segment));
        out.push(header);
        if segment.fin && !self.fin_sent {
            self.fin_sent = true;
            match self.state {
                State::Established => self.state = State::FinWait1,
                State::CloseWait => self.state = State::LastAck,
                _ => {}
            }
        }
    }

    /// Whether marks are echoed as in RFC 3168.
    pub(super) fn is_classic(&self) -> bool {
        self.ecn && !self.accurate
    }

    /// What the IP header of a segment says: a scalable sender has all of them in one
    /// queue, so that none overtakes another (RFC 9331 section 4.1, RFC 8311).
    fn codepoint(&self, new_data: bool) -> Ecn {
        match (self.ecn, self.accurate) {
            (true, true) => Ecn::Ect1,
            (true, false) if new_data => Ecn::Ect0,
            _ => Ecn::NotEct,
        }
    }

    fn stamps(&self, now: Time) -> Timestamps {
        if !self.timestamps {
            return Timestamps::default();
        }
        Timestamps { value: timestamp(now), echo: self.receiver.recent() }
    }

    fn emit_acknowledgement(&mut self, now: Time, out: &mut Vec<Header>) {
        self.sender.statistics.segments_sent += 1;
        let mut header = self.header(now, self.sender.next);
        if self.sack {
            self.receiver.report(&mut header, self.peer);
        } else {
            self.receiver.drop_report();
        }
        out.push(header);
    }

    /// The header of a segment that starts at `start` and acknowledges what has
    /// come in.
    #[inline]
    fn header(&mut self, now: Time, start: u64) -> Header {
        let mut header = Header {
            sequence: self.own.wire(start),
            flags: Flags::ACK | self.receiver.echo(),
            options: Options { timestamps: self.timestamps, ..Options::default() },
            timestamps: self.stamps(now),
            ecn: self.codepoint(false),
            ..Header::default()
        };
        self.receiver.acknowledge(&mut header, self.peer, self.mss);
        header
    }
}
