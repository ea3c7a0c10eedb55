//! WLAN section V-2: response times of uploads and downloads, by size.

use super::mixed::{
    ABOVE_STEP, ASYMMETRIC, BELOW_STEP, DIRECTIONS, LOADS, LONG, MEDIUM, MIXED, SHORT, Sizes, all,
    by_size, response, unfairness,
};
use super::{Cell, DOWNLOADS, PAPER, SMALL, UPLOADS, mixed};
use crate::check::{Bound, Check, Written};
use crate::figure::Figure;
use crate::lab::{Lab, Run};
use crate::runs::{paired, ratio};
use crate::{Claim, Finding, Stopped};
use tidegate_study::Centre;

const TEXT: &str = "FIFO is unfair to downloads at both loads. Every size-based policy mitigates \
    that, and short transfers take significantly less time than under FIFO, at the cost of a \
    negligible increase for long ones; nine transfers of ten gain significantly. LASACK is \
    slightly ahead of PEFD and EFDACK for medium sizes; those two do nearly as well as policies \
    that remember every flow, and are as fair as LASACK and LARS. Run2CACK has the most \
    marked step: it protects short transfers more, and medium ones pay.";

const METHOD: &str = "A buffer of 30 packets; ten seeds of 500 s, which together are the paper's 5 \
    000 s. Responses run from the SYN to the last FIN, as in the paper, and cover completed \
    transfers only. Short transfers have up to 20 segments, medium ones 21 to 200, long ones more \
    than 1 000; the step is the mean of 21 to 40 segments over that of 10 to 20. FIFO is 'unfair' \
    when short downloads take at least 1.25 times as long as short uploads; a policy 'mitigates' \
    when that ratio is at most 0.9 times FIFO's, and is 'as fair' as another when it is 0.8 to \
    1.25 times the other's. 'Significantly less' is taken as at most three \
    quarters, 'negligible' as at most 10%, 'slightly ahead' as by 1 to 25%, 'nearly as well' as \
    within 25% of LASACK for short transfers, 'more' as by 5%. Both directions are taken together \
    except where one is named.";

pub(super) const SYMMETRIC: Claim = Claim {
    id: "WLAN-6",
    paper: &PAPER,
    source: "WLAN section V-2, figure 6",
    text: TEXT,
    method: METHOD,
    discussion: "At 10 Mbit/s nearly everything agrees with the paper, except that long transfers \
                 pay under LASACK (66%) and LARS (31%), and that LARS, which counts an \
                 acknowledgement as 40 bytes, mitigates little. At 20 Mbit/s differences are \
                 larger than in the paper's words. LASACK's medium transfers take 38% less time \
                 than those of PEFD and EFDACK, its short ones 51 and 40% less, and its long ones \
                 4.2 times as long as under FIFO. Run2CACK's medium transfers take 2.2 times as \
                 long as those of PEFD and EFDACK. LARS is more unfair than FIFO, so that PEFD and \
                 EFDACK are far fairer than it. Run2CACK is the exception to nine in ten that \
                 gain: its downloads of 21 to 25 segments take as long as under FIFO at 10 Mbit/s. \
                 A threshold of 20 packets is large for a buffer of 30 (see WLAN-4). Under \
                 fq-codel and cake short uploads are as fast as under EFDACK; downloads of 6 or 7 \
                 segments take 330 ms at 20 Mbit/s, where they take 56 under EFDACK and 520 under \
                 FIFO.",
    measure: symmetric,
};

pub(super) const ASYMMETRIC_LOAD: Claim = Claim {
    id: "WLAN-7",
    paper: &PAPER,
    source: "WLAN section V-2, figure 7",
    text: "With ten downloads for each upload, all findings of WLAN-6 remain the same.",
    method: METHOD,
    discussion: "The results resemble those of WLAN-6. With few uploads LARS mitigates as much as \
                 the others, and fq-codel and cake come close to EFDACK: at 20 Mbit/s downloads \
                 of 6 or 7 segments take 44, 42 and 46 ms, and 304 under FIFO. Long transfers pay \
                 more: under LASACK they take 2.3 times as long at 10 Mbit/s and 9 times as long \
                 at 20.",
    measure: asymmetric,
};

fn symmetric(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    responses(lab, "WLAN-6", mixed::SYMMETRIC)
}

fn asymmetric(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    responses(lab, "WLAN-7", ASYMMETRIC)
}

/// The size-based policies of figures 6 and 7.
const SIZE_BASED: [&str; 5] = ["lars", "las-ack", "run2c-ack", "pefd", "efd-ack"];
/// As drawn in the paper.
const DRAWN: [&str; 6] = ["fifo", "lars", "las-ack", "run2c-ack", "pefd", "efd-ack"];
/// What section IV has ruled out, and today's, beside two of the former.
const BESIDE: [&str; 6] = ["fifo", "efd-ack", "scfq", "befd", "fq-codel", "cake"];

const BOTH: [usize; 2] = [UPLOADS, DOWNLOADS];
/// Bounds of ranges of sizes up to the 90th percentile, in segments.
const UP_TO_90: [u32; 9] = [6, 8, 10, 13, 16, 21, 26, 33, 57];

fn responses(lab: &Lab<'_>, id: &'static str, downloads: u32) -> Result<Finding, Stopped> {
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for load in LOADS {
        let cell = all(lab, load, downloads, SMALL)?;
        checks.extend(asked(load, &cell));
        figures.extend(drawn(id, load, &cell));
    }
    Ok(Finding::new(id, lab, &[MIXED], checks, figures))
}

fn asked(load: u32, cell: &Cell) -> Vec<Check> {
    let mut checks = Vec::new();
    let mut check = |statement: String, paper: &str, values: Vec<Option<f64>>, bound| {
        let statement = format!("{load} Mbit/s: {statement}");
        checks.push(Check::new(statement, paper, Written::Ratio, values, bound));
    };
    let times = |one: &str, other: &str, sizes: Sizes| -> Vec<Option<f64>> {
        ratio(cell.of(one), cell.of(other), move |run| response(run, &BOTH, sizes)).collect()
    };
    check(
        "short downloads take at least 1.25 times as long as short uploads under fifo".into(),
        "unfair, even at a moderate load",
        cell.of("fifo").iter().map(|run| unfairness(run, SHORT)).collect(),
        Bound::AtLeast(1.25),
    );
    for label in SIZE_BASED {
        check(
            format!("{label}: that ratio over fifo's is at most 0.9"),
            "mitigates",
            ratio(cell.of(label), cell.of("fifo"), |run| unfairness(run, SHORT)).collect(),
            Bound::AtMost(0.9),
        );
    }
    for label in ["pefd", "efd-ack"] {
        for other in ["las-ack", "lars"] {
            check(
                format!("{label}: that ratio over {other}'s is 0.8 to 1.25"),
                "the difference vanishes with a realistic workload",
                ratio(cell.of(label), cell.of(other), |run| unfairness(run, SHORT)).collect(),
                Bound::Within(0.8, 1.25),
            );
        }
    }
    for label in SIZE_BASED {
        for (direction, name) in DIRECTIONS {
            let taken = move |run: &Run| response(run, &[direction], SHORT);
            check(
                format!("short {name} take at most 0.75 times as long under {label} as under fifo"),
                "significantly improve",
                ratio(cell.of(label), cell.of("fifo"), taken).collect(),
                Bound::AtMost(0.75),
            );
        }
        check(
            format!("long transfers take at most 1.1 times as long under {label} as under fifo"),
            "negligible increase",
            times(label, "fifo", LONG),
            Bound::AtMost(1.1),
        );
    }
    for label in ["pefd", "efd-ack"] {
        check(
            format!(
                "medium transfers take 0.75 to 0.99 times as long under las-ack as under {label}"
            ),
            "slightly better",
            times("las-ack", label, MEDIUM),
            Bound::Within(0.75, 0.99),
        );
        check(
            format!(
                "short transfers take at most 1.25 times as long under {label} as under las-ack"
            ),
            "almost as well",
            times(label, "las-ack", SHORT),
            Bound::AtMost(1.25),
        );
        let step =
            |run: &Run| Some(response(run, &BOTH, ABOVE_STEP)? / response(run, &BOTH, BELOW_STEP)?);
        check(
            format!("run2c-ack's step is at least 1.05 times {label}'s"),
            "more marked",
            ratio(cell.of("run2c-ack"), cell.of(label), step).collect(),
            Bound::AtLeast(1.05),
        );
        check(
            format!(
                "medium transfers take at least 1.05 times as long under run2c-ack as under {label}"
            ),
            "detrimental to mid sizes",
            times("run2c-ack", label, MEDIUM),
            Bound::AtLeast(1.05),
        );
        check(
            format!(
                "short transfers take at most 0.95 times as long under run2c-ack as under {label}"
            ),
            "pronounced protection",
            times("run2c-ack", label, SHORT),
            Bound::AtMost(0.95),
        );
    }
    checks.extend(SIZE_BASED.map(|label| for_nine_of_ten(load, label, cell)));
    checks
}

/// Whether the sizes that nine of ten transfers have gain, range by range.
fn for_nine_of_ten(load: u32, label: &str, cell: &Cell) -> Check {
    let worst = |run: &Run, fifo: &Run| {
        let ratios = UP_TO_90.windows(2).map(|pair| {
            let sizes = Sizes { name: "", least: pair[0], most: pair[1] - 1 };
            Some(response(run, &BOTH, sizes)? / response(fifo, &BOTH, sizes)?)
        });
        ratios.reduce(|one, other| Some(one?.max(other?))).flatten()
    };
    Check::of(
        Centre::Median,
        format!(
            "{load} Mbit/s: up to 56 segments, the 90th percentile, the worst ratio of a range \
             under {label} to fifo is at most 0.75"
        ),
        "90% of the flows experience a significant improvement",
        Written::Ratio,
        paired(cell.of(label), cell.of("fifo"), worst),
        Bound::AtMost(0.75),
    )
}

fn drawn(id: &str, load: u32, cell: &Cell) -> Vec<Figure> {
    let figure = |(direction, name): (usize, &str), part: &str, title: &str, labels: &[&str]| {
        by_size(
            format!("{id}-{load}-{name}{part}"),
            format!("Mean response of {name} by size, {load} Mbit/s{title}"),
            cell,
            labels,
            &[direction],
        )
    };
    let paper = DIRECTIONS.map(|direction| figure(direction, "", "", &DRAWN));
    let beside = DIRECTIONS.map(|direction| figure(direction, "-others", ", others", &BESIDE));
    paper.into_iter().chain(beside).collect()
}
