//! The way out to a link: a [`Port`] and the rate at which it empties.
//!
//! The driver of an egress offers packets as they arrive and polls for the next
//! one when it may be sent. Polling is free: an early call changes nothing, and
//! a late call loses none of the rate, within the bound that
//! [`shaper`](crate::shaper) states. A link that takes a packet at the time of
//! [`Poll::ReadyAt`] sends it from then on; an idle link sends a packet on
//! arrival.

use crate::buffer::Buffer;
use crate::discipline::{Discipline, Loss};
use crate::entry::Place;
use crate::pace::Pace;
use crate::packet::Packet;
use crate::port::Port;
use crate::setting::Settings;
use crate::units::{Rate, Time};

/// A discipline and its counters in front of a rate.
///
/// ```
/// use tidegate_core::egress::{Egress, Poll};
/// use tidegate_core::{Buffer, Bytes, FlowKey, Packet, Rate, Time, registry};
///
/// let efd = registry::find("efd").expect("EFD is registered");
/// let discipline = efd.build(&[], Buffer::packets(300), 1)?;
/// let mut egress = Egress::new(discipline, Rate(12_000_000));
///
/// let flow = FlowKey::v4([10, 0, 0, 1], 443, [10, 0, 0, 2], 50_000, FlowKey::TCP);
/// for handle in 0..2 {
///     let losses = egress.offer(Time::ZERO, Packet::new(handle, flow, Bytes(1_500)));
///     assert!(losses.is_empty());
/// }
/// // The link is idle: the first packet is on the wire a millisecond later.
/// let Poll::Packet { packet, sent } = egress.poll(Time::ZERO) else { panic!("one waits") };
/// assert_eq!((packet.handle, sent), (0, Time(1_000_000)));
/// assert_eq!(egress.poll(Time::ZERO), Poll::ReadyAt(sent));
/// assert!(matches!(egress.poll(sent), Poll::Packet { .. }));
/// assert_eq!(egress.poll(sent), Poll::Idle);
/// # Ok::<(), tidegate_core::setting::SettingError>(())
/// ```
pub struct Egress {
    port: Port,
    rate: Rate,
    pace: Pace,
}

/// What a link has to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Poll {
    /// Send this packet.
    Packet {
        /// The packet.
        packet: Packet,
        /// When its last bit has left. After a late poll that may be in the past, and
        /// the next packet may leave at once.
        sent: Time,
    },
    /// Poll again at this time, or when a packet arrives; nothing may leave before.
    ReadyAt(Time),
    /// Wait for a packet.
    Idle,
}

impl Egress {
    /// An egress that serves packets by `discipline` at `rate`. At a rate of zero one
    /// packet leaves, and then none before the end of time.
    #[must_use]
    pub fn new(discipline: Box<dyn Discipline>, rate: Rate) -> Egress {
        Egress { port: Port::new(discipline), rate, pace: Pace::default() }
    }

    /// Offers a packet that has arrived at `now`; returns the packets lost because of it.
    #[inline]
    pub fn offer(&mut self, now: Time, packet: Packet) -> &[Loss] {
        self.port.offer(now, packet);
        self.pace.queue_changed(now, |at| self.port.next_ready(at));
        self.port.losses()
    }

    /// Polls for what to do at `now`. [`Egress::losses`] returns the packets lost on the way.
    #[inline]
    pub fn poll(&mut self, now: Time) -> Poll {
        if let Some(start) = self.pace.start(now) {
            let packet = self.port.take(now);
            let ready = |at| self.port.next_ready(at);
            if let Some(packet) = packet {
                let sent = self.pace.send(start, self.rate.transmission(packet.size), ready);
                return Poll::Packet { packet, sent };
            }
            self.pace.queue_changed(now, ready);
        } else {
            self.port.forget_losses();
        }
        self.next_ready(now).map_or(Poll::Idle, Poll::ReadyAt)
    }

    /// When a packet may leave, not before `now`; `None` while none waits.
    #[must_use]
    #[inline]
    pub fn next_ready(&self, now: Time) -> Option<Time> {
        self.pace.next_ready(now)
    }

    /// The packets lost in the last call of [`Egress::offer`] or [`Egress::poll`].
    #[must_use]
    #[inline]
    pub fn losses(&self) -> &[Loss] {
        self.port.losses()
    }

    /// The rate at which packets are sent.
    #[must_use]
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// Changes the rate from the next packet on; the packet that is being sent
    /// takes as long as before.
    pub fn set_rate(&mut self, rate: Rate) {
        self.rate = rate;
    }

    /// Gives the discipline other settings while it runs, and tells it the
    /// present rate: see [`Discipline::reconfigure`].
    pub fn reconfigure(&mut self, now: Time, settings: &Settings, buffer: Buffer) {
        let place = Place::from(buffer).at_rate(self.rate());
        self.port.reconfigure(now, settings, place);
        self.pace.queue_changed(now, |at| self.port.next_ready(at));
    }

    /// The discipline's queue and its counters.
    #[must_use]
    #[inline]
    pub fn port(&self) -> &Port {
        &self.port
    }
}
