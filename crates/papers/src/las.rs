//! The claims of LAS: Rai, Biersack, Urvoy-Keller.

mod ftp;
mod loss;
mod short;
mod slow_start;
mod time;
mod two_queues;

use crate::lab::Flow;
use crate::{Claim, Paper};
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_study::shipped;

/// LAS.
pub(super) const PAPER: Paper = Paper {
    key: "LAS",
    reference: "I. A. Rai, E. W. Biersack, G. Urvoy-Keller: Size-based Scheduling to Improve the \
                Performance of Short TCP Flows. Institut Eurécom, November 2004",
    setting: "Clients fetch Web objects over one link (ns-2 in the paper): sessions of 60 pages of \
              3 objects, exponential counts and times (Table 1), load 0.7, edges of 10 Mbit/s, \
              initial window of one packet, initial timeout of 3 s. The paper gives neither the \
              link's rate nor its buffer nor any delay. Ours are 3.36 Mbit/s, which follows from \
              the load; 50 packets, ns-2's default; a round trip of 120 ms, for which this buffer \
              is the product of rate and round trip; packets of 1 000 bytes and 40 of headers, \
              NewReno, an acknowledgement for each packet, and timeouts of at least 200 ms. Sizes \
              are Pareto with the shape of 1.2 and the mean of 12 packets of Table 1; its smallest \
              size of 1 packet is not consistent with these (it would be 2 for an unbounded law, \
              as ns-2 draws it), and is 2.394 packets with our bound of 20 MB. About 46 000 \
              transfers are measured after a warm-up of 600 s (47 800 in the paper), each until \
              its end. LAS forgets no flow. Responses run from the client's SYN to the arrival of \
              the last byte; the paper's transmission times begin with the server's first packet \
              and lack the two round trips before it. Not tested are what the paper quotes from \
              others (section 4) and that LAS at one of several bottlenecks helps (section 8): \
              every network here has one.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    short::NO_LOSS,
    short::LOSS_UNDER_FIFO,
    short::SAME_LOSS,
    time::TRANSMISSION,
    loss::LOSSES,
    slow_start::SLOW_START,
    two_queues::TWO_QUEUES,
    ftp::LONG_TRANSFER,
    ftp::LOADS_OF_WEB,
];

const WEB: &str = "papers/LAS/web.toml";
const SHORT_FLOWS: &str = "papers/LAS/short-flows.toml";
const FTP: &str = "papers/LAS/ftp.toml";

/// Payload of a full packet, in bytes.
const PACKET: f64 = 1_000.0;
/// Transfers of fewer packets are short (`LAS section 5.2`).
const SHORT: f64 = 40.0;
/// The load of Table 1 and of the scenarios.
const LOAD: f64 = 0.7;

/// Web sessions alone, with this load.
fn web(load: f64) -> Scenario {
    let mut scenario = shipped::scenario(WEB);
    set_load(&mut scenario, load);
    scenario
}

/// Short transfers beside the Web sessions.
fn short_flows() -> Scenario {
    shipped::scenario(SHORT_FLOWS)
}

/// A transfer without an end beside the Web sessions.
fn ftp() -> Scenario {
    shipped::scenario(FTP)
}

/// Sets the load of a scenario that is written for that of Table 1.
fn set_load(scenario: &mut Scenario, load: f64) {
    for source in &mut scenario.traffic {
        if let TrafficKind::Web { profile, .. } = &mut source.kind {
            let seconds = profile.between_sessions.as_seconds() * LOAD / load;
            profile.between_sessions = tidegate_core::Span::from_seconds(seconds);
        }
    }
}

/// A transfer's size in packets.
fn packets(flow: &Flow) -> f64 {
    (f64::from(flow.size) / PACKET).ceil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sessions_begin_as_often_as_the_load_asks() {
        let between = |load| match &web(load).traffic[0].kind {
            TrafficKind::Web { profile, .. } => profile.between_sessions.as_seconds(),
            _ => unreachable!("the scenario has Web sessions only"),
        };
        assert_eq!(between(0.7), 8.0);
        assert_eq!(between(0.35), 16.0);
    }

    /// The rate of the link, the sizes and the sessions make the load.
    #[test]
    fn the_scenario_has_the_load_that_it_says() {
        let scenario = web(LOAD);
        let TrafficKind::Web { profile, .. } = &scenario.traffic[0].kind else {
            unreachable!("the scenario has Web sessions only")
        };
        // Exponential counts, rounded, at least one.
        let count = |mean: f64| 1.0 + libm::exp(-1.5 / mean) / (1.0 - libm::exp(-1.0 / mean));
        let per_second =
            count(profile.pages) * count(profile.objects) / profile.between_sessions.as_seconds();
        let mean = profile.sizes.mean().unwrap() / PACKET;
        assert!((mean - 12.0).abs() < 0.01, "{mean}");
        let load = per_second * mean * 1_040.0 * 8.0 / 3_360_000.0;
        assert!((load - LOAD).abs() < 0.001, "{load}");
    }
}
