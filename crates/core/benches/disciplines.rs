//! Nanoseconds for a packet to join and one to leave, for every registered discipline.
//!
//! ```sh
//! cargo bench -p tidegate-core --bench disciplines
//! ```

mod load;

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use load::{Load, POINTS};
use tidegate_core::registry::DISCIPLINES;

fn pairs(criterion: &mut Criterion) {
    // Points are outside, so that the disciplines of one point, which are
    // compared with each other, are measured right after each other.
    for point in POINTS {
        let mut group =
            criterion.benchmark_group(format!("{}-queued-{}-flows", point.queued, point.flows));
        group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
        for entry in DISCIPLINES {
            group.bench_function(BenchmarkId::from_parameter(entry.name), |bencher| {
                let mut load = Load::new(entry, point);
                bencher.iter(|| load.pair());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, pairs);
criterion_main!(benches);
