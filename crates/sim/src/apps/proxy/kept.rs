//! The connections to servers that a gateway keeps for the next request.

use super::Proxy;
use crate::carrier::Use;
use crate::connections::{Connection, ConnectionId, Side};
use crate::requests::Wanted;
use crate::simulation::World;

impl Proxy<'_> {
    /// Whether connections to servers are kept at all.
    pub(super) fn keeps(&self) -> bool {
        self.setup.http.usage() != Use::Once
    }

    /// The connection to a server that was used last, if one is kept and its client has not
    /// lost another.
    pub(super) fn take_kept(
        &mut self,
        world: &mut World<'_>,
        wanted: Wanted,
    ) -> Option<ConnectionId> {
        if self.debts.must_open(&debt_of(wanted)) {
            return None;
        }
        let kept = self.kept.get_mut(&wanted.server)?;
        while let Some((connection, _)) = kept.pop_back() {
            if world.connections.live(connection).is_some() {
                return Some(connection);
            }
        }
        None
    }

    /// Keeps a connection whose response is complete, and closes the one that has waited
    /// longest if there are too many.
    pub(super) fn keep(&mut self, world: &mut World<'_>, server: usize, connection: ConnectionId) {
        if let Some(end) = world.end(connection, Side::Opener) {
            end.read_up_to(u64::MAX);
        }
        let kept = self.kept.entry(server).or_default();
        kept.push_back((connection, world.now()));
        if kept.len() > self.setup.kept.most as usize
            && let Some((oldest, _)) = kept.pop_front()
        {
            close(world, oldest);
        }
    }

    /// Closes the connections that have been kept for long enough.
    pub(super) fn close_idle(&mut self, world: &mut World<'_>) {
        let now = world.now();
        for kept in self.kept.values_mut() {
            while let Some((connection, since)) = kept.front().copied()
                && since + self.setup.kept.idle <= now
            {
                kept.pop_front();
                close(world, connection);
            }
        }
    }

    /// A connection to a server is over, which may have been kept.
    pub(super) fn forget_kept(&mut self, connection: &Connection) {
        if let Some(kept) = self.kept.get_mut(&(connection.tag as usize)) {
            kept.retain(|(it, _)| *it != connection.id());
        }
    }
}

/// Who owes a connection to which server.
pub(super) fn debt_of(Wanted { class, client, server, .. }: Wanted) -> (usize, u32, usize) {
    (class, client, server)
}

fn close(world: &mut World<'_>, connection: ConnectionId) {
    if let Some(end) = world.end(connection, Side::Opener) {
        end.close();
    }
    world.act(connection, Side::Opener);
}
