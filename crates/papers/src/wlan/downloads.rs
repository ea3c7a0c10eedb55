//! WLAN section III-B: almost nothing but downloads.

use super::mixed::{
    ALL, DIRECTIONS, LOADS, MIXED, SHORT, STREAMING, by_size, downloads_only, response, some,
    unfairness,
};
use super::{DOWNLOADS, PAPER, SMALL};
use crate::check::{Bound, Check, Written};
use crate::lab::Lab;
use crate::runs::ratio;
use crate::{Claim, Finding, Stopped};
use tidegate_study::Centre;

pub(super) const STREAMING_LOAD: Claim = Claim {
    id: "WLAN-100",
    paper: &PAPER,
    source: "WLAN section III-B",
    text: "With a hundred downloads for each upload, as where users watch video, the cell comes \
           down to one with downloads only, where the unfairness of TCP typically vanishes.",
    method: "The transfers of WLAN-6 with a hundred downloads for each upload, and the same load \
             of downloads alone; a buffer of 30 packets, ten seeds of 500 s. The paper announces \
             this case and shows no figure of it. The unfairness 'vanishes' if short downloads \
             take 0.8 to 1.25 times as long as short uploads under FIFO (the median over seeds, \
             each of which has some 50 to 100 such uploads); the cell 'comes down' to downloads \
             only if these take 0.9 to 1.1 times as long as without uploads.",
    discussion: "Downloads take as long as without uploads under FIFO, too: so few uploads do no \
                 harm, and in this sense the unfairness has vanished. Those few are still \
                 favoured: short downloads take twice as long as they do at 20 Mbit/s, as in \
                 WLAN-7. A download loses data in a full queue, an upload acknowledgements, which \
                 the next one makes good.",
    measure: streaming,
};

/// As in figures 6 and 7.
const DRAWN: [&str; 6] = ["fifo", "lars", "las-ack", "run2c-ack", "pefd", "efd-ack"];
/// Those that are also run without uploads: the paper's reference and its own.
const ALONE: [&str; 3] = ["fifo", "pefd", "efd-ack"];

fn streaming(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (mut checks, mut figures) = (Vec::new(), Vec::new());
    for load in LOADS {
        let cell = some(lab, load, STREAMING, SMALL, (&DRAWN, &[]))?;
        let alone = downloads_only(lab, load, SMALL, &ALONE)?;
        checks.push(Check::of(
            Centre::Median,
            format!("{load} Mbit/s: short downloads over uploads is 0.8 to 1.25 under fifo"),
            "the unfairness typically vanishes",
            Written::Ratio,
            cell.of("fifo").iter().map(|run| unfairness(run, SHORT)),
            Bound::Within(0.8, 1.25),
        ));
        for label in ALONE {
            for sizes in [SHORT, ALL] {
                let which = if sizes.name == "all" { "" } else { "short " };
                checks.push(Check::new(
                    format!(
                        "{load} Mbit/s, {label}: {which}downloads take 0.9 to 1.1 times as long as \
                         without uploads"
                    ),
                    "degenerates to the pure download case",
                    Written::Ratio,
                    ratio(cell.of(label), alone.of(label), move |run| {
                        response(run, &[DOWNLOADS], sizes)
                    }),
                    Bound::Within(0.9, 1.1),
                ));
            }
        }
        figures.extend(DIRECTIONS.map(|(direction, name)| {
            by_size(
                format!("WLAN-100-{load}-{name}"),
                format!("Mean response of {name} by size, {load} Mbit/s, 100 downloads per upload"),
                &cell,
                &DRAWN,
                &[direction],
            )
        }));
    }
    Ok(Finding::new("WLAN-100", lab, &[MIXED], checks, figures))
}
