//! The gateway on real sockets.

mod bed;
mod messages;
mod places;
mod shares;
mod tunnels;
