//! What `tidegate curves --json` prints: numbers in bytes, seconds and bits per
//! second, like everywhere in this program's files.

use serde::Serialize;
use tidegate_core::contract::{Contract, Service};
use tidegate_core::curve::{Curve, PER_BYTE, Piece};
use tidegate_core::{Bytes, Span};

use super::tables::{burst, telling};
use super::{Analysis, Left};

/// The whole.
#[derive(Serialize)]
pub(super) struct Document {
    file: String,
    link_bps: u64,
    largest_packet_bytes: u64,
    schedulable: bool,
    /// Why not.
    #[serde(skip_serializing_if = "Option::is_none")]
    fault: Option<String>,
    flows: Vec<Flow>,
    #[serde(flatten)]
    left: Option<Leftover>,
}

/// A flow of the file.
#[derive(Serialize)]
struct Flow {
    name: String,
    packets: String,
    #[serde(flatten)]
    service: Promise,
}

#[derive(Serialize)]
#[serde(tag = "service", rename_all = "kebab-case")]
enum Promise {
    RealTime {
        curve: String,
        long_run_rate_bps: Option<u64>,
        burst_bytes: Option<u64>,
        deadline_s: f64,
        shortest_deadline_s: Option<f64>,
        slack_s: Option<f64>,
    },
    BestEffort {
        weight: u32,
    },
}

/// What remains of a link beside promises that it can keep.
#[derive(Serialize)]
struct Leftover {
    residual: Vec<Place>,
    effective: Straight,
    best_effort_deadlines: Vec<Deadlines>,
    approximations: Vec<Approximation>,
}

#[derive(Serialize)]
struct Place {
    within_s: f64,
    residual_bytes: f64,
    effective_bytes: f64,
}

/// A curve of straight pieces.
#[derive(Serialize)]
struct Straight {
    /// From each on it is a line up to the next; the last goes on for ever,
    /// unless the curve repeats itself.
    corners: Vec<Corner>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repeats: Option<Repeats>,
}

/// How a curve goes on: after each period it is higher by the rise.
#[derive(Serialize)]
struct Repeats {
    from_s: f64,
    period_s: f64,
    rise_bytes: f64,
}

#[derive(Serialize)]
struct Corner {
    from_s: f64,
    bytes: f64,
    slope_bps: f64,
}

#[derive(Serialize)]
struct Deadlines {
    packet_bytes: u64,
    exact_s: f64,
    /// In the order of `approximations`.
    approximate_s: Vec<f64>,
}

#[derive(Serialize)]
struct Approximation {
    scheme: String,
    parameters: String,
    curve: Straight,
}

impl Document {
    pub(super) fn of(analysis: &Analysis) -> Document {
        let left = analysis.outcome.as_ref().ok();
        Document {
            file: analysis.name.clone(),
            link_bps: analysis.contracts.link.0,
            largest_packet_bytes: analysis.contracts.largest_packet.0,
            schedulable: left.is_some(),
            fault: analysis.outcome.as_ref().err().map(ToString::to_string),
            flows: analysis.contracts.flows.iter().map(|flow| Flow::of(flow, left)).collect(),
            left: left.map(|left| Leftover::of(analysis, left)),
        }
    }
}

impl Flow {
    fn of(flow: &Contract, left: Option<&Left>) -> Flow {
        let service = match &flow.service {
            Service::RealTime { envelope, deadline } => {
                let curve = envelope.curve().ok();
                let seconds = |span: Option<Span>| span.map(Span::as_seconds);
                let rate = |curve: &Curve| curve.long_run_rate().0;
                Promise::RealTime {
                    curve: envelope.to_string(),
                    long_run_rate_bps: curve.as_ref().map(rate),
                    burst_bytes: curve.as_ref().map(|curve| burst(curve).0),
                    deadline_s: deadline.as_seconds(),
                    shortest_deadline_s: seconds(
                        left.and_then(|left| left.residual.shortest_deadline(&flow.name)),
                    ),
                    slack_s: seconds(left.and_then(|left| left.residual.slack(&flow.name))),
                }
            }
            Service::BestEffort { weight } => Promise::BestEffort { weight: *weight },
        };
        Flow { name: flow.name.clone(), packets: flow.selector.to_string(), service }
    }
}

impl Leftover {
    fn of(analysis: &Analysis, left: &Left) -> Leftover {
        let residual = &left.residual;
        let place = |place: Span| Place {
            within_s: place.as_seconds(),
            residual_bytes: bytes(residual.capacity().value(place.0)),
            effective_bytes: bytes(residual.effective().value(place.0)),
        };
        let deadlines = |size: &Bytes| Deadlines {
            packet_bytes: size.0,
            exact_s: residual.earliest_deadline(*size).as_seconds(),
            approximate_s: left
                .approximations
                .iter()
                .map(|it| it.deadline(*size).as_seconds())
                .collect(),
        };
        Leftover {
            residual: telling(analysis, left).into_iter().map(place).collect(),
            effective: Straight::of(residual.effective()),
            best_effort_deadlines: left.sizes.iter().map(deadlines).collect(),
            approximations: left
                .approximations
                .iter()
                .map(|it| Approximation {
                    scheme: it.scheme.to_string(),
                    parameters: it.parameters.clone(),
                    curve: Straight::of(&it.curve),
                })
                .collect(),
        }
    }
}

impl Straight {
    fn of(curve: &Curve) -> Straight {
        let corner = |piece: &Piece| Corner {
            from_s: Span(piece.start).as_seconds(),
            bytes: bytes(piece.value),
            slope_bps: piece.slope as f64,
        };
        let repeats = || Repeats {
            from_s: Span(curve.tail()).as_seconds(),
            period_s: Span(curve.period()).as_seconds(),
            rise_bytes: bytes(curve.rise()),
        };
        Straight {
            corners: curve.pieces().iter().map(corner).collect(),
            repeats: (!curve.is_affine_in_the_end()).then(repeats),
        }
    }
}

/// A value of a curve in bytes.
fn bytes(value: i128) -> f64 {
    value as f64 / PER_BYTE as f64
}
