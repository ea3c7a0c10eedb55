//! Another scheduler, or other classes, while requests wait and responses are read.

use super::super::tunnel::Surroundings;
use super::super::{ClassId, Ending, Request, Scheduler};
use super::{Action, ExchangeId, Member, Proxy, ProxyConfig, TunnelId};
use crate::request::pools::Pools;
use crate::units::Time;

/// What belongs to a scheduler is given to another.
impl Proxy {
    /// From now on `scheduler` decides, with these settings, and each member belongs to the
    /// class that `class_of` names; one that is to belong to none has to end
    /// [before](Proxy::left).
    ///
    /// Requests stay in line in their order, and responses and tunnels go on from what they
    /// had received. What users had received counts no more: all begin equal. A member whose
    /// class does not exist is over, as [broken](Ending::Broken), and so is a request that
    /// may not wait any more; of a tunnel it is released out of order.
    ///
    /// Actions that are not asked for yet still hold, but for how much may be read: that is
    /// told of each tunnel, and of an exchange [`phase`](Proxy::phase) says it.
    ///
    /// ```
    /// use std::num::NonZeroU32;
    /// use tidegate_core::request::{
    ///     Action, ClassId, Proxy, ProxyConfig, Reading, UserId, catalogue,
    /// };
    /// use tidegate_core::{Rate, Time};
    ///
    /// let (rate, weight) = (Rate(2_000_000), NonZeroU32::MIN);
    /// let paper = catalogue::find("paper").expect("it is in the catalogue");
    /// let one_class = paper.build(&[], rate, &[weight], 1)?;
    /// let mut proxy = Proxy::new(Time::ZERO, one_class, ProxyConfig::default());
    /// let first = proxy.hear(ClassId(0), UserId(7))?;
    /// let second = proxy.hear(ClassId(0), UserId(7))?;
    /// let reading = Reading::Freely;
    /// assert_eq!(proxy.next_action(Time::ZERO), Some(Action::Dial { exchange: first, reading }));
    /// assert_eq!(proxy.next_action(Time::ZERO), None);
    ///
    /// // Another class comes first, and nothing waits any more.
    /// let fifo = catalogue::find("fifo").expect("it is in the catalogue");
    /// let two_classes = fifo.build(&[], rate, &[weight, weight], 1)?;
    /// proxy.replace(Time::ZERO, two_classes, ProxyConfig::default(), |_| ClassId(1));
    /// assert_eq!(proxy.held(), 1);
    /// assert_eq!(proxy.next_action(Time::ZERO), Some(Action::Dial { exchange: second, reading }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn replace(
        &mut self,
        now: Time,
        scheduler: Scheduler,
        config: ProxyConfig,
        class_of: impl Fn(Member) -> ClassId,
    ) {
        let earlier = std::mem::replace(&mut self.scheduler, scheduler);
        let ProxyConfig { patience, pools, receive_buffer, tunnels } = config;
        (self.patience, self.pools) = (patience, Pools::new(now, &pools));
        (self.receive_buffer, self.of_tunnels) = (receive_buffer, tunnels);
        self.actions
            .retain(|action| !matches!(action, Action::Read { .. } | Action::ReadTunnel { .. }));
        let exchanges = self
            .exchanges
            .iter()
            .map(|(number, exchange)| (exchange.ticket(), Member::Exchange(ExchangeId(*number))));
        let tunnels = self
            .tunnels
            .iter()
            .map(|(number, tunnel)| (tunnel.ticket(), Member::Tunnel(TunnelId(*number))));
        let mut members: Vec<_> = exchanges.chain(tunnels).collect();
        // Those that are outstanding, and then those in line, in the order of their arrival.
        members.sort_by_key(|(ticket, member)| (ticket.map(|ticket| ticket.arrived), *member));
        for (_, member) in members {
            let class = class_of(member);
            match member {
                Member::Exchange(exchange) => self.transfer(now, exchange, class),
                Member::Tunnel(tunnel) => self.transfer_tunnel(now, tunnel, class),
            }
        }
        // All that it had handed out is back.
        self.scheduler.follow(earlier);
    }

    fn transfer(&mut self, now: Time, exchange: ExchangeId, class: ClassId) {
        let Some(state) = self.exchanges.get_mut(&exchange.0) else { return };
        let request = Request { handle: exchange.0, class, user: state.user() };
        let pooled = self.pools.limits(class);
        let taken = state.transfer(now, request, pooled, &mut self.scheduler);
        let moved = state.moved();
        match (taken, moved, self.patience) {
            (Err(_), ..) => self.end(exchange, Ending::Broken),
            (Ok(()), Some(moved), Some(patience)) => self.alarms.set(exchange.0, moved + patience),
            (Ok(()), ..) => {}
        }
    }

    fn transfer_tunnel(&mut self, now: Time, tunnel: TunnelId, class: ClassId) {
        let Some(state) = self.tunnels.get_mut(&tunnel.0) else { return };
        let name = Request { class, ..state.name() };
        let config = &self.of_tunnels;
        let around = Surroundings { now, scheduler: &mut self.scheduler, config };
        match state.transfer(name, around) {
            Ok(orders) => self.carry_out(tunnel, orders),
            Err(_) => self.close(tunnel),
        }
    }
}
