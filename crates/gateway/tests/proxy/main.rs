//! The gateway on real sockets.

mod admin;
mod bed;
mod classes;
mod faults;
mod messages;
mod places;
mod reload;
mod shares;
mod tunnels;
