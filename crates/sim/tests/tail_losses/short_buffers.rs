//! Tail losses as queues make them: a lone transfer of up to ten segments into a
//! buffer of a few, on a link of 20 Mbit/s with a round trip of 20 ms.
//!
//! The window is ten segments and the buffer holds two to five: the rest of the burst
//! is lost, its end first of all. What is sent again meets an empty queue and is
//! faster than all data before it, but not than the handshake.

use std::sync::atomic::AtomicBool;

use tidegate_core::registry;
use tidegate_sim::metrics::{FlowRecord, Recorder};
use tidegate_sim::scenario::DisciplineChoice;
use tidegate_sim::scenario::file::{self, Folder};
use tidegate_sim::simulation;

/// Keeps the last flow.
#[derive(Default)]
struct Lone(Option<FlowRecord>);

impl Recorder for Lone {
    fn flow(&mut self, row: &FlowRecord) {
        self.0 = Some(row.clone());
    }
}

/// A transfer in the simulator, with today's TCP and more settings for it and for
/// the sender's own link. No FIN follows the data: the kernel's sender closes later, and a
/// segment of its own would show the loss of a tail.
fn transfer(segments: u32, buffer_kilobytes: u32, settings: &str, access: &str) -> FlowRecord {
    let text = format!(
        r#"
        title = "a short transfer into a short buffer"
        duration = "5 s"
        seeds = [1]
        disciplines = ["fifo"]
        [[link]]
        from = "sender"
        to = "router"
        delay = "10 ms"
        {access}
        [[link]]
        from = "router"
        to = "receiver"
        rate = "20 Mbit/s"
        queue = "tested"
        buffer = "{buffer_kilobytes} kB"
        [tcp]
        profile = "today"
        separate_fin = false
        {settings}
        [[traffic.transfers]]
        name = "one"
        from = "sender"
        to = "receiver"
        count = 1
        sizes = "{} B"
        "#,
        segments * 1_448
    );
    let scenario = file::parse("test.toml", &text, &Folder(".".into()))
        .unwrap_or_else(|error| panic!("{error}"));
    let fifo = DisciplineChoice::with_defaults(registry::find("fifo").expect("it is registered"));
    let mut flow = Lone::default();
    simulation::run(&scenario, &fifo, 1, &mut flow, &AtomicBool::new(false));
    flow.0.expect("there is one transfer")
}

fn sizes_and_buffers() -> impl Iterator<Item = (u32, u32)> {
    (4..=10).flat_map(|segments| (3..=8).map(move |buffer| (segments, buffer)))
}

/// Without the handshake as the first minimum, 34 of the 42 take a timeout, and 312
/// to 412 ms. With it these take 112 to 207 ms. Where only the very last segment is
/// lost, the probe waits as long as the timeout would.
#[test]
fn a_short_buffer_costs_a_short_transfer_no_timeout() {
    let mut losers = 0;
    for (segments, buffer) in sizes_and_buffers() {
        let flow = transfer(segments, buffer, "", "");
        let millis = flow.response.expect("five seconds are enough").as_seconds() * 1e3;
        let range = match flow.lost {
            0 => 32.0..34.0,
            1 => 92.0..320.0,
            _ => 112.0..208.0,
        };
        assert!(range.contains(&millis), "{segments} segments, {buffer} kB: {millis} ms");
        assert_eq!(flow.timeouts, 0, "{segments} segments, {buffer} kB");
        losers += u32::from(flow.lost > 1);
    }
    assert_eq!(losers, 34);
}

#[cfg(target_os = "linux")]
mod beside_the_kernel {
    use std::collections::VecDeque;
    use std::sync::{Arc, Mutex};
    use std::time::Instant;

    use tidegate_core::{Rate, Span};
    use tidegate_wire::Headers;

    use super::{sizes_and_buffers, transfer};
    use crate::Outcome;
    use crate::beside_the_kernel::{COLUMNS, Cell, Judge, duration, expect_agreement, skip};
    use crate::kernel::Fate;

    const ONE_WAY: Span = Span::millis(10);
    const RATE: Rate = Rate(20_000_000);

    /// The link from the first host to the second, and a FIFO before it.
    struct Bottleneck {
        buffer: u64,
        free_at: Instant,
        /// When each packet's transmission begins, and its bytes.
        waiting: VecDeque<(Instant, u64)>,
    }

    impl Bottleneck {
        fn decide(&mut self, from: usize, headers: &Headers) -> Fate {
            if from != 0 {
                return Fate::Arrive(duration(ONE_WAY));
            }
            let now = Instant::now();
            self.waiting.retain(|(begins, _)| *begins > now);
            let backlog: u64 = self.waiting.iter().map(|(_, bytes)| bytes).sum();
            let bytes = headers.ip_length;
            let begins = self.free_at.max(now);
            if begins > now {
                if backlog + bytes.0 > self.buffer {
                    return Fate::Lose;
                }
                self.waiting.push_back((begins, bytes.0));
            }
            self.free_at = begins + duration(RATE.transmission(bytes));
            Fate::Arrive(self.free_at - now + duration(ONE_WAY))
        }
    }

    /// All transfers, or nothing where there can be no bed. The simulated receiver
    /// acknowledges each segment. The simulated sender has a link, so that its data
    /// comes after the last packet of the handshake has left the buffer, as it does
    /// from a process that must be woken.
    fn measure() -> Vec<Cell> {
        let free_at = Instant::now();
        let link = Bottleneck { buffer: 0, free_at, waiting: VecDeque::new() };
        let link = Arc::new(Mutex::new(link));
        let deciding = link.clone();
        let judge = Judge::new(move |from, headers| {
            deciding.lock().expect("nobody panics with it").decide(from, headers)
        });
        let Ok(judge) = judge.inspect_err(skip) else { return Vec::new() };
        let compare = |(segments, buffer): (u32, u32)| {
            link.lock().expect("nobody panics with it").buffer = u64::from(buffer) * 1_000;
            let flow =
                transfer(segments, buffer, "delayed_ack_segments = 1", r#"rate = "500 Mbit/s""#);
            let ours = Outcome {
                response: flow.response.expect("five seconds are enough"),
                timeouts: flow.timeouts.into(),
                probes: None,
                retransmissions: flow.retransmissions.into(),
            };
            Cell::measure(&format!("{segments} segments,{buffer} kB"), ours, || {
                judge.transfer(segments, true)
            })
        };
        sizes_and_buffers().map(compare).collect()
    }

    #[test]
    fn short_buffers_cost_what_they_cost_in_the_kernel() {
        expect_agreement(&measure());
    }

    /// For a run that is kept: every cell, as CSV.
    #[test]
    #[ignore = "writes the table of a kept run"]
    fn every_short_buffer_beside_the_kernel() {
        println!("{COLUMNS}");
        measure().iter().for_each(|cell| println!("{}", cell.line()));
    }
}
