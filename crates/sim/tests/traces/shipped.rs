//! The measured data that the scenarios use has the figures that its page states.

use std::path::PathBuf;

use tidegate_core::{Bytes, Rate, Span};
use tidegate_sim::trace::{DeliveryTrace, FrameTrace, SizeDistribution};

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

#[test]
fn frames_are_as_described() {
    for (name, frames, millis, mean, least, most) in [
        ("video-highway.csv", 2_000, 66_633, 287, 91, 12_038),
        ("call-g711.csv", 236, 7_050, 280, 280, 280),
        ("call-telegram.csv", 276, 16_881, 233, 76, 316),
        ("call-whatsapp.csv", 87, 11_909, 154, 54, 304),
    ] {
        let trace = FrameTrace::read(&data(name), Bytes(28)..=Bytes(65_535));
        let trace = trace.unwrap_or_else(|error| panic!("{error}"));
        let sizes = trace.frames().iter().map(|frame| frame.size);
        assert_eq!(trace.frames().len(), frames, "{name}");
        let last = trace.frames().last().expect("a frame").at.as_seconds();
        assert_eq!((last * 1e3).round(), f64::from(millis), "{name}");
        assert_eq!((trace.size().0 as f64 / frames as f64).round(), f64::from(mean), "{name}");
        assert_eq!((sizes.clone().min(), sizes.max()), (Some(Bytes(least)), Some(Bytes(most))));
    }
}
