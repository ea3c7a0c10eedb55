//! Players on a link without TCP, beside Sabre, the simulator of BOLA's authors.
//!
//! `sabre.json` has eight of the recordings that come with Sabre (every eleventh of its
//! 3G recordings by name, up to 300 s of each), and what Sabre asks for on them: the quality of
//! each of the 199 segments of Big Buck Bunny, and how long its picture stood still. Sabre
//! was run as it is, without giving up segments (`-noa`), with the movie repeated, so that
//! its end is far away (`-ml 3600`), and for the rate-based rule without a second rule for
//! small buffers (`-noibr`):
//!
//! ```text
//! sabre.py -m bbb.json -n TRACE -noa -ml 3600 -v -a bola
//! sabre.py -m bbb.json -n TRACE -noa -ml 3600 -v -a throughput -noibr
//! ```
//!
//! The tolerance: each quality is the same, and the stalls of a trace differ by no more than
//! Sabre's rounding, 1 ms for each segment.

use std::sync::Arc;

use serde_json::Value;
use tidegate_core::{Span, Time};
use tidegate_sim::trace::Movie;
use tidegate_sim::video::{Next, Player, Rule};

/// Every segment once.
const SEGMENTS: usize = 199;

/// A link that changes its rate, and has nothing to do with packets.
struct Fluid {
    /// Lengths in ms, rates in bits a ms, and latencies in ms.
    periods: Vec<[f64; 3]>,
    /// Where it is, and how long that lasts still.
    at: usize,
    left: f64,
}

impl Fluid {
    fn new(periods: &Value) -> Fluid {
        let number = |value: &Value| value.as_f64().expect("a number");
        let periods = periods.as_array().expect("periods").iter();
        let periods: Vec<_> =
            periods.map(|it| [number(&it[0]), number(&it[1]), number(&it[2])]).collect();
        Fluid { left: periods[0][0], periods, at: 0 }
    }

    fn go_on(&mut self) {
        self.at = (self.at + 1) % self.periods.len();
        self.left = self.periods[self.at][0];
    }

    fn pass(&mut self, mut time: f64) {
        while time > self.left {
            time -= self.left;
            self.go_on();
        }
        self.left -= time;
    }

    /// Milliseconds until a first byte, and from there to the last of so many bits.
    fn load(&mut self, mut bits: f64) -> [f64; 2] {
        let latency = self.periods[self.at][2];
        self.pass(latency);
        let mut took = 0.0;
        while bits > 0.0 {
            let [_, rate, _] = self.periods[self.at];
            let carried = rate * self.left;
            if carried >= bits {
                took += bits / rate;
                self.left -= bits / rate;
                bits = 0.0;
            } else {
                took += self.left;
                bits -= carried;
                self.go_on();
            }
        }
        [latency, took]
    }
}

/// What a player asks for, and how long it stalls before the last of it came.
fn watched(movie: &Arc<Movie>, periods: &Value, rule: Rule) -> (String, Span) {
    let mut link = Fluid::new(periods);
    let mut player = Player::new(movie.clone(), Span::seconds(25), rule);
    let span = |millis: f64| Span::from_seconds(millis / 1e3);
    let (mut now, mut chosen) = (Time::ZERO, String::new());
    while chosen.len() < SEGMENTS {
        match player.next(now) {
            Next::Wait(time) => {
                link.pass(time.as_seconds() * 1e3);
                now += time;
            }
            Next::Ask(size) => {
                chosen += &player.quality().to_string();
                let [first, rest] = link.load(size.0 as f64 * 8.0).map(span);
                now = now + first + rest;
                player.came(now, first, rest);
            }
        }
    }
    (chosen, player.viewing(now).stalled)
}

#[test]
fn players_ask_for_what_the_authors_program_asks_for() {
    let movie = tidegate_scenarios::bytes("data/big-buck-bunny.json").expect("it ships");
    let movie = Arc::new(Movie::parse("big-buck-bunny.json", movie).expect("it is a movie"));
    assert_eq!(movie.segments(), SEGMENTS as u64);
    let recorded: Value = serde_json::from_str(include_str!("sabre.json")).expect("it is JSON");
    let mut wrong = Vec::new();
    for trace in recorded.as_array().expect("traces") {
        for (name, rule) in [("bola", Rule::Bola), ("rate", Rule::Rate)] {
            let expected = trace[name]["qualities"].as_str().expect("qualities");
            let stalled_ms = trace[name]["stalled_ms"].as_f64().expect("a time");
            let (chosen, stalled) = watched(&movie, &trace["periods"], rule);
            let differ = chosen.bytes().zip(expected.bytes()).filter(|(a, b)| a != b).count();
            let late = (stalled.as_seconds() * 1e3 - stalled_ms).abs();
            println!("{} {name}: {differ} differ, {stalled} for {stalled_ms} ms", trace["trace"]);
            if differ > 0 || late > SEGMENTS as f64 {
                wrong.push(format!("{} {name}", trace["trace"]));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:?}");
}
