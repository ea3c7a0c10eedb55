//! Programs that run on hosts.
//!
//! A program opens connections or answers them, learns what happens to them,
//! and acts at times that it asked for. It sees the network through sockets
//! only: the same TCP over the same links, whatever the program does. A file
//! transfer, a browser, a server and a gateway are all programs.

mod account;
mod browsers;
mod calls;
mod clients;
mod gateway;
mod pool;
mod proxy;
mod quic;
mod resolvers;
mod response;
mod senders;
mod servers;
mod streams;
mod traffic;
mod transfer;
mod trouble;
mod viewers;

use crate::connections::{Connection, ConnectionId, Over, Side};
use crate::simulation::World;

pub(crate) use browsers::Browsers;
pub(crate) use calls::Calls;
pub(crate) use clients::Clients;
pub(crate) use gateway::Gateway;
pub(crate) use proxy::Proxy;
pub(crate) use resolvers::Resolvers;
pub(crate) use servers::Servers;
pub(crate) use traffic::Traffic;
pub(crate) use viewers::Viewers;

/// A program.
pub(crate) trait App {
    /// The run begins.
    fn start(&mut self, world: &mut World<'_>);

    /// A time that it asked for has come, with the number that it gave.
    fn on_wake(&mut self, world: &mut World<'_>, number: u64);

    /// TCP at its side of a connection has taken in a segment: there may be data,
    /// room, or the peer's FIN. Returns whether it has written, read or closed
    /// there; then the end is asked what it has to send.
    fn on_segment(&mut self, world: &mut World<'_>, connection: ConnectionId, side: Side) -> bool;

    /// A connection whose side belongs to it has ended.
    fn on_over(
        &mut self,
        world: &mut World<'_>,
        connection: &mut Connection,
        side: Side,
        over: Over,
    );
}
