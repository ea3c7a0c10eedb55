//! One end of a connection: the state diagram of RFC 9293. [`output`] builds the headers.

mod output;

use std::sync::Arc;

use tidegate_core::{Bytes, Ecn, Rate, Span, Time};

use super::accurate_ecn::{self, Feedback};
use super::config::TcpConfig;
use super::header::{Flags, Header, SequenceSpace};
use super::quick_acks::Pace;
use super::receiver::Receiver;
use super::recovery::sack::Sack;
use super::sender::Sender;
use super::statistics::Statistics;

/// Where a connection stands (RFC 9293 section 3.3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Waits for a SYN.
    Listen,
    /// Has sent its SYN, or will at the first [`Endpoint::poll`].
    SynSent,
    /// Has received a SYN and answered it.
    SynReceived,
    /// Data flows in both directions.
    Established,
    /// Has sent its FIN.
    FinWait1,
    /// Its FIN has been acknowledged.
    FinWait2,
    /// The peer's FIN has come in, ours has not been sent.
    CloseWait,
    /// Both have sent a FIN, and ours has not been acknowledged.
    Closing,
    /// Has sent its FIN after the peer's.
    LastAck,
    /// Both directions are done; only repeated FINs are still answered. There
    /// is no timer for the end of this state: the owner drops the endpoint.
    TimeWait,
    /// Over, whether done or failed.
    Closed,
}

/// One end of a TCP connection.
///
/// All methods that take a `Time` expect it never to go back.
#[derive(Debug)]
pub struct Endpoint {
    config: Arc<TcpConfig>,
    sender: Sender,
    receiver: Receiver,
    /// Our sequence numbers, and the peer's once its SYN has come in.
    own: SequenceSpace,
    peer: SequenceSpace,
    state: State,
    /// Options that both ends have.
    sack: bool,
    timestamps: bool,
    ecn: bool,
    /// Whether both count marks, for a scalable controller.
    accurate: bool,
    /// How the peer's SYN came in.
    syn_came_as: Ecn,
    /// The MSS that the peer's SYN announced, or ours.
    mss: u32,
    failed: bool,
    /// The FIN of our side is on its way.
    fin_sent: bool,
    /// A SYN or SYN-ACK is to be sent.
    syn_due: bool,
}

impl Endpoint {
    /// An endpoint that will open a connection at the first [`poll`](Endpoint::poll),
    /// with the initial sequence number `isn`.
    #[must_use]
    pub fn connect(config: Arc<TcpConfig>, isn: u32) -> Endpoint {
        let mut endpoint = Endpoint::new(config, isn, State::SynSent);
        endpoint.syn_due = true;
        endpoint
    }

    /// An endpoint that waits for a SYN.
    #[must_use]
    pub fn listen(config: Arc<TcpConfig>, isn: u32) -> Endpoint {
        Endpoint::new(config, isn, State::Listen)
    }

    fn new(config: Arc<TcpConfig>, isn: u32, state: State) -> Endpoint {
        Endpoint {
            sender: Sender::new(&config),
            receiver: Receiver::new(&config),
            own: SequenceSpace::new(isn),
            peer: SequenceSpace::default(),
            state,
            sack: config.sack,
            timestamps: config.timestamps_option,
            ecn: config.ecn || config.congestion.scalable,
            accurate: config.congestion.scalable,
            syn_came_as: Ecn::NotEct,
            mss: config.segment_size(),
            failed: false,
            fin_sent: false,
            syn_due: false,
            config,
        }
    }

    /// The application has `bytes` more to send; ignored after [`close`](Endpoint::close).
    pub fn write(&mut self, bytes: u64) {
        self.sender.write(bytes);
    }

    /// The application sends nothing after what it has written.
    pub fn close(&mut self) {
        self.sender.close(&self.config);
    }

    /// Sets whether the application reads what comes in. It does until told
    /// otherwise. While it does not, the receive buffer fills and the window closes.
    pub fn set_reading(&mut self, reads: bool) {
        self.read_up_to(if reads { u64::MAX } else { self.delivered() });
    }

    /// The receive buffer holds this much from now on, at most what the configuration
    /// says. A window that was advertised is never taken back.
    pub fn resize_buffer(&mut self, size: Bytes) {
        self.receiver.resize(size.min(self.config.receive_window).0);
    }

    /// The receive buffer is small at first and grows with what is read, as in Linux (Fisk 2001):
    /// to no more than the configuration says. Where that is not Linux, it is of that size.
    ///
    /// An application that reads all that comes gains nothing from this, for such a window
    /// runs ahead of what may be sent. One that reads less has less come in vain.
    pub fn grow_buffer(&mut self) {
        self.receiver.grow();
    }

    /// The application reads until it has had `total` bytes of payload and then
    /// stops.
    pub fn read_up_to(&mut self, total: u64) {
        self.receiver.read_up_to(total);
    }

    /// Bytes that the application has written and that no window lets go now: what
    /// waits in the socket. A program that decides late what to send next keeps this
    /// small, as Linux's `TCP_NOTSENT_LOWAT` lets it.
    #[must_use]
    pub fn held_back(&self) -> u64 {
        self.sender.held_back()
    }

    /// How many bytes of payload the application reads in all, as last set.
    #[must_use]
    pub fn readable(&self) -> u64 {
        self.receiver.readable()
    }

    /// Bytes of payload that have come in and that the application has not read.
    #[must_use]
    pub fn unread(&self) -> u64 {
        self.receiver.received() - self.receiver.delivered()
    }

    /// Sends whatever may be sent now. Any of the methods above wants this call
    /// after it.
    pub fn poll(&mut self, now: Time, out: &mut Vec<Header>) {
        if self.is_synchronized() && self.receiver.owes_window_update(u64::from(self.mss)) {
            self.receiver.owe_answer();
        }
        self.flush(now, out);
    }

    /// A segment from the peer has come in. `congestion_experienced` says whether
    /// its IP header carries a mark.
    pub fn on_segment(
        &mut self,
        now: Time,
        header: &Header,
        congestion_experienced: bool,
        out: &mut Vec<Header>,
    ) {
        self.sender.statistics.segments_received += 1;
        match self.state {
            State::Closed => return self.on_segment_when_closed(header, out),
            State::Listen => self.on_segment_when_listening(header, congestion_experienced),
            State::SynSent => self.on_segment_when_connecting(now, header),
            _ => self.on_segment_when_synchronized(now, header, congestion_experienced),
        }
        self.flush(now, out);
    }

    /// Does what is due at `now`. May be called at any time.
    pub fn on_timer(&mut self, now: Time, out: &mut Vec<Header>) {
        self.receiver.on_timer(now, || self.sender.round_trip.timeout(&self.config));
        if self.sender.probe_at <= now
            && let Some(probe) = self.sender.on_probe_timer(&self.config, now)
        {
            self.emit(now, probe, out);
        }
        if self.sender.reorder_at <= now {
            self.sender.on_reordering_timer(&self.config, now);
        }
        if self.sender.retransmit_at <= now {
            let goes_on = match self.state {
                State::SynSent | State::SynReceived => {
                    self.syn_due = true;
                    self.sender.on_syn_timeout(&self.config, self.state == State::SynReceived)
                }
                _ => self.sender.on_timeout(&self.config, now),
            };
            if !goes_on {
                self.fail();
            }
        }
        self.flush(now, out);
    }

    /// When [`on_timer`](Endpoint::on_timer) has something to do next.
    #[must_use]
    #[inline]
    pub fn next_timer(&self) -> Option<Time> {
        let next = self.sender.next_timer().min(self.receiver.acknowledge_at);
        (next != Time::FAR_FUTURE).then_some(next)
    }

    fn is_synchronized(&self) -> bool {
        !matches!(self.state, State::Listen | State::SynSent | State::Closed)
    }

    fn fail(&mut self) {
        self.failed = true;
        self.finish(State::Closed);
    }

    fn finish(&mut self, state: State) {
        self.state = state;
        self.sender.stop_timers();
    }

    /// RFC 9293 section 3.10.7.1, but an endpoint that is done stays silent: the
    /// owner need not carry a reset for each straggler.
    fn on_segment_when_closed(&mut self, header: &Header, out: &mut Vec<Header>) {
        if !self.failed || header.flags.contains(Flags::RST) {
            return;
        }
        let acks = header.flags.contains(Flags::ACK);
        let length = header.payload
            + u32::from(header.flags.contains(Flags::SYN))
            + u32::from(header.flags.contains(Flags::FIN));
        self.sender.statistics.segments_sent += 1;
        out.push(Header {
            sequence: if acks { header.acknowledgement } else { 0 },
            acknowledgement: header.sequence.wrapping_add(length),
            flags: Flags::RST | Flags::ACK.when(!acks),
            ..Header::default()
        });
    }

    /// RFC 9293 section 3.10.7.2.
    fn on_segment_when_listening(&mut self, header: &Header, marked: bool) {
        if header.flags.contains(Flags::SYN) && !header.flags.intersects(Flags::ACK | Flags::RST) {
            // RFC 3168 section 6.1.1: ECE and CWR together ask for ECN.
            let asks = header.flags.contains(Flags::ECE | Flags::CWR);
            self.agree_on_ecn(asks, header.flags.contains(accurate_ecn::REQUEST));
            self.syn_came_as = if marked { Ecn::Ce } else { header.ecn };
            self.on_syn(header);
            self.state = State::SynReceived;
            self.syn_due = true;
        }
    }

    /// RFC 9293 section 3.10.7.3, without simultaneous open.
    fn on_segment_when_connecting(&mut self, now: Time, header: &Header) {
        let ours = header.acknowledgement == self.own.wire(1) && self.sender.next == 1;
        if !header.flags.contains(Flags::ACK) || !ours {
            return;
        }
        if header.flags.contains(Flags::RST) {
            return self.fail();
        }
        if header.flags.contains(Flags::SYN) {
            // ECE alone grants ECN.
            let classic = header.flags.ace() == Flags::ECE.ace();
            let accurate = self.accurate && accurate_ecn::is_granted(header.flags);
            self.agree_on_ecn(classic || accurate, accurate);
            self.on_syn(header);
            self.establish(now, header);
            self.receiver.owe_answer();
        }
    }

    /// The peer understands marks, or even counts them. A scalable controller has no use
    /// for marks that are not counted (RFC 9331 section 4.2).
    fn agree_on_ecn(&mut self, classic: bool, accurate: bool) {
        self.accurate &= accurate;
        self.ecn &= classic && (self.accurate || !self.config.congestion.scalable);
    }

    /// Options and numbers of the peer's SYN.
    fn on_syn(&mut self, header: &Header) {
        self.peer = SequenceSpace::new(header.sequence);
        self.receiver.on_syn(header.timestamps.value);
        self.sack &= header.options.sack_permitted;
        self.timestamps &= header.options.timestamps;
        if header.options.mss != 0 {
            self.mss = self.mss.min(u32::from(header.options.mss));
        }
    }

    fn establish(&mut self, now: Time, header: &Header) {
        self.state = State::Established;
        self.receiver.on_established(now);
        if self.ecn && self.accurate {
            self.receiver.count_marks();
            self.sender.feedback = Some(Feedback::default());
        }
        let sequence = self.receiver.next();
        let agreed = (self.mss, self.timestamps);
        let start = (self.own.wire(0), self.sack);
        self.sender.on_established(&self.config, now, agreed, header.window, sequence, start);
        if self.sack {
            // The first estimate is the first sample itself (RFC 6298 (2.2)).
            let handshake = self.sender.round_trip.smoothed();
            self.sender.sack = Some(Box::new(Sack::new(self.config.rack_tlp, handshake)));
        }
    }

    /// RFC 9293 section 3.10.7.4.
    fn on_segment_when_synchronized(&mut self, now: Time, header: &Header, marked: bool) {
        let flags = header.flags;
        let next = self.receiver.next();
        let Some(start) = self.peer.offset_near(header.sequence, next) else {
            return self.receiver.owe_answer();
        };
        if flags.contains(Flags::RST) {
            return self.on_reset(start);
        }
        if flags.contains(Flags::SYN) {
            // Our SYN-ACK, or our acknowledgement of theirs, has been lost.
            if self.state == State::SynReceived && start == 0 && !flags.contains(Flags::ACK) {
                self.syn_due = true;
            } else {
                self.receiver.owe_answer();
            }
            return;
        }
        if !flags.contains(Flags::ACK) {
            return;
        }
        let Some(offset) = self.own.offset_near(header.acknowledgement, self.sender.unacknowledged)
        else {
            return;
        };
        if offset > self.sender.next {
            // Acknowledges what was never sent.
            return self.receiver.owe_answer();
        }
        let payload = u64::from(header.payload);
        let acceptable = self.receiver.accepts(start, payload);
        if self.state == State::SynReceived {
            if offset != 1 || !acceptable {
                return;
            }
            self.establish(now, header);
        } else if offset >= self.sender.unacknowledged {
            // This includes a segment that is not acceptable: a closed window
            // lets no other through (the special allowance of this section).
            self.sender.on_acknowledgement(&self.config, now, (offset, start), header, self.own);
            self.on_progress();
        }
        let fin = flags.contains(Flags::FIN);
        if !acceptable {
            return self.receiver.refuse(start, payload);
        }
        self.receiver.on_packet(marked, payload > 0);
        self.receiver.on_timestamp(start, header.timestamps.value);
        if payload == 0 && !fin {
            return;
        }
        if self.is_classic() {
            self.receiver.on_marks(marked && payload > 0, flags.contains(Flags::CWR));
        }
        let ends = (fin, flags.contains(Flags::PSH));
        self.receiver.on_data(&self.config, now, start, payload, ends, || Pace {
            timeout: self.sender.round_trip.timeout(&self.config),
            round_trip: self.sender.round_trip.smoothed(),
            echo: header.timestamps.echo,
        });
        if self.receiver.finished() {
            self.on_peer_finished();
        }
    }

    /// RFC 5961 section 3: only the exact number resets.
    fn on_reset(&mut self, start: u64) {
        let next = self.receiver.next();
        if self.state == State::TimeWait {
            // RFC 1337: both directions are done, nothing is left to reset.
        } else if start == next {
            self.fail();
        } else if self.receiver.accepts(start, 0) {
            self.receiver.owe_answer();
        }
    }

    /// Our FIN may have been acknowledged.
    fn on_progress(&mut self) {
        if self.fin_sent && self.sender.fin_acknowledged() {
            match self.state {
                State::FinWait1 => self.state = State::FinWait2,
                State::Closing => self.finish(State::TimeWait),
                State::LastAck => self.finish(State::Closed),
                _ => {}
            }
        }
    }

    /// The peer's FIN is in order.
    fn on_peer_finished(&mut self) {
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.finish(State::TimeWait),
            _ => {}
        }
    }

    /// Payload bytes handed to the application, in order.
    #[must_use]
    pub fn delivered(&self) -> u64 {
        self.receiver.delivered()
    }

    /// Payload bytes that have come in: those that the application could read, and
    /// those that wait for something before them. Each counts once, when it first
    /// comes in.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.receiver.arrived()
    }

    /// Payload bytes that the peer has acknowledged.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.sender.acknowledged()
    }

    /// State of the connection.
    #[must_use]
    pub fn state(&self) -> State {
        self.state
    }

    /// Whether the handshake is done and the connection not over.
    #[must_use]
    pub fn is_established(&self) -> bool {
        self.is_synchronized() && self.state != State::SynReceived
    }

    /// Whether both directions are finished and our own FIN is acknowledged.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        !self.failed && matches!(self.state, State::TimeWait | State::Closed)
    }

    /// Whether the connection was given up after retries, or reset.
    #[must_use]
    pub fn has_failed(&self) -> bool {
        self.failed
    }

    /// Whether the peer's FIN and everything before it has come in.
    #[must_use]
    pub fn peer_finished(&self) -> bool {
        self.receiver.finished()
    }

    /// Whether ECN is in use: wanted by both ends, or not yet refused.
    #[must_use]
    pub fn ecn_capable(&self) -> bool {
        self.ecn
    }

    /// Counters.
    #[must_use]
    pub fn statistics(&self) -> &Statistics {
        &self.sender.statistics
    }

    /// Congestion window in bytes; inflated while NewReno recovers.
    #[must_use]
    pub fn congestion_window(&self) -> u64 {
        self.sender.congestion.window
    }

    /// The rate at which segments are spaced; `None` without pacing.
    #[must_use]
    pub fn pacing_rate(&self) -> Option<Rate> {
        self.sender.congestion.pacing_rate
    }

    /// Slow start threshold in bytes, or the largest number when there is none.
    #[must_use]
    pub fn slow_start_threshold(&self) -> u64 {
        self.sender.congestion.threshold()
    }

    /// Smoothed round-trip time, once one has been measured.
    #[must_use]
    pub fn smoothed_rtt(&self) -> Option<Span> {
        self.sender.round_trip.smoothed()
    }

    /// The retransmission timeout that would be set now, with its back-off.
    #[must_use]
    pub fn retransmission_timeout(&self) -> Span {
        self.sender.round_trip.timeout(&self.config)
    }

    /// Payload bytes that the sender takes to be in the network.
    #[must_use]
    pub fn bytes_in_flight(&self) -> u64 {
        self.sender.bytes_in_flight()
    }
}
