//! A call over time on a link whose capacity changes (RFC 8867 section 5.1), as a figure.

use std::error::Error;
use std::io::{self, Read};
use std::sync::atomic::AtomicBool;

use tidegate_core::FlowKey;
use tidegate_sim::metrics::{PacketEvent, PacketRecord, Recorder};
use tidegate_sim::scenario::file::{self, DataFiles};
use tidegate_sim::simulation;

use super::number::Quantity;
use super::plot::{Axis, Below, Key, Line, LineChart};

/// Seconds, and kbit/s.
const CAPACITIES: [(usize, u64); 4] = [(40, 1_000), (20, 2_500), (20, 600), (20, 1_000)];
/// A packet of the trace of a link.
const PACKET: u64 = 1_504;

/// A second of the call: bits that left the queue, and the waits of their packets.
#[derive(Clone, Copy, Default)]
struct Second {
    bits: f64,
    waited: f64,
    packets: f64,
}

struct Seconds(Vec<Second>);

impl Recorder for Seconds {
    fn takes_packets(&self) -> bool {
        true
    }

    fn packet(&mut self, row: &PacketRecord) {
        let PacketRecord { at, packet, .. } = row;
        // Reports go the other way, over a link that has no queue.
        if row.event == PacketEvent::Sent && packet.flow.protocol() == FlowKey::UDP {
            let second = &mut self.0[at.as_seconds() as usize];
            second.bits += packet.size.0 as f64 * 8.0;
            second.waited += at.since(packet.arrived).as_seconds();
            second.packets += 1.0;
        }
    }
}

/// The milliseconds in which a packet may leave.
struct Opportunities(String);

impl Opportunities {
    fn new() -> Opportunities {
        let (mut text, mut bits, mut now_ms) = (String::new(), 0, 0);
        for (seconds, kbits) in CAPACITIES {
            for _ in 0..seconds * 1_000 {
                now_ms += 1;
                bits += kbits;
                while bits >= PACKET * 8 {
                    bits -= PACKET * 8;
                    text += &format!("{now_ms}\n");
                }
            }
        }
        Opportunities(text)
    }
}

impl DataFiles for Opportunities {
    fn open(&self, _name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(self.0.as_bytes()))
    }
}

/// The call under FIFO with 300 ms of buffer at 1 Mbit/s, and 50 ms each way.
fn measured() -> Result<Vec<Second>, Box<dyn Error>> {
    let duration: usize = CAPACITIES.iter().map(|(seconds, _)| seconds).sum();
    let text = format!(
        r#"
        title = "call"
        duration = "{duration} s"
        disciplines = ["fifo"]
        [[link]]
        from = "server"
        to = "user"
        rate = {{ trace = "capacity" }}
        delay = "50 ms"
        buffer = "37500 B"
        queue = "tested"
        [[traffic.call]]
        name = "call"
        from = "server"
        to = "user"
        "#
    );
    let scenario = file::parse("call.toml", &text, &Opportunities::new())?;
    let mut seconds = Seconds(vec![Second::default(); duration + 1]);
    let never = AtomicBool::new(false);
    simulation::run(&scenario, &scenario.disciplines[0], 1, &mut seconds, &never);
    seconds.0.truncate(duration);
    Ok(seconds.0)
}

/// The figure.
pub(crate) fn capacity() -> Result<String, Box<dyn Error>> {
    let seconds = measured()?;
    // A value stands at the end of its second.
    let of = |value: fn(&Second) -> f64| -> Vec<(f64, f64)> {
        seconds.iter().enumerate().map(|(second, it)| ((second + 1) as f64, value(it))).collect()
    };
    let mut capacity = Vec::new();
    let mut now = 0;
    for (length, kbits) in CAPACITIES {
        let rate = kbits as f64 * 1e3;
        capacity.extend([(now as f64, rate), ((now + length) as f64, rate)]);
        now += length;
    }
    let line =
        |label: &str, style, points| Line { label: label.into(), style, points, band: Vec::new() };
    let waits = of(|it| it.waited / it.packets.max(1.0));
    let longest = waits.iter().map(|(_, wait)| *wait).fold(0.0, f64::max);
    let chart = LineChart {
        x: Axis::linear("Time", Quantity::Time, now as f64),
        y: Axis::linear("Rate", Quantity::Rate, 2.6e6),
        lines: vec![line("call", 0, of(|it| it.bits)), line("capacity of the link", 1, capacity)],
        key: Key::Above,
        stepped: false,
        below: Some(Below {
            y: Axis::linear("Wait in the queue, mean", Quantity::Time, longest).rounded(),
            lines: vec![line("call", 0, waits)],
        }),
    };
    let title = "A call on a link whose capacity changes";
    Ok(chart.draw().for_both_grounds("capacity", title, &chart.in_words()))
}
