//! Nanoseconds for the deadline of a best-effort packet, under every assignment,
//! beside the real-time flows of `BE Table 3`: on the access link of that paper,
//! and in busy periods of a given number of packets.
//!
//! ```sh
//! cargo bench -p tidegate-core --bench assignments
//! ```
//!
//! Before that, it prints the largest number of packets that each assignment
//! remembers.

mod access;

use std::hint::black_box;
use std::time::Duration;

use access::Call;
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidegate_core::assignment::{Assignment, Scheme, Typical};
use tidegate_core::contract::Contracts;
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Rate, Span, Time};

/// Best-effort packets come at nine tenths of what real-time flows leave.
const RATE: Rate = Rate(3_240_000);

/// How many packets come before the link is idle, and their sizes: those of
/// `BE Table 4`, or all as small as can be.
const POINTS: [(u32, Size); 4] =
    [(10, Size::Mixed), (100, Size::Mixed), (1_000, Size::Mixed), (10_000, Size::Smallest)];

/// The whole history of more packets is not measured: it would take all day.
const MOST_EXACT: u32 = 1_000;

#[derive(Clone, Copy, Debug, PartialEq)]
enum Size {
    Mixed,
    Smallest,
}

/// How long the access link is watched.
const WATCHED: Span = Span::seconds(120);

fn build(scheme: Scheme) -> Box<dyn Assignment> {
    let contracts: Contracts = access::FLOWS.parse().expect("the flows are well-formed");
    let residual = Residual::new(&contracts).expect("the flows are schedulable");
    scheme.build(&residual, Typical { packet: Bytes(1_536), burst: Bytes(15_360) })
}

/// An assignment on the access link, over and over again.
struct Link<'a> {
    assignment: Box<dyn Assignment>,
    calls: &'a [Call],
    place: usize,
}

impl Link<'_> {
    fn new(scheme: Scheme, calls: &[Call]) -> Link<'_> {
        Link { assignment: build(scheme), calls, place: 0 }
    }

    /// The next packet gets its deadline.
    fn packet(&mut self) -> Time {
        loop {
            let Some(call) = self.calls.get(self.place) else {
                self.assignment.reset();
                self.place = 0;
                continue;
            };
            self.place += 1;
            match black_box(*call) {
                Call::Assign(now, size) => return self.assignment.assign(now, size),
                Call::Reset => self.assignment.reset(),
            }
        }
    }
}

fn access_link(criterion: &mut Criterion) {
    let calls = access::calls(WATCHED);
    let packets = calls.iter().filter(|call| matches!(call, Call::Assign(..))).count();
    println!("access: {packets} packets, the link idle {} times", calls.len() - packets);
    for scheme in Scheme::ALL {
        let mut link = Link::new(scheme, &calls);
        let states = (0..packets).map(|_| {
            link.packet();
            link.assignment.state()
        });
        let states: Vec<usize> = states.collect();
        let most = states.iter().max().copied().unwrap_or(0);
        let mean = states.iter().sum::<usize>() as f64 / packets as f64;
        println!("access/{scheme} remembers {most} at most, {mean:.1} on average");
    }
    let mut group = criterion.benchmark_group("access");
    group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
    for scheme in Scheme::ALL {
        group.bench_function(BenchmarkId::from_parameter(scheme), |bencher| {
            let mut link = Link::new(scheme, &calls);
            bencher.iter(|| black_box(link.packet()));
        });
    }
    group.finish();
}

/// An assignment and the packets that come.
struct Load {
    assignment: Box<dyn Assignment>,
    now: Time,
    size: Size,
    /// Packets between two times at which the link is idle, and how many are
    /// still to come.
    busy: u32,
    left: u32,
    random: u64,
}

impl Load {
    fn new(scheme: Scheme, (busy, size): (u32, Size)) -> Load {
        Load { assignment: build(scheme), now: Time::ZERO, size, busy, left: busy, random: 1 }
    }

    /// The next packet gets its deadline.
    fn packet(&mut self) -> Time {
        if self.left == 0 {
            self.assignment.reset();
            self.left = self.busy;
        }
        self.left -= 1;
        // Knuth's MMIX generator: full packets and, one in four, smaller ones.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let drawn = self.random >> 32;
        let size = match self.size {
            Size::Mixed if drawn.is_multiple_of(4) => Bytes(40 + drawn % 1_496),
            Size::Mixed => Bytes(1_536),
            Size::Smallest => Bytes(40),
        };
        // In batches of eight, so that packets wait for each other.
        if self.left.is_multiple_of(8) {
            self.now += Span(RATE.transmission(size).0 * 8);
        }
        self.assignment.assign(black_box(self.now), black_box(size))
    }
}

fn assignments(criterion: &mut Criterion) {
    for point in POINTS {
        let (busy, size) = point;
        let measured = |scheme: &Scheme| *scheme != Scheme::Exact || busy <= MOST_EXACT;
        let point_name = format!("{busy}-packets-{size:?}").to_lowercase();
        for scheme in Scheme::ALL.into_iter().filter(measured) {
            let mut load = Load::new(scheme, point);
            let mut most = 0;
            for _ in 0..busy {
                load.packet();
                most = most.max(load.assignment.state());
            }
            println!("{point_name}/{scheme} remembers {most} at most");
        }
        let mut group = criterion.benchmark_group(point_name);
        group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
        for scheme in Scheme::ALL.into_iter().filter(measured) {
            group.bench_function(BenchmarkId::from_parameter(scheme), |bencher| {
                let mut load = Load::new(scheme, point);
                bencher.iter(|| black_box(load.packet()));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, access_link, assignments);
criterion_main!(benches);
