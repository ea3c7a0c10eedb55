//! MSF section 4.2: how far two classes can be apart.

use std::num::NonZeroU32;

use tidegate_core::request::{ClassId, Decision, Permit, Request, Scheduler, UserId};
use tidegate_core::{Bytes, Rate, Stream, Time};

use super::{PAPER, scheduler};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};

pub(super) const FAIRNESS: Claim = Claim {
    id: "MSF-F",
    paper: &PAPER,
    source: "MSF section 4.2, figure 6",
    text: "Over any interval in which two classes are backlogged, what they receive in relation to \
           their weights differs by at most W+ L_i/w_i + L_j/w_j, where L is a class's largest \
           response and L_i/w_i the larger of the two.",
    method: "The scheduler itself, with a fixed window and no link: outstanding responses receive \
             parts of any size in any order, and every tenth part is the last because its response \
             fails. Two to four classes, weights of 1 to 11, largest responses of 1 byte to 100 \
             kB, and half of the responses have the largest size. There are four kinds of drive: \
             classes of one to four users that always have requests waiting, with weights for each \
             user or for the class; two such classes whose responses come in the worst order; \
             classes of one user whose requests come in batches at random, measured while both of \
             a pair have requests waiting; and two classes of which one has a response that brings \
             nothing, and no request waiting, while the other receives for 20 windows. Each value \
             is the largest of all pairs, intervals, drives and seeds, as a share of the paper's \
             bound and of W+ (L_i/w_i + L_j/w_j).",
    discussion: "The paper lets the second class catch up with one response at a time, the last \
                 of which takes it ahead. With more than one place it can have W+ of them \
                 outstanding when it draws level, and the bound that holds is W+ (L_i/w_i + \
                 L_j/w_j): for one place that is the paper's bound. With more places, neither \
                 bound holds for a class that has no request waiting while one of its responses \
                 lingers: it is not idle, keeps its counter while others receive, and makes up \
                 the whole difference once its requests return.",
    measure: fairness,
};

const WINDOWS: [u32; 4] = [1, 2, 4, 8];

/// Drives of either random kind for each seed and window, and parts received in each.
const DRIVES: u64 = 100;
const PARTS: u32 = 400;

/// A link's rate means nothing to a fixed window.
const RATE: Rate = Rate(2_000_000);

/// The largest differences seen, as shares of bounds.
#[derive(Clone, Copy, Debug, Default)]
struct Shares {
    /// Of *W+* *L_i* / *w_i*, by which a class is ahead of another since the start.
    start: f64,
    /// Of *W+* *L_i* / *w_i* + *L_j* / *w_j*, over any interval.
    paper: f64,
    /// Of *W+* (*L_i* / *w_i* + *L_j* / *w_j*), over any interval.
    proven: f64,
}

impl Shares {
    fn or(self, other: Shares) -> Shares {
        Shares {
            start: self.start.max(other.start),
            paper: self.paper.max(other.paper),
            proven: self.proven.max(other.proven),
        }
    }
}

/// A class, as its bounds know it.
#[derive(Clone, Copy, Debug)]
struct Class {
    /// What its service is to be in proportion to.
    share: u32,
    /// Its largest response.
    largest: u64,
}

/// The scheduler under test, what is outstanding, and the books of all pairs.
struct Drive {
    scheduler: Scheduler,
    places: u32,
    classes: Vec<Class>,
    outstanding: Vec<Response>,
    waiting: Vec<u32>,
    received: Vec<u64>,
    /// For each pair the extremes of its difference in this interval.
    extremes: Vec<Vec<(f64, f64)>>,
    worst: Shares,
}

struct Response {
    class: usize,
    left: u64,
    permit: Permit,
}

impl Drive {
    fn new(places: u32, shares: &str, weights: &[u32], classes: Vec<Class>) -> Drive {
        let start = places.to_string();
        let given = [("window", "fixed"), ("start", &start[..]), ("shares", shares)];
        let choice = scheduler("paper", &given);
        let weights: Vec<NonZeroU32> =
            weights.iter().map(|w| NonZeroU32::new(*w).expect("no weight is zero")).collect();
        let count = classes.len();
        Drive {
            scheduler: Scheduler::new((choice.entry.config)(&choice.settings), RATE, &weights, 1),
            places,
            classes,
            outstanding: Vec::new(),
            waiting: vec![0; count],
            received: vec![0; count],
            extremes: vec![vec![(0.0, 0.0); count]; count],
            worst: Shares::default(),
        }
    }

    fn arrive(&mut self, class: usize, user: u64) {
        let request = Request { handle: user, class: ClassId(class as u32), user: UserId(user) };
        self.scheduler.arrive(request).expect("there is room to wait");
        self.waiting[class] += 1;
    }

    /// Releases the next request: its class and user, and `size` of its class's
    /// largest response as what it will bring.
    fn release(&mut self, size: impl FnOnce(u64) -> u64) -> Option<(usize, u64)> {
        let Decision::Release { request, permit } = self.scheduler.next(Time::ZERO)? else {
            return None;
        };
        let class = request.class.0 as usize;
        self.waiting[class] -= 1;
        let left = size(self.classes[class].largest);
        self.outstanding.push(Response { class, left, permit });
        Some((class, request.user.0))
    }

    /// A part of one response is received; it ends when that was all, or when it `fails`.
    fn receive(&mut self, index: usize, size: u64, fails: bool) {
        let response = &mut self.outstanding[index];
        response.left -= size;
        self.received[response.class] += size;
        self.scheduler.received(Time::ZERO, &response.permit, Bytes(size));
        if response.left == 0 || fails {
            drop(self.outstanding.swap_remove(index).permit);
        }
        for i in 0..self.classes.len() {
            for j in i + 1..self.classes.len() {
                self.compare(i, j);
            }
        }
    }

    /// What the first of a pair is ahead of the second, in bytes times both shares:
    /// whole numbers below 2^53.
    fn ahead(&self, i: usize, j: usize) -> f64 {
        let scaled = |of: usize, by: usize| self.received[of] * u64::from(self.classes[by].share);
        scaled(i, j) as f64 - scaled(j, i) as f64
    }

    fn compare(&mut self, i: usize, j: usize) {
        let ahead = self.ahead(i, j);
        if self.waiting[i] == 0 || self.waiting[j] == 0 {
            // An interval begins when both have requests waiting.
            self.extremes[i][j] = (ahead, ahead);
            return;
        }
        let places = f64::from(self.places);
        let scaled = |of: usize, by: usize| {
            (self.classes[of].largest * u64::from(self.classes[by].share)) as f64
        };
        let (one, other) = (scaled(i, j), scaled(j, i));
        let (least, most) = &mut self.extremes[i][j];
        (*least, *most) = (least.min(ahead), most.max(ahead));
        let apart = *most - *least;
        self.worst = self.worst.or(Shares {
            start: (ahead / one).max(-ahead / other) / places,
            paper: apart / (places * one.max(other) + one.min(other)),
            proven: apart / (places * (one + other)),
        });
    }

    /// Any part of any response is received; one in ten is then given up.
    fn receive_any(&mut self, stream: &mut Stream) {
        let index = stream.index(self.outstanding.len());
        let left = self.outstanding[index].left;
        let size = if stream.index(3) == 0 { left } else { up_to(stream, left) };
        let fails = stream.index(10) == 0;
        self.receive(index, size, fails);
    }
}

fn up_to(stream: &mut Stream, most: u64) -> u64 {
    stream.index(most as usize + 1) as u64
}

/// Half of all responses are as large as any.
fn any_size(stream: &mut Stream, largest: u64) -> u64 {
    if stream.index(2) == 0 { largest } else { up_to(stream, largest) }
}

fn weights_and_sizes(stream: &mut Stream) -> Vec<(u32, u64)> {
    let count = 2 + stream.index(3);
    (0..count).map(|_| (1 + stream.index(11) as u32, 1 + up_to(stream, 99_999))).collect()
}

/// Classes that always have requests waiting.
fn backlogged(places: u32, stream: &mut Stream) -> Shares {
    let drawn = weights_and_sizes(stream);
    let users: Vec<u32> = drawn.iter().map(|_| 1 + stream.index(4) as u32).collect();
    let per_user = stream.index(2) == 0;
    let classes = std::iter::zip(&drawn, &users).map(|((weight, largest), users)| Class {
        share: weight * if per_user { *users } else { 1 },
        largest: *largest,
    });
    let weights: Vec<u32> = drawn.iter().map(|(weight, _)| *weight).collect();
    let shares = if per_user { "user" } else { "class" };
    let mut drive = Drive::new(places, shares, &weights, classes.collect());
    for (class, users) in users.iter().enumerate() {
        for user in 0..u64::from(*users) {
            // With one more for each that is released, one always waits.
            drive.arrive(class, user);
            drive.arrive(class, user);
        }
    }
    for _ in 0..PARTS {
        while let Some((class, user)) = drive.release(|largest| any_size(stream, largest)) {
            drive.arrive(class, user);
        }
        drive.receive_any(stream);
    }
    drive.worst
}

/// Classes whose requests come in batches at random.
fn pausing(places: u32, stream: &mut Stream) -> Shares {
    let drawn = weights_and_sizes(stream);
    let weights: Vec<u32> = drawn.iter().map(|(weight, _)| *weight).collect();
    let classes = drawn.iter().map(|(share, largest)| Class { share: *share, largest: *largest });
    let mut drive = Drive::new(places, "class", &weights, classes.collect());
    for _ in 0..PARTS {
        if stream.index(10) == 0 || drive.outstanding.is_empty() {
            let class = stream.index(drawn.len());
            for _ in 0..=stream.index(5) {
                drive.arrive(class, 0);
            }
        }
        while drive.release(|largest| any_size(stream, largest)).is_some() {}
        drive.receive_any(stream);
    }
    drive.worst
}

/// Two equal classes that always have requests waiting. The first takes all
/// places and is a window ahead; the second takes them and comes to within a
/// byte of it, so that it gets them all once more.
fn worst_order(places: u32) -> Shares {
    const LARGEST: u64 = 10_000;
    let class = Class { share: 1, largest: LARGEST };
    let mut drive = Drive::new(places, "class", &[1, 1], vec![class; 2]);
    for _ in 0..=3 * places {
        drive.arrive(0, 0);
        drive.arrive(1, 0);
    }
    for spared in [0, 1, 0] {
        while drive.release(|largest| largest).is_some() {}
        for last in (0..drive.outstanding.len()).rev() {
            let size = if last == 0 { LARGEST - spared } else { LARGEST };
            drive.receive(last, size, true);
        }
    }
    drive.worst
}

/// A class has one response that brings nothing and no request waiting, while
/// another receives [`LINGERING`] windows' worth; then its requests come.
fn lingering(places: u32) -> Shares {
    const LARGEST: u64 = 10_000;
    let class = Class { share: 1, largest: LARGEST };
    let mut drive = Drive::new(places, "class", &[1, 1], vec![class; 2]);
    drive.arrive(0, 0);
    drive.release(|largest| largest);
    for round in 0..2 * LINGERING {
        for _ in 0..places {
            drive.arrive(usize::from(round < LINGERING), 0);
            drive.arrive(1, 0);
        }
        while drive.release(|largest| largest).is_some() {}
        for last in (1..drive.outstanding.len()).rev() {
            drive.receive(last, LARGEST, false);
        }
    }
    drive.worst
}

const LINGERING: u32 = 20;

/// The worst of all seeds and drives of a random kind.
fn worst(
    lab: &Lab<'_>,
    kind: &str,
    drive: impl Fn(&mut Stream) -> Shares + Sync,
) -> Result<Shares, Stopped> {
    let seeds = lab.each_seed(|seed| {
        let numbers = (0..DRIVES).take_while(|_| !lab.is_stopped());
        let drives =
            numbers.map(|number| drive(&mut Stream::new(seed, &format!("{kind} {number}"))));
        drives.fold(Shares::default(), Shares::or)
    })?;
    Ok(seeds.into_iter().fold(Shares::default(), Shares::or))
}

fn fairness(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let mut checks = Vec::new();
    let mut lines: Vec<Line> = ["random, paper's", "random, ours", "worst, paper's", "worst, ours"]
        .map(|label| Line::plain(label, Vec::new()))
        .to_vec();
    for places in WINDOWS {
        let random = worst(lab, "backlogged", |stream| backlogged(places, stream))?;
        let ordered = worst_order(places);
        let paused = worst(lab, "pausing", |stream| pausing(places, stream))?;
        let mut check = |what: &str, paper: &str, share: f64| {
            checks.push(Check::exact(
                format!("W+ = {places}, {what}"),
                paper,
                Written::Share,
                share,
                Bound::AtMost(1.0),
            ));
        };
        let (bound, ours) = ("at most 100%", "not in it");
        check("always backlogged: of the paper's bound", bound, random.paper);
        check("always backlogged: of W+ (L_i/w_i + L_j/w_j)", ours, random.proven);
        check("always backlogged: of W+ L_i/w_i, ahead since the start", ours, random.start);
        check("worst order: of the paper's bound", bound, ordered.paper);
        check("worst order: of W+ (L_i/w_i + L_j/w_j)", ours, ordered.proven);
        check("with pauses: of the paper's bound", bound, paused.paper);
        check("with pauses: of W+ (L_i/w_i + L_j/w_j)", ours, paused.proven);
        if places > 1 {
            check("a response lingers: of the paper's bound", bound, lingering(places).paper);
        }
        let values = [random.paper, random.proven, ordered.paper, ordered.proven];
        for (line, value) in std::iter::zip(&mut lines, values) {
            line.points.push((f64::from(places), value));
        }
    }
    let figure = Figure {
        id: "MSF-F".into(),
        title: "The largest difference of two backlogged classes, of two bounds".into(),
        caption: "Over any interval, for the weights of classes that always have requests \
                  waiting; the largest of all drives and seeds. At random, and in the worst \
                  order; of the paper's bound, and of ours, W+ (L_i/w_i + L_j/w_j)."
            .into(),
        x: Scale::linear("Places (W+)", Measure::Count),
        y: Scale::linear("Share of the bound", Measure::Share),
        lines,
        stepped: false,
    };
    Ok(Finding::new("MSF-F", lab, &[], checks, vec![figure]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_worst_order_passes_the_papers_bound_with_two_places_and_all_but_reaches_ours() {
        let one = worst_order(1);
        assert!(one.paper <= 1.0 && one.paper == one.proven, "{one:?}");
        for places in WINDOWS.into_iter().filter(|places| *places > 1) {
            let shares = worst_order(places);
            assert!(shares.paper > 1.2, "{places}: {shares:?}");
            assert!((0.999..=1.0).contains(&shares.proven), "{places}: {shares:?}");
        }
    }

    #[test]
    fn a_class_catches_up_with_all_that_it_did_not_ask_for_while_a_response_lingers() {
        for places in WINDOWS.into_iter().filter(|places| *places > 1) {
            assert!(lingering(places).paper > 3.0, "{places}: {:?}", lingering(places));
        }
    }

    #[test]
    fn backlogged_classes_come_close_to_what_holds_and_no_further() {
        let mut all = Shares::default();
        for number in 0..200 {
            all = all.or(backlogged(2, &mut Stream::new(number, "backlogged")));
        }
        assert!(all.start <= 1.0 && all.proven <= 1.0, "{all:?}");
        assert!(all.start > 0.8 && all.proven > 0.5, "{all:?}");
    }
}
