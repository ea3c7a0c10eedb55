//! What is wrong with Algorithm 3 of `BE` as it is printed.
//!
//! It exists only here; [`ConstantState`] has the safe form.

use rand::Rng;
use rand_pcg::Pcg64;
use tidegate_core::assignment::{Assignment, Blocking, ConstantState, Exact, Line, Segments};
use tidegate_core::curve::Curve;
use tidegate_core::{Bytes, Rate, Span, Time};

use crate::theorems::{given, is_too_much};

/// The listing, in seconds and bytes per second, with its deadlines rounded up.
#[derive(Debug)]
struct Printed {
    r: f64,
    s: f64,
    p: f64,
    /// Arrival, size and relative deadline of the packet before.
    last: Option<(f64, f64, f64)>,
}

impl Assignment for Printed {
    fn assign(&mut self, arrived: Time, size: Bytes) -> Time {
        let (r, s, p) = (self.r, self.s, self.p);
        let (came, w) = (arrived.as_seconds(), size.0.max(40) as f64);
        let deadline = match self.last {
            None if w < r * p => w / r,
            None => (w - p * r) / s + p,
            Some((before, last, deadline)) if last + w < r * p => {
                w / r + (before + deadline - came).max(0.0)
            }
            Some((before, last, _)) => {
                let behind = (last + w) / s + (before - came) + p - p * r / s;
                if w < r * p { behind.max(w / r) } else { behind }
            }
        };
        self.last = Some((came, w, deadline));
        arrived + Span((deadline * 1e9).ceil() as u64)
    }

    fn reset(&mut self) {
        self.last = None;
    }

    fn blocking(&self) -> Blocking {
        Blocking::Any
    }

    fn state(&self) -> usize {
        3
    }
}

/// Slopes in bytes per second, the corner in milliseconds.
fn both(r: u64, s: u64, p: u64) -> (Printed, Segments) {
    let printed = Printed { r: r as f64, s: s as f64, p: p as f64 / 1e3, last: None };
    let start = Span((p * 1_000_000 * (s - r)).div_ceil(s));
    let second = Line { start, slope: Rate(8 * s) };
    (printed, Segments { first: Rate(8 * r), second })
}

#[test]
fn four_packets_that_come_together_show_it() {
    let (mut printed, segments) = both(300_000, 450_000, 10);
    let packets = [(0, 1_536); 4];
    let micros = |assignment: &mut dyn Assignment| {
        packets.map(|(at, size)| assignment.assign(Time(at), Bytes(size)).0 / 10_000)
    };
    let mut exact = Exact::new(segments.curve());
    assert_eq!(micros(&mut exact), [512, 1_016, 1_357, 1_698]);
    assert_eq!(micros(&mut printed), [512, 1_016, 1_016, 1_016]);
    assert_eq!(micros(&mut ConstantState::new(segments)), [512, 1_016, 1_357, 1_698]);
    printed.reset();
    assert!(is_too_much(&given(&mut printed, &packets), &segments.curve()));
}

#[test]
fn the_printed_form_asks_for_more_than_there_is_and_the_safe_one_never() {
    let mut random = Pcg64::new(1, 1);
    let mut draw = move |least: u64, most: u64| least + random.next_u64() % (most - least + 1);
    let (mut too_much, cases) = (0, 400);
    for _ in 0..cases {
        let r = draw(50, 600) * 1_000;
        let s = r + draw(1, 600) * 1_000;
        let (mut printed, segments) = both(r, s, draw(1, 50));
        let mut now = 0;
        let packets: Vec<(u64, u64)> = (0..draw(2, 12))
            .map(|_| {
                now += if draw(0, 1) == 0 { 0 } else { draw(0, 10_000_000) };
                (now, draw(40, 1_536))
            })
            .collect();
        let mut safe = ConstantState::new(segments);
        assert!(!is_too_much(&given(&mut safe, &packets), &segments.curve()));
        // A byte more for the listing, which computes with rounded numbers.
        let byte = Curve::token_bucket(Bytes(1), Rate(0));
        let more = segments.curve().plus(&byte).expect("both are straight in the end");
        too_much += u32::from(is_too_much(&given(&mut printed, &packets), &more));
    }
    assert!(too_much > cases / 10, "{too_much} of {cases}");
}
