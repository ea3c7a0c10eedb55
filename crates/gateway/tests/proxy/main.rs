//! The gateway on real sockets.

mod admin;
mod bed;
mod messages;
mod places;
mod reload;
mod shares;
mod tunnels;
