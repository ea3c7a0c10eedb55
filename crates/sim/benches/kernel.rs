//! The event kernel alone: one event is taken and one scheduled, with a steady
//! number pending. Times ahead are exponential, roughly like those of a simulation.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidegate_core::Stream;
use tidegate_core::{Span, Time};
use tidegate_sim::kernel::Kernel;

fn hold(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("kernel");
    for pending in [10, 100, 1_000, 10_000, 100_000_u64] {
        let mut stream = Stream::new(1, "kernel");
        // Drawn beforehand: a logarithm costs as much as the heap.
        let ahead: Vec<Span> =
            (0..4_096).map(|_| stream.exponential_span(Span::millis(1))).collect();
        let mut kernel = Kernel::new();
        for number in 0..pending {
            kernel.schedule(Time(ahead[number as usize % ahead.len()].0), number);
        }
        let mut turn = 0;
        group.bench_function(BenchmarkId::from_parameter(pending), |bencher| {
            bencher.iter(|| {
                let event = kernel.next(Time::FAR_FUTURE).expect("events are pending");
                turn = (turn + 1) % ahead.len();
                kernel.schedule(kernel.now() + ahead[turn], event);
                event
            });
        });
    }
    group.finish();
}

criterion_group!(benches, hold);
criterion_main!(benches);
