//! How far classes can be from their shares, and long responses from starving.
//!
//! `MSF section 4.2` bounds the difference of what two backlogged classes
//! receive for their weights by *W+* *L_i* / *w_i* + *L_j* / *w_j*, where *L_i* / *w_i*
//! is the larger. Its argument counts a response as received when it is
//! released, one after the other, once the first class's window is over. With
//! a window of more than one place this is not what happens: the second class,
//! too, can have *W+* responses outstanding when it draws level. What holds:
//!
//! - from a time on at which both were backlogged and level, class *i* is ahead
//!   by at most *W+* *L_i* / *w_i*: when its last request was released it was not
//!   ahead, and then at most *W+* of its responses were outstanding;
//! - hence the difference over any interval of such a time is at most
//!   *W+* (*L_i* / *w_i* + *L_j* / *w_j*);
//! - with one place, that is the paper's.
//!
//! An example by hand reaches the second bound, which is beyond the paper's.

use std::num::NonZeroU32;

use proptest::prelude::*;
use tidegate_core::request::{
    ClassId, Decision, LinkReport, Permit, Reading, Request, Scheduler, UserId, catalogue,
};
use tidegate_core::{Bytes, Rate, Span, Stream, Time};

const RATE: Rate = Rate(2_000_000);

/// A class that always has requests waiting.
#[derive(Clone, Debug)]
struct Backlogged {
    weight: u32,
    users: u32,
    /// Its largest response.
    largest: u64,
}

impl Backlogged {
    /// The weight that its service is to be in proportion to.
    fn share(&self, per_user: bool) -> i128 {
        i128::from(self.weight) * if per_user { i128::from(self.users) } else { 1 }
    }
}

struct Outstanding {
    class: usize,
    left: u64,
    permit: Permit,
}

/// The largest excess of the worst pair over `places` largest responses, in
/// bytes times both shares: from the start, and over any interval.
fn worst_excess(
    scheduler: &mut Scheduler,
    classes: &[Backlogged],
    per_user: bool,
    places: i128,
    seed: u64,
) -> (i128, i128) {
    let mut stream = Stream::new(seed, "bounds");
    let mut outstanding: Vec<Outstanding> = Vec::new();
    let mut received = vec![0_i128; classes.len()];
    // For each pair, the extremes of its difference.
    let mut extremes = vec![vec![(0_i128, 0_i128); classes.len()]; classes.len()];
    let arrive = |scheduler: &mut Scheduler, class: usize, user: u64| {
        let request = Request { handle: user, class: ClassId(class as u32), user: UserId(user) };
        scheduler.arrive(request).expect("there is room to wait");
    };
    for (class, state) in classes.iter().enumerate() {
        for user in 0..u64::from(state.users) {
            // With two at the start and one more for each that is released, one
            // of each user always waits.
            arrive(scheduler, class, user);
            arrive(scheduler, class, user);
        }
    }
    for _ in 0..400 {
        while let Some(Decision::Release { request, permit }) = scheduler.next(Time::ZERO) {
            let class = request.class.0 as usize;
            arrive(scheduler, class, request.user.0);
            let largest = classes[class].largest;
            let left = if stream.index(2) == 0 { largest } else { draw(&mut stream, largest) };
            outstanding.push(Outstanding { class, left, permit });
        }
        let chosen = stream.index(outstanding.len());
        let response = &mut outstanding[chosen];
        let whole = stream.index(3) == 0;
        let size = if whole { response.left } else { draw(&mut stream, response.left) };
        response.left -= size;
        received[response.class] += i128::from(size);
        scheduler.received(Time::ZERO, &response.permit, Bytes(size));
        // Some fail before they are complete.
        if response.left == 0 || stream.index(10) == 0 {
            drop(outstanding.swap_remove(chosen).permit);
        }
        for i in 0..classes.len() {
            for j in 0..classes.len() {
                let (share_i, share_j) = (classes[i].share(per_user), classes[j].share(per_user));
                let ahead = received[i] * share_j - received[j] * share_i;
                let (least, most) = &mut extremes[i][j];
                (*least, *most) = ((*least).min(ahead), (*most).max(ahead));
            }
        }
    }
    let mut worst = (i128::MIN, i128::MIN);
    for i in 0..classes.len() {
        for j in (0..classes.len()).filter(|j| *j != i) {
            let (share_i, share_j) = (classes[i].share(per_user), classes[j].share(per_user));
            let own = places * i128::from(classes[i].largest) * share_j;
            let other = places * i128::from(classes[j].largest) * share_i;
            let (least, most) = extremes[i][j];
            worst.0 = worst.0.max(most - own);
            worst.1 = worst.1.max(most - least - own - other);
        }
    }
    worst
}

fn draw(stream: &mut Stream, most: u64) -> u64 {
    stream.index(most as usize + 1) as u64
}

fn build(name: &str, shares: Option<&str>, places: u32, weights: &[u32]) -> Scheduler {
    let entry = catalogue::find(name).expect("it is in the catalogue");
    let places = places.to_string();
    let mut given = vec![("window", "fixed"), ("start", &places[..])];
    given.extend(shares.map(|shares| ("shares", shares)));
    let weights: Vec<_> = weights.iter().map(|w| NonZeroU32::new(*w).expect("not zero")).collect();
    entry.build(&given, RATE, &weights, 1).expect("within range")
}

fn classes() -> impl Strategy<Value = Vec<Backlogged>> {
    let class = (1..12_u32, 1..5_u32, 1..100_000_u64)
        .prop_map(|(weight, users, largest)| Backlogged { weight, users, largest });
    prop::collection::vec(class, 2..5)
}

fn paper(classes: &[Backlogged], per_user: bool, places: u32) -> Scheduler {
    let weights: Vec<_> = classes.iter().map(|class| class.weight).collect();
    build("paper", Some(if per_user { "user" } else { "class" }), places, &weights)
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn backlogged_classes_stay_within_a_window_of_their_shares(
        classes in classes(),
        places in 1..12_u32,
        per_user in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let mut scheduler = paper(&classes, per_user, places);
        let (start, any) = worst_excess(&mut scheduler, &classes, per_user, places.into(), seed);
        prop_assert!(start <= 0, "{start} too far ahead of a common start");
        prop_assert!(any <= 0, "{any} too far over an interval");
    }
}

/// Whether any of many runs leaves the bounds.
fn is_noticed(run: impl Fn(u64) -> (i128, i128)) -> bool {
    (0..50).any(|seed| run(seed).0 > 0)
}

#[test]
fn faults_break_the_bound() {
    let class = |weight, users| Backlogged { weight, users, largest: 10_000 };
    let classes = [class(4, 1), class(2, 3), class(1, 2)];
    let excess = |mut scheduler: Scheduler, per_user, places, seed| {
        worst_excess(&mut scheduler, &classes, per_user, places, seed)
    };
    // One place more than the bound knows of.
    assert!(is_noticed(|seed| excess(paper(&classes, false, 4), false, 3, seed)));
    // Users counted where they should not be, or not where they should.
    assert!(is_noticed(|seed| excess(paper(&classes, true, 3), false, 3, seed)));
    assert!(is_noticed(|seed| excess(paper(&classes, false, 3), true, 3, seed)));
    // A weight that is a quarter too large.
    let heavier = || build("paper", Some("class"), 3, &[5, 2, 1]);
    assert!(is_noticed(|seed| excess(heavier(), false, 3, seed)));
    // No order of classes at all.
    let fifo = || build("fifo", None, 3, &[4, 2, 1]);
    assert!(is_noticed(|seed| excess(fifo(), false, 3, seed)));
    // And the right one does not.
    assert!(!is_noticed(|seed| excess(paper(&classes, true, 3), true, 3, seed)));
}

/// Two classes of weight 1 under a window of two places, responses of up to 100
/// bytes. The paper's bound is 2 * 100 + 100.
#[test]
fn over_an_interval_the_difference_passes_the_papers_bound_and_reaches_ours() {
    let mut scheduler = build("paper", Some("class"), 2, &[1, 1]);
    for class in [0, 0, 0, 0, 0, 1, 1, 1, 1, 1] {
        let request = Request { handle: 0, class: ClassId(class), user: UserId(0) };
        scheduler.arrive(request).expect("there is room to wait");
    }
    let take = |scheduler: &mut Scheduler, expected| {
        let Some(Decision::Release { request, permit }) = scheduler.next(Time::ZERO) else {
            panic!("a place is free")
        };
        assert_eq!(request.class, ClassId(expected));
        permit
    };
    let receive = |scheduler: &mut Scheduler, permit: &Permit, size| {
        scheduler.received(Time::ZERO, permit, Bytes(size));
    };
    // Level: class 0 gets both places, and 200 bytes: it is 200 ahead.
    let both = [take(&mut scheduler, 0), take(&mut scheduler, 0)];
    both.iter().for_each(|permit| receive(&mut scheduler, permit, 100));
    drop(both);
    // From here on class 1 receives: 199 bytes, all but level.
    let both = [take(&mut scheduler, 1), take(&mut scheduler, 1)];
    receive(&mut scheduler, &both[0], 100);
    receive(&mut scheduler, &both[1], 99);
    drop(both);
    // It is still behind and gets both places again: another 200.
    let both = [take(&mut scheduler, 1), take(&mut scheduler, 1)];
    both.iter().for_each(|permit| receive(&mut scheduler, permit, 100));
    drop(both);
    let from_level_on = 100 + 99 + 200;
    assert!(from_level_on > 2 * 100 + 100, "more than MSF section 4.2 allows");
    assert!(from_level_on <= 2 * (100 + 100));
    let _ = take(&mut scheduler, 0);
}

/// A link flooded from elsewhere, requests waiting all the time, and long
/// responses of both classes: the longest that one was hungry, and the most by which one was
/// hungry for longer than each of those hungry with it takes for a grant from the floor, in
/// such times.
fn longest_hunger(long: u32, floor: &str, seed: u64) -> (Span, f64) {
    let entry = catalogue::find("msf").expect("it is in the catalogue");
    let given = [("floor", floor), ("window", "fixed"), ("start", "1"), ("grant", "4 kB")];
    let weights = [4, 1].map(|w| NonZeroU32::new(w).expect("not zero"));
    let mut scheduler = entry.build(&given, RATE, &weights, 1).expect("within range");
    let mut stream = Stream::new(seed, "hunger");
    let mut now = Time::ZERO;
    let mut responses = Vec::new();
    let request = |handle: u64| {
        let class = ClassId((handle % 2) as u32);
        Request { handle, class, user: UserId(handle / 2) }
    };
    for handle in 0..u64::from(long) + 20 {
        scheduler.arrive(request(handle)).expect("there is room to wait");
    }
    let release = |scheduler: &mut Scheduler| match scheduler.next(now) {
        Some(Decision::Release { request, permit }) => (request.handle, permit),
        other => panic!("the place is free: {other:?}"),
    };
    // Each becomes long and makes room for the next.
    for _ in 0..long {
        let (handle, permit) = release(&mut scheduler);
        let reading = scheduler.received(now, &permit, Bytes(16_000));
        assert_eq!(reading, Reading::UpTo(Bytes::ZERO));
        responses.push((handle, permit, Some(now)));
    }
    let mut _keeps_the_place = vec![release(&mut scheduler).1];
    let share: f64 = floor.parse().expect("it is a number");
    let grant_time = 4_000.0 * 8.0 / (RATE.0 as f64 * share);
    let mut carried = Bytes::ZERO;
    let (mut longest, mut excess) = (Span::ZERO, f64::MIN);
    for _ in 0..2_000 {
        let at = scheduler.next_ready(now).expect("some are hungry").max(now);
        carried += RATE.volume(at.since(now)) * 2;
        scheduler.report(at, LinkReport { carried, queueing_delay: None });
        now = at;
        let mut granted = Vec::new();
        while let Some(decision) = scheduler.next(now) {
            match decision {
                Decision::Read { handle, size } => granted.push((handle, size)),
                // The one before was slow, and has lost the place.
                Decision::Release { permit, .. } => _keeps_the_place.push(permit),
            }
        }
        for (handle, size) in granted {
            let hungry = responses.iter().filter(|(.., since)| since.is_some()).count();
            let found = responses.iter_mut().find(|(known, ..)| *known == handle);
            let (_, permit, since) = found.expect("only the long ones are read");
            let waited = now.since(since.take().expect("only the hungry are read"));
            longest = longest.max(waited);
            excess = excess.max(waited.as_seconds() / grant_time - hungry as f64);
            // All of it comes at once, after a while, or the rest at another time.
            now += Span::micros(stream.index(2_000) as u64);
            if scheduler.received(now, permit, size) == Reading::UpTo(Bytes::ZERO) {
                *since = Some(now);
            }
        }
    }
    (longest, excess)
}

#[test]
fn no_long_response_starves_on_a_flooded_link() {
    for (long, floor) in [(1, "0.1"), (3, "0.05"), (20, "0.1"), (20, "0.5")] {
        for seed in 0..3 {
            let (_, excess) = longest_hunger(long, floor, seed);
            // Less than one grant's time for what came after it was due.
            assert!(excess <= 0.1, "{long} hungry, floor {floor}: {excess} grants too late");
        }
    }
}

/// In grants of 4 kB, a turn of them all would take 128 and 200 s, after which clients have
/// given up; with 250 of them, even the least that each may get takes 25 s.
#[test]
fn each_of_many_long_responses_has_its_turn_before_its_client_gives_up() {
    for (long, seconds) in [(160, 20.0), (250, 25.0)] {
        let (longest, _) = longest_hunger(long, "0.02", 1);
        let longest = longest.as_seconds();
        assert!((0.9..=1.1).contains(&(longest / seconds)), "{long} hungry: {longest} s");
    }
}

/// Servers that fill a buffer again as soon as it is read: four, of responses without end.
#[test]
fn a_link_that_is_faster_than_it_is_said_to_be_is_not_filled() {
    const BUFFER: Bytes = Bytes(64_000);
    let entry = catalogue::find("msf").expect("it is in the catalogue");
    let mut scheduler = entry.build(&[], RATE, &[NonZeroU32::MIN], 1).expect("within range");
    for handle in 0..4 {
        let request = Request { handle, class: ClassId(0), user: UserId(handle) };
        scheduler.arrive(request).expect("there is room to wait");
    }
    let mut permits = [const { None }; 4];
    let mut carried = Bytes::ZERO;
    let could = RATE.volume(Span::seconds(60)) + BUFFER * 8;
    for step in 0..6_000 {
        let now = Time::ZERO + Span::millis(10) * step;
        if step % 10 == 0 {
            scheduler.report(now, LinkReport { carried, queueing_delay: None });
        }
        while let Some(decision) = scheduler.next(now) {
            let (handle, read, comes) = match decision {
                Decision::Release { request, permit } => {
                    permits[request.handle as usize] = Some(permit);
                    (request.handle, BUFFER, BUFFER * 2)
                }
                Decision::Read { handle, size } => (handle, size, size),
            };
            let permit = permits[handle as usize].as_ref().expect("it was released");
            carried += comes;
            scheduler.received(now, permit, read);
            scheduler.came(now, permit, BUFFER);
            assert!(carried <= could, "more has come than the link is to carry in all");
        }
    }
    assert!(carried.0 >= could.0 / 10 * 8, "{carried} have come of {could}");
}
