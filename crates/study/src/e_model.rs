//! What a telephone call is worth to those who talk: the E-model (`ITU-T G.107`).
//!
//! A rating R from 0 to 100 starts from an undisturbed connection and loses points for
//! delay and for packets that do not arrive. Everything that a network does not change
//! (telephones, echo cancellers, rooms) has the default of the recommendation, so that
//! an empty path has its 93.2. The codec is G.711 with packet loss concealment in
//! packets of 20 ms (`ITU-T G.113 Appendix I`), what a network of today carries at
//! worst; others lose a few points more, all alike under each discipline.
//!
//! Who listens does not hear packets but what a playout buffer makes of them: whatever
//! arrives after its turn is lost too. [`rating_of`] therefore gives the buffer the
//! delay at which the rating is highest, which is what an adaptive one looks for.

/// Basic signal-to-noise ratio less what is impaired together with the voice, both with
/// every default: 94.77 - 1.41 (`ITU-T G.107 sections 7.2 and 7.3`).
const UNDELAYED: f64 = 93.356;
/// Basic signal-to-noise ratio (`ITU-T G.107 section 7.2`).
const SIGNAL_TO_NOISE: f64 = 94.769;
/// Talker echo loudness rating in dB, default (`ITU-T G.107 table 2`).
const TALKER_ECHO_DB: f64 = 65.0;
/// Weighted echo path loss in dB, default (`ITU-T G.107 table 2`).
const LISTENER_ECHO_DB: f64 = 110.0;
/// The delay in ms from which on people notice it, default (`ITU-T G.107 table 2`).
const NOTICED_MS: f64 = 100.0;
/// Robustness of G.711 with concealment against random loss (`ITU-T G.113 table I.3`).
const ROBUSTNESS: f64 = 25.1;
/// A packet is full before it leaves.
const PACKET_S: f64 = 0.020;

/// The rating of a call whose voice arrives after `delay_s` seconds, from mouth to ear,
/// and loses the part `loss` of its packets, of one, at random.
///
/// ```
/// use tidegate_study::e_model::{mos, rating};
/// assert_eq!(format!("{:.1}", rating(0.0, 0.0)), "93.2");
/// assert_eq!(format!("{:.1}", mos(rating(0.3, 0.02))), "3.4");
/// ```
#[must_use]
pub fn rating(delay_s: f64, loss: f64) -> f64 {
    let delay_ms = delay_s.max(0.0) * 1e3;
    let percent = 100.0 * loss.clamp(0.0, 1.0);
    // `ITU-T G.107 section 7.5`, with random loss and no impairment of the codec itself.
    let lost = 95.0 * percent / (percent + ROBUSTNESS);
    let delayed = talker_echo(delay_ms) + listener_echo(delay_ms) + absolute_delay(delay_ms);
    (UNDELAYED - delayed - lost).clamp(0.0, 100.0)
}

/// `ITU-T G.107 section 7.4.1`.
fn talker_echo(delay_ms: f64) -> f64 {
    // Below that the echo is heard as one's own voice.
    if delay_ms < 1.0 {
        return 0.0;
    }
    let echo = TALKER_ECHO_DB
        - 40.0 * libm::log10((1.0 + delay_ms / 10.0) / (1.0 + delay_ms / 150.0))
        + 6.0 * libm::exp(-0.3 * delay_ms * delay_ms);
    let half = (SIGNAL_TO_NOISE - (80.0 + 2.5 * (echo - 14.0))) / 2.0;
    (half + (half * half + 100.0).sqrt() - 1.0) * (1.0 - libm::exp(-delay_ms))
}

/// `ITU-T G.107 section 7.4.2`: the echo goes around once.
fn listener_echo(delay_ms: f64) -> f64 {
    let round_trip = 2.0 * delay_ms;
    let echo = 10.5 * (LISTENER_ECHO_DB + 7.0) * libm::pow(round_trip + 1.0, -0.25);
    let half = (SIGNAL_TO_NOISE - echo) / 2.0;
    half + (half * half + 169.0).sqrt()
}

/// `ITU-T G.107 section 7.4.3`: people begin to talk at the same time.
fn absolute_delay(delay_ms: f64) -> f64 {
    if delay_ms <= NOTICED_MS {
        return 0.0;
    }
    let x = libm::log2(delay_ms / NOTICED_MS);
    let root = |value: f64| libm::pow(1.0 + libm::pow(value, 6.0), 1.0 / 6.0);
    25.0 * (root(x) - 3.0 * root(x / 3.0) + 2.0)
}

/// The mean opinion score, 1 (bad) to 4.5 (as good as a call gets), of a rating
/// (`ITU-T G.107 annex B`).
#[must_use]
pub fn mos(rating: f64) -> f64 {
    match rating {
        r if r <= 0.0 => 1.0,
        r if r >= 100.0 => 4.5,
        r => (1.0 + 0.035 * r + r * (r - 60.0) * (100.0 - r) * 7e-6).max(1.0),
    }
}

/// The rating of a call whose packets have these `delays`: points of their distribution,
/// each a time in seconds and the part of those that arrived by then. The part `loss` of
/// all packets never arrives. `None` if none does.
///
/// ```
/// use tidegate_study::e_model::rating_of;
/// // One packet in a hundred takes a second: better to do without it than to wait.
/// let delays = [(0.010, 0.99), (1.0, 1.0)];
/// assert!(rating_of(delays, 0.0).expect("packets arrive") > 85.0);
/// ```
#[must_use]
pub fn rating_of(delays: impl IntoIterator<Item = (f64, f64)>, loss: f64) -> Option<f64> {
    let arrived = 1.0 - loss;
    let ratings =
        delays.into_iter().map(|(delay, part)| rating(delay + PACKET_S, 1.0 - arrived * part));
    ratings.max_by(f64::total_cmp)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `ITU-T G.107 annex B`, table B.1 and figure B.2.
    #[test]
    fn scores_are_those_of_the_recommendation() {
        for (rating, score) in
            [(90.0, 4.34), (80.0, 4.03), (70.0, 3.60), (60.0, 3.10), (50.0, 2.58)]
        {
            assert!((mos(rating) - score).abs() < 0.01, "{rating}: {}", mos(rating));
        }
        assert_eq!([mos(-1.0), mos(0.0), mos(100.0)], [1.0, 1.0, 4.5]);
        let falls = |to: i32| mos(f64::from(to) / 10.0) < mos(f64::from(to - 1) / 10.0);
        assert!((1..=1_000).all(|to| !falls(to)));
    }

    /// What is lost by delay, as `Cole 2001` fits it to the recommendation:
    /// 0.024 d, and 0.11 (d - 177.3) beyond 177.3 ms.
    #[test]
    fn delay_costs_what_the_simpler_form_of_others_says() {
        for delay in (0_u32..=400).step_by(10).map(f64::from) {
            let simpler = 0.024 * delay + 0.11 * (delay - 177.3).max(0.0);
            let ours = rating(0.0, 0.0) - rating(delay / 1e3, 0.0);
            assert!((ours - simpler).abs() < 4.0, "{delay} ms: {ours}, {simpler}");
        }
    }

    /// The same paper's fit for G.711 with concealment and random loss, 30 ln(1 + 15 e).
    #[test]
    fn loss_costs_what_the_simpler_form_of_others_says() {
        for percent in 0..=10 {
            let loss = f64::from(percent) / 100.0;
            let simpler = 30.0 * (1.0 + 15.0 * loss).ln();
            let ours = rating(0.0, 0.0) - rating(0.0, loss);
            assert!((ours - simpler).abs() < 1.7, "{percent}%: {ours}, {simpler}");
        }
    }

    #[test]
    fn more_delay_and_more_loss_are_never_better() {
        let steps = || (0_u32..=2_000).step_by(5).map(f64::from);
        for (less, more) in steps().zip(steps().skip(1)) {
            assert!(rating(more / 1e3, 0.01) <= rating(less / 1e3, 0.01) + 1e-9, "{more} ms");
            assert!(rating(0.1, more / 2e3) <= rating(0.1, less / 2e3), "{more}");
        }
        assert_eq!(rating(0.0, 1.0).floor(), 17.0);
    }

    #[test]
    fn the_buffer_waits_for_what_is_worth_it() {
        let close = |one: Option<f64>, other: f64| (one.unwrap() - other).abs() < 1e-9;
        // Everything within 30 ms: wait for all. A tenth of all after that: wait too.
        assert!(close(rating_of([(0.02, 0.5), (0.03, 1.0)], 0.0), rating(0.05, 0.0)));
        assert!(close(rating_of([(0.02, 0.9), (0.08, 1.0)], 0.01), rating(0.1, 0.01)));
        assert!(close(rating_of([(0.02, 0.99), (2.0, 1.0)], 0.0), rating(0.04, 0.01)));
        assert_eq!(rating_of([], 1.0), None);
    }
}
