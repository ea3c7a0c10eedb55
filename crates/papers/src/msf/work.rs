//! MSF section 7: what the field trial says of the gateway's work.

use std::num::NonZeroU32;

use tidegate_core::{Buffer, Bytes, Rate, Span};

use super::latency::ratios;
use super::timing::outstanding;
use super::variables::BANDWIDTH_DELAY;
use super::{PAPER, VARIANTS, Variant, near, ordinary};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::table::{Row, Table};
use crate::{Claim, Finding, Stopped};
use tidegate_sim::requests::{Class, Demand, Outcome, Setup};
use tidegate_study::Estimate;

pub(super) const WORK: Claim = Claim {
    id: "MSF-T3",
    paper: &PAPER,
    source: "MSF section 7 (3), table 3",
    text: "For the same throughput, that of a link of 2 or 10 Mbit/s for 200 s, the Squid process \
           needs 27 to 34% less CPU time with the scheduler, because fewer responses are \
           outstanding. It needs more with 100 classes than with 10, and more with 10 Mbit/s than \
           with 2.",
    method: "No simulation has the CPU time of a process. What the paper gives as its reason is \
             measured: the responses outstanding, on average, at the throughput that an ordinary \
             gateway has too. Links of 2 and of 10 Mbit/s with queues of 1.5 bandwidth-delay \
             products; 600 loops, of 10 classes of ten clients with six loops each, or of 100 \
             classes of one client; all weights are 1; 200 s after a warm-up of 50 s. The paper \
             gives neither demand, queue nor weights. The bound is the ratio of CPU times of the \
             trial's worst case. What a decision costs with more classes is a benchmark of the \
             scheduler, and not a simulation.",
    discussion: "The CPU time was measured on [the live \
                 bed](../../benches/runs/2026-11-23-live-bed/README.md#the-processor), with the \
                 same 600 loops in ten classes, today's TCP and three seeds. On 2 and on 10 \
                 Mbit/s, Squid 5.7 takes 3.3 and 10.8% of a processor, this project's gateway \
                 without a scheduler 2.3 and 6.4%, with `paper` 2.2 and 6.6%, and with `msf`, \
                 which looks every 100 ms at what it holds back, 5.5 and 9.8%. So the same \
                 program takes 0.93 and 1.03 of its time with the scheduler of the paper: the \
                 gain of 27 to 34% does not appear, although far fewer responses are \
                 outstanding. Against Squid, which is another program, `paper` takes 0.66 and \
                 0.61. More at 10 Mbit/s than at 2 holds for all; 100 classes were not tried \
                 live.",
    measure: work,
};

/// In Mbit/s, with the trial's CPU times as ratios to the original's for 10 and for
/// 100 classes.
const LINKS: [(u64, [&str; 2]); 2] = [(2, ["0.71", "0.73"]), (10, ["0.66", "0.68"])];
/// How many classes, and how many clients each.
const CLASSES: [(u32, u32); 2] = [(10, 10), (100, 1)];

/// The set-up with this link and so many classes of so many clients.
fn busy(variant: Variant, megabits: u64, (classes, clients): (u32, u32)) -> Setup {
    let mut setup = (variant.setup)();
    let bandwidth_delay = BANDWIDTH_DELAY * megabits * 1_000_000 / setup.rate.0;
    setup.buffer = Buffer::bytes(Bytes(bandwidth_delay * 3 / 2));
    setup.rate = Rate(megabits * 1_000_000);
    let class = |number: u32| Class {
        name: format!("class {}", number + 1),
        weight: NonZeroU32::MIN,
        clients,
        demand: Demand::Closed { loops: 6, pause: Span::seconds(5) },
        ..setup.classes[0].clone()
    };
    setup.classes = (0..classes).map(class).collect();
    (setup.duration, setup.warm_up) = (Span::seconds(250), Span::seconds(50));
    setup
}

/// Payload of all classes, in bit/s.
fn throughput(run: &Outcome) -> Option<f64> {
    Some((0..run.classes.len()).map(|class| run.throughput_bps(class)).sum())
}

fn work(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let [paper, paper_today, _, msf_today] = VARIANTS;
    let (mut checks, mut rows) = (Vec::new(), Vec::new());
    for (profile, variants) in [("", &[paper][..]), (", today's TCP", &[paper_today, msf_today])] {
        let mut by_link = vec![Vec::new(); variants.len()];
        let mut of_ordinary = Vec::new();
        for (megabits, published) in LINKS {
            for (classes, published) in CLASSES.into_iter().zip(published) {
                let link = format!("{megabits} Mbit/s, {} classes", classes.0);
                let by = lab.gateway_runs(&busy(variants[0], megabits, classes), ordinary())?;
                for (variant, by_link) in variants.iter().zip(&mut by_link) {
                    let setup = busy(*variant, megabits, classes);
                    let runs = lab.gateway_runs(&setup, variant.with(&[]))?;
                    let label = format!("{}, {link}", variant.label);
                    checks.extend(does_less(&label, published, &runs, &by));
                    rows.push(row(label, &runs));
                    by_link.push(runs);
                }
                let label = format!("an ordinary gateway{profile}, {link}");
                checks.push(fills(&label, &by));
                rows.push(row(label, &by));
                of_ordinary.push(by);
            }
        }
        for (variant, by_link) in variants.iter().zip(&by_link) {
            checks.push(grows(variant.label, by_link));
        }
        checks.push(grows(&format!("an ordinary gateway{profile}"), &of_ordinary));
    }
    let columns = ["gateway, link", "outstanding", "throughput, Mbit/s", "use of the link"];
    let table = Table {
        title: "Responses outstanding at the link's throughput".into(),
        caption: "Means; throughput is payload.".into(),
        columns: columns.map(String::from).to_vec(),
        rows,
    };
    Ok(Finding::new("MSF-T3", lab, &[], checks, Vec::new()).with_tables(vec![table]))
}

/// Whether the demand is enough for the link.
fn fills(label: &str, runs: &[Outcome]) -> Check {
    Check::new(
        format!("{label}: at least 98% of the link are used"),
        "link-speed throughput",
        Written::Share,
        runs.iter().map(|run| Some(run.utilisation)),
        Bound::AtLeast(0.98),
    )
}

/// The supposed reason, and that it is at the same throughput.
fn does_less(label: &str, published: &str, runs: &[Outcome], by: &[Outcome]) -> [Check; 2] {
    [
        Check::new(
            format!("{label}: the throughput is an ordinary gateway's, to 5%"),
            "the same",
            Written::Ratio,
            ratios(runs, by, throughput),
            near(1.0),
        ),
        Check::new(
            format!("{label}: at most 0.73 of the responses are outstanding"),
            format!("fewer; CPU time {published}"),
            Written::Ratio,
            ratios(runs, by, outstanding),
            Bound::AtMost(0.73),
        ),
    ]
}

/// What the faster link does, of runs by link and classes.
fn grows(label: &str, by_link: &[Vec<Outcome>]) -> Check {
    let (slow, fast) = (&by_link[0], &by_link[CLASSES.len()]);
    Check::new(
        format!("{label}, 10 classes: with 10 Mbit/s more responses are outstanding than with 2"),
        "more CPU time",
        Written::Ratio,
        ratios(fast, slow, outstanding),
        Bound::AtLeast(1.0),
    )
}

fn row(name: String, runs: &[Outcome]) -> Row {
    let mean =
        |value: &dyn Fn(&Outcome) -> Option<f64>| Estimate::mean(runs.iter().filter_map(value));
    let values = [
        mean(&outstanding),
        mean(&|run| Some(throughput(run)? / 1e6)),
        mean(&|run| Some(run.utilisation)),
    ];
    Row::new(name, Written::Ratio, values)
}
