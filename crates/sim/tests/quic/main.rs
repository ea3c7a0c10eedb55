//! QUIC by quinn-proto, over links of the simulator.

mod beside_tcp;
mod handshake;
mod http3;
mod memory;
mod runs;
mod transport;
