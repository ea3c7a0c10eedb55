//! LAS sections 3.2, 5.1 and 5.2: the slow start of large transfers.

use std::sync::Arc;

use tidegate_core::{Bytes, FlowKey};

use super::{LOAD, PACKET, PAPER, SHORT, WEB, packets, web};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Lab, Opening, Run};
use crate::runs::mean;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::scenario::{Scenario, TrafficKind};
use tidegate_study::Centre;

pub(super) const SLOW_START: Claim = Claim {
    id: "LAS-SS",
    paper: &PAPER,
    source: "LAS sections 3.2, 5.1 and 5.2",
    text: "LAS shortens the slow start of every transfer, including the largest, so that all \
           reach congestion avoidance sooner, and keeps them from losing packets before. What it \
           loses belongs mostly to large transfers that have sent a certain amount; they lose \
           packets later than under FIFO, in congestion avoidance, where a fast retransmission \
           can repair the loss.",
    method: "The Web sessions of LAS-4. Slow start is taken as the first 39 packets: the window \
             begins at 1 and, where nothing is lost, is 20, ns-2's default threshold, once 19 are \
             acknowledged and 20 more are on their way. A transfer of fewer than 40 packets \
             never leaves it, which is the paper's own limit of a short transfer; all others are \
             large, and the largest hundredth is that of all transfers. Times run from the \
             arrival of a transfer's first packet at the link until the link has taken 39 with \
             payload; losses are of packets with payload in the link's queue. The paper does not \
             give its window: one setting is that of the other experiments, 65 kB and no \
             threshold, where slow start goes on until something is lost; the other is ns-2's \
             default, a window and a threshold of 20 packets. 'Keeps from' is taken as at most a \
             tenth as many large transfers with a loss in slow start as under FIFO, 'mostly' as \
             more than half, 'later' as more packets before the first loss, of the transfers \
             with one under both. Of ratios the median over seeds is estimated.",
    discussion: "With either window all that the paper says of slow start holds: the first 39 \
                 packets take 0.84 s under LAS, and 1.38 s under FIFO, or 1.24 s with a window of \
                 20 packets. How losses are repaired does not: of the large transfers with a loss \
                 under LAS 91% have a timeout, 75% with a window of 20 packets. LAS takes packets \
                 from the transfer that has sent most, often many of one window, and NewReno \
                 repairs one in each round trip: such a transfer loses 40 packets on average, and \
                 11 under FIFO (two seeds, 65 kB). Of those that lose one packet only, three \
                 quarters have no timeout, and two fifths under FIFO; there are 9 timeouts for 100 \
                 lost packets, and 24 under FIFO. In this sense LAS does move losses to where fast \
                 retransmission works.",
    measure: slow_start,
};

/// Packets of a transfer's slow start: the short transfers are those within it.
const BEGINNING: usize = SHORT as usize - 1;

/// ns-2's default window and slow start threshold, in packets.
const WINDOW_OF_NS2: u64 = 20;

/// A transfer under FIFO and under LAS.
type Pair = [Opening; 2];

fn slow_start(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut lines) = (Vec::new(), Vec::new());
    for (name, scenario) in [("65 kB", web(LOAD)), ("20 packets", with_window_of_ns2())] {
        let [fifo, las] = &scenario.disciplines[..] else { unreachable!("it compares two") };
        let first = (BEGINNING, PACKET as u32);
        let openings =
            [lab.openings(&scenario, fifo, first)?, lab.openings(&scenario, las, first)?];
        let seeds: Vec<Vec<Pair>> = paired(openings);
        let runs = lab.runs(&scenario, las)?;
        checks.extend(asked(name, &seeds, &runs));
        for (place, label) in [(0, "fifo"), (1, "las")] {
            lines.push(line(format!("{label}, window of {name}"), &seeds, place));
        }
    }
    let figure = Figure {
        id: "LAS-SS".into(),
        title: "The first packets of large transfers".into(),
        caption: "Mean time from the arrival of the first packet at the link until the link has \
                  taken so many packets with payload, of transfers of at least 40; load 0.7. Mean \
                  over seeds with its 95% interval."
            .into(),
        x: Scale::linear("Packets", Measure::Count),
        y: Scale::linear("Time since the first packet", Measure::Time),
        lines,
        stepped: false,
    };
    Ok(Finding::new("LAS-SS", lab, &[WEB], checks, vec![figure]))
}

/// The Web sessions, with the window and threshold that ns-2 has by default.
fn with_window_of_ns2() -> Scenario {
    let mut scenario = web(LOAD);
    let window = Bytes(WINDOW_OF_NS2 * PACKET as u64);
    for source in &mut scenario.traffic {
        if let TrafficKind::Web { transfer, .. } = &mut source.kind {
            let tcp = Arc::make_mut(&mut transfer.tcp);
            tcp.receive_window = window;
            tcp.initial_ssthresh = Some(window);
        }
    }
    scenario
}

/// What is asked of the runs with a window called `name`: the pairs of each seed,
/// and the rows of the same transfers under LAS.
fn asked(name: &str, seeds: &[Vec<Pair>], las: &[Arc<Run>]) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check =
        |statement: &str, paper: &str, written, value: &dyn Fn(&[Pair]) -> Option<f64>, bound| {
            let statement = format!("window of {name}: {statement}");
            // A ratio of what few transfers have may be large in a seed.
            let centre =
                if matches!(written, Written::Ratio) { Centre::Median } else { Centre::Mean };
            checks.push(Check::of(
                centre,
                statement,
                paper,
                written,
                seeds.iter().map(|seed| value(seed)),
                bound,
            ));
        };
    check(
        "large transfers send their first 39 packets in less time under las",
        "speeds up the slow start phase of all",
        Written::Ratio,
        &|pairs| shortened(&large(pairs)),
        Bound::AtMost(1.0),
    );
    check(
        "the largest hundredth send their first 39 packets in less time under las",
        "including the largest",
        Written::Ratio,
        &|pairs| shortened(&largest(pairs)),
        Bound::AtMost(1.0),
    );
    check(
        "at most a tenth as many large transfers lose one of them under las",
        "very much protects",
        Written::Ratio,
        &|pairs| {
            let [fifo, las] = [0, 1].map(|place| {
                let large = large(pairs);
                large.iter().filter(|pair| early_loss(&pair[place]) == Some(true)).count() as f64
            });
            (fifo > 0.0).then(|| las / fifo)
        },
        Bound::AtMost(0.1),
    );
    check(
        "las: more than half of the lost packets come after 39 others of their transfer",
        "mainly from large flows",
        Written::Share,
        &|pairs| {
            let all = pairs.iter().flat_map(|pair| &pair[1].losses);
            mean(all.map(|before| share(!is_early(*before))))
        },
        Bound::AtLeast(0.5),
    );
    check(
        "las: more than half of the large transfers with a loss have the first after slow start",
        "likely to detect losses during congestion avoidance",
        Written::Share,
        &|pairs| {
            mean(
                large(pairs)
                    .iter()
                    .filter_map(|pair| early_loss(&pair[1]))
                    .map(|early| share(!early)),
            )
        },
        Bound::AtLeast(0.5),
    );
    check(
        "large transfers with a loss under both have sent more before it under las",
        "losses occur sooner under fifo",
        Written::Ratio,
        &|pairs| {
            let first = |opening: &Opening| {
                opening.losses.first().map(|before| f64::from(*before) + PACKET)
            };
            let both = large(pairs)
                .into_iter()
                .filter_map(|[fifo, las]| Some((first(fifo)?, first(las)?)));
            let (fifo, las): (Vec<f64>, Vec<f64>) = both.unzip();
            Some(mean(las)? / mean(fifo)?)
        },
        Bound::AtLeast(1.0),
    );
    checks.push(Check::new(
        format!(
            "window of {name}: las: more than half of the large transfers with a loss have no \
             timeout"
        ),
        "fast retransmission rather than a timeout",
        Written::Share,
        las.iter().map(|run| {
            let lossy = run.flows.iter().filter(|flow| packets(flow) >= SHORT && flow.lost > 0);
            mean(lossy.map(|flow| share(flow.timeouts == 0)))
        }),
        Bound::AtLeast(0.5),
    ));
    checks
}

/// The transfers of a run, in the order of their keys.
type Openings = Vec<(FlowKey, Opening)>;

/// The same transfers of each seed under both disciplines.
fn paired([fifo, las]: [Vec<Openings>; 2]) -> Vec<Vec<Pair>> {
    let of_seed = |(fifo, las): (Openings, Openings)| {
        let mut las = las.into_iter().peekable();
        let mut pairs = Vec::new();
        // Both are in the order of their keys.
        for (key, one) in fifo {
            while las.next_if(|other| other.0 < key).is_some() {}
            if let Some((_, other)) = las.next_if(|other| other.0 == key) {
                pairs.push([one, other]);
            }
        }
        pairs
    };
    std::iter::zip(fifo, las).map(of_seed).collect()
}

fn large(pairs: &[Pair]) -> Vec<&Pair> {
    pairs.iter().filter(|pair| f64::from(pair[0].size) > BEGINNING as f64 * PACKET).collect()
}

/// The largest hundredth of all, by size.
fn largest(pairs: &[Pair]) -> Vec<&Pair> {
    let mut all: Vec<&Pair> = pairs.iter().collect();
    all.sort_by_key(|pair| std::cmp::Reverse(pair[0].size));
    all.truncate(pairs.len() / 100);
    all
}

/// The mean time for the first packets under LAS over that under FIFO.
fn shortened(pairs: &[&Pair]) -> Option<f64> {
    let both = pairs
        .iter()
        .filter_map(|[fifo, las]| Some((taken(fifo, BEGINNING)?, taken(las, BEGINNING)?)));
    let (fifo, las): (Vec<f64>, Vec<f64>) = both.unzip();
    Some(mean(las)? / mean(fifo)?)
}

/// When the link had taken the first `packets` of a transfer, in seconds since the
/// first one came; `None` if it has not taken all.
fn taken(opening: &Opening, packets: usize) -> Option<f64> {
    let sent = opening.sent.get(..packets)?;
    let last = sent.iter().copied().reduce(|one, other| Some(one?.max(other?)))?;
    last.map(f64::from)
}

/// Whether its first loss was of one of its first packets; `None` without a loss.
fn early_loss(opening: &Opening) -> Option<bool> {
    opening.losses.first().map(|before| is_early(*before))
}

/// Whether a packet with so many bytes before it is one of the first.
fn is_early(before: u32) -> bool {
    f64::from(before) < BEGINNING as f64 * PACKET
}

fn share(is: bool) -> f64 {
    f64::from(u8::from(is))
}

/// The time for the first so many packets of large transfers, over seeds.
fn line(label: String, seeds: &[Vec<Pair>], place: usize) -> Line {
    let at = |count: usize| {
        let of_seed = |pairs: &Vec<Pair>| {
            mean(large(pairs).iter().filter_map(|pair| taken(&pair[place], count)))
        };
        (count as f64, seeds.iter().filter_map(of_seed).collect())
    };
    Line::over_seeds(label, (1..=BEGINNING).map(at))
}

#[cfg(test)]
mod tests {
    use tidegate_core::Time;

    use super::*;

    fn opening(size: u32, sent: &[f32], losses: &[u32]) -> Opening {
        let (sent, losses) = (sent.iter().copied().map(Some).collect(), losses.to_vec());
        Opening { began: Time::ZERO, base: Some(0), size, sent, losses }
    }

    #[test]
    fn a_beginning_is_over_when_all_of_it_is_sent() {
        // The second packet was lost and sent again.
        let opening = opening(3_000, &[1.0, 9.0, 2.0], &[1_000]);
        assert_eq!(taken(&opening, 1), Some(1.0));
        assert_eq!(taken(&opening, 3), Some(9.0));
        assert_eq!(taken(&opening, 4), None);
    }

    #[test]
    fn the_fortieth_packet_is_beyond_slow_start() {
        let with_loss = |before| early_loss(&opening(50_000, &[], &[before, 0]));
        assert_eq!(with_loss(38_000), Some(true));
        assert_eq!(with_loss(39_000), Some(false));
        assert_eq!(early_loss(&opening(50_000, &[], &[])), None);
        let pairs = [39_000, 39_001].map(|size| [(); 2].map(|()| opening(size, &[], &[])));
        assert_eq!(large(&pairs).iter().map(|pair| pair[0].size).collect::<Vec<_>>(), [39_001]);
    }

    #[test]
    fn only_transfers_of_both_runs_are_compared() {
        let key = |port| FlowKey::v4([0; 4], port, [0; 4], 1, FlowKey::TCP);
        let run = |ports: &[u16]| -> Openings {
            ports.iter().map(|port| (key(*port), opening(u32::from(*port), &[], &[]))).collect()
        };
        let pairs = paired([vec![run(&[1, 2, 4, 5])], vec![run(&[2, 3, 5, 6])]]);
        let sizes = pairs[0].iter().map(|[fifo, las]| (fifo.size, las.size));
        assert_eq!(sizes.collect::<Vec<_>>(), [(2, 2), (5, 5)]);
    }
}
