//! BE figure 8: what real-time flows leave, and the curves fitted below it.

use tidegate_core::assignment::{SMALLEST_PACKET, Typical, fit};
use tidegate_core::curve::{Curve, PER_BYTE};
use tidegate_core::residual::Residual;
use tidegate_core::{Bytes, Span, Time};

use super::{ACCESS, PAPER, access};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::Lab;
use crate::{Claim, Finding, Stopped};

pub(super) const APPROXIMATIONS: Claim = Claim {
    id: "BE-8",
    paper: &PAPER,
    source: "BE section 4 and appendix A, figure 8",
    text: "The effective residual capacity of the flows of table 3, and a shifted line and two \
           segments that lie below it.",
    method: "Computed from the corners of the curves, without a simulation. The paper draws both \
             approximations and does not say how they were chosen; here they are fitted to bursts \
             of ten packets. Two segments begin at the origin, where no capacity is left, so the \
             check asks them to lie below the capacity from the earliest possible deadline on, \
             that of a packet of 40 bytes. No packet's deadline is then too early.",
    discussion: "No capacity is left before the 1.23 ms of a largest packet, so a packet of 40 \
                 bytes has its deadline after 1.26 ms: a first segment through the origin may \
                 rise by 31.7 kB/s at most, and helps no larger packet. The paper's first segment \
                 is visibly better, which is possible only if it need not lie below the capacity \
                 at the earliest deadlines.",
    measure: approximations,
};

const TYPICAL: Typical = Typical { packet: Bytes(1_536), burst: Bytes(15_360) };

fn approximations(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let scenario = access();
    let contracts = scenario.disciplines[0].settings.contracts("flows");
    let residual = Residual::new(&contracts).expect("a scenario's promises can be kept");
    let effective = residual.effective();
    let line = fit::shifted_line(effective, TYPICAL).curve();
    let segments = fit::two_segments(effective, TYPICAL).curve();
    let earliest = residual.earliest_deadline(SMALLEST_PACKET);
    let below = |name: &str, curve: &Curve, from: Span| {
        Check::exact(
            format!("{name}: bytes by which it is below, at the least"),
            "lies below",
            Written::Count,
            least_distance(effective, curve, from),
            Bound::AtLeast(0.0),
        )
    };
    let waits = |curve: &Curve| {
        let at = curve.first_reaching(i128::from(TYPICAL.packet.0) * PER_BYTE);
        at.map(|at| Span(at).as_seconds())
    };
    let checks = vec![
        below("shifted line", &line, Span::ZERO),
        below("two segments", &segments, earliest),
        Check::exact(
            "two segments: a packet of 1 536 B has its deadline at least 1% sooner than with the \
             line",
            "better",
            Written::Ratio,
            waits(&segments).zip(waits(&line)).map_or(f64::NAN, |(two, one)| two / one),
            Bound::AtMost(0.99),
        ),
    ];
    let curves = [
        ("left by real-time flows", effective),
        ("shifted line", &line),
        ("two segments", &segments),
    ];
    let figure = |name: &str, until: Span, caption: &str| Figure {
        id: format!("BE-8-{name}"),
        title: "Effective residual capacity".into(),
        caption: caption.into(),
        x: Scale::linear("Length of time", Measure::Time),
        y: Scale::linear("Left for best effort", Measure::Size),
        lines: curves.iter().map(|(name, curve)| drawn(name, curve, until)).collect(),
        stepped: false,
    };
    let figures = vec![
        figure("corners", Span::millis(60), "The time in which deadlines lie."),
        figure("long-run", Span::seconds(1), "The long run."),
    ];
    Ok(Finding::new("BE-8", lab, &[ACCESS], checks, figures))
}

/// The least of `upper - lower` from `from` on, in bytes.
fn least_distance(upper: &Curve, lower: &Curve, from: Span) -> f64 {
    let distance = upper.minus(lower).expect("one of them ends in a straight line");
    let least = distance.least_from_here_on().map(|least| least.value(from.0));
    least.map_or(f64::NEG_INFINITY, |least| least as f64 / PER_BYTE as f64)
}

/// Both ends of every piece, up to `until`.
fn drawn(name: &str, curve: &Curve, until: Span) -> Line {
    let pieces: Vec<_> = curve.pieces_between(0, until.0).collect();
    let ends = pieces.iter().skip(1).map(|piece| piece.start).chain([until.0]);
    let points = pieces.iter().zip(ends).flat_map(|(piece, end)| {
        let point = |at: u64| (Time(at).as_seconds(), piece.at(at) as f64 / PER_BYTE as f64);
        [point(piece.start), point(end)]
    });
    Line::plain(name, points.collect())
}
