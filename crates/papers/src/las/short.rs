//! LAS section 3.2: one short transfer, packet by packet.

use std::sync::Arc;

use tidegate_core::Span;

use super::{PACKET, PAPER, SHORT_FLOWS, short_flows};
use crate::check::{Bound, Check, Written};
use crate::figure::{Figure, Line, Measure, Scale};
use crate::lab::{Flow, Lab, Run};
use crate::runs::{mean, paired, pairs};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::scenario::TrafficKind;

/// Places of the two kinds of short transfers among the scenario's sources.
const CLEAN: u16 = 1;
const LOSSY: u16 = 2;
/// The initial timeout of the scenario, in seconds (`LAS section 3.1`).
const INITIAL_RTO: f32 = 3.0;

pub(super) const NO_LOSS: Claim = Claim {
    id: "LAS-1",
    paper: &PAPER,
    source: "LAS section 3.2, figure 1",
    text: "A short transfer that loses nothing is faster under LAS than under FIFO, because its \
           round trips are shorter: its packets see little or no queueing.",
    method: "Transfers of 10 packets that begin at random times beside the Web sessions; the same \
             transfers under both disciplines, if they lose nothing under either. The cost of \
             queueing is the time beyond that on an empty network; 'little' is taken as at most a \
             fifth of FIFO's. The paper draws one transfer; the one drawn here has the median \
             ratio of times in the first run.",
    discussion: "",
    measure: no_loss,
};

fn no_loss(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (fifo, las) = runs(lab)?;
    let waiting = |flow: &Flow| Some(f64::from(flow.response? - flow.unloaded?));
    let checks = vec![
        faster(&las, &fifo, without_loss),
        Check::new(
            "queueing costs under las at most a fifth of what it costs under fifo",
            "no or little queueing delay",
            Written::Share,
            paired(&fifo, &las, move |fifo, las| ratio_of_means(&without_loss(fifo, las), waiting)),
            Bound::AtMost(0.2),
        ),
    ];
    let figure = example(lab, "LAS-1", "without a loss", &without_loss(&fifo[0], &las[0]))?;
    Ok(Finding::new("LAS-1", lab, &[SHORT_FLOWS], checks, figure))
}

pub(super) const LOSS_UNDER_FIFO: Claim = Claim {
    id: "LAS-2",
    paper: &PAPER,
    source: "LAS section 3.2, figure 2",
    text: "A short transfer that loses a packet under FIFO must usually wait for a timeout, and \
           that for the initial one, which prolongs it considerably; under LAS it hardly ever \
           loses one.",
    method: "The transfers of LAS-1 that lose packets under FIFO and none under LAS. The bounds \
             are ours: 'considerably' is taken as twice as long, 'usually' as more than half, \
             'hardly ever' as at most a tenth as often. The initial timeout is 3 s; a transfer \
             that stands still for so long has waited for it, or for one backed off to as much.",
    discussion: "Only a sixth of those with a loss under FIFO stand still for 3 s. Here the \
                 handshake is a sample of the round trip, as RFC 6298 has it, so that a packet \
                 with data never waits for the initial timeout; a lost SYN does, as does what is \
                 lost twice. ns-2's one-way TCP has no handshake: there the first packets wait \
                 for it, as the paper says.",
    measure: loss_under_fifo,
};

fn loss_under_fifo(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (fifo, las) = runs(lab)?;
    let lost_by_fifo = |fifo: &Run, las: &Run| select(fifo, las, CLEAN, |f, l| f > 0 && l == 0);
    let lossy = |run: &Run| {
        let lost = run.flows.iter().filter(|flow| flow.traffic == CLEAN && flow.lost > 0);
        lost.count() as f64
    };
    let checks = vec![
        Check::new(
            "fifo: transfers that lose a packet take at least twice as long as under las",
            "significantly prolonged",
            Written::Ratio,
            paired(&fifo, &las, move |fifo, las| {
                Some(1.0 / ratio_of_means(&lost_by_fifo(fifo, las), response)?)
            }),
            Bound::AtLeast(2.0),
        ),
        Check::new(
            "fifo: more than half of them wait for a timeout",
            "must rely on the timeout",
            Written::Share,
            paired(&fifo, &las, move |fifo, las| {
                let lost = lost_by_fifo(fifo, las);
                mean(lost.iter().map(|(fifo, _)| f64::from(u8::from(fifo.timeouts > 0))))
            }),
            Bound::AtLeast(0.5),
        ),
        Check::new(
            "fifo: more than half of them stand still for at least the initial timeout of 3 s",
            "must use the initial timeout",
            Written::Share,
            paired(&fifo, &las, move |fifo, las| {
                let lost = lost_by_fifo(fifo, las);
                mean(lost.iter().map(|(fifo, _)| f64::from(u8::from(fifo.stall >= INITIAL_RTO))))
            }),
            Bound::AtLeast(0.5),
        ),
        Check::new(
            "las: at most a tenth as many transfers lose a packet as under fifo",
            "hardly a need for recovery",
            Written::Share,
            paired(&las, &fifo, move |las, fifo| Some(lossy(las) / lossy(fifo))),
            Bound::AtMost(0.1),
        ),
    ];
    let figure = example(lab, "LAS-2", "with a loss under FIFO", &lost_by_fifo(&fifo[0], &las[0]))?;
    Ok(Finding::new("LAS-2", lab, &[SHORT_FLOWS], checks, figure))
}

pub(super) const SAME_LOSS: Claim = Claim {
    id: "LAS-3",
    paper: &PAPER,
    source: "LAS section 3.2, figure 3",
    text: "A short transfer that loses the same packet under both is still faster under LAS: its \
           round trips are shorter, and so is the timeout computed from them.",
    method: "Transfers of 10 packets that end behind a link which loses 2% of its packets: the \
             n-th packet of a transfer shares its fate under both disciplines, so that a transfer \
             with one loss under each has lost the same packet. The wait for the timeout is the \
             longest time without a new byte, of those with one timeout under each.",
    discussion: "The wait is shorter only where the minimum timeout leaves room. With 1 s, as in \
                 RFC 6298 and in ns-2 from 2001 to 2004, it is 0.980 ± 0.001 of FIFO's (five \
                 seeds): both wait out that second, and LAS gains only the rest of a round trip. \
                 Without any minimum the result is the same as here, 0.895 ± 0.033.",
    measure: same_loss,
};

fn same_loss(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (fifo, las) = runs(lab)?;
    let same = |fifo: &Run, las: &Run| select(fifo, las, LOSSY, |f, l| f == 1 && l == 1);
    let checks = vec![
        faster(&las, &fifo, same),
        Check::new(
            "the wait for the timeout is shorter under las",
            "smaller timeout",
            Written::Ratio,
            paired(&fifo, &las, move |fifo, las| {
                let mut waited = same(fifo, las);
                waited.retain(|(fifo, las)| fifo.timeouts == 1 && las.timeouts == 1);
                ratio_of_means(&waited, |flow| Some(f64::from(flow.stall)))
            }),
            Bound::AtMost(1.0),
        ),
    ];
    let figure = example(lab, "LAS-3", "with the same loss", &same(&fifo[0], &las[0]))?;
    Ok(Finding::new("LAS-3", lab, &[SHORT_FLOWS], checks, figure))
}

type Runs = Vec<Arc<Run>>;

/// The runs under FIFO, and those under LAS.
fn runs(lab: &Lab<'_>) -> Result<(Runs, Runs), Stopped> {
    let scenario = short_flows();
    let all = lab.all_runs(&scenario, &scenario.disciplines)?;
    let [fifo, las] = <[Runs; 2]>::try_from(all).expect("the scenario compares two");
    Ok((fifo, las))
}

/// The transfers of one source, under FIFO and under LAS, with losses as asked for.
fn select(
    fifo: &Run,
    las: &Run,
    source: u16,
    losses: impl Fn(u16, u16) -> bool,
) -> Vec<(Flow, Flow)> {
    let mut pairs = pairs(fifo, las);
    pairs.retain(|(fifo, las)| fifo.traffic == source && losses(fifo.lost, las.lost));
    pairs
}

fn without_loss(fifo: &Run, las: &Run) -> Vec<(Flow, Flow)> {
    select(fifo, las, CLEAN, |fifo, las| fifo == 0 && las == 0)
}

fn response(flow: &Flow) -> Option<f64> {
    flow.response.map(f64::from)
}

/// The mean of a value under LAS over that under FIFO, of pairs with both.
fn ratio_of_means(pairs: &[(Flow, Flow)], value: impl Fn(&Flow) -> Option<f64>) -> Option<f64> {
    let both = pairs.iter().filter_map(|(fifo, las)| Some((value(fifo)?, value(las)?)));
    let (fifo, las) = both.fold((0.0, 0.0), |(fifo, las), (f, l)| (fifo + f, las + l));
    (fifo > 0.0).then(|| las / fifo)
}

fn faster(
    las: &[Arc<Run>],
    fifo: &[Arc<Run>],
    pairs: fn(&Run, &Run) -> Vec<(Flow, Flow)>,
) -> Check {
    Check::new(
        "they take less time under las than under fifo",
        "faster",
        Written::Ratio,
        paired(fifo, las, move |fifo, las| ratio_of_means(&pairs(fifo, las), response)),
        Bound::AtMost(1.0),
    )
}

/// The pair whose ratio of responses is the median, and its progress over time.
fn example(
    lab: &Lab<'_>,
    id: &str,
    which: &str,
    pairs: &[(Flow, Flow)],
) -> Result<Vec<Figure>, Stopped> {
    let ratio = |(fifo, las): &(Flow, Flow)| Some(response(las)? / response(fifo)?);
    let mut ratios: Vec<_> = pairs.iter().filter_map(|pair| Some((ratio(pair)?, pair.0))).collect();
    ratios.sort_by(|one, other| one.0.total_cmp(&other.0).then(one.1.number.cmp(&other.1.number)));
    let Some((_, chosen)) = ratios.get(ratios.len() / 2) else { return Ok(Vec::new()) };
    let mut scenario = short_flows();
    scenario.sample_every = Span::millis(5);
    if let TrafficKind::Transfers { transfer, .. } =
        &mut scenario.traffic[usize::from(chosen.traffic)].kind
    {
        transfer.follow = true;
    }
    let line = |label: &str, discipline| {
        let samples = lab.progress(&scenario, discipline, lab.seeds()[0])?;
        let of_flow = samples.iter().filter(|sample| sample.number == u64::from(chosen.number));
        let mut points: Vec<(f64, f64)> = of_flow
            .map(|sample| (sample.at.as_seconds(), sample.delivered.0 as f64 / PACKET))
            .collect();
        let start = points.first().map_or(0.0, |point| point.0);
        points.iter_mut().for_each(|point| point.0 -= start);
        // Only the steps: nothing is seen between them.
        points.dedup_by(|next, point| next.1 == point.1);
        Ok(Line::plain(label, points))
    };
    let lines = scenario.disciplines.iter().map(|choice| line(&choice.label, choice));
    Ok(vec![Figure {
        id: id.into(),
        title: format!("A transfer of 10 packets {which}"),
        caption: format!(
            "Packets received in order, looked at every 5 ms. Transfer {} of the first run: its \
             ratio of response times is the median of {} such transfers.",
            chosen.number,
            ratios.len()
        ),
        x: Scale::linear("Time since the client's SYN", Measure::Time),
        y: Scale::linear("Packets received", Measure::Count),
        lines: lines.collect::<Result<_, _>>()?,
        stepped: true,
    }])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ratio_is_of_pairs_with_both_values() {
        let flow = |response| Flow {
            number: 0,
            size: 10_000,
            delivered: 10_000,
            response,
            unloaded: None,
            lasted: None,
            stall: 0.0,
            lost: 0,
            timeouts: 0,
            traffic: CLEAN,
        };
        let pair = |fifo, las| (flow(fifo), flow(las));
        let pairs = [pair(Some(1.0), Some(0.5)), pair(Some(3.0), None), pair(Some(2.0), Some(1.0))];
        assert_eq!(ratio_of_means(&pairs, response), Some(0.5));
        assert_eq!(ratio_of_means(&[], response), None);
    }
}
