//! Who is best, when all contenders met the same traffic under the same seeds.
//!
//! One contender beats another when the 95% interval of their difference, seed by
//! seed, lies on one side of zero. Whether the intervals of the two values overlap
//! says less: most of their width is what the traffic did to both. Several can be
//! best: those that nobody beats. But noise earns nothing. A contender whose values
//! scatter so widely that it cannot be told from the best is not best as well when
//! another with a better value has been beaten; and one with too few runs for an
//! interval neither beats nor wins.
//!
//! Each pair is judged at 95%. With many contenders, one that is as good as the
//! best may therefore lose by chance.

use crate::Sample;
use crate::measure::Better;

/// Which of `samples` are best: going from the best value on, those that none of the
/// others beats, up to the first that one does. Differences of at most `matters` beat
/// nobody. All `false` where neither direction is better.
///
/// ```
/// use tidegate_study::{Centre, Sample, ranking};
/// use tidegate_study::measure::Better;
/// let delays = |values: [f64; 3]| Sample::of(Centre::Mean, (1..).zip(values.map(Some))).unwrap();
/// let [fifo, efd, las] = [[99.0, 120.0, 110.0], [12.0, 31.0, 18.0], [11.0, 32.0, 18.0]].map(delays);
/// let best = ranking::best(&[Some(&fifo), Some(&efd), Some(&las), None], Better::Less, 0.0);
/// assert_eq!(best, [false, true, true, false]);
/// ```
#[must_use]
pub fn best(samples: &[Option<&Sample>], better: Better, matters: f64) -> Vec<bool> {
    let mut best = vec![false; samples.len()];
    // So that smaller is better.
    let sign = match better {
        Better::Less => 1.0,
        Better::More => -1.0,
        Better::Neither => return best,
    };
    let known = samples.iter().enumerate().filter_map(|(place, it)| Some((place, (*it)?)));
    let mut ranked: Vec<_> =
        known.filter(|(_, sample)| sample.estimate().interval.is_some()).collect();
    let value = |sample: &Sample| sign * sample.estimate().value;
    ranked.sort_by(|(_, one), (_, other)| value(one).total_cmp(&value(other)));
    let beats = |one: &Sample, other: &Sample| {
        let Some(difference) = other.less(one) else { return false };
        let by = (sign * difference.value).max(0.0);
        let (low, high) = difference.ends();
        difference.interval.is_some() && by > matters && (sign * low).min(sign * high) > 0.0
    };
    for (place, sample) in &ranked {
        if ranked.iter().any(|(_, other)| beats(other, sample)) {
            break;
        }
        best[*place] = true;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Centre;

    fn sample(centre: Centre, values: &[f64]) -> Sample {
        Sample::of(centre, (1..).zip(values.iter().copied().map(Some))).unwrap()
    }

    fn best_of<const N: usize>(values: [&[f64]; N], better: Better) -> [bool; N] {
        let samples = values.map(|values| sample(Centre::Mean, values));
        best(&samples.each_ref().map(Some), better, 0.0).try_into().unwrap()
    }

    /// Mean and half width in milliseconds, as a page shows them.
    fn shown(values: &[f64]) -> [f64; 2] {
        let estimate = sample(Centre::Mean, values).estimate();
        [estimate.value, estimate.half_width().unwrap()].map(|it| (it * 10.0).round() / 10.0)
    }

    #[test]
    fn noise_does_not_share_the_first_place() {
        let good = [14.0, 14.4, 14.1, 14.3, 14.2];
        let worse = [41.0, 42.6, 41.4, 42.2, 41.8];
        let noisy = [19.5, 113.3, 43.1, 38.5, 91.6];
        assert_eq!([shown(&good), shown(&worse)], [[14.2, 0.2], [41.8, 0.8]]);
        assert_eq!(shown(&noisy), [61.2, 49.0]);
        // Noise cannot be told from the best: the interval of the difference has zero in it.
        let (low, high) =
            sample(Centre::Mean, &noisy).less(&sample(Centre::Mean, &good)).unwrap().ends();
        assert!(low < 0.0 && high > 0.0);
        assert_eq!(best_of([&good, &noisy, &worse], Better::Less), [true, false, false]);
        // Nor does a noisy contender that happens to be first spoil it for the others.
        let lucky = [2.0, 30.0, 5.0, 9.0, 20.0];
        assert_eq!(
            best_of([&worse, &good, &lucky, &noisy], Better::Less),
            [false, true, true, false]
        );
    }

    #[test]
    fn what_is_clear_seed_by_seed_is_not_a_tie() {
        let las = [81.0, 140.0, 102.0, 95.0, 121.0];
        let fq_codel = [87.0, 143.0, 106.2, 100.8, 124.0];
        let [one, other] = [&las, &fq_codel].map(|values| sample(Centre::Mean, values));
        let difference = other.less(&one).unwrap();
        assert!((difference.value - 4.4).abs() < 1e-9);
        assert!(difference.half_width().unwrap() < 2.0);
        assert!(one.estimate().ends().1 > other.estimate().value, "each for itself is a tie");
        assert_eq!(best_of([&fq_codel, &las], Better::Less), [false, true]);
        assert_eq!(best_of([&fq_codel, &las], Better::More), [true, false]);
        assert_eq!(best_of([&fq_codel, &las], Better::Neither), [false, false]);
        let samples = [Some(&other), Some(&one)];
        assert_eq!(best(&samples, Better::Less, 5.0), [true, true], "4.4 does not matter");
    }

    #[test]
    fn equals_share_and_too_few_runs_do_not_count() {
        let (alike, again) = ([5.0, 7.0, 6.0], [5.1, 6.9, 6.0]);
        assert_eq!(
            best_of([&alike, &again, &[9.0, 11.0, 10.0]], Better::Less),
            [true, true, false]
        );
        assert_eq!(best_of([&alike, &[1.0], &again], Better::Less), [true, false, true]);
        assert_eq!(best_of([&[1.0], &[2.0]], Better::Less), [false, false]);
        // A median of five runs has no interval.
        let [one, other] = [1.0, 2.0].map(|value| sample(Centre::Median, &[value; 5]));
        assert_eq!(best(&[Some(&one), Some(&other)], Better::Less, 0.0), [false, false]);
    }
}
