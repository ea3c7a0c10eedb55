//! Size distributions: read, written, sampled, and measured in traffic.

use proptest::prelude::*;
use tidegate_core::Bytes;
use tidegate_sim::trace::sizes::Sizes;
use tidegate_sim::trace::{Direction, Format, Recording, SizeDistribution, measure};

fn parse(text: &str) -> SizeDistribution {
    SizeDistribution::parse("cdf", text.as_bytes()).unwrap_or_else(|error| panic!("{error}"))
}

fn refused(text: &str) -> String {
    SizeDistribution::parse("cdf", text.as_bytes()).expect_err("the file is broken").to_string()
}

fn points(distribution: &SizeDistribution) -> Vec<(u64, f64)> {
    distribution.points().iter().map(|point| (point.size.0, point.probability)).collect()
}

#[test]
fn three_formats_are_read() {
    let own = parse("# from somewhere\nsize_bytes,cumulative_probability\n100,0.5\n# x\n300, 1\n");
    assert_eq!(points(&own), [(100, 0.5), (300, 1.0)]);
    let packets = parse("1 1 0\n1 1 0.5\n3 1 1\n");
    assert_eq!(points(&packets), [(1_460, 0.0), (1_460, 0.5), (4_380, 1.0)]);
    let homa = parse("175.5\n100 0.25\n  200\t0.999999999\n");
    assert_eq!(points(&homa), [(100, 0.25), (200, 1.0)]);
}

#[test]
fn quantiles_are_linear_between_points() {
    let distribution = parse("size_bytes,cumulative_probability\n100,0.5\n300,0.9\n300,1\n");
    let quantile = |u| distribution.quantile(u).0;
    assert_eq!([0.0, 0.2, 0.5].map(quantile), [100, 100, 100]);
    assert_eq!([0.6, 0.7, 0.9].map(quantile), [150, 200, 300]);
    assert_eq!([0.95, 1.0, 7.0].map(quantile), [300, 300, 300]);
    assert_eq!([-1.0, f64::NAN].map(quantile), [100, 100]);
    assert_eq!(distribution.mean(), 0.5 * 100.0 + 0.4 * 200.0 + 0.1 * 300.0);
    // No transfer is empty.
    assert_eq!(parse("size_bytes,cumulative_probability\n0,0\n0,1\n").quantile(0.5), Bytes(1));
}

#[test]
fn mistakes_are_named_with_their_line() {
    let heading = "size_bytes,cumulative_probability";
    let format = format!("expected the heading '{heading}', three columns, or a mean alone");
    for (text, expected) in [
        ("a,b\n", format!("cdf:1: found 'a,b', {format}")),
        ("", format!("cdf:1: found no points, expected sizes under '{heading}'")),
        (
            &format!("{heading}\n"),
            format!("cdf:1: found no points, expected sizes under '{heading}'"),
        ),
        (
            &format!("{heading}\n#\n5,0.5\n4,1\n"),
            "cdf:4: found 4,1 after 5,0.5, expected size and probability not below those before"
                .into(),
        ),
        (
            "1 1 0.5\n2 1 0.4\n",
            "cdf:2: found 2920,0.4 after 1460,0.5, expected size and probability not below those \
             before"
                .into(),
        ),
        ("7\n1 0.5\n2 0.9\n", "cdf:3: found 2,0.9, expected a last probability of 1".into()),
        ("7\n1 1.5\n", "cdf:2: found '1 1.5', expected bytes and probability from 0 to 1, and sizes up to 1 TB".into()),
        ("7\n1 nan\n", "cdf:2: found '1 nan', expected bytes and probability from 0 to 1, and sizes up to 1 TB".into()),
        ("1 2 3 4\n", format!("cdf:1: found '1 2 3 4', {format}")),
        (
            &format!("{heading}\n1000000000001,1\n"),
            "cdf:2: found '1000000000001,1', expected bytes,probability from 0 to 1, and sizes up \
             to 1 TB"
                .into(),
        ),
    ] {
        assert_eq!(refused(text), expected);
    }
}

fn from_sizes(sizes: &[u64], most: usize) -> SizeDistribution {
    let sizes: Vec<_> = sizes.iter().copied().map(Bytes).collect();
    SizeDistribution::from_sizes(&sizes, most).expect("there are sizes")
}

#[test]
fn few_sizes_keep_each_of_them() {
    assert_eq!(points(&from_sizes(&[5], 100)), [(5, 1.0)]);
    assert_eq!(points(&from_sizes(&[9, 3], 100)), [(3, 0.25), (9, 0.75), (9, 1.0)]);
    let equal = from_sizes(&[7, 2, 7, 7, 7], 100);
    assert_eq!(points(&equal), [(2, 0.1), (7, 0.3), (7, 0.9), (7, 1.0)]);
    assert!((equal.mean() - 6.0).abs() < 1e-12);
    assert_eq!(SizeDistribution::from_sizes(&[], 100), None);
}

/// Sizes with a tail as heavy as a Pareto law's of shape 1.1, up to 1 GB, and
/// with some that many have in common.
fn heavy_tailed() -> impl Strategy<Value = Vec<u64>> {
    let size = prop_oneof![
        4 => (1e-7..1.0_f64).prop_map(|u| (100.0 * u.powf(-1.0 / 1.1)) as u64),
        1 => prop::sample::select(vec![43, 1_460]),
    ];
    prop::collection::vec(size, 1..4_000)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn a_hundred_points_keep_the_mean_and_the_largest(sizes in heavy_tailed()) {
        let distribution = from_sizes(&sizes, 100);
        prop_assert!(distribution.points().len() <= 100);
        let mean = sizes.iter().sum::<u64>() as f64 / sizes.len() as f64;
        let error = distribution.mean() / mean - 1.0;
        prop_assert!(error.abs() < 0.01, "{} points, {error}", distribution.points().len());
        prop_assert_eq!(distribution.quantile(1.0).0, *sizes.iter().max().expect("not empty"));
        // The middle is where it was, within the spacing of the points: of few
        // sizes, between the two that the fraction falls between.
        let mut sorted = sizes.clone();
        sorted.sort_unstable();
        let place = |u: f64| u * (sorted.len() - 1) as f64;
        let least = sorted[place(0.45).floor() as usize];
        let most = sorted[place(0.55).ceil() as usize];
        let median = distribution.quantile(0.5).0;
        prop_assert!((least..=most).contains(&median), "{median}");
    }

    #[test]
    fn any_sizes_fit_into_any_number_of_points(
        sizes in prop::collection::vec(0..=1_000_000_000_000_u64, 1..300),
        most in 0..40_usize,
    ) {
        let distribution = from_sizes(&sizes, most);
        prop_assert!(distribution.points().len() <= most.max(8));
        let mut text = Vec::new();
        distribution.write(&mut text, &["two\nlines"]).expect("memory can be written to");
        prop_assert_eq!(SizeDistribution::parse("cdf", &text).expect("our own form"), distribution);
    }

    #[test]
    fn samples_have_the_stated_mean(sizes in prop::collection::vec(1_000..1_000_000_u64, 1..50)) {
        const SAMPLES: u32 = 20_000;
        let distribution = from_sizes(&sizes, 100);
        let sum: u64 = (0..SAMPLES)
            .map(|step| distribution.quantile((f64::from(step) + 0.5) / f64::from(SAMPLES)).0)
            .sum();
        let error = sum as f64 / f64::from(SAMPLES) / distribution.mean() - 1.0;
        prop_assert!(error.abs() < 0.001, "{error}");
    }
}

fn found(contents: &[u8]) -> Sizes {
    let recording = Recording::stream("file", contents);
    Sizes::of(&recording.unwrap_or_else(|error| panic!("{error}")), None)
}

#[test]
fn formats_are_told_by_content() {
    let log = b"h - - [01/Jul/1995:00:00:03 -0400] \"GET /a\" 200 6245\n\
        h - - [01/Jul/1995:00:00:03 -0400] \"GET /a\" 200 -\n\
        h - - [01/Jul/1995:00:00:03 -0400] \"GET /a\" 304 0\n";
    let expected = Sizes { format: Format::HttpLog, sizes: vec![Bytes(6_245)], left_out: 2 };
    assert_eq!(found(log), expected);
    let flows = found(b"# flows\nsize_bytes,start_s\n5,0\n0,1\n");
    assert_eq!((flows.format, flows.sizes, flows.left_out), (Format::FlowLog, vec![Bytes(5)], 1));
    let table = found(b"host\ttime\tbytes\nh\t1\t2\n");
    assert_eq!((table.format, table.sizes), (Format::HttpLog, vec![Bytes(2)]));
    let page = found(b"\n {\"log\": {\"entries\": []}}");
    assert_eq!((page.format, page.sizes, page.left_out), (Format::PageLoad, vec![], 0));
}

#[test]
fn what_holds_no_sizes_is_named() {
    let found = |contents: &[u8]| {
        let error = Recording::stream("file", contents).expect_err("no sizes").to_string();
        error.split(", expected ").next().expect("a message has a start").to_string()
    };
    assert_eq!(found(b""), "file: header at byte 0: found an empty file");
    let xz = b"\xfd7zXZ\0";
    assert_eq!(found(xz), "file: header at byte 0: found a file compressed by xz or bzip2");
    let distribution = b"#x\nsize_bytes,cumulative_probability\n1,1\n";
    assert_eq!(found(distribution), "file: header at byte 0: found a size distribution");
    assert_eq!(found(b"hello"), "file: header at byte 0: found 'hello'");
}

#[test]
fn sizes_of_a_capture_are_those_of_its_directions() {
    let data = |name: &str| format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let measured = measure(&[data("bro.org.pcap"), data("example.pcap")], None, 100);
    let measured = measured.unwrap_or_else(|error| panic!("{error}"));
    let counts: Vec<_> = measured.files.iter().map(|file| (file.sizes, file.left_out)).collect();
    // Of 26 and 54 directions these carried anything.
    assert_eq!(counts, [(16, 10), (31, 23)]);
    assert_eq!(measured.distribution.quantile(1.0), Bytes(235_084));
    // What clients send is nothing like what they receive.
    let of = |direction| {
        let found = measure(&[data("bro.org.pcap"), data("example.pcap")], direction, 100);
        let found = found.unwrap_or_else(|error| panic!("{error}"));
        (found.files.iter().map(|file| file.sizes).sum::<u64>(), found.mean)
    };
    let (down, up) = (of(Some(Direction::Down)), of(Some(Direction::Up)));
    assert!(down.0 > 0 && up.0 > 0 && down.0 + up.0 <= 47, "{down:?}, {up:?}");
    assert!(down.1 > 5.0 * up.1, "{down:?}, {up:?}");
    // Few sizes have a point each, and then the two means are one.
    let of_points = measured.distribution.mean();
    assert!((measured.mean / of_points - 1.0).abs() < 1e-9, "{} and {of_points}", measured.mean);
    let missing =
        measure(&["no/such/file"], None, 100).expect_err("there is no such file").to_string();
    assert!(missing.starts_with("no/such/file: cannot be read: "), "{missing}");
    let none = measure(&[] as &[&str], None, 100).expect_err("nothing to measure").to_string();
    assert!(none.ends_with("found nothing to use, expected a flow or reply that is not empty"));
}
