//! WLAN section IV: a buffer in which nothing is lost.

use super::super::check::{Bound, Check, Written};
use super::super::figure::{Figure, Line, Measure, Scale};
use super::super::lab::{Lab, Run};
use super::super::{Claim, Finding, Stopped};
use super::{Cell, LARGE, LONG_LIVED, PAPER, imbalance};

pub(super) const LARGE_BUFFER: Claim = Claim {
    id: "WLAN-8",
    paper: &PAPER,
    source: "WLAN sections IV and V-3",
    text: "From about 300 packets on nothing is lost any more, and every policy is fair to both \
           directions, FIFO too. FIFO pays with a very long time in the access point's queue.",
    method: "5 uploads and 5 downloads for 100 s, as in section IV; the same is said of mixed \
             workloads in section V-3, which are not measured. 'Nothing' is at most 0.1% of the \
             packets at the access point, 'fair' 0.8 to 1.25, 'very long' at least 5 times the \
             mean time that they wait with 30 packets.",
    discussion: "With LASACK, FIFO, Run2CACK, PEFD and EFDACK the unfairness is gone or small, \
                 and FIFO's packets wait five times as long as with 30. SCFQ, LARS and BEFD count \
                 bytes, 40 of them for an acknowledgement, and let acknowledgements through first \
                 however large the buffer is. What is still lost was not told apart by reason.",
    measure: large_buffer,
};

/// The buffer that section V compares with.
const SMALL: u32 = 30;

/// In section IV.
const COMPARED: [&str; 8] =
    ["fifo", "scfq", "befd", "pefd", "efd-ack", "las-ack", "lars", "run2c-ack"];

fn large_buffer(lab: &Lab<'_>) -> Result<Finding, Stopped> {
    let (small, large) = (Cell::with_buffer(lab, SMALL)?, Cell::with_buffer(lab, LARGE)?);
    let mut checks = Vec::new();
    for label in COMPARED {
        checks.push(Check::new(
            format!("300 packets: at most 0.1% is lost under {label}"),
            "none",
            Written::Share,
            large.of(label).iter().map(|run| Some(large.downlink(run).loss_ratio())),
            Bound::AtMost(0.001),
        ));
        checks.push(Check::new(
            format!("300 packets: uploads over downloads is 0.8 to 1.25 under {label}"),
            "fair",
            Written::Ratio,
            large.of(label).iter().map(|run| Some(imbalance(run))),
            Bound::Within(0.8, 1.25),
        ));
    }
    let waits = std::iter::zip(large.of("fifo"), small.of("fifo"))
        .map(|(long, short)| Some(waited(&large, long)? / waited(&small, short)?));
    checks.push(Check::new(
        "fifo: packets wait at least 5 times as long with 300 packets as with 30",
        "response time explodes",
        Written::Ratio,
        waits,
        Bound::AtLeast(5.0),
    ));
    let line = |choice: &str| Line::plain(choice, pooled(&large, choice));
    let labels = large.scenario.disciplines.iter().map(|choice| choice.label.as_str());
    let figure = Figure {
        id: "WLAN-8-wait".into(),
        title: "Time in the queue of an access point with 300 packets".into(),
        caption: "5 uploads, 5 downloads. Share of the packets, of data and of acknowledgements, \
                  that waited no longer; the first seed."
            .into(),
        x: Scale::log("Time in the queue", Measure::Time),
        y: Scale::linear("Packets", Measure::Share),
        lines: labels.map(line).collect(),
        stepped: true,
    };
    Ok(Finding::new("WLAN-8", lab, &[LONG_LIVED], checks, vec![figure]))
}

/// The mean time that packets waited at the access point, in seconds.
fn waited(cell: &Cell, run: &Run) -> Option<f64> {
    cell.downlink(run).delay.mean()
}

fn pooled(cell: &Cell, label: &str) -> Vec<(f64, f64)> {
    super::super::figure::thinned(cell.downlink(&cell.of(label)[0]).delay.distribution().collect())
}
