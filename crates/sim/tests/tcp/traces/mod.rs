//! What endpoints send and when, in full, checked against the RFCs by hand.
//!
//! Unless a test says otherwise the path takes 50 ms either way, so that a
//! round trip is 100 ms; the client sends from 100 ms on, and the first
//! acknowledgements come at 200 ms. The module `pair` describes how to read
//! a line.

mod growth;
mod lifecycle;
mod marks;
mod recovery;
mod timed;
mod timers;
mod undo;

use crate::pair::Pair;
use tidegate_core::Time;
use tidegate_sim::tcp::TcpConfig;

const MSS: u64 = 1_460;

/// NewReno without delayed acknowledgements: with one acknowledgement per segment
/// a trace needs less explanation.
fn plain(initial_window: u32) -> TcpConfig {
    TcpConfig { initial_window, delayed_ack: None, ..TcpConfig::papers() }
}

fn selective(initial_window: u32) -> TcpConfig {
    TcpConfig { sack: true, ..plain(initial_window) }
}

fn timed(initial_window: u32) -> TcpConfig {
    TcpConfig { rack_tlp: true, ..selective(initial_window) }
}

fn pair(config: &TcpConfig) -> Pair {
    Pair::new(config.clone(), config.clone())
}

fn millis(time: u64) -> Time {
    Time(time * 1_000_000)
}

/// Everything that happens, to the end of the connection.
fn whole(pair: &mut Pair) -> String {
    pair.run();
    std::mem::take(&mut pair.trace)
}

/// What happens after the handshake, until `until` milliseconds.
fn data_until(pair: &mut Pair, until: u64) -> String {
    between(pair, 99, until)
}

/// What happens after the first time in milliseconds, until the second one.
fn between(pair: &mut Pair, from: u64, until: u64) -> String {
    pair.run_until(millis(from));
    pair.trace.clear();
    pair.run_until(millis(until));
    std::mem::take(&mut pair.trace)
}
