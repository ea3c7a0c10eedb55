//! The volume of a flow in both directions (WLAN section II-A), derived from its
//! packets.

use tidegate_core::TcpFacts;

use super::{Record, bytes};

/// The sizes of all packets but bare acknowledgements, and for each connection the
/// distance of the highest acknowledged number from the first.
pub(super) fn volume(records: &[&Record]) -> u128 {
    let facts = |record: &&Record| record.packet.tcp;
    let is_bare = |record: &&Record| {
        facts(record).is_some_and(|facts| facts.payload == 0 && facts.acknowledgement.is_some())
    };
    let own: Vec<&Record> = records.iter().copied().filter(|record| !is_bare(record)).collect();
    let segments: Vec<TcpFacts> = records.iter().filter_map(facts).collect();
    // Cut before each SYN.
    let starts = (1..segments.len()).filter(|i| segments[*i].syn).chain([segments.len()]);
    let (connections, _) = starts.fold((Vec::new(), 0), |(mut connections, start), end| {
        connections.push(&segments[start..end]);
        (connections, end)
    });
    bytes(&own) + connections.into_iter().map(acknowledged).sum::<u128>()
}

/// How far a connection got. Its numbers are laid out on an endless line: of all
/// positions with the same 32 bits, a number means the one nearest to the furthest
/// so far, and of two equally near the one behind.
fn acknowledged(connection: &[TcpFacts]) -> u128 {
    let mut numbers = connection.iter().filter_map(|facts| facts.acknowledgement);
    let Some(first) = numbers.next() else { return 0 };
    let first = i128::from(first);
    let furthest = numbers.fold(first, |furthest, number| {
        const TURN: i128 = 1 << 32;
        let place = furthest - furthest.rem_euclid(TURN) + i128::from(number);
        let places = [place - TURN, place, place + TURN];
        let nearest = places.into_iter().min_by_key(|place| (place.abs_diff(furthest), *place));
        furthest.max(nearest.expect("there are three"))
    });
    furthest.abs_diff(first)
}
