//! MSF-9 over what its paper leaves open: TCP, initial window, buffer, closed or
//! open loop, pages, sizes.

use std::sync::Arc;

use tidegate_core::{Buffer, Bytes, Span};

use super::latency::{answered, by_littles_law, ratios, response};
use super::{PAPER, VARIANTS, Variant, scheduler};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Demand, Outcome, Setup};
use tidegate_sim::scenario::SizeLaw;
use tidegate_sim::tcp::TcpConfig;
use tidegate_study::Estimate;

pub(super) const VARIABLES: Claim = Claim {
    id: "MSF-9v",
    paper: &PAPER,
    source: "MSF sections 4.1 and 5.3",
    text: "The mean latency with MSF-RS is 23% below an ordinary gateway's. The question is in \
           which of the settings that the paper leaves open.",
    method: "Each row changes one thing in the setup of MSF-9; all have the same TCP, queue and \
             demand. An open loop asks at random times, on average for the share of the link that \
             the row states, including headers, whether or not earlier responses have arrived, \
             like the HTTP client of ns-2, the paper's simulator. A page of 8 objects has an \
             exponential number of them with that mean, requested at once. Equal sizes are 27 656 \
             bytes each. The queue is in bandwidth-delay products of 41 kB.",
    discussion: "The gain appears for equal sizes and open demand above what the link carries: an \
                 ordinary gateway spreads the link over ever more responses, which are then all \
                 late, where a window lets some of them end. The paper's analysis covers that \
                 case and a batch of equal requests (MSF-5). The gain does not appear in a closed \
                 loop that fills the link, with either TCP and any initial window or queue: there \
                 N/X - Z holds, X is what the link carries, and 23% less would need 17% more \
                 responses from a link that an ordinary gateway already fills. Where the measured \
                 means differ by more than N/X - Z does, long responses were not over at the end. \
                 Nor does the gain appear in an open loop that the link can carry. At low load \
                 nothing waits. At high load, when sizes vary as much as the paper's, it is \
                 better to share the link than to serve a few responses at a time: the mean of a \
                 shared link does not depend on the variance of sizes, that of a queue does; and \
                 the idle 2% count. With several objects to a page the number of requests is not \
                 fixed, and the paper's window makes them wait for the large ones. `msf` serves \
                 small responses first, and in overload leaves long ones unanswered; with equal \
                 sizes above its 16 kB all responses are long, and late.",
    measure: variables,
};

/// What is changed in the set-up.
#[derive(Clone, Copy)]
enum Change {
    Nothing,
    Pages {
        objects: f64,
        loops: u32,
    },
    InitialWindow(u32),
    /// In tenths of a bandwidth-delay product.
    Queue(u64),
    FirstPhase,
    Open(f64),
    EqualOpen(f64),
}

use Change::*;

/// With the paper's TCP, by row.
const PAPERS: [(&str, Change); 14] = [
    ("as MSF-9: ten loops, window 2, queue 1.5", Nothing),
    ("200 s from the start, the paper's first phase", FirstPhase),
    ("pages of 8 objects, 2 loops", Pages { objects: 8.0, loops: 2 }),
    ("initial window 1", InitialWindow(1)),
    ("initial window 3", InitialWindow(3)),
    ("initial window 10", InitialWindow(10)),
    ("queue 0.5", Queue(5)),
    ("queue 6", Queue(60)),
    ("open, 70%", Open(0.7)),
    ("open, 90%", Open(0.9)),
    ("open, 97%", Open(0.97)),
    ("open, 110%", Open(1.1)),
    ("equal sizes, open, 90%", EqualOpen(0.9)),
    ("equal sizes, open, 110%", EqualOpen(1.1)),
];

/// With today's TCP.
const TODAYS: [(&str, Change); 12] = [
    ("as MSF-9: ten loops, window 10, queue 1.5", Nothing),
    ("pages of 8 objects, 2 loops", Pages { objects: 8.0, loops: 2 }),
    ("initial window 1", InitialWindow(1)),
    ("initial window 2", InitialWindow(2)),
    ("initial window 3", InitialWindow(3)),
    ("queue 0.5", Queue(5)),
    ("queue 6", Queue(60)),
    ("open, 70%", Open(0.7)),
    ("open, 90%", Open(0.9)),
    ("open, 97%", Open(0.97)),
    ("open, 110%", Open(1.1)),
    ("equal sizes, open, 110%", EqualOpen(1.1)),
];

/// Of the paper's link: 2 Mbit/s and a mean round trip of 164 ms.
pub(super) const BANDWIDTH_DELAY: u64 = 41_000;

/// Mean of the paper's sizes.
pub(super) const MEAN_SIZE: u64 = 27_656;

impl Change {
    fn made_in(self, mut setup: Setup) -> Setup {
        match self {
            Nothing => {}
            Pages { objects, loops } => {
                setup.objects = objects;
                ask(&mut setup, &looping(loops));
            }
            InitialWindow(segments) => begin_with(&mut setup, segments),
            Queue(tenths) => setup.buffer = Buffer::bytes(Bytes(BANDWIDTH_DELAY * tenths / 10)),
            FirstPhase => (setup.duration, setup.warm_up) = (Span::seconds(200), Span::ZERO),
            Open(load) => {
                let every = between_pages(&setup, MEAN_SIZE as f64, load);
                ask(&mut setup, &Demand::Open { every });
            }
            EqualOpen(load) => {
                setup.sizes = SizeLaw::Constant(Bytes(MEAN_SIZE));
                return Open(load).made_in(setup);
            }
        }
        setup
    }
}

fn looping(loops: u32) -> Demand {
    Demand::Closed { loops, pause: Span::seconds(5) }
}

/// Gives every class this demand.
fn ask(setup: &mut Setup, demand: &Demand) {
    setup.classes.iter_mut().for_each(|class| class.demand = demand.clone());
}

fn begin_with(setup: &mut Setup, segments: u32) {
    let tcp = TcpConfig { initial_window: segments, ..(*setup.tcp).clone() };
    setup.tcp = Arc::new(tcp);
}

/// The mean time between two pages of a client, of so many bytes on average, at
/// which all of them ask for `load` of the link, with the headers of full segments.
pub(super) fn between_pages(setup: &Setup, bytes: f64, load: f64) -> Span {
    let clients: u32 = setup.classes.iter().map(|class| class.clients).sum();
    let options = if setup.tcp.timestamps_option { 12 } else { 0 };
    let headers = f64::from(setup.tcp.mss + 40 + options) / f64::from(setup.tcp.mss);
    let page = bytes * 8.0 / setup.rate.0 as f64 * headers;
    Span::from_seconds(page * f64::from(clients) / load)
}

fn variables(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, msf, msf_today] = VARIANTS;
    let mut checks = Vec::new();
    let mut tables = Vec::new();
    for (profile, rows, schedulers) in [
        ("the paper's TCP", PAPERS.as_slice(), [paper, msf]),
        ("today's TCP", TODAYS.as_slice(), [paper_today, msf_today]),
    ] {
        let mut table = Table {
            title: format!("Mean latency, {profile}"),
            caption: "For responses that were over at the end: the latency of an ordinary gateway \
                      in seconds, and those of `paper` and `msf` relative to it; then the number \
                      of answered requests relative to that of an ordinary gateway; then N/X - Z \
                      in the same way, where it is known."
                .into(),
            columns: COLUMNS.map(String::from).to_vec(),
            rows: Vec::new(),
        };
        for (label, change) in rows {
            let measured = Measured::of(lab, *change, schedulers)?;
            checks.push(Check::new(
                format!("{profile}, {label}: at most 0.85 of an ordinary gateway's"),
                "0.77",
                Written::Ratio,
                ratios(&measured.others[0], &measured.ordinary, response),
                Bound::AtMost(0.85),
            ));
            table.rows.push(measured.row(label));
        }
        tables.push(table);
    }
    Ok(Finding::new("MSF-9v", lab, &[], checks, Vec::new()).with_tables(tables))
}

const COLUMNS: [&str; 9] = [
    "changed",
    "ordinary, s",
    "`paper`",
    "`msf`",
    "answered, `paper`",
    "answered, `msf`",
    "N/X - Z, s",
    "N/X - Z, `paper`",
    "N/X - Z, `msf`",
];

/// The runs of a row.
struct Measured {
    setup: Setup,
    ordinary: Vec<Outcome>,
    /// Of `paper` and of `msf`.
    others: [Vec<Outcome>; 2],
}

impl Measured {
    fn of(lab: &Lab<'_>, change: Change, [paper, msf]: [Variant; 2]) -> Result<Measured, Stopped> {
        let setup = change.made_in((paper.setup)());
        let ordinary = lab.gateway_runs(&setup, scheduler("fifo", &[]))?;
        let others = [
            lab.gateway_runs(&setup, paper.with(&[]))?,
            lab.gateway_runs(&change.made_in((msf.setup)()), msf.with(&[]))?,
        ];
        Ok(Measured { setup, ordinary, others })
    }

    fn row(&self, label: &str) -> Row {
        let law = |run: &Outcome| by_littles_law(&self.setup, run);
        let seconds = |of: &dyn Fn(&Outcome) -> Option<f64>| {
            Estimate::mean(self.ordinary.iter().filter_map(of))
        };
        let ratio = |position: usize, of: &dyn Fn(&Outcome) -> Option<f64>| {
            Estimate::mean(ratios(&self.others[position], &self.ordinary, of).into_iter().flatten())
        };
        let over = |run: &Outcome| Some(answered(run));
        let values = [
            seconds(&response),
            ratio(0, &response),
            ratio(1, &response),
            ratio(0, &over),
            ratio(1, &over),
            seconds(&law),
            ratio(0, &law),
            ratio(1, &law),
        ];
        Row::new(label, Written::Ratio, values)
    }
}
