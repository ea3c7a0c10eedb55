//! Tunnels at a proxy.

use super::super::tunnel::{Orders, Piece, Surroundings, Tunnel, TunnelPhase, Verdict};
use super::super::{ClassId, Permit, Reading, Refusal, Request, UserId};
use super::{Action, Proxy, TunnelId};
use crate::units::{Bytes, Span, Time};

/// Tunnels, which are dialled for at once, because they ask for nothing before
/// bytes flow.
impl Proxy {
    /// A tunnel of this user opens.
    ///
    /// # Errors
    /// The class does not exist.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tidegate_core::request::{
    ///     Action, ClassId, Piece, Proxy, ProxyConfig, TunnelPhase, UserId, Verdict, catalogue,
    /// };
    /// use tidegate_core::{Bytes, Rate, Span, Time};
    ///
    /// let msf = catalogue::find("msf").expect("it is in the catalogue");
    /// let scheduler = msf.build(&[], Rate(2_000_000), &[NonZeroU32::MIN], 1)?;
    /// let mut proxy = Proxy::new(Time::ZERO, scheduler, ProxyConfig::default());
    /// let mut now = Time::ZERO + Span::millis(100);
    /// let tunnel = proxy.open(now, ClassId(0), UserId(7))?;
    ///
    /// // The client greets the server, and then asks for something.
    /// assert_eq!(proxy.send(now, tunnel, Piece::Handshake(Bytes(517)))?, Verdict::Pass);
    /// assert_eq!(proxy.send(now, tunnel, Piece::Data(Bytes(400)))?, Verdict::Hold);
    /// assert_eq!(proxy.next_action(now), Some(Action::Pass { tunnel }));
    /// assert_eq!(proxy.tunnel(tunnel), Some(TunnelPhase::Active));
    ///
    /// // The answer is over when nothing more has come for 200 ms.
    /// now += Span::millis(50);
    /// proxy.tunnel_read(now, tunnel, Bytes(3_000));
    /// now += Span::millis(200);
    /// assert_eq!(proxy.next_action(now), None);
    /// assert_eq!(proxy.tunnel(tunnel), Some(TunnelPhase::Idle));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn open(&mut self, now: Time, class: ClassId, user: UserId) -> Result<TunnelId, Refusal> {
        if self.scheduler.class(class).is_none() {
            return Err(Refusal::NoSuchClass { class });
        }
        let number = self.named;
        self.named += 1;
        let name = Request { handle: number, class, user };
        self.tunnels.insert(number, Tunnel::new(now, name, self.receive_buffer));
        Ok(TunnelId(number))
    }

    /// The client has sent a piece into a tunnel; returns what is to be done with it.
    /// A piece that may pass goes behind what was held before it, and
    /// acknowledgements of the transport are never held. Nothing is sent into a
    /// closed tunnel.
    ///
    /// # Errors
    /// The piece would be a request, and too many already wait. The piece is not
    /// taken.
    pub fn send(&mut self, now: Time, tunnel: TunnelId, piece: Piece) -> Result<Verdict, Refusal> {
        let Some(state) = self.tunnels.get_mut(&tunnel.0) else { return Ok(Verdict::Hold) };
        let config = &self.of_tunnels;
        let around = Surroundings { now, scheduler: &mut self.scheduler, config };
        let (verdict, orders) = state.send(piece, around)?;
        self.carry_out(tunnel, orders);
        Ok(verdict)
    }

    /// The number of bytes, possibly none, that have come from the server of a
    /// tunnel and have not been read. Report it whenever bytes come that may not be
    /// read: while there are some, the response is not over.
    pub fn tunnel_came(&mut self, now: Time, tunnel: TunnelId, unread: Bytes) {
        if let Some(state) = self.tunnels.get_mut(&tunnel.0) {
            state.came(now, unread, &mut self.scheduler);
            self.carry_out(tunnel, Orders::default());
        }
    }

    /// A part was read from the server of a tunnel; returns how the downlink may be
    /// read next.
    pub fn tunnel_read(&mut self, now: Time, tunnel: TunnelId, size: Bytes) -> Reading {
        let Some(state) = self.tunnels.get_mut(&tunnel.0) else {
            return Reading::UpTo(Bytes::ZERO);
        };
        let config = &self.of_tunnels;
        let around = Surroundings { now, scheduler: &mut self.scheduler, config };
        let orders = state.read(size, around);
        let reading = state.reading();
        self.carry_out(tunnel, orders);
        reading
    }

    /// A round trip to the server of a tunnel takes so long.
    pub fn tunnel_path(&mut self, now: Time, tunnel: TunnelId, round_trip: Span) {
        if let Some(state) = self.tunnels.get_mut(&tunnel.0) {
            state.time(now, round_trip);
        }
    }

    /// How much the receive buffer of the connection to the server of a tunnel should
    /// hold, as [`buffer`](Proxy::buffer) says it of an exchange. Ask after every
    /// [`tunnel_read`](Proxy::tunnel_read).
    #[must_use]
    pub fn tunnel_buffer(&self, tunnel: TunnelId) -> Option<Bytes> {
        let state = self.tunnels.get(&tunnel.0)?;
        state.buffer().filter(|_| self.scheduler.holds_back())
    }

    /// A tunnel carries what must not be held: WebSocket, server-sent events, SSH.
    /// Its bytes are charged to its user, and it never waits again.
    pub fn exempt(&mut self, tunnel: TunnelId) {
        if let Some(state) = self.tunnels.get_mut(&tunnel.0) {
            let orders = state.exempt(&mut self.scheduler);
            self.carry_out(tunnel, orders);
        }
    }

    /// A tunnel is closed, by whomever and in whatever way. What is held of it is
    /// not sent on.
    pub fn close(&mut self, tunnel: TunnelId) {
        if let Some(state) = self.tunnels.remove(&tunnel.0) {
            state.close(&mut self.scheduler);
            self.alarms.clear(tunnel.0);
            self.actions.retain(|action| action.tunnel() != Some(tunnel));
        }
    }

    /// The phase of a tunnel; `None` when it is closed.
    #[must_use]
    pub fn tunnel(&self, tunnel: TunnelId) -> Option<TunnelPhase> {
        self.tunnels.get(&tunnel.0).map(Tunnel::phase)
    }

    /// The number of requests of tunnels that were released out of order because
    /// they had been held for as long as any may be.
    #[must_use]
    pub fn overdue(&self) -> u64 {
        self.overdue
    }

    pub(super) fn release_tunnel(&mut self, now: Time, tunnel: TunnelId, permit: Permit) {
        if let Some(state) = self.tunnels.get_mut(&tunnel.0) {
            let config = &self.of_tunnels;
            let around = Surroundings { now, scheduler: &mut self.scheduler, config };
            let orders = state.release(permit, around);
            self.carry_out(tunnel, orders);
        }
    }

    pub(super) fn grant_tunnel(&mut self, tunnel: TunnelId, size: Bytes) {
        if let Some(state) = self.tunnels.get_mut(&tunnel.0) {
            let orders = state.grant(size);
            self.carry_out(tunnel, orders);
        }
    }

    pub(super) fn look_at_tunnel(&mut self, now: Time, tunnel: TunnelId) {
        let Some(state) = self.tunnels.get_mut(&tunnel.0) else { return };
        let config = &self.of_tunnels;
        let around = Surroundings { now, scheduler: &mut self.scheduler, config };
        let orders = state.look(around);
        self.carry_out(tunnel, orders);
    }

    /// Turns the results of a transition into actions, and sets the alarm.
    pub(super) fn carry_out(&mut self, tunnel: TunnelId, orders: Orders) {
        self.overdue += u64::from(orders.overdue);
        if orders.pass {
            self.actions.push_back(Action::Pass { tunnel });
        }
        if let Some(reading) = orders.read {
            self.actions.push_back(Action::ReadTunnel { tunnel, reading });
        }
        let due = self.tunnels.get(&tunnel.0).and_then(|state| state.due(&self.of_tunnels));
        if let Some(due) = due {
            self.alarms.set(tunnel.0, due);
        }
    }
}
