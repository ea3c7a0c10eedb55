//! What is recommended, when nothing is, and that noise decides nothing.

use super::*;
use crate::comparison::{
    ClassResult, DelayResult, DistributionPoint, LinkResult, LookupResult, PageResult,
    TrafficResult, VideoResult,
};
use crate::{Centre, Sample};

/// How a discipline treats a household, as means over the seeds.
#[derive(Clone, Copy)]
struct Treats {
    name: &'static str,
    /// Mean delay of the call in ms, and what it loses, in per cent.
    call: (f64, f64),
    page_s: f64,
    backup_mbit: f64,
    used: f64,
}

const FIFO: Treats =
    Treats { name: "fifo", call: (150.0, 1.0), page_s: 10.0, backup_mbit: 3.0, used: 0.99 };
const FQ_CODEL: Treats =
    Treats { name: "fq-codel", call: (16.0, 0.0), page_s: 5.1, backup_mbit: 2.7, used: 0.98 };
const CAKE: Treats =
    Treats { name: "cake", call: (15.5, 0.0), page_s: 5.3, backup_mbit: 2.6, used: 0.97 };
const LARS: Treats =
    Treats { name: "lars", call: (16.0, 0.0), page_s: 4.2, backup_mbit: 3.0, used: 0.99 };

/// Values that differ from seed to seed far more than disciplines do, since the traffic
/// does, and a little for each discipline.
fn sample(centre: Centre, mean: f64, traffic: f64, own: f64, seeds: u64) -> Option<Sample> {
    let value = |seed: u64| {
        let wave = |step: f64| (seed as f64 * step).sin();
        // Another wave for each value, since each discipline has its own luck.
        (seed, Some(mean * (1.0 + traffic * wave(2.0) + own * wave(7.0 + mean))))
    };
    Sample::of(centre, (1..=seeds).map(value))
}

fn discipline(treats: Treats, seeds: u64, own: f64) -> DisciplineResult {
    let mean = |value: f64| sample(Centre::Mean, value, 0.3, own, seeds);
    let class = ClassResult {
        label: String::new(),
        up_to_bytes: None,
        started: 0,
        completed: 0,
        with_loss: 0,
        mean_s: None,
        median_s: None,
        p95_s: None,
        slowdown: None,
    };
    let silent = TrafficResult {
        recorded_call: None,
        name: String::new(),
        datagrams: false,
        replayed: false,
        started: 1,
        completed: 1,
        throughput_bps: None,
        fairness: None,
        long_goodput_bps: None,
        longest_stall_s: None,
        loss_ratio: None,
        deadline_s: None,
        late_ratio: None,
        call_rating: None,
        pages: None,
        adapts: false,
        video: None,
        lookups: None,
        delay: DelayResult::default(),
        arrived: 0,
        delay_distribution: Vec::new(),
        progress: Vec::new(),
    };
    let (delay_ms, percent) = treats.call;
    let rating = e_model::rating(delay_ms / 1e3 + 0.02, percent / 100.0);
    let steady = |value| sample(Centre::Mean, value, 0.01, own / 10.0, seeds);
    let call = TrafficResult {
        name: "call".into(),
        datagrams: true,
        call_rating: steady(rating),
        loss_ratio: steady(percent / 100.0),
        delay: DelayResult {
            mean_s: steady(delay_ms / 1e3),
            p95_s: sample(Centre::Median, 1.2 * delay_ms / 1e3, 0.01, own / 10.0, seeds),
            ..DelayResult::default()
        },
        delay_distribution: vec![DistributionPoint { at_s: 0.015, fraction: 0.1 }],
        ..silent.clone()
    };
    let pages = PageResult {
        started: 100,
        completed: 100,
        loaded_ratio: sample(Centre::Mean, 1.0, 0.0, 0.0, seeds),
        load_mean_s: mean(treats.page_s),
        load_median_s: None,
        load_p95_s: None,
        short_mean_s: None,
        short_p95_s: None,
        load_distribution: Vec::new(),
    };
    let web = TrafficResult { name: "web".into(), pages: Some(pages), ..silent.clone() };
    let backup = TrafficResult {
        name: "backup".into(),
        long_goodput_bps: mean(treats.backup_mbit * 1e6),
        ..silent
    };
    let link = LinkResult {
        name: "up".into(),
        tested: true,
        utilisation: steady(treats.used),
        ..LinkResult::default()
    };
    DisciplineResult {
        label: treats.name.into(),
        name: treats.name.into(),
        runs: seeds as usize,
        classes: Vec::new(),
        short: class.clone(),
        all: class,
        response_by_size: Vec::new(),
        short_distribution: Vec::new(),
        traffic: vec![call, web, backup],
        ratios: Vec::new(),
        links: vec![link],
    }
}

fn verdict(treatments: &[Treats], seeds: u64, own: f64) -> Verdict {
    Verdict::of(&comparison(treatments, seeds, own))
}

fn comparison(treatments: &[Treats], seeds: u64, own: f64) -> Comparison {
    Comparison {
        beside: Vec::new(),
        parts: Vec::new(),
        title: String::new(),
        description: String::new(),
        duration_s: 60.0,
        warm_up_s: 5.0,
        seeds: (1..=seeds).collect(),
        partial: false,
        waited: 0,
        short_flow_bytes: 30_000,
        long_flow_bytes: 1_000_000,
        disciplines: treatments.iter().map(|it| discipline(*it, seeds, own)).collect(),
    }
}

/// A recording that runs once, in so many parts.
fn recording(treatments: &[Treats], parts: u64, own: f64) -> Comparison {
    let in_parts = comparison(treatments, parts, own).disciplines;
    Comparison { parts: in_parts, ..comparison(treatments, 1, 0.0) }
}

#[test]
fn what_linux_has_comes_before_what_takes_tidegate() {
    let verdict = verdict(&[FIFO, FQ_CODEL, CAKE, LARS], 6, 0.005);
    assert_eq!(verdict.answer, Answer::Run);
    assert_eq!(verdict.run, ["fq-codel", "cake"]);
    assert_eq!(verdict.with_tidegate, ["lars"]);
    let told: Vec<_> = verdict.changes.iter().map(|it| (it.need, it.effect)).collect();
    assert_eq!(
        told,
        [
            (Need::Call, Effect::Gain),
            (Need::Reaction, Effect::Gain),
            (Need::PagesLoaded, Effect::Same),
            (Need::Pages, Effect::Gain),
            (Need::LongTransfers, Effect::Price),
        ]
    );
    let pages = &verdict.changes[3];
    assert_eq!(pages.source, "web");
    assert!(pages.least < pages.most && pages.most < pages.was, "{pages:?}");
    let only: Vec<_> = verdict.with_tidegate_changes.iter().map(|it| it.effect).collect();
    assert_eq!(only[..3], [Effect::Same; 3]);
    assert_eq!(only[3..], [Effect::Gain; 2]);
    assert_eq!(verdict.avoid, []);
    let pages = &verdict.contests[3].results;
    let won: Vec<_> = pages.iter().map(|it| (it.effect, it.best)).collect();
    let gain = Some(Effect::Gain);
    assert_eq!(won, [(None, false), (gain, false), (gain, false), (gain, true)]);
    assert!(verdict.contests[2].results.iter().all(|it| !it.best), "all pages load everywhere");
    assert_eq!(verdict.latency[0].grade, Some(Grade::C));
    assert_eq!(verdict.latency_of("cake").unwrap().grade, Some(Grade::APlus));
}

#[test]
fn calls_decide_before_pages_and_pages_before_backups() {
    let slow = Treats { name: "fq-pie", page_s: 9.0, ..FQ_CODEL };
    let quick = Treats { name: "sfq", page_s: 2.0, backup_mbit: 3.0, ..FIFO };
    assert_eq!(verdict(&[FIFO, slow, quick], 6, 0.005).run, ["fq-pie"]);
    let greedy = Treats { name: "codel", page_s: 7.0, backup_mbit: 4.0, ..FQ_CODEL };
    assert_eq!(verdict(&[FIFO, greedy, FQ_CODEL], 6, 0.005).run, ["fq-codel"]);
}

#[test]
fn noise_and_what_nobody_notices_win_nothing() {
    // Twice as fast in the mean, but not seed by seed.
    let lucky = Treats { name: "cake", page_s: 5.0, ..FIFO };
    let unclear = verdict(&[FIFO, lucky], 4, 3.0);
    assert_eq!((unclear.answer, &unclear.run[..]), (Answer::Unclear, &["cake".to_string()][..]));
    assert!(unclear.changes.iter().any(|it| it.effect == Effect::Unclear));
    // Certain, and a twentieth.
    let little = Treats { name: "cake", page_s: 9.5, ..FIFO };
    let verdict = verdict(&[FIFO, little], 6, 0.005);
    assert_eq!((verdict.answer, verdict.run.len()), (Answer::Alike, 0));
    assert_eq!(verdict.changes, [], "nothing is run, so nothing changes");
}

#[test]
fn a_link_with_room_is_not_the_bottleneck() {
    let idle = Treats { call: (16.0, 0.0), used: 0.1, ..FIFO };
    let cake = Treats { name: "cake", ..idle };
    assert_eq!(verdict(&[idle, cake], 6, 0.005).answer, Answer::NotTheBottleneck);
    // Nothing helps, but the link is full, or calls wait elsewhere.
    let full = |it| Treats { used: 0.99, ..it };
    assert_eq!(verdict(&[full(idle), full(cake)], 6, 0.005).answer, Answer::Alike);
    // A tenth is what one wireless link takes of a medium that others fill.
    let mut shared = comparison(&[idle, cake], 6, 0.005);
    for discipline in &mut shared.disciplines {
        discipline.links[0].medium_use = sample(Centre::Mean, 0.99, 0.0, 0.0, 6);
    }
    assert_eq!(Verdict::of(&shared).answer, Answer::Alike);
    let late = |it| Treats { call: (150.0, 0.0), ..it };
    assert_eq!(verdict(&[late(idle), late(cake)], 6, 0.005).answer, Answer::Alike);
}

#[test]
fn what_is_worse_is_named_with_the_most_urgent_reason() {
    let bad = Treats { name: "run2c", call: (400.0, 3.0), page_s: 20.0, ..FIFO };
    let verdict = verdict(&[FIFO, bad, FQ_CODEL], 6, 0.005);
    let [avoid] = &verdict.avoid[..] else { panic!("{:?}", verdict.avoid) };
    assert_eq!((&*avoid.label, avoid.change.need), ("run2c", Need::Call));
    assert!(avoid.change.most < avoid.change.was);
}

#[test]
fn too_little_to_decide_decides_nothing() {
    assert_eq!(verdict(&[FIFO, CAKE], 1, 0.0).answer, Answer::TooFewRuns);
    assert_eq!(verdict(&[FIFO], 6, 0.0).answer, Answer::OneOnly);
    let verdict = verdict(&[], 6, 0.0);
    assert_eq!((verdict.answer, verdict.baseline), (Answer::NothingMeasured, None));
}

#[test]
fn the_parts_of_a_recording_decide_where_there_are_no_seeds() {
    let clear = Verdict::of(&recording(&[FIFO, CAKE], 10, 0.005));
    assert_eq!((clear.answer, clear.parts), (Answer::Run, 10));
    let noise = Verdict::of(&recording(&[FIFO, Treats { page_s: 9.9, ..FIFO }], 10, 0.3));
    assert_ne!(noise.answer, Answer::Run);
    assert_eq!(verdict(&[FIFO, CAKE], 6, 0.005).parts, 0);
}

#[test]
fn parts_that_say_the_opposite_of_the_whole_decide_nothing() {
    let mut opposite = recording(&[FIFO, CAKE], 10, 0.005);
    opposite.parts.reverse();
    let pages = Verdict::of(&opposite);
    let changes = || pages.contests.iter().flat_map(|it| &it.results).filter_map(|it| it.effect);
    assert!(changes().all(|it| matches!(it, Effect::Unclear | Effect::Same)), "{pages:?}");
}

#[test]
fn recorded_packets_that_do_not_react_say_nothing_unless_they_are_calls() {
    let of = |treatments: [Treats; 2], is_call: bool| {
        let mut recorded = recording(&treatments, 10, 0.005);
        for discipline in recorded.disciplines.iter_mut().chain(&mut recorded.parts) {
            discipline.traffic.retain(|it| it.datagrams);
            for source in &mut discipline.traffic {
                source.replayed = true;
                source.call_rating = source.call_rating.take().filter(|_| is_call);
            }
        }
        Verdict::of(&recorded).answer
    };
    // CAKE's delay is lower, and part of why is what it drops.
    assert_eq!(of([FIFO, CAKE], false), Answer::DoesNotReact);
    assert_eq!(of([FIFO, CAKE], true), Answer::Run);
}

/// The same with lookups that take so many milliseconds on average.
fn with_lookups(treatments: &[(Treats, f64)]) -> Comparison {
    let mut comparison =
        comparison(&treatments.iter().map(|it| it.0).collect::<Vec<_>>(), 6, 0.005);
    for (discipline, (_, millis)) in comparison.disciplines.iter_mut().zip(treatments) {
        let mean_s = sample(Centre::Mean, millis / 1e3, 0.01, 0.005, 6);
        let lookups = LookupResult {
            ended: 100,
            failed_ratio: None,
            asked_again_ratio: None,
            time: DelayResult { mean_s, ..DelayResult::default() },
            time_distribution: Vec::new(),
        };
        let names = TrafficResult {
            name: "names".into(),
            pages: None,
            lookups: Some(lookups),
            ..discipline.traffic[1].clone()
        };
        discipline.traffic.push(names);
    }
    comparison
}

#[test]
fn lookups_decide_before_pages_where_somebody_notices() {
    let quick = Treats { name: "cake", page_s: 4.0, ..FQ_CODEL };
    let of = |late| Verdict::of(&with_lookups(&[(FIFO, 190.0), (quick, late), (FQ_CODEL, 30.0)]));
    // A tenth of a second more for each name, because some of them are lost.
    let verdict = of(130.0);
    assert_eq!(verdict.run, ["fq-codel"]);
    let change = verdict.changes.iter().find(|it| it.need == Need::Lookups).unwrap();
    assert_eq!((change.effect, &*change.source), (Effect::Gain, "names"));
    assert!((change.was - 0.19).abs() < 0.01 && (change.most - 0.03).abs() < 0.01);
    // Half as much nobody notices, and pages decide.
    assert_eq!(of(60.0).run, ["cake"]);
}

/// The same with a film that changes its quality so often a minute.
fn with_films(treatments: &[(Treats, f64)]) -> Comparison {
    let mut comparison =
        comparison(&treatments.iter().map(|it| it.0).collect::<Vec<_>>(), 6, 0.005);
    for (discipline, (_, switches)) in comparison.disciplines.iter_mut().zip(treatments) {
        let film = VideoResult {
            viewers: 1,
            quality_bps: sample(Centre::Mean, 5e6, 0.01, 0.005, 6),
            stalled_ratio: sample(Centre::Mean, 0.0, 0.0, 0.0, 6),
            stalls_per_minute: None,
            switches_per_minute: sample(Centre::Mean, *switches, 0.01, 0.005, 6),
            startup_s: None,
        };
        let films = TrafficResult {
            name: "films".into(),
            pages: None,
            video: Some(film),
            ..discipline.traffic[1].clone()
        };
        discipline.traffic.push(films);
    }
    comparison
}

/// Who is equal otherwise is told apart by them, and nobody is ruled out for them alone.
#[test]
fn changes_of_quality_decide_last_and_rule_nobody_out() {
    let cake = Treats { name: "cake", ..FQ_CODEL };
    let of = |one, other| Verdict::of(&with_films(&[(FIFO, 5.0), (cake, one), (FQ_CODEL, other)]));
    let verdict = of(4.0, 8.0);
    assert_eq!(verdict.run, ["cake"]);
    assert!(verdict.avoid.is_empty(), "{:?}", verdict.avoid);
    let verdict = of(8.0, 8.4);
    assert_eq!(verdict.run, ["cake", "fq-codel"]);
    let change = verdict.changes.iter().find(|it| it.need == Need::VideoSwitches).unwrap();
    assert_eq!((change.effect, &*change.source), (Effect::Price, "films"));
}
