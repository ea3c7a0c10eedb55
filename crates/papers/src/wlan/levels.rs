//! WLAN section V-1: FIFO or LAS within the levels of EFD.

use super::mixed::{
    ALL, ASYMMETRIC, LOADS, LONG, MEDIUM, MIXED, SHORT, SYMMETRIC, Sizes, by_size, response, some,
};
use super::{Cell, DOWNLOADS, PAPER, SMALL, UPLOADS};
use crate::check::{Bound, Check, Written};
use crate::lab::{Lab, Run};
use crate::runs::ratio;
use crate::{Claim, Finding, Stopped};
use tidegate_sim::scenario::DisciplineChoice;

const METHOD: &str = "As much traffic up as down and a buffer of 30 packets; ten seeds of 500 s, \
                      which together are the paper's 5 000 s. Variants are named after their high \
                      and low level. Uploads and downloads are taken together. Short transfers \
                      have up to 20 segments, medium ones 21 to 200, long ones more than 1 000. \
                      'Similar' is taken as 0.8 to 1.25 times FIFO+FIFO, 'less' than FIFO as a \
                      tenth less, 'slightly more' as 1% to 25%. 'Best' refers to the mean of all \
                      transfers and means by 1%, 'close' is within a tenth, 'harm' at least a \
                      tenth.";

pub(super) const IN_BYTES: Claim = Claim {
    id: "WLAN-4",
    paper: &PAPER,
    source: "WLAN section V-1, figure 4",
    text: "Counting bytes, as EFDACK does, four variants with FIFO or LAS in the high and the low \
           level are similar at 10 Mbit/s: short transfers take less time than under FIFO, long \
           ones slightly more. At 20 Mbit/s FIFO+LAS is best and FIFO+FIFO close to it; LAS in the \
           high level does harm.",
    method: METHOD,
    discussion: "At 10 Mbit/s the variants are similar, as in the paper, except for long \
                 transfers: LAS in the low level makes them take 19 to 23% longer than FIFO there \
                 does. The results at 20 Mbit/s differ from the paper. FIFO+LAS and FIFO+FIFO \
                 cannot be distinguished, and LAS in the high level helps: short transfers take a \
                 quarter less time, and all transfers together 3 to 7% less. Transfers just above \
                 the threshold pay: those of 26 to 32 segments take 136 ms under LAS+FIFO and 98 \
                 under FIFO+FIFO.\n\n\
                 The paper blames the small variation of sizes in the high level. A threshold of \
                 20 packets is large for a buffer of 30, though. That a lower one helps as well \
                 suggests that long transfers stay in the high level, where LAS puts them last: \
                 at 20 Mbit/s \
                 ([trials](../../benches/runs/2026-11-21-wifi-trials/README.md), five seeds) \
                 short transfers take 61 ± 31 ms under PEFD, 41 ± 10 with a threshold of 10 \
                 packets, 35 ± 4 with LAS in the high level, and 29 ± 1 under LASACK.",
    measure: in_bytes,
};

pub(super) const IN_PACKETS: Claim = Claim {
    id: "WLAN-5",
    paper: &PAPER,
    source: "WLAN section V-1, figure 5",
    text: "Counting packets, as PEFD does, the four variants are similar at 10 Mbit/s: short \
           transfers take less time than under FIFO, long ones slightly more. At 20 Mbit/s \
           FIFO+LAS is best and LAS in the high level does harm.",
    method: METHOD,
    discussion: "The results resemble those of WLAN-4. LAS in the high level gains more here: \
                 short transfers take 34 to 39% less time, and all transfers together 7 to 11%; \
                 those of 26 to 32 segments take 138 ms instead of 114.",
    measure: in_packets,
};

const METHOD_ASYMMETRIC: &str = "Ten downloads for each upload; otherwise as in WLAN-4 and \
                                 WLAN-5, with the same checks. 'Qualitatively similar' is tested \
                                 directly, too: a variant's time over that of FIFO+FIFO is to be \
                                 0.8 to 1.25 times what it is with as much traffic up as down.";

pub(super) const IN_BYTES_ASYMMETRIC: Claim = Claim {
    id: "WLAN-4as",
    paper: &PAPER,
    source: "WLAN section V-1",
    text: "With an asymmetric load the four variants that count bytes compare as in WLAN-4.",
    method: METHOD_ASYMMETRIC,
    discussion: "The variants do compare as with a symmetric load, in what agrees with the paper \
                 and in what does not. At 10 Mbit/s LAS in the low level makes long transfers take \
                 1.5 times as long as FIFO there does, and 1.7 times as long as under FIFO alone. \
                 At 20 Mbit/s LAS in the high level helps, as in WLAN-4: short transfers take 36 \
                 to 38% less time, and all together 5 to 9% less. FIFO+LAS is the slowest of the \
                 four, 18% behind LAS+FIFO.",
    measure: in_bytes_asymmetric,
};

pub(super) const IN_PACKETS_ASYMMETRIC: Claim = Claim {
    id: "WLAN-5as",
    paper: &PAPER,
    source: "WLAN section V-1",
    text: "With an asymmetric load the four variants that count packets compare as in WLAN-5.",
    method: METHOD_ASYMMETRIC,
    discussion: "The results resemble those of WLAN-4as.",
    measure: in_packets_asymmetric,
};

/// A way of counting: the plain discipline's label, and what it is in full.
type Counting = (&'static str, &'static str);
const BYTES: Counting = ("efd-ack", "efd-ack");
const PACKETS: Counting = ("pefd", "efd:threshold=20 packets");

fn in_bytes(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    levels(lab, "WLAN-4", BYTES, SYMMETRIC)
}

fn in_packets(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    levels(lab, "WLAN-5", PACKETS, SYMMETRIC)
}

fn in_bytes_asymmetric(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    levels(lab, "WLAN-4as", BYTES, ASYMMETRIC)
}

fn in_packets_asymmetric(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    levels(lab, "WLAN-5as", PACKETS, ASYMMETRIC)
}

/// Other orders in the levels, with the paper's names of the variants.
const OTHERS: [(&str, &str); 3] = [
    ("FIFO+LAS", ":high=fifo:low=las"),
    ("LAS+FIFO", ":high=las:low=fifo"),
    ("LAS+LAS", ":high=las:low=las"),
];

/// The runs of FIFO, of the plain discipline and of its variants.
fn variants(
    lab: &Lab<'_>,
    load: u32,
    (plain, discipline): Counting,
    downloads: u32,
) -> Result<Cell, Stopped> {
    let others = OTHERS.map(|(name, orders)| -> DisciplineChoice {
        let text = format!("{discipline}{orders}:label={plain} {name}");
        text.parse().expect("levels are parameters of EFD and EFDACK")
    });
    some(lab, load, downloads, SMALL, (&["fifo", plain], &others))
}

/// The mean response of some sizes under one discipline over that under another,
/// both directions taken together.
fn times(cell: &Cell, one: &str, other: &str, sizes: Sizes) -> Vec<Option<f64>> {
    let taken = move |run: &Run| response(run, &[UPLOADS, DOWNLOADS], sizes);
    ratio(cell.of(one), cell.of(other), taken).collect()
}

/// The claim about variants of a discipline, with so many downloads for each upload.
fn levels(
    lab: &Lab<'_>,
    id: &'static str,
    counting: Counting,
    downloads: u32,
) -> Result<Finding, Stopped> {
    let plain = counting.0;
    let label = |name: &str| format!("{plain} {name}");
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for load in LOADS {
        let cell = variants(lab, load, counting, downloads)?;
        let times = |one: &str, other: &str, sizes| times(&cell, one, other, sizes);
        let mut check = |statement: String, paper: &str, values: Vec<Option<f64>>, bound| {
            let statement = format!("{load} Mbit/s: {statement}");
            checks.push(Check::new(statement, paper, Written::Ratio, values, bound));
        };
        if load == LOADS[0] {
            for (name, _) in OTHERS {
                for sizes in [SHORT, MEDIUM, LONG] {
                    check(
                        format!(
                            "{} transfers take 0.8 to 1.25 times as long under {name} as under \
                             FIFO+FIFO",
                            sizes.name
                        ),
                        "similarly",
                        times(&label(name), plain, sizes),
                        Bound::Within(0.8, 1.25),
                    );
                }
            }
            let all = OTHERS.iter().map(|(name, _)| (*name, label(name)));
            for (name, one) in std::iter::once(("FIFO+FIFO", plain.to_string())).chain(all) {
                check(
                    format!(
                        "short transfers take at most 0.9 times as long under {name} as under fifo"
                    ),
                    "lower",
                    times(&one, "fifo", SHORT),
                    Bound::AtMost(0.9),
                );
                check(
                    format!(
                        "long transfers take 1.01 to 1.25 times as long under {name} as under fifo"
                    ),
                    "slight increase",
                    times(&one, "fifo", LONG),
                    Bound::Within(1.01, 1.25),
                );
            }
        } else {
            let best = label("FIFO+LAS");
            for (name, other) in [
                ("FIFO+FIFO", plain.to_string()),
                ("LAS+FIFO", label("LAS+FIFO")),
                ("LAS+LAS", label("LAS+LAS")),
            ] {
                check(
                    format!(
                        "transfers take at most 0.99 times as long under FIFO+LAS as under {name}"
                    ),
                    "best",
                    times(&best, &other, ALL),
                    Bound::AtMost(0.99),
                );
            }
            if counting == BYTES {
                check(
                    "transfers take 0.9 to 1.1 times as long under FIFO+FIFO as under FIFO+LAS"
                        .into(),
                    "quite close",
                    times(plain, &best, ALL),
                    Bound::Within(0.9, 1.1),
                );
            }
            for (name, with, without) in [
                ("LAS+FIFO as under FIFO+FIFO", label("LAS+FIFO"), plain.to_string()),
                ("LAS+LAS as under FIFO+LAS", label("LAS+LAS"), best.clone()),
            ] {
                for sizes in [SHORT, ALL] {
                    let which = if sizes.name == "all" { "" } else { "short " };
                    check(
                        format!("{which}transfers take at least 1.1 times as long under {name}"),
                        "detrimental",
                        times(&with, &without, sizes),
                        Bound::AtLeast(1.1),
                    );
                }
            }
        }
        if downloads != SYMMETRIC {
            let symmetric = variants(lab, load, counting, SYMMETRIC)?;
            checks.extend(alike(load, plain, &cell, &symmetric));
        }
        let labels: Vec<String> = OTHERS.iter().map(|(name, _)| label(name)).collect();
        let mut drawn = vec!["fifo", plain];
        drawn.extend(labels.iter().map(String::as_str));
        figures.push(by_size(
            format!("{id}-{load}"),
            format!("Mean response by size, {load} Mbit/s, {plain} and its variants{}", {
                if downloads == SYMMETRIC { "" } else { ", asymmetric load" }
            }),
            &cell,
            &drawn,
            &[UPLOADS, DOWNLOADS],
        ));
    }
    Ok(Finding::new(id, lab, &[MIXED], checks, figures))
}

/// Whether variants compare under one load as under another.
fn alike(load: u32, plain: &str, cell: &Cell, symmetric: &Cell) -> Vec<Check> {
    let mut checks = Vec::new();
    for (name, _) in OTHERS {
        let label = format!("{plain} {name}");
        for sizes in [SHORT, ALL] {
            let which = if sizes.name == "all" { "" } else { "short " };
            let here = times(cell, &label, plain, sizes);
            let there = times(symmetric, &label, plain, sizes);
            checks.push(Check::new(
                format!(
                    "{load} Mbit/s: {which}transfers under {name} over FIFO+FIFO: 0.8 to 1.25 \
                     times as with a symmetric load"
                ),
                "qualitatively similar",
                Written::Ratio,
                std::iter::zip(here, there).map(|(here, there)| Some(here? / there?)),
                Bound::Within(0.8, 1.25),
            ));
        }
    }
    checks
}
