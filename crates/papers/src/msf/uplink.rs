//! MSF section 6: an uplink that other traffic fills.

use tidegate_core::{Buffer, Rate};

use super::latency::{ratios, response};
use super::variables::{MEAN_SIZE, between_pages};
use super::{PAPER, VARIANTS, Variant, keeps_shares, keeps_the_link_in_use, mean_window, near};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Demand, Outcome, Setup, Uplink};
use tidegate_study::Estimate;

pub(super) const UPLINK: Claim = Claim {
    id: "MSF-13",
    paper: &PAPER,
    source: "MSF section 6 (1), figure 13",
    text: "Where uploads turn the uplink into a bottleneck, MSF-RS works well behind a fair queue \
           for the uplink, or behind priority queues that send requests first.",
    method: "An uplink of 512 kbit/s with four uploads without an end and a queue of 61 packets, \
             drop-tail, DRR (a full buffer takes from the longest queue) or Run2C; 800 s. Ten \
             loops for each client fill the downlink; open demand (see MSF-9v) asks for 70% of it. \
             Run2C is the priority queue: it sends the first 30 kB of every connection first, \
             which is all that most requests and their acknowledgements need. The comparison is \
             with the same uplink without uploads. The paper has a drawing and no figures: rates, \
             numbers and bounds are ours.",
    discussion: "With backlogged clients the mean latency shows little of the uplink: N/X - Z \
                 holds (see MSF-9), and the window grows until the downlink is full, from 16 to 45 \
                 places with drop-tail. What drop-tail costs is then the service time, 5.4 s \
                 instead of 2.0 s, and the time of requests in the gateway falls by almost as \
                 much. Open demand that the link can carry shows the difference between the \
                 queues: behind a fair queue, each packet waits for one of every upload, and a \
                 response needs several round trips.",
    measure: uplink,
};

const RATE: Rate = Rate(512_000);
const UPLOADS: u32 = 4;

/// The queues of the uplink, the paper's two last.
const QUEUES: [(&str, &str); 3] =
    [("drop-tail", "fifo"), ("fair queue", "drr:full=longest"), ("priority", "run2c")];

/// What clients ask for: enough to fill the downlink, or a share of it.
const DEMANDS: [(&str, Option<f64>); 2] = [("backlogged", None), ("open, 70%", Some(0.7))];

/// The set-up with so many uploads through this queue.
fn uploading(variant: Variant, demand: Option<f64>, queue: &str, uploads: u32) -> Setup {
    let discipline = queue.parse().expect("claims name registered disciplines");
    let queue = Some((discipline, Buffer::packets(61)));
    let mut setup = variant.looping(10);
    setup.uplink = Uplink { rate: Some(RATE), queue, uploads };
    if let Some(load) = demand {
        let every = between_pages(&setup, MEAN_SIZE as f64, load);
        setup.classes.iter_mut().for_each(|class| class.demand = Demand::Open { every });
    }
    setup
}

/// The share of the uplink's rate that is used.
fn used(run: &Outcome) -> Option<f64> {
    let could = RATE.volume(run.measured).0 as f64;
    Some(run.uplink?.delivered_bytes.0 as f64 / could)
}

fn uplink(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, .., msf_today] = VARIANTS;
    let (mut checks, mut tables) = (Vec::new(), Vec::new());
    for (variant, (demand, load)) in
        [paper, msf_today].into_iter().flat_map(|variant| DEMANDS.map(|demand| (variant, demand)))
    {
        let runs = |queue, uploads| {
            lab.gateway_runs(&uploading(variant, load, queue, uploads), variant.with(&[]))
        };
        let alone = runs("fifo", 0)?;
        let mut rows = vec![row("no uploads", &alone)];
        for (name, queue) in QUEUES {
            let runs = runs(queue, UPLOADS)?;
            let label = format!("{}, {demand}, {name}", variant.label);
            checks.push(fills(&label, &runs));
            checks.push(match name {
                "drop-tail" => delays(&label, &runs, &alone),
                _ => keeps_latency(&label, &runs, &alone),
            });
            if name != "drop-tail" && load.is_none() {
                checks.push(keeps_the_link_in_use(&label, &runs));
                checks.extend(keeps_shares(&label, &runs));
            }
            rows.push(row(name, &runs));
        }
        let columns =
            ["the uplink's queue", "latency, s", "service, s", "W+", "downlink", "uplink"];
        tables.push(Table {
            title: format!("Beside four uploads, {}, {demand}", variant.label),
            caption: "The mean latency, the part of it from the release of a request to its \
                      response's last byte at the gateway, the mean window, and the used shares \
                      of both directions."
                .into(),
            columns: columns.map(String::from).to_vec(),
            rows,
        });
    }
    Ok(Finding::new("MSF-13", lab, &[], checks, Vec::new()).with_tables(tables))
}

/// Whether the uploads are as heavy as the paper assumes, and have what is left.
fn fills(label: &str, runs: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: at least 95% of the uplink are used"),
        "a bottleneck",
        Written::Share,
        runs.iter().map(used),
        Bound::AtLeast(0.95),
    )
}

/// Why the uplink needs a queue of its own.
fn delays(label: &str, runs: &[Outcome], alone: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: the mean latency is at least 1.05 times that without uploads"),
        "another queue is needed",
        Written::Ratio,
        ratios(runs, alone, response),
        Bound::AtLeast(1.05),
    )
}

/// What that queue is for.
fn keeps_latency(label: &str, runs: &[Outcome], alone: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: the mean latency is that without uploads, to 5%"),
        "coexists well",
        Written::Ratio,
        ratios(runs, alone, response),
        near(1.0),
    )
}

fn row(name: &str, runs: &[Outcome]) -> Row {
    let mean =
        |value: &dyn Fn(&Outcome) -> Option<f64>| Estimate::mean(runs.iter().filter_map(value));
    let service = |run: &Outcome| run.all(|class| &class.service).mean();
    let values = [
        mean(&response),
        mean(&service),
        mean(&mean_window),
        mean(&|run| Some(run.utilisation)),
        mean(&used),
    ];
    Row::new(name, Written::Ratio, values)
}
