//! Quotients of numbers whose products may not fit.
//!
//! A long-run rate is a pair: a rise, and the period in which it is gained, which
//! is at most [`FARTHEST`](super::FARTHEST), so a product of two periods takes 124
//! bits.

/// `dividend / divisor`, rounded up; the divisor is positive.
pub(crate) fn ceiling(dividend: i128, divisor: i128) -> i128 {
    let floor = dividend.div_euclid(divisor);
    if dividend.rem_euclid(divisor) == 0 { floor } else { floor + 1 }
}

/// `rise * time / period`, rounded down: the gain of a rate in `time`.
pub(super) fn gain((rise, period): (i128, u64), time: u64) -> i128 {
    let (period, time) = (i128::from(period), i128::from(time));
    // Whole units first: the rest is then less than a period.
    let whole = rise.div_euclid(period).saturating_mul(time);
    whole.saturating_add(rise.rem_euclid(period) * time / period)
}

/// Whether one rate is less than another.
pub(crate) fn is_less((one, own): (i128, u64), (two, others): (i128, u64)) -> bool {
    let (own, others) = (i128::from(own), i128::from(others));
    let whole = (one.div_euclid(own), two.div_euclid(others));
    if whole.0 != whole.1 {
        return whole.0 < whole.1;
    }
    one.rem_euclid(own) * others < two.rem_euclid(others) * own
}

/// The time after which a `fast` rate has gained `gap` over a `slow` one, or
/// somewhat longer where the exact quotient does not fit.
pub(super) fn time_to_gain(gap: i128, slow: (i128, u64), fast: (i128, u64)) -> u64 {
    let (own, others) = (i128::from(slow.1), i128::from(fast.1));
    let whole = fast.0.div_euclid(others).saturating_sub(slow.0.div_euclid(own));
    let mut rest = fast.0.rem_euclid(others) * own - slow.0.rem_euclid(own) * others;
    // gap / (whole + rest / product), in as many digits of the product as fit.
    let (mut above, mut below) = (own * others, own * others);
    while gap.checked_mul(above).is_none() || whole.checked_mul(below).is_none() {
        if above <= 2 {
            return u64::MAX;
        }
        above = above / 2 + 1;
        below /= 2;
        rest = rest.div_euclid(2);
    }
    let gained = whole.saturating_mul(below).saturating_add(rest);
    if gained <= 0 {
        return u64::MAX;
    }
    u64::try_from(ceiling(gap.max(0) * above, gained)).unwrap_or(u64::MAX)
}

pub(super) fn greatest_common_divisor(one: u64, other: u64) -> u64 {
    if other == 0 { one } else { greatest_common_divisor(other, one % other) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quotients_are_exact_where_products_do_not_fit() {
        let huge = i128::MAX - 7;
        assert_eq!(gain((huge, 1 << 62), 1 << 62), huge);
        assert_eq!(gain((-7, 2), 3), -11);
        assert!(is_less((huge - 1, 1 << 62), (huge, 1 << 62)));
        assert!(!is_less((huge, 1 << 62), (huge, 1 << 62)));
        assert!(is_less((-1, 3), (-1, 4)));
        assert_eq!(ceiling(i128::MIN, 1), i128::MIN);
        assert_eq!((ceiling(7, 2), ceiling(-7, 2), ceiling(6, 2)), (4, -3, 3));
    }

    #[test]
    fn a_gap_is_gained_in_the_time_told() {
        // 1/2 - 1/3 = 1/6 in a nanosecond.
        assert_eq!(time_to_gain(7, (1, 3), (1, 2)), 42);
        assert_eq!(time_to_gain(-7, (1, 3), (1, 2)), 0);
        let far = time_to_gain(1 << 90, (1, 1 << 40), (1 << 100, 1 << 40));
        assert!((1 << 30..1 << 32).contains(&far), "{far}");
        assert_eq!(time_to_gain(i128::MAX, (0, 1), (1, 1 << 62)), u64::MAX);
    }
}
