//! The wording, case by case.

use tidegate_study::comparison::{Comparison, PageResult};
use tidegate_study::{Centre, Sample};

use super::{Better, Verdict, of, verdict};
use crate::report::fixture;

/// A mean with half its interval, or of a single run.
type Known = Option<(f64, Option<f64>)>;

fn estimate(mean: f64, half: f64) -> Known {
    Some((mean, Some(half)))
}

fn single(mean: f64) -> Known {
    Some((mean, None))
}

/// Values of four runs with this mean and interval. Those of the two disciplines have
/// nothing in common, so that their difference is as uncertain as both together.
fn samples([before, after]: [Known; 2]) -> [Option<Sample>; 2] {
    // 3.182 standard errors with three degrees of freedom, of values one off the mean.
    const HALF: f64 = 3.182 * 0.577_350;
    let sample = |known: Known, signs: [f64; 4]| {
        let (mean, half) = known?;
        let runs = if half.is_some() { 4 } else { 1 };
        let apart = half.map_or(0.0, |half| half / HALF);
        let run = |(seed, sign): (u64, f64)| (seed, Some(mean + sign * apart));
        Sample::of(Centre::Mean, (1..).zip(signs).take(runs).map(run))
    };
    [sample(before, [1.0, 1.0, -1.0, -1.0]), sample(after, [1.0, -1.0, 1.0, -1.0])]
}

/// Two disciplines of which nothing is known but how many short transfers there were.
fn blank() -> Comparison {
    let mut comparison = fixture::comparison(2, 5);
    for discipline in &mut comparison.disciplines {
        discipline.short.mean_s = None;
        (discipline.short.started, discipline.short.completed) = (0, 0);
        discipline.traffic.remove(0);
        let [call, backup] = &mut discipline.traffic[..] else { panic!("a call and a backup") };
        (call.delay.p95_s, call.loss_ratio, call.late_ratio) = (None, None, None);
        (backup.long_goodput_bps, backup.longest_stall_s) = (None, None);
    }
    comparison
}

/// What is said of the second discipline once `set` has filled in values.
fn said(mut set: impl FnMut(&mut Comparison)) -> String {
    let mut comparison = blank();
    set(&mut comparison);
    let sentence = of(&comparison)[1].sentence();
    sentence.strip_prefix("las: ").unwrap_or(&sentence).replace('\u{a0}', " ")
}

#[test]
fn the_intervals_decide() {
    for (before, after, lower_is_better, higher_is_better) in [
        ((100.0, 5.0), (50.0, 5.0), Verdict::Gain, Verdict::Loss),
        ((50.0, 5.0), (100.0, 5.0), Verdict::Loss, Verdict::Gain),
        ((100.0, 30.0), (70.0, 30.0), Verdict::Unclear, Verdict::Unclear),
        ((100.0, 1.0), (101.0, 1.0), Verdict::Same, Verdict::Same),
        // Apart, but by so little that nobody notices.
        ((100.0, 0.1), (101.0, 0.1), Verdict::Same, Verdict::Same),
        ((0.0, 0.0), (0.0, 0.0), Verdict::Same, Verdict::Same),
        ((0.0, 0.0), (3.0, 1.0), Verdict::Loss, Verdict::Gain),
    ] {
        let both = samples([before, after].map(|(mean, half)| estimate(mean, half)));
        let [before, after] = both.map(|sample| sample.expect("a value"));
        assert_eq!(verdict(&before, &after, Better::Less), lower_is_better, "{before:?} {after:?}");
        assert_eq!(
            verdict(&before, &after, Better::More),
            higher_is_better,
            "{before:?} {after:?}"
        );
    }
}

#[test]
fn short_transfers() {
    for (before, after, expected) in [
        (
            estimate(0.236, 0.01),
            estimate(0.038, 0.002),
            "short transfers finish 6.2 times sooner (38 instead of 236 ms).",
        ),
        (
            estimate(0.236, 0.01),
            estimate(0.19, 0.01),
            "short transfers finish 19% sooner (190 instead of 236 ms).",
        ),
        (
            estimate(0.236, 0.01),
            estimate(1.2, 0.1),
            "short transfers take 5.1 times as long (1.2 s instead of 236 ms).",
        ),
        (
            estimate(0.2, 0.01),
            estimate(0.25, 0.01),
            "short transfers take 25% longer (250 instead of 200 ms).",
        ),
        (
            estimate(0.236, 0.002),
            estimate(0.235, 0.002),
            "short transfers take the same time (235 \
                                                          ms).",
        ),
        (
            estimate(0.236, 0.1),
            estimate(0.2, 0.1),
            "no clear difference in the response time of short transfers.",
        ),
        (single(0.236), single(0.038), "short transfers take 38 instead of 236 ms."),
        (estimate(0.236, 0.01), single(0.038), "short transfers take 38 instead of 236 ms."),
        (None, estimate(0.038, 0.002), "short transfers take 38 ms, where none finished before."),
        (None, None, "no measured value can be compared."),
    ] {
        let sentence = said(|comparison| {
            let [before, after] = samples([before, after]);
            comparison.disciplines[0].short.mean_s = before;
            comparison.disciplines[1].short.mean_s = after;
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn unfinished_short_transfers() {
    let slow = estimate(0.2, 0.001);
    for (mean, before, after, expected) in [
        (None, (200, 0), (200, 0), "none of the 200 short transfers finished."),
        (None, (1, 0), (1, 0), "the only short transfer did not finish."),
        (
            slow,
            (200, 198),
            (200, 180),
            "short transfers take the same time (200 ms); 10% instead of 1% of the short \
             transfers remain unfinished.",
        ),
        (slow, (200, 199), (200, 198), "short transfers take the same time (200 ms)."),
    ] {
        let sentence = said(|comparison| {
            let means = samples([mean, mean]);
            let disciplines = comparison.disciplines.iter_mut().zip([before, after]);
            for ((discipline, counts), mean) in disciplines.zip(means) {
                (discipline.short.started, discipline.short.completed) = counts;
                discipline.short.mean_s = mean;
            }
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn pages() {
    for (means, loaded, expected) in [
        (
            [estimate(10.2, 0.5), estimate(5.1, 0.3)],
            [639, 638],
            "pages of ‘web’ finish 2 times sooner (5.1 instead of 10 s).",
        ),
        (
            [estimate(5.1, 0.01), estimate(5.1, 0.01)],
            [640, 550],
            "pages of ‘web’ take the same time (5.1 s); 14% instead of 0% of the pages of ‘web’ \
             remain unfinished.",
        ),
        (
            [estimate(5.1, 3.0), estimate(4.1, 3.0)],
            [640, 640],
            "no clear difference in the response time of pages of ‘web’.",
        ),
        ([None, None], [0, 0], "no measured value can be compared."),
    ] {
        let sentence = said(|comparison| {
            let pages = fixture::comparison(1, 4).disciplines[0].traffic[0].pages.clone().unwrap();
            let disciplines = comparison.disciplines.iter_mut().zip(samples(means));
            for ((discipline, mean), completed) in disciplines.zip(loaded) {
                let pages = PageResult { load_mean_s: mean, completed, ..pages.clone() };
                let mut web = discipline.traffic[1].clone();
                (web.name, web.pages) = ("web".into(), Some(pages));
                discipline.traffic.insert(0, web);
            }
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn calls() {
    let none = || (None, None);
    for (before, after, expected) in [
        (
            (estimate(0.18, 0.01), estimate(0.031, 0.001)),
            (estimate(0.003, 0.0), estimate(0.0, 0.0)),
            "the delay of ‘call’ falls from 180 to 3 ms; it loses nothing instead of 3.1%.",
        ),
        (
            (estimate(0.18, 0.01), estimate(0.031, 0.001)),
            (estimate(0.18, 0.1), estimate(0.25, 0.01)),
            "‘call’ loses 25% instead of 3.1% of its packets; no clear difference in the delay of \
             ‘call’.",
        ),
        (
            (estimate(0.18, 0.01), estimate(0.031, 0.02)),
            (estimate(1.8, 0.01), estimate(0.025, 0.02)),
            "the delay of ‘call’ grows from 180 ms to 1.8 s; no clear difference in the loss of \
             ‘call’.",
        ),
        (
            (estimate(0.18, 0.0), estimate(0.000_1, 0.0)),
            (estimate(0.18, 0.0), estimate(0.000_3, 0.0)),
            "the delay of ‘call’ stays at 180 ms; its loss stays at 0.01%.",
        ),
        (
            (single(0.18), single(0.031)),
            (single(0.003), single(0.01)),
            "the delay of ‘call’ is 3 instead of 180 ms; it loses 1% instead of 3.1% of its \
             packets.",
        ),
        (
            (estimate(0.18, 0.01), estimate(0.5, 0.1)),
            (None, estimate(1.0, 0.0)),
            "no packet of ‘call’ arrives; it loses 100% instead of 50% of its packets.",
        ),
        (none(), none(), "no measured value can be compared."),
    ] {
        let sentence = said(|comparison| {
            let delays = samples([before.0, after.0]);
            let losses = samples([before.1, after.1]);
            let values = delays.into_iter().zip(losses);
            for (discipline, (delay, loss)) in comparison.disciplines.iter_mut().zip(values) {
                discipline.traffic[0].delay.p95_s = delay;
                discipline.traffic[0].loss_ratio = loss;
            }
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn calls_with_a_deadline() {
    for (before, after, expected) in [
        (
            estimate(0.58, 0.01),
            estimate(0.0, 0.0),
            "‘call’ has nothing late or lost instead of 58%.",
        ),
        (
            estimate(0.58, 0.01),
            estimate(0.04, 0.01),
            "‘call’ has 4% instead of 58% of its packets late or lost.",
        ),
        (
            estimate(0.58, 0.3),
            estimate(0.44, 0.3),
            "no clear difference in the lateness of ‘call’.",
        ),
        (estimate(0.01, 0.0), estimate(0.01, 0.0), "the lateness of ‘call’ stays at 1%."),
        (estimate(0.0, 0.0), estimate(0.0, 0.0), "no measured value can be compared."),
        // Loss is not held against lateness.
        (estimate(0.58, 0.01), None, "no measured value can be compared."),
    ] {
        let sentence = said(|comparison| {
            let values = samples([before, after]);
            for (discipline, late) in comparison.disciplines.iter_mut().zip(values) {
                discipline.traffic[0].late_ratio = late;
                [discipline.traffic[0].loss_ratio, _] = samples([estimate(0.02, 0.001), None]);
            }
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn long_transfers_and_their_stalls() {
    for (before, after, expected) in [
        (
            (estimate(3.4e6, 1e4), estimate(1.0, 0.01)),
            (estimate(3.42e6, 1e4), estimate(1.0, 0.01)),
            "long transfers of ‘backup’ keep their speed (3.4 Mbit/s).",
        ),
        (
            (estimate(3.4e6, 1e4), estimate(1.0, 0.1)),
            (estimate(1.5e6, 1e4), estimate(4.2, 0.1)),
            "long transfers of ‘backup’ keep only 44% of their speed (1.5 instead of 3.4 Mbit/s); \
             their longest stall grows from 1 to 4.2 s.",
        ),
        (
            (estimate(3.4e6, 1e4), estimate(1.0, 0.1)),
            (estimate(2.9e6, 1e4), estimate(0.5, 0.1)),
            "long transfers of ‘backup’ are 15% slower (2.9 instead of 3.4 Mbit/s); \
             their longest stall shrinks from 1 s to 500 ms.",
        ),
        (
            (estimate(3.4e6, 1e4), None),
            (estimate(0.0, 0.0), None),
            "long transfers of ‘backup’ come to a standstill (0 instead of 3.4 Mbit/s).",
        ),
        (
            (estimate(0.0, 0.0), None),
            (estimate(3.4e6, 1e4), None),
            "long transfers of ‘backup’ get through (3.4 instead of 0 Mbit/s).",
        ),
        (
            (estimate(3.4e6, 1e4), None),
            (estimate(6.8e6, 1e4), None),
            "long transfers of ‘backup’ are 2 times as fast (6.8 instead of 3.4 Mbit/s).",
        ),
        (
            (estimate(3.4e6, 1e6), estimate(1.0, 0.5)),
            (estimate(3.0e6, 1e6), estimate(1.4, 0.5)),
            "no clear difference in the speed of long transfers of ‘backup’ and the longest stall \
             of ‘backup’.",
        ),
        (
            (single(3.4e6), single(1.0)),
            (single(1.5e6), single(4.2)),
            "long transfers of ‘backup’ run at 1.5 instead of 3.4 Mbit/s; \
             their longest stall is 4.2 instead of 1 s.",
        ),
        ((estimate(3.4e6, 1e6), None), (None, None), "no long transfer of ‘backup’ was observed."),
    ] {
        let sentence = said(|comparison| {
            let rates = samples([before.0, after.0]);
            let stalls = samples([before.1, after.1]);
            let values = rates.into_iter().zip(stalls);
            for (discipline, (rate, stall)) in comparison.disciplines.iter_mut().zip(values) {
                discipline.traffic[1].long_goodput_bps = rate;
                discipline.traffic[1].longest_stall_s = stall;
            }
        });
        assert_eq!(sentence, expected);
    }
}

#[test]
fn the_baseline_is_told_in_numbers() {
    let sentence = of(&fixture::comparison(2, 5))[0].sentence().replace('\u{a0}', " ");
    assert!(sentence.starts_with("fifo: short transfers take "), "{sentence}");
    assert!(sentence.contains("pages of ‘web’ take "), "{sentence}");
    assert!(sentence.contains("95 of 100 packets of ‘call’ arrive within "), "{sentence}");
    assert!(sentence.contains("long transfers of ‘backup’ run at "), "{sentence}");
}
