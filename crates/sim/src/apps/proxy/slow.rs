//! Responses that wait for their clients.
//!
//! What a client does not take, its gateway keeps up to a limit. Beyond that it reads on
//! no further: the server's window closes, and what was granted to the response stays
//! unread. Responses to one connection go on in the order in which they stopped.
//!
//! Tunnels have no limit: what comes back through them is always passed on.

use std::collections::VecDeque;

use tidegate_core::request::ExchangeId;

use super::Proxy;
use crate::connections::{ConnectionId, Side};
use crate::simulation::World;

/// How much waits at the gateway for a client's window: the buffers of nginx, eight of 8 kB
/// (`proxy_buffers`).
const KEPT: u64 = 64 * 1_024;

impl Proxy<'_> {
    /// Stops reading a response whose client has too much to take already.
    pub(super) fn stop_if_full(&mut self, world: &mut World<'_>, exchange: ExchangeId) {
        let Some(relay) = self.relays.get_mut(&exchange) else { return };
        let Some(server) = relay.server else { return };
        if relay.stopped.is_none()
            && is_full(world, relay.client)
            && let Some(end) = world.end(server, Side::Opener)
        {
            relay.stopped = Some(end.readable());
            end.read_up_to(end.delivered());
            self.stopped.entry(relay.client).or_default().push_back(exchange);
        }
    }

    /// A client may have taken something: its responses are read on, as far as there is
    /// room. Returns whether any was.
    pub(super) fn go_on(&mut self, world: &mut World<'_>, client: ConnectionId) -> bool {
        let mut any = false;
        while self.stopped.contains_key(&client) && !is_full(world, client) {
            let Some(exchange) = self.stopped.get_mut(&client).and_then(VecDeque::pop_front) else {
                self.stopped.remove(&client);
                break;
            };
            let Some(relay) = self.relays.get_mut(&exchange) else { continue };
            let (Some(server), Some(readable)) = (relay.server, relay.stopped.take()) else {
                continue;
            };
            self.read_in_pieces(world, exchange, server, readable);
            world.act(server, Side::Opener);
            any = true;
        }
        any
    }

    /// Reads a response that was stopped up to this offset, or until its client has too much
    /// again: all of a receive buffer at once may be megabytes.
    fn read_in_pieces(
        &mut self,
        world: &mut World<'_>,
        exchange: ExchangeId,
        server: ConnectionId,
        readable: u64,
    ) {
        loop {
            let Some(end) = world.end(server, Side::Opener) else { return };
            let piece = end.delivered().saturating_add(KEPT);
            let is_last = end.unread() <= KEPT || readable <= piece;
            end.read_up_to(if is_last { readable } else { piece });
            self.relay(world, exchange);
            let Some(relay) = self.relays.get_mut(&exchange) else { return };
            if let Some(stopped) = &mut relay.stopped {
                *stopped = readable.max(*stopped);
                return;
            }
            if is_last {
                return;
            }
        }
    }
}

/// Whether more waits for a client than the gateway keeps.
fn is_full(world: &mut World<'_>, client: ConnectionId) -> bool {
    let state = world.connections.live(client);
    let saying = state.and_then(|state| state.saying(Side::Acceptor));
    saying.is_some_and(|(carrier, end)| carrier.unwritten() + end.held_back() > KEPT)
}
