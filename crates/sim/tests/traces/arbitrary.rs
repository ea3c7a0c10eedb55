//! Whatever the bytes are, each reader ends with a value or with a one-line error.

use proptest::prelude::*;
use tidegate_core::Time;
use tidegate_sim::trace::{
    Capture, ConnectionLog, DeliveryTrace, FlowLog, HttpLog, PageLoads, ReadError, Recording,
    SizeDistribution, Transfers,
};

fn is_value<T>(result: Result<T, ReadError>) -> Option<T> {
    result.map_err(|error| assert!(!error.to_string().contains('\n'), "{error}")).ok()
}

fn read_with_all(contents: &[u8]) {
    if let Some(capture) = is_value(Capture::parse("file", contents)) {
        let hosts = capture.local_hosts();
        for pair in capture.packets.windows(2) {
            assert!(pair[0].at <= pair[1].at);
        }
        for packet in &capture.packets {
            assert!(packet.at <= Time::ZERO + capture.duration);
            let _ = (hosts.direction(packet.flow), packet.payload());
        }
        if let Some(packet) = capture.packets.first() {
            let _ = capture.call_profile(packet.flow).map(|profile| profile.mean_rate());
        }
    }
    if let Some(distribution) = is_value(SizeDistribution::parse("file", contents)) {
        let _ = (distribution.quantile(0.3), distribution.mean());
    }
    if let Some(trace) = is_value(DeliveryTrace::parse("file", contents)) {
        let mut cursor = trace.cursor();
        let mut last = Time::ZERO;
        for from in [Time::ZERO, Time(1), Time(1), Time::FAR_FUTURE, Time::FAR_FUTURE] {
            let next = cursor.next_opportunity(&trace, from);
            assert!(next >= last.max(from));
            last = next;
        }
        let _ = trace.mean_rate();
    }
    is_value(FlowLog::parse("file", contents).map(FlowLog::from_first));
    is_value(HttpLog::parse("file", contents));
    is_value(PageLoads::parse("file", contents));
    is_value(ConnectionLog::parse("file", contents));
    is_value(Recording::stream("file", contents)).map(Transfers::of);
}

/// Good files, to be spoiled.
const SEEDS: [&[u8]; 12] = [
    include_bytes!("../data/example.pcap"),
    b"\x0a\x0d\x0d\x0a\x1c\0\0\0\x4d\x3c\x2b\x1a\x01\0\0\0\xff\xff\xff\xff\xff\xff\xff\xff\x1c\0\0\0\
      \x01\0\0\0\x20\0\0\0\x65\0\0\0\0\0\0\0\x09\0\x01\0\x09\0\0\0\0\0\0\0\x20\0\0\0\
      \x06\0\0\0\x3c\0\0\0\0\0\0\0\x01\0\0\0\x02\0\0\0\x1c\0\0\0\x1c\0\0\0\
      \x45\0\0\x1c\0\0\0\0\x40\x11\0\0\x0a\0\0\x01\x0a\0\0\x02\0\x35\0\x35\0\x08\0\0\x3c\0\0\0",
    b"# c\nstart_s,size_bytes,x\n0.5,100,\"a\"\n1e3,200,b\n",
    b"h - - [01/Jul/1995:00:00:03 -0400] \"GET /a\" 200 6245\n",
    b"host\ttime\tbytes\nh\t804571201\t2\n",
    b"{\"log\":{\"entries\":[{\"startedDateTime\":\"2016-01-24T14:41:45.9Z\",\"request\":{\"url\":\
      \"http://e/\"},\"response\":{\"bodySize\":3}}]}}",
    b"1500000002.500     90 192.0.2.7 TCP_MISS/200 6245 GET http://example.org/ - HIER_DIRECT/- -\n",
    b"#fields\tts\torig_bytes\tresp_bytes\tconn_state\n1500000002.5\t300\t90000\tSF\n",
    b"first_packet,unique_bytes_sent_a2b,unique_bytes_sent_b2a\n1500000002.5,300,90000\n",
    b"0\n2\n2\n5\n",
    b"size_bytes,cumulative_probability\n1,0.5\n9,1\n",
    b"12.5\n1 0.5\n9 1\n",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_are_read_or_refused(contents in prop::collection::vec(any::<u8>(), 0..300)) {
        read_with_all(&contents);
    }

    #[test]
    fn any_text_is_read_or_refused(contents in "([-0-9.,:#\t\" ]|[a-z_]|\n|\\PC){0,80}") {
        read_with_all(contents.as_bytes());
    }

    #[test]
    fn spoiled_files_are_read_or_refused(
        seed in 0..SEEDS.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end: prop::sample::Index,
    ) {
        let mut contents = SEEDS[seed][..SEEDS[seed].len().min(2_000)].to_vec();
        for (place, byte) in &changes {
            let place = place.index(contents.len());
            contents[place] = *byte;
        }
        read_with_all(&contents);
        read_with_all(&contents[..end.index(contents.len())]);
    }
}

#[test]
fn the_seeds_are_good_files() {
    for seed in &SEEDS[..9] {
        Recording::stream("seed", *seed).unwrap_or_else(|error| panic!("{error}"));
    }
    DeliveryTrace::parse("seed", SEEDS[9]).unwrap_or_else(|error| panic!("{error}"));
    for seed in &SEEDS[10..] {
        SizeDistribution::parse("seed", seed).unwrap_or_else(|error| panic!("{error}"));
    }
}
