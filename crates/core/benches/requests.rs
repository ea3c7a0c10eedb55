//! Nanoseconds for a request's whole life in every request scheduler: it comes,
//! another is released, a part of its response is received, and the response ends.
//! That changes the order of users twice and the order of classes three times.
//!
//! ```sh
//! cargo bench -p tidegate-core --bench requests
//! ```

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidegate_core::request::catalogue::{Entry, SCHEDULERS};
use tidegate_core::request::{ClassId, Decision, Request, Scheduler, UserId};
use tidegate_core::{Bytes, Rate, Time};

/// Classes, and users of each class, all with a request waiting all the time.
const POINTS: [(u32, u64); 3] = [(3, 4), (3, 1_000), (1_000, 100)];

struct Load {
    scheduler: Scheduler,
    random: u64,
}

impl Load {
    /// All users wait; the window has no more than one place, which is taken
    /// and given back in every life.
    fn new(entry: &'static Entry, (classes, users): (u32, u64)) -> Load {
        let weight = |class| NonZeroU32::new(1 + class % 7).expect("from 1 on");
        let weights: Vec<_> = (0..classes).map(weight).collect();
        let given = [("window", "fixed"), ("waiting", "1000000")];
        let scheduler = entry.build(&given, Rate(100_000_000), &weights, 1);
        let scheduler = scheduler.unwrap_or_else(|error| panic!("{error}"));
        let mut load = Load { scheduler, random: 1 };
        for user in 0..users {
            for class in 0..classes {
                load.arrive(ClassId(class), UserId(user));
            }
        }
        load
    }

    fn arrive(&mut self, class: ClassId, user: UserId) {
        let request = black_box(Request { handle: 0, class, user });
        self.scheduler.arrive(request).unwrap_or_else(|error| panic!("{error}"));
    }

    /// Who is served asks again, so that as many wait as before.
    fn life(&mut self) {
        let Some(Decision::Release { request, permit }) = self.scheduler.next(Time::ZERO) else {
            panic!("requests wait, and the place is free")
        };
        // Knuth's MMIX generator, for sizes up to 15 kB: no response is long.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let size = Bytes(((self.random >> 32) * 15_000) >> 32);
        black_box(self.scheduler.received(Time::ZERO, &permit, size));
        self.arrive(request.class, request.user);
        drop(permit);
    }
}

fn lives(criterion: &mut Criterion) {
    for point @ (classes, users) in POINTS {
        let name = format!("{classes}-classes-{}-users", u64::from(classes) * users);
        let mut group = criterion.benchmark_group(name);
        group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
        for entry in SCHEDULERS {
            group.bench_function(BenchmarkId::from_parameter(entry.name), |bencher| {
                let mut load = Load::new(entry, point);
                bencher.iter(|| load.life());
            });
        }
        group.finish();
    }
}

criterion_group!(benches, lives);
criterion_main!(benches);
