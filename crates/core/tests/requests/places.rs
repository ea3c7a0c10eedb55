//! No place in the window is lost and none is there twice, whatever fails.

use std::num::NonZeroU32;
use std::panic::{AssertUnwindSafe, catch_unwind};

use tidegate_core::request::{ClassId, Decision, Request, Scheduler, UserId, catalogue};
use tidegate_core::{Bytes, Rate, Span, Stream, Time};
use tidegate_twins::requests::gateway::{Gateway, Operation};

const RATE: Rate = Rate(2_000_000);

fn weights(weights: &[u32]) -> Vec<NonZeroU32> {
    weights.iter().map(|w| NonZeroU32::new(*w).expect("not zero")).collect()
}

/// An operation of many classes and users, with every kind of end.
fn draw(stream: &mut Stream) -> Operation {
    let size = |stream: &mut Stream| Bytes((stream.exponential() * 4_000.0) as u64);
    match stream.index(25) {
        0..8 => Operation::Arrive { class: stream.index(8) as u32, user: stream.index(5) as u64 },
        8 => Operation::Withdraw(stream.index(1 << 20)),
        9..16 => Operation::Receive { response: stream.index(1 << 20), size: size(stream) },
        16..18 => Operation::End(stream.index(1 << 20)),
        18 => Operation::Break(stream.index(1 << 20)),
        19 => Operation::Cancel(stream.index(1 << 20)),
        20 => {
            let whose = Some((stream.index(8) as u32, stream.index(5) as u64));
            Operation::Unasked { whose: whose.filter(|_| stream.index(2) > 0), size: size(stream) }
        }
        21 => Operation::Report {
            other: size(stream),
            delay: Some(Span::millis(stream.index(100) as u64)),
        },
        22 => Operation::Resume {
            class: stream.index(8) as u32,
            user: stream.index(5) as u64,
            received: size(stream),
        },
        _ => Operation::Wait(stream.exponential_span(Span::millis(200))),
    }
}

#[test]
fn a_million_events_with_every_kind_of_end_leak_no_place() {
    const EVENTS: usize = 1_000_000;
    let settings: [(&str, &[(&str, &str)]); 5] = [
        ("msf", &[("waiting", "30"), ("grant", "2 kB"), ("long_from", "6 kB")]),
        ("msf", &[("waiting", "30"), ("window", "fixed"), ("start", "5")]),
        ("paper", &[("waiting", "30"), ("shares", "class")]),
        ("drr", &[("waiting", "30"), ("window", "fixed"), ("start", "3")]),
        ("fifo", &[("window", "unlimited")]),
    ];
    for (name, given) in settings {
        let entry = catalogue::find(name).expect("it is in the catalogue");
        let config = (entry.config)(&entry.settings(given).expect("within range"));
        let mut gateway = Gateway::new(config, RATE, &weights(&[4, 2, 1, 1, 3, 7, 1_000]));
        let mut stream = Stream::new(1, name);
        for event in 0..EVENTS / settings.len() {
            // The gateway compares all books after each.
            let crowded = gateway.scheduler.outstanding() > 300;
            let operation = draw(&mut stream);
            gateway.apply(if crowded { Operation::End(0) } else { operation });
            if event.is_multiple_of(100) {
                gateway.log.clear();
            }
        }
        gateway.close();
        let scheduler = &mut gateway.scheduler;
        assert_eq!((scheduler.held(), scheduler.outstanding(), scheduler.waiting()), (0, 0, 0));
        for class in 0..7 {
            let state = scheduler.class(ClassId(class)).expect("there are seven");
            assert_eq!((state.users, state.service, state.is_waiting), (0, 0, false));
        }
        // All places are there: as many requests are released at once.
        let places = scheduler.window().ceil().min(50.0) as usize;
        let request = |handle| Request { handle, class: ClassId(0), user: UserId(handle) };
        let later = Time(u64::MAX / 2);
        // Some find no room to wait, which is another matter.
        let waiting = (0..50).filter(|handle| scheduler.arrive(request(*handle)).is_ok()).count();
        let released: Vec<_> = std::iter::from_fn(|| scheduler.next(later)).collect();
        // Without a number of places the link's room decides.
        if scheduler.window().is_finite() || name == "fifo" {
            assert_eq!(released.len(), places.min(waiting), "{name}");
        }
    }
}

fn one_place() -> Scheduler {
    let paper = catalogue::find("paper").expect("it is in the catalogue");
    let mut scheduler =
        paper.build(&[("window", "fixed")], RATE, &weights(&[1]), 1).expect("within range");
    for handle in 0..2 {
        let request = Request { handle, class: ClassId(0), user: UserId(0) };
        scheduler.arrive(request).expect("there is room to wait");
    }
    scheduler
}

#[test]
fn a_permit_comes_back_from_a_panic_and_from_another_thread() {
    let mut scheduler = one_place();
    let first = scheduler.next(Time::ZERO);
    assert!(first.is_some() && scheduler.next(Time::ZERO).is_none());
    let failed = catch_unwind(AssertUnwindSafe(move || {
        let _owned = first;
        panic!("the server's answer made no sense");
    }));
    assert!(failed.is_err());
    let second = scheduler.next(Time::ZERO);
    assert!(matches!(&second, Some(Decision::Release { request, .. }) if request.handle == 1));
    assert_eq!(scheduler.held(), 1);
    std::thread::spawn(move || drop(second)).join().expect("it only drops");
    assert_eq!((scheduler.held(), scheduler.outstanding()), (0, 0));
}

#[test]
fn a_permit_may_outlive_its_scheduler() {
    let mut scheduler = one_place();
    let decision = scheduler.next(Time::ZERO);
    drop(scheduler);
    drop(decision);
}
