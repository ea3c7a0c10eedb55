//! The packets that came to ns-3's queue, put through one of ours: without TCP,
//! every difference is the discipline's.

use std::error::Error;
use std::net::Ipv4Addr;

use serde::Deserialize;
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Packet, Port, Rate, Time};
use tidegate_sim::metrics::run_summary::Times;
use tidegate_sim::scenario::DisciplineChoice;

/// ns-3 sends two bytes of PPP with each packet, at this rate.
const RATE: Rate = Rate(10_000_000);
const PPP: Bytes = Bytes(2);
/// Where the peer's receivers listen.
const PEER_PORT: u16 = 5_001;

/// The buffer of `run-aqm.sh`.
const BUFFER: Buffer = Buffer::packets(300);
/// Of the discipline's randomness and hash.
const SEED: u64 = 1;

/// A packet as `dumbbell --packets` writes it.
#[derive(Deserialize)]
struct Row {
    arrived_ns: u64,
    source: u32,
    source_port: u16,
    destination: u32,
    size_bytes: u64,
    /// When ns-3 sent it, if it did.
    left_ns: Option<u64>,
}

/// What became of the packets in one of the two queues.
#[derive(Default)]
struct Fates {
    left: Vec<Option<Time>>,
    wait: Times,
}

impl Fates {
    fn sent(&mut self, packet: usize, arrived: Time, at: Time) {
        self.left[packet] = Some(at);
        self.wait.record(at.since(arrived));
    }

    fn lost(&self) -> usize {
        self.left.iter().filter(|left| left.is_none()).count()
    }

    fn print(&self, name: &str) {
        let quantile = |fraction| self.wait.quantile(fraction).unwrap_or_default() * 1e3;
        println!(
            "| {name} | {:.4} | {:.4} | {:.4} | {:.4} | {} |",
            self.wait.mean().unwrap_or_default() * 1e3,
            quantile(0.5),
            quantile(0.95),
            quantile(0.99),
            self.lost()
        );
    }
}

/// Compares what `discipline` does with the packets of `file` to what ns-3 did.
pub(crate) fn replay(file: &str, discipline: &DisciplineChoice) -> Result<(), Box<dyn Error>> {
    let rows: Vec<Row> = csv::Reader::from_path(file)?.deserialize().collect::<Result<_, _>>()?;
    let mut peer = Fates { left: vec![None; rows.len()], ..Fates::default() };
    for (number, row) in rows.iter().enumerate() {
        if let Some(left) = row.left_ns {
            peer.sent(number, Time(row.arrived_ns), Time(left));
        }
    }
    let ours = serve(&rows, (discipline.entry.build)(&discipline.settings, BUFFER.into(), SEED));
    println!("| | wait, mean ms | median | 95% | 99% | lost |");
    println!("| --- | --- | --- | --- | --- | --- |");
    peer.print("ns-3");
    ours.print("ours");
    let both = || std::iter::zip(&peer.left, &ours.left);
    let lost = both().filter(|(peer, ours)| peer.is_none() && ours.is_none()).count();
    let alike = both().filter(|(peer, ours)| peer == ours).count();
    println!("\nof {} packets both lose {lost} alike; {alike} have the same fate", rows.len());
    Ok(())
}

/// Sends the packets through a queue in front of the bottleneck. As in ns-3, of
/// events at one instant the arrival comes first, and a sender that has become
/// free asks its queue for a packet also when there is none.
fn serve(rows: &[Row], discipline: Box<dyn Discipline>) -> Fates {
    let mut fates = Fates { left: vec![None; rows.len()], ..Fates::default() };
    let mut port = Port::new(discipline);
    // When the sender will ask; never while it has got nothing.
    let mut asks = Some(Time::ZERO);
    for (number, row) in rows.iter().enumerate() {
        let now = Time(row.arrived_ns);
        while let Some(at) = asks.filter(|at| *at < now) {
            asks = send(&mut port, at, &mut fates);
        }
        let address = |bits: u32| Ipv4Addr::from(bits).octets();
        let flow = FlowKey::v4(
            address(row.source),
            row.source_port,
            address(row.destination),
            PEER_PORT,
            FlowKey::TCP,
        );
        port.offer(now, Packet::new(number as u64, flow, Bytes(row.size_bytes)));
        if asks.is_none() {
            asks = send(&mut port, now, &mut fates);
        }
    }
    while let Some(at) = asks {
        asks = send(&mut port, at, &mut fates);
    }
    fates
}

/// Sends a packet at `now`, if there is one; says when the next one can go.
fn send(port: &mut Port, now: Time, fates: &mut Fates) -> Option<Time> {
    let packet = port.take(now)?;
    fates.sent(packet.handle as usize, packet.arrived, now);
    Some(now + RATE.transmission(packet.size + PPP))
}
