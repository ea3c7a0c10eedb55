//! A search for users who take from others what is theirs, or stall the link.
//!
//! A few users who always have something to ask for share a link with others of random
//! behaviour: servers that fall silent or trickle, clients that abort, pause, open very many
//! connections, or ask for next to nothing before they ask for much. Nobody may push a user
//! who asks for large responses all the time below 0.8 of the share that their weight gives
//! them among all users, and no more than 10% of the link may be left idle while somebody is
//! kept waiting: a request, what has come of a response, or a server whose turn it is to send
//! and whose receive buffer at the gateway is full. Others may be ahead of a user by what the
//! link carries in a second, times the user's weight. So shares are measured over eight times
//! as many seconds as all weights together, in which that is an eighth of what is due, and
//! over at least a minute. Each such window counts, of five that begin half of one apart: who
//! gets nothing for a while is not made up for by what they had before.
//!
//! `TIDEGATE_HUNT="1 h" cargo test --release -p tidegate-core --test requests hunt` searches
//! for as long on all processors; without it the search is brief.

mod model;

use std::cell::RefCell;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use proptest::test_runner::{Config, RngSeed, TestError, TestRunner};
use tidegate_core::Span;

pub(crate) use model::{Model, Outcome};

/// The time until shares are measured.
const WARM_UP: Span = Span::seconds(20);

/// What a user does.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Behaviour {
    /// Always has so many requests for so much.
    Greedy { requests: usize, size: u64 },
    /// The same, and each server falls silent after so much.
    Silent { requests: usize, after: u64 },
    /// The same, and servers send so many bytes in a second.
    Trickling { requests: usize, rate: u64 },
    /// Greedy, and away for so many steps after as many.
    Pausing { requests: usize, size: u64, steps: u64 },
    /// The same, beside one response all the time of which so many bytes come in a second.
    Lingering { requests: usize, size: u64, steps: u64, rate: u64 },
    /// Each request is given up after so many steps.
    Aborting { requests: usize, size: u64, steps: u64 },
    /// The same as greedy, with requests for one byte in every other so many steps.
    Changing { requests: usize, size: u64, steps: u64 },
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) class: u32,
    pub(crate) behaviour: Behaviour,
    /// Steps of a round trip to the user's servers.
    pub(crate) round_trip: u64,
}

#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) weights: Vec<u32>,
    /// In kilobits a second.
    pub(crate) rate: u64,
    pub(crate) honest: Vec<User>,
    pub(crate) others: Vec<User>,
}

fn behaviour() -> impl Strategy<Value = Behaviour> {
    let requests = || prop_oneof![1 => Just(1), 3 => 2..20_usize, 1 => 20..100_usize];
    let size =
        || prop_oneof![1 => 1..3_000_u64, 2 => 3_000..60_000_u64, 1 => 60_000..5_000_000_u64];
    let steps = || prop_oneof![1..40_u64, 40..4_000_u64];
    let pause = || prop_oneof![1 => steps(), 1 => 4_000..16_000_u64];
    prop_oneof![
        2 => (requests(), size()).prop_map(|(requests, size)| Behaviour::Greedy { requests, size }),
        2 => (requests(), 0..60_000_u64)
            .prop_map(|(requests, after)| Behaviour::Silent { requests, after }),
        2 => (requests(), 1..20_000_u64)
            .prop_map(|(requests, rate)| Behaviour::Trickling { requests, rate }),
        2 => (requests(), size(), pause())
            .prop_map(|(requests, size, steps)| Behaviour::Pausing { requests, size, steps }),
        2 => (requests(), size(), pause(), 1..20_000_u64).prop_map(
            |(requests, size, steps, rate)| Behaviour::Lingering { requests, size, steps, rate }
        ),
        2 => (requests(), size(), steps())
            .prop_map(|(requests, size, steps)| Behaviour::Aborting { requests, size, steps }),
        2 => (requests(), size(), steps())
            .prop_map(|(requests, size, steps)| Behaviour::Changing { requests, size, steps }),
    ]
}

fn case() -> impl Strategy<Value = Case> {
    // Sizes in milliseconds of the link: their requests fill it at any rate.
    let honest = (0..3_u32, 8..16_usize, 200..2_000_u64, 2..40_u64);
    let honest = honest.prop_map(|(class, requests, size, round_trip)| User {
        class,
        behaviour: Behaviour::Greedy { requests, size },
        round_trip,
    });
    let other = (0..3_u32, behaviour(), 2..80_u64)
        .prop_map(|(class, behaviour, round_trip)| User { class, behaviour, round_trip })
        .boxed();
    // Steps of a slow link cost less.
    let rate = prop_oneof![3 => 1_000..5_000_u64, 1 => 5_000..100_000_u64];
    let weights = prop_oneof![2 => Just(vec![1; 3]), 1 => prop::collection::vec(1..9_u32, 3)];
    // Among few users, what one takes is most of what another has.
    let few =
        (prop::collection::vec(honest.clone(), 1..3), prop::collection::vec(other.clone(), 1..4));
    let many = (prop::collection::vec(honest, 1..4), prop::collection::vec(other, 0..8));
    let users = prop_oneof![3 => few, 1 => many];
    (weights, rate, users).prop_map(|(weights, rate, (mut honest, others))| {
        for user in &mut honest {
            if let Behaviour::Greedy { size, .. } = &mut user.behaviour {
                *size *= rate / 8;
            }
        }
        Case { weights, rate, honest, others }
    })
}

/// The time over which shares are measured.
fn window(case: &Case) -> Span {
    let users = case.honest.iter().chain(&case.others);
    let weight: u64 = users.map(|user| u64::from(case.weights[user.class as usize])).sum();
    Span::seconds((8 * weight).max(60))
}

/// What is wrong, if anything; or else the steps that it took.
pub(crate) fn judge(case: &Case) -> Result<u64, String> {
    judge_run(Model::new(case), case)
}

fn judge_run(mut model: Model, case: &Case) -> Result<u64, String> {
    for (half, outcome) in windows(&mut model, case).iter().enumerate() {
        judge_window(case, outcome).map_err(|fault| format!("from half {half} on, {fault}"))?;
    }
    Ok(model.step)
}

/// What comes of five windows after the warm-up, of which each begins half of one later.
pub(crate) fn windows(model: &mut Model, case: &Case) -> Vec<Outcome> {
    let half = Span(window(case).0 / 2);
    let sums: Vec<_> = (0..=6).map(|halves| model.run_until(WARM_UP + half * halves)).collect();
    sums.windows(3).map(|of| of[2].since(&of[0], model.rate)).collect()
}

/// What is wrong in a window, if anything.
fn judge_window(case: &Case, Outcome { received, missed, .. }: &Outcome) -> Result<(), String> {
    let weight = |user: &User| f64::from(case.weights[user.class as usize]);
    let all: f64 = case.honest.iter().chain(&case.others).map(weight).sum();
    let carried: u64 = received.iter().sum();
    for (number, user) in case.honest.iter().enumerate() {
        let share = received[number] as f64 / carried as f64;
        let due = weight(user) / all;
        if share < 0.8 * due {
            return Err(format!("user {number} has {share:.4} instead of {due:.4}: {received:?}"));
        }
    }
    if *missed > 0.1 {
        return Err(format!("{missed:.3} of the link is idle while somebody waits"));
    }
    Ok(())
}

/// What a search has seen.
#[derive(Debug, Default)]
struct Hunt {
    cases: u64,
    steps: u64,
    /// Seeds, what is wrong, and the cases that those shrank to.
    found: Vec<String>,
}

impl Hunt {
    /// Runs so many cases with each of these seeds in turn, until the time is over.
    fn run(seeds: impl Iterator<Item = u64>, cases: u32, time: Duration) -> Hunt {
        let begin = Instant::now();
        let hunt = RefCell::new(Hunt::default());
        for seed in seeds {
            let config = Config {
                cases,
                failure_persistence: None,
                max_shrink_iters: 200,
                rng_seed: RngSeed::Fixed(seed),
                ..Config::default()
            };
            let run = TestRunner::new(config).run(&case(), |case| {
                let steps = judge(&case).map_err(TestCaseError::fail)?;
                let Hunt { cases, steps: all, .. } = &mut *hunt.borrow_mut();
                (*cases, *all) = (*cases + 1, *all + steps);
                Ok(())
            });
            match run {
                Ok(()) => {}
                Err(TestError::Fail(reason, case)) => {
                    let found = format!("seed {seed}: {reason}: {case:?}");
                    eprintln!("{found}");
                    hunt.borrow_mut().found.push(found);
                }
                Err(error) => panic!("{error}"),
            }
            if begin.elapsed() >= time {
                break;
            }
        }
        hunt.into_inner()
    }
}

#[test]
fn a_hunt_finds_nobody_who_takes_from_others_or_stalls_the_link() {
    let time = std::env::var("TIDEGATE_HUNT").ok();
    let workers =
        time.as_ref().map_or(1, |_| std::thread::available_parallelism().map_or(1, usize::from));
    let time = time.map_or(Duration::ZERO, |time| {
        let span: Span = time.parse().expect("a time such as '1 h'");
        Duration::from_nanos(span.0)
    });
    let hunts: Vec<_> = std::thread::scope(|scope| {
        let hunt = |worker| Hunt::run((worker..).step_by(workers), 12, time);
        let running: Vec<_> =
            (0..workers as u64).map(|worker| scope.spawn(move || hunt(worker))).collect();
        running.into_iter().map(|hunt| hunt.join().expect("no case panics")).collect()
    });
    let sum = |of: fn(&Hunt) -> u64| hunts.iter().map(of).sum::<u64>();
    println!("{} cases, {} steps", sum(|hunt| hunt.cases), sum(|hunt| hunt.steps));
    let found: Vec<_> = hunts.iter().flat_map(|hunt| &hunt.found).collect();
    assert!(found.is_empty(), "{found:#?}");
}

/// A power check: where nobody is held to their share, the same cases show it.
#[test]
fn the_search_finds_who_is_starved_behind_an_ordinary_gateway() {
    let config = Config {
        cases: 12,
        failure_persistence: None,
        max_shrink_iters: 0,
        rng_seed: RngSeed::Fixed(0),
        ..Config::default()
    };
    let run = TestRunner::new(config).run(&case(), |case| {
        judge_run(Model::under("fifo", &case), &case).map_err(TestCaseError::fail)?;
        Ok(())
    });
    match run {
        Err(TestError::Fail(reason, _)) => {
            assert!(reason.message().contains("instead of"), "{reason}");
        }
        other => panic!("{other:?}"),
    }
}
