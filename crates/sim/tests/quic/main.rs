//! QUIC by quinn-proto, over links of the simulator.

mod handshake;
mod runs;
