//! Nanoseconds for a request's whole life in every request scheduler: it comes,
//! another is released, a part of its response is received, and the response ends.
//! That changes the order of users twice and the order of classes three times.
//!
//! `decision` is the call alone that picks the next request and releases it, as the
//! schedulers are by default. What a release leaves behind is cleaned up between batches
//! of calls, which share the reading of the clock.
//!
//! ```sh
//! cargo bench -p tidegate-core --bench requests
//! ```

use std::hint::black_box;
use std::num::NonZeroU32;
use std::time::{Duration, Instant};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use tidegate_core::request::catalogue::{Entry, SCHEDULERS};
use tidegate_core::request::{ClassId, Decision, Permit, Request, Scheduler, UserId};
use tidegate_core::{Bytes, Rate, Span, Time};

/// Classes, and users of each class, all with a request waiting all the time.
const POINTS: [(u32, u64); 3] = [(3, 4), (3, 1_000), (1_000, 100)];

const RATE: Rate = Rate(100_000_000);
/// The time from one decision to the next: the link carries 50 kB in it, so there is room
/// for another request.
const STEP: Span = Span::millis(4);
/// No batch releases more, or more than a third of those who wait.
const BATCH: u64 = 64;

struct Load {
    scheduler: Scheduler,
    random: u64,
    now: Time,
    waiting: u64,
}

impl Load {
    /// All users wait; a fixed window has no more than one place, which is taken
    /// and given back in every life.
    fn new(entry: &'static Entry, window: &[(&str, &str)], (classes, users): (u32, u64)) -> Load {
        let weight = |class| NonZeroU32::new(1 + class % 7).expect("from 1 on");
        let weights: Vec<_> = (0..classes).map(weight).collect();
        let given = [window, &[("waiting", "1000000")]].concat();
        let scheduler = entry.build(&given, RATE, &weights, 1);
        let scheduler = scheduler.unwrap_or_else(|error| panic!("{error}"));
        let waiting = users * u64::from(classes);
        let mut load = Load { scheduler, random: 1, now: Time::ZERO, waiting };
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
        let (request, permit) = self.decide();
        self.respond(request, permit);
    }

    /// The time of so many decisions alone.
    fn decisions(&mut self, count: u64) -> Duration {
        let mut taken = Duration::ZERO;
        let mut left = count;
        let mut released = Vec::with_capacity(BATCH as usize);
        while left > 0 {
            let batch = left.min(BATCH).min(self.waiting / 3);
            let start = Instant::now();
            for _ in 0..batch {
                self.now += STEP;
                released.push(self.decide());
            }
            taken += start.elapsed();
            left -= batch;
            for (request, permit) in released.drain(..) {
                self.respond(request, permit);
            }
            // It has yet to look at the permits that were dropped.
            black_box(self.scheduler.held());
        }
        taken
    }

    fn decide(&mut self) -> (Request, Permit) {
        match self.scheduler.next(self.now) {
            Some(Decision::Release { request, permit }) => (request, permit),
            other => panic!("requests wait, and there is room: {other:?}"),
        }
    }

    /// A response comes and ends, and its user asks again.
    fn respond(&mut self, request: Request, mut permit: Permit) {
        // Knuth's MMIX generator, for sizes up to 15 kB: no response is long.
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let size = Bytes(((self.random >> 32) * 15_000) >> 32);
        black_box(self.scheduler.received(self.now, &permit, size));
        self.arrive(request.class, request.user);
        permit.complete();
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
                let mut load = Load::new(entry, &[("window", "fixed")], point);
                bencher.iter(|| load.life());
            });
        }
        group.finish();
    }
}

fn decisions(criterion: &mut Criterion) {
    for point @ (classes, users) in POINTS {
        let mut group =
            criterion.benchmark_group(format!("decision-{}", u64::from(classes) * users));
        group.warm_up_time(Duration::from_secs(1)).measurement_time(Duration::from_secs(3));
        for entry in SCHEDULERS {
            // The window of `paper` would have to find its size first.
            let is_room = entry.name == "msf";
            let window: &[_] =
                if is_room { &[] } else { &[("window", "fixed"), ("start", "1000000")] };
            group.bench_function(BenchmarkId::from_parameter(entry.name), |bencher| {
                let mut load = Load::new(entry, window, point);
                bencher.iter_custom(|count| load.decisions(count));
            });
        }
        group.finish();
    }
}

criterion_group!(benches, lives, decisions);
criterion_main!(benches);
