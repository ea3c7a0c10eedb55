//! Any bytes to each reader of recorded traffic.
//!
//! A bug is a panic, an error of more than one line, or a value that breaks
//! what its type promises.

use std::io::Read;
use std::sync::Arc;

use tidegate_core::{Bytes, Span, Time};
use tidegate_sim::pages::RecordedPages;
use tidegate_sim::trace::sizes::Sizes;
use tidegate_sim::trace::{
    Capture, ConnectionLog, DeliveryTrace, Direction, Division, Flent, FlowLog, FrameTrace,
    HttpLog, MOST_SIZE, Movie, PageLoads, PageTable, ReadError, Recording, SizeDistribution,
    Transfers, stream,
};
use tidegate_sim::video::{Next, Player, Rule};
use tidegate_study::measured::Measurement;

/// Packets: pcap and pcapng.
///
/// # Panics
/// At a bug, as all functions here.
pub fn capture(input: &[u8]) {
    let Some(capture) = value(Capture::parse("file", input)) else { return };
    assert!(capture.packets.is_sorted_by_key(|packet| packet.at));
    let hosts = capture.local_hosts();
    for packet in &capture.packets {
        assert!(packet.at <= Time::ZERO + capture.duration);
        assert!(packet.payload() <= packet.size);
        let back = hosts.direction(packet.flow.reversed());
        assert_eq!(hosts.direction(packet.flow).is_some(), back.is_some());
    }
    let packets: u64 = capture.flow_totals().values().map(|total| total.packets).sum();
    assert_eq!(packets, capture.packets.len() as u64);
    if let Some(first) = capture.packets.first() {
        let _ = capture.call_profile(first.flow).map(|profile| profile.mean_rate());
    }
}

/// Opportunities of a link.
pub fn delivery(input: &[u8]) {
    let Some(trace) = value(DeliveryTrace::parse("file", input)) else { return };
    let _ = trace.mean_rate();
    let mut cursor = trace.cursor();
    let mut last = Time::ZERO;
    for from in [0, 0, 1, 1_000_000_000, 0, 1 << 60, u64::MAX, u64::MAX].map(Time) {
        let next = cursor.next_opportunity(&trace, from);
        assert!(next >= from && next >= last);
        last = next;
    }
}

/// Distributions of sizes, of all three formats.
pub fn size_distribution(input: &[u8]) {
    if let Some(distribution) = value(SizeDistribution::parse("file", input)) {
        hold(&distribution);
    }
}

/// Results of Flent.
pub fn flent(input: &[u8]) {
    let Some(run) = value(Flent::parse("file", input)) else { return };
    assert!(!run.series.is_empty());
    for series in &run.series {
        assert!(!series.samples.is_empty());
        assert!(series.samples.is_sorted_by_key(|sample| Time((sample.at_s * 1e6) as u64)));
        for sample in &series.samples {
            assert!(sample.value.is_finite() && sample.at_s >= 0.0);
            assert!((0.0..=sample.at_s).contains(&sample.covers_s));
        }
    }
    let measurement = Measurement::of(&run);
    let places = measurement.ping.into_iter().chain(measurement.call);
    assert!(
        places
            .chain(measurement.throughput.into_iter().flatten())
            .all(|place| place < measurement.observations.len())
    );
    let _ = (measurement.round_trip(), measurement.added());
}

/// Flows: CSV and TSV.
pub fn flow_log(input: &[u8]) {
    if let Some(log) = value(FlowLog::parse("file", input).map(FlowLog::from_first)) {
        assert!(log.flows.is_sorted_by_key(|flow| flow.start));
    }
}

/// Frames of a stream: CSV and TSV.
pub fn frames(input: &[u8]) {
    let sizes = Bytes(1)..=Bytes(1_000_000);
    let Some(trace) = value(FrameTrace::parse("file", input, sizes.clone())) else { return };
    let frames = trace.frames();
    assert_eq!(frames.first().map(|frame| frame.at), Some(Time::ZERO));
    assert!(frames.is_sorted_by_key(|frame| frame.at));
    assert!(frames.iter().all(|frame| sizes.contains(&frame.size)));
    assert!(frames.iter().all(|frame| frame.at <= Time::ZERO + trace.period()));
    let _ = trace.mean_rate();
}

/// Replies of a Web server.
pub fn http_log(input: &[u8]) {
    if let Some(log) = value(HttpLog::parse("file", input)) {
        assert!(log.replies.is_sorted_by_key(|reply| reply.at));
    }
}

/// Page loads: HAR.
pub fn page_load(input: &[u8]) {
    let Some(loads) = value(PageLoads::parse("file", input)) else { return };
    for page in &loads.pages {
        assert!(page.requests.is_sorted_by_key(|request| request.at));
        for (number, request) in page.requests.iter().enumerate() {
            assert!(request.initiator.is_none_or(|initiator| initiator < number));
            assert!(request.first_byte.is_none_or(|first| first <= request.took));
        }
    }
    if let Some(pages) = RecordedPages::new(&[loads]) {
        assert!(pages.count() > 0 && pages.mean_objects() >= 1.0);
    }
}

/// Page loads in brief: CSV.
pub fn page_table(input: &[u8]) {
    for page in value(PageTable::parse("file", input)).into_iter().flat_map(|table| table.pages) {
        assert!((1..=page.objects).contains(&page.hosts));
    }
}

/// The segments of a movie: JSON.
pub fn movie(input: &[u8]) {
    let Some(movie) = value(Movie::parse("file", input)) else { return };
    assert!(movie.rates().is_sorted_by(|one, next| one < next) && movie.rates()[0].0 > 0);
    let movie = Arc::new(movie);
    for rule in [Rule::Bola, Rule::Rate] {
        let buffer = Span(movie.segment().0.saturating_mul(4));
        let mut player = Player::new(movie.clone(), buffer, rule);
        let mut now = Time::ZERO;
        for turn in 0..32 {
            match player.next(now) {
                Next::Wait(time) => now += time,
                Next::Ask(size) => {
                    assert!(size > Bytes::ZERO && size <= MOST_SIZE);
                    // In no time, fast, and slowly.
                    let rest = [Span::ZERO, Span::millis(5), movie.segment()][turn % 3];
                    now += rest;
                    player.came(now, Span::ZERO, rest);
                }
            }
        }
        let seen = player.viewing(now);
        assert!(seen.played + seen.stalled + seen.waited <= now.since(Time::ZERO));
        assert!(seen.stalled_ratio().is_none_or(|ratio| (0.0..=1.0).contains(&ratio)));
        assert!(seen.mean_rate() <= movie.rates().last().copied());
    }
}

/// Sizes in a file of any format.
pub fn sizes(input: &[u8]) {
    let Some(recording) = value(Recording::stream("file", input)) else { return };
    let found = Sizes::of(&recording, None);
    for direction in [Direction::Up, Direction::Down] {
        assert!(Sizes::of(&recording, Some(direction)).sizes.len() <= found.sizes.len());
    }
    let measured = SizeDistribution::from_sizes(&found.sizes, 20);
    assert_eq!(measured.is_some(), !found.sizes.is_empty());
    measured.as_ref().map(hold);
}

/// Connections: Zeek, tcptrace.
pub fn connection_log(input: &[u8]) {
    if let Some(log) = value(ConnectionLog::parse("file", input)) {
        assert!(log.connections.is_sorted_by_key(|connection| connection.start));
        assert!(log.connections.first().is_none_or(|first| first.start == Time::ZERO));
        assert!(log.connections.iter().all(|it| it.up.max(it.down) <= MOST_SIZE));
    }
}

/// Transfers, and the parts of a capture, in a file of any format.
pub fn transfers(input: &[u8]) {
    let Some(recording) = value(Recording::stream("file", input)) else { return };
    if let Recording::Capture(capture) = &recording {
        let hosts = capture.local_hosts();
        for division in [Division::Application, Division::Host] {
            let parts = capture.divided(&hosts, division);
            let flows: usize = parts.iter().map(|part| part.flows.len()).sum();
            let totals = capture.flow_totals();
            let crossing = totals.keys().filter(|flow| hosts.direction(**flow).is_some());
            assert_eq!(flows, crossing.count());
        }
    }
    let transfers = Transfers::of(recording);
    for flows in [&transfers.down, &transfers.up] {
        assert!(flows.is_sorted_by_key(|flow| flow.start));
        assert!(flows.iter().all(|flow| flow.start <= transfers.last().expect("there is one")));
    }
}

/// Compressed bytes: as much of them as a small file may hold.
pub fn stream(input: &[u8]) {
    const MOST: u64 = 1 << 20;
    let Ok(plain) = stream::plain(input) else { return };
    let mut found = Vec::new();
    let complete = plain.take(MOST).read_to_end(&mut found).is_ok();
    assert!(found.len() as u64 <= MOST);
    let packed = input.starts_with(&[0x1f, 0x8b, 8])
        || input.get(1..4) == Some(&[0xb5, 0x2f, 0xfd])
        || input.get(1..4) == Some(&[0x2a, 0x4d, 0x18]);
    assert!(packed || complete && found == input);
}

fn value<T>(result: Result<T, ReadError>) -> Option<T> {
    result.map_err(|error| assert!(!error.to_string().contains('\n'), "{error}")).ok()
}

fn hold(distribution: &SizeDistribution) {
    let sizes = [f64::NAN, -1.0, 0.0, 0.25, 0.5, 0.99, 1.0].map(|u| distribution.quantile(u));
    assert!(sizes[1..].is_sorted());
    assert!(distribution.mean() >= 0.0);
    let mut text = Vec::new();
    distribution.write(&mut text, &["any"]).expect("memory can be written to");
    let again = SizeDistribution::parse("file", &text).expect("what is written can be read");
    assert_eq!(&again, distribution);
}
