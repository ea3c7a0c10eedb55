//! The measured data that the scenarios use has the figures that its page states.

use std::path::PathBuf;

use tidegate_core::{Bytes, Rate, Span};
use tidegate_sim::trace::{DeliveryTrace, SizeDistribution};

fn data(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/data").join(name)
}

#[test]
fn sizes_are_as_described() {
    for (name, mean, median, nearly_all, largest) in [
        ("web-objects.csv", 15_643.0, 3_544, 150_101, 667_518),
        ("downloads.csv", 294_336.0, 12_292, 1_179_100, 69_192_717),
    ] {
        let sizes = SizeDistribution::read(&data(name)).unwrap_or_else(|error| panic!("{error}"));
        assert!((sizes.mean() - mean).abs() < 1.0, "{name}: {}", sizes.mean());
        assert_eq!(sizes.quantile(0.5), Bytes(median), "{name}");
        assert_eq!(sizes.quantile(1.0), Bytes(largest), "{name}");
        assert!(sizes.quantile(0.99).0.abs_diff(nearly_all) < 100, "{:?}", sizes.quantile(0.99));
    }
}

#[test]
fn capacities_are_as_described() {
    for (name, opportunities, millis, kilobits) in
        [("variable.down", 23_262, 116_521, 2_402), ("variable.up", 9_668, 110_853, 1_049)]
    {
        let trace = DeliveryTrace::read(&data(name)).unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(trace.opportunities(), opportunities);
        assert_eq!(trace.period(), Span::millis(millis));
        assert_eq!(trace.mean_rate().0 / 1_000, Rate(kilobits).0, "{name}");
    }
}
