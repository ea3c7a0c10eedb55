//! The generated page: `docs/kernel/`, an index with a line for each cell, a page of
//! tables for each question, and pictures of one flow of each controller.

use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use crate::causes::cause;
use crate::cell::{
    self, Cell, DELAY_TOLERANCE, GOODPUT_TOLERANCE, Question, USUAL_LINK, cells, long_flow,
};
use crate::figures::Row;
use crate::flow::{Flow, SECONDS, WARM_UP_S};
use crate::kept::Kept;
use crate::loaded_page;
use crate::plot;
use crate::pooled;
use crate::simulated;
use crate::verdict::{self, Judged, Measure, Verdict};

/// A cell with what came of it: a comparison, or why there is none.
type Outcome = (Cell, Result<Judged, String>);

/// Simulates what was kept of the guest, and writes the pages into `folder`, with a
/// section about what a second kernel made of the same logs if there are figures of one.
/// `progress` hears the name of each cell.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    kept: &Kept,
    second: Option<&Kept>,
    folder: &Path,
    progress: impl Fn(&str),
) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    let outcomes: Vec<Outcome> = cells()
        .into_iter()
        .map(|cell| {
            progress(&cell.to_string());
            (cell, outcome(&cell, &kept.rows))
        })
        .collect();
    let mut rest = loaded_page::write(kept, folder, &progress)?;
    rest += &second.map_or(String::new(), |second| two_kernels(kept, second));
    rest += &flows(kept, folder)?;
    fs::write(folder.join("README.md"), index(kept, &outcomes, &rest))?;
    for question in Question::OF_LINUX {
        let (file, _, _) = words(question);
        fs::write(folder.join(file), tables(question, &outcomes))?;
    }
    Ok(())
}

fn outcome(cell: &Cell, kernel: &[Row]) -> Result<Judged, String> {
    let ours = verdict::ours(cell, kernel).map_err(|absent| absent.to_string())?;
    if ours.is_empty() {
        return Err("not measured on the kernel yet".into());
    }
    Ok(verdict::judge(cell, kernel, &ours))
}

/// The file of a question, its title, and what it asks.
fn words(question: Question) -> (&'static str, &'static str, &'static str) {
    match question {
        Question::Senders => (
            "senders.md",
            "Senders",
            "Linux's reno, cubic and bbr in front of a FIFO, on five links.",
        ),
        Question::Queues => (
            "queues.md",
            "Queues",
            "Linux's queues with their defaults, on 10 Mbit/s and 40 ms, under senders with CUBIC.",
        ),
        Question::Programs => (
            "programs.md",
            "Our disciplines in the kernel",
            "[Queues of the kernel](../qdisc.md) by BPF, each with a buffer of 300 packets, on 10 \
             Mbit/s and 40 ms, under senders with CUBIC.",
        ),
        Question::Papers => (
            "cells.md",
            "Cells",
            "Disciplines on the live link under Linux's senders, on 10 Mbit/s and 40 ms.",
        ),
    }
}

fn percent(part: f64) -> String {
    format!("{}%", (part * 100.0).round())
}

/// What a question tolerates, in a sentence.
pub(crate) fn tolerances(question: Question) -> String {
    let tolerance = question.tolerance();
    let each =
        [("mean", Measure::Mean), ("median", Measure::Median), ("95th percentile", Measure::P95)];
    let judged = each.iter().filter_map(|(name, measure)| {
        Some(format!("{name} within {}", percent(measure.tolerance(tolerance)?)))
    });
    judged.collect::<Vec<_>>().join(", ")
}

fn index(kept: &Kept, outcomes: &[Outcome], rest: &str) -> String {
    let manifest = &kept.manifest;
    let mut page = format!(
        "# The kernel as judge\n\n\
         The same transfers run through Linux and through the simulator: connections open at \
         the same times, carry the same sizes and close, whether earlier ones are done or not. \
         Nobody here wrote the judge's TCP or its queues.\n\n\
         `make kernel-page` writes these pages from [what was measured](../../benches/kernel/README.md) \
         of Linux {} ({}, {}) and from a new simulation. \
         Starts are Poisson, sizes lognormal with a mean of 27.7 kB. A response time runs from the \
         sender's SYN to the last byte that the receiver reads.\n\n\
         In both worlds the link is a shaper's: after a pause `tbf` lets two packets go at once, which \
         a wire of the same rate would not, so the simulator's queue stands behind the same bucket of \
         tokens (CAKE's behind a shaper without a burst). Close to the capacity Linux differs from itself: \
         one log of `fifo-10M40-90-reno`, measured with two versions of the sending program, gave means \
         that differ by 1 to 11%, because other packets were lost. The intervals include that.\n\n\
         A figure *holds* when the 95% interval of the ratio of ours to the kernel's, paired log by log, \
         lies within the tolerance, is *out* when all of it lies outside, and *undecided* otherwise. \
         A cell is as good as its worst figure. The tolerances were stated before the first measurement.\n",
        manifest.kernel, manifest.command, manifest.date
    );
    for question in Question::OF_LINUX {
        let (file, title, about) = words(question);
        let of_it: Vec<&Outcome> =
            outcomes.iter().filter(|(cell, _)| cell.question == question).collect();
        let figures: Vec<Verdict> = of_it
            .iter()
            .filter_map(|(_, outcome)| outcome.as_ref().ok())
            .flat_map(Judged::verdicts)
            .collect();
        let count = |verdict| figures.iter().filter(|each| **each == verdict).count();
        let _ = write!(
            page,
            "\n## {title}\n\n{about} Tolerances for each size class: {}. \
             Of {} figures {} hold, {} are undecided and {} are out ([all of them]({file})).\n\n\
             | cell | logs | figures that hold | undecided | out | verdict | farthest | cause |\n\
             | --- | --- | --- | --- | --- | --- | --- | --- |\n",
            tolerances(question),
            figures.len(),
            count(Verdict::Holds),
            count(Verdict::Undecided),
            count(Verdict::Out),
        );
        for (cell, outcome) in &of_it {
            page += &line(cell, outcome);
        }
        let ratios: Vec<_> = of_it
            .iter()
            .filter_map(|(cell, outcome)| Some((*cell, outcome.as_ref().ok()?.ratios.clone())))
            .collect();
        page += &pooled::table(question, &ratios);
    }
    page + rest
}

/// The part of the index about a second kernel: how far Linux is from Linux on the same
/// logs is as near as a simulator can come to either.
fn two_kernels(kept: &Kept, second: &Kept) -> String {
    let mut page = format!(
        "\n## Linux beside Linux\n\n\
         The same logs, in front of the same queues, on Linux {} of the machine itself \
         ({}, {}). Close to the capacity, which packets are lost decides a log, and the least difference in time \
         decides that; so two kernels differ as well, and no simulator can agree with both \
         more closely than they agree with each other. The tolerances are the same.\n\n\
         | cell | logs | figures | {} beside {}: hold, undecided, out | farthest |\n\
         | --- | --- | --- | --- | --- |\n",
        second.manifest.kernel,
        second.manifest.command,
        second.manifest.date,
        second.manifest.kernel,
        kept.manifest.kernel,
    );
    for cell in cells() {
        let name = cell.to_string();
        let rows: Vec<Row> = second.rows.iter().filter(|row| row.cell == name).cloned().collect();
        let judged = verdict::judge(&cell, &kept.rows, &rows);
        let figures = judged.verdicts().count();
        if figures == 0 {
            continue;
        }
        let count = |verdict| judged.verdicts().filter(|each| *each == verdict).count();
        let _ = writeln!(
            page,
            "| `{name}` | {} | {figures} | {}, {}, {} | {} |",
            judged.logs,
            count(Verdict::Holds),
            count(Verdict::Undecided),
            count(Verdict::Out),
            farthest(&judged),
        );
    }
    page
}

/// A cell's line in the index.
pub(crate) fn line(cell: &Cell, outcome: &Result<Judged, String>) -> String {
    let name = cell.to_string();
    let judged = match outcome {
        Ok(judged) => judged,
        Err(reason) => return format!("| `{name}` | | | | | not compared | | {reason} |\n"),
    };
    let count = |verdict| judged.verdicts().filter(|each| *each == verdict).count();
    let worst = judged.verdict();
    let cause = match worst {
        Verdict::Out => cause(&name).unwrap_or("not known yet"),
        _ => "",
    };
    format!(
        "| `{name}` | {} | {} | {} | {} | {} | {} | {cause} |\n",
        judged.logs,
        count(Verdict::Holds),
        count(Verdict::Undecided),
        count(Verdict::Out),
        worst.name(),
        farthest(judged),
    )
}

/// The judged figure whose ratio is farthest from one.
fn farthest(judged: &Judged) -> String {
    let mut figures = Vec::new();
    for class in &judged.classes {
        for (measure, figure) in ["mean", "median", "p95"].iter().zip(&class.figures) {
            if let (Some(_), Some(ratio)) = (figure.verdict, &figure.ratio) {
                let off = libm::fabs(libm::log(ratio.value));
                figures.push((off, format!("{} {measure}: {:.2}", class.name, ratio.value)));
            }
        }
    }
    figures.sort_by(|a, b| b.0.total_cmp(&a.0));
    figures.into_iter().next().map_or(String::new(), |(_, text)| text)
}

fn tables(question: Question, outcomes: &[Outcome]) -> String {
    let (_, title, about) = words(question);
    let mut page = format!(
        "# {title}: the kernel and the simulator\n\n{about} Tolerances: {}. \
         [How this came about](README.md).\n\n\
         Times are in ms, means over logs; in brackets the ratio of ours to the kernel's with \
         its 95% interval over logs.\n",
        tolerances(question)
    );
    for (cell, outcome) in outcomes.iter().filter(|(cell, _)| cell.question == question) {
        let _ = write!(page, "\n## {cell}\n\n");
        let judged = match outcome {
            Ok(judged) => judged,
            Err(reason) => {
                let _ = writeln!(page, "Not compared: {reason}.");
                continue;
            }
        };
        if let Some(cause) = cause(&cell.to_string()).filter(|_| judged.verdict() == Verdict::Out) {
            let _ = write!(page, "{cause}\n\n");
        }
        page += "| size | done, kernel | done, ours | measure | kernel | ours | ratio | verdict |\n\
                 | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        for class in &judged.classes {
            for (measure, figure) in ["mean", "median", "p95"].iter().zip(&class.figures) {
                let ratio = figure.ratio.as_ref().map_or(String::new(), |ratio| ratio.text(1.0, 2));
                let done = |(begun, done): (usize, usize)| format!("{done} of {begun}");
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {measure} | {:.1} | {:.1} | {ratio} | {} |",
                    class.name,
                    done(class.kernel_count),
                    done(class.ours_count),
                    figure.kernel.value,
                    figure.ours.value,
                    figure.verdict.map_or("not judged", Verdict::name),
                );
            }
        }
    }
    page
}

/// The part of the index about long flows; writes their pictures.
fn flows(kept: &Kept, folder: &Path) -> io::Result<String> {
    let mut page = format!(
        "\n## One long flow\n\n\
         One endless flow of each controller on 10 Mbit/s, 40 ms and a FIFO of 150 kB, from {WARM_UP_S} to \
         {SECONDS} s. Goodput has to agree within {}, the mean and median of the time in the queue within {}; \
         one flow has no interval, so these are plain ratios. The queue is seen by a small datagram ten times \
         a second.\n\n\
         | controller | goodput, kernel | ours | ratio | mean wait, kernel | ours | ratio | p5, median, p95, kernel | ours | verdict |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        percent(GOODPUT_TOLERANCE),
        percent(DELAY_TOLERANCE),
    );
    let mut pictures = String::new();
    for controller in cell::controllers() {
        let Some((_, kernel)) = kept.flows.iter().find(|(name, _)| name == controller) else {
            let _ = writeln!(page, "| {controller} | | | | | | | | | not measured |");
            continue;
        };
        let ours = match simulated::flow(&long_flow(controller), SECONDS) {
            Ok(ours) => ours,
            Err(absent) => {
                let _ = writeln!(page, "| {controller} | | | | | | | | | {absent} |");
                continue;
            }
        };
        let _ = writeln!(page, "{}", compared(controller, kernel, &ours));
        pictures += &drawn(controller, kernel, &ours, folder)?;
    }
    Ok(page + &pictures)
}

/// The line of a long flow.
fn compared(controller: &str, kernel: &Flow, ours: &Flow) -> String {
    let goodput = ours.goodput_mbps / kernel.goodput_mbps;
    let mean = ours.delay_mean_ms / kernel.delay_mean_ms;
    let median = ours.delay_ms[1] / kernel.delay_ms[1];
    let within = |ratio: f64, tolerance: f64| libm::fabs(ratio - 1.0) <= tolerance;
    let holds = within(goodput, GOODPUT_TOLERANCE)
        && within(mean, DELAY_TOLERANCE)
        && within(median, DELAY_TOLERANCE);
    let spread = |flow: &Flow| {
        let [p5, median, p95] = flow.delay_ms;
        format!("{p5:.1}, {median:.1}, {p95:.1} ms")
    };
    let verdict = if holds { Verdict::Holds } else { Verdict::Out };
    format!(
        "| {controller} | {:.3} Mbit/s | {:.3} | {goodput:.3} | {:.1} ms | {:.1} | {mean:.2} | {} | {} | {} |",
        kernel.goodput_mbps,
        ours.goodput_mbps,
        kernel.delay_mean_ms,
        ours.delay_mean_ms,
        spread(kernel),
        spread(ours),
        verdict.name(),
    )
}

/// Draws a flow's window, and its pacing rate if both worlds have one.
fn drawn(controller: &str, kernel: &Flow, ours: &Flow, folder: &Path) -> io::Result<String> {
    let lines = |value: &dyn Fn(&crate::flow::Moment) -> Option<f64>| {
        [("kernel", kernel), ("simulator", ours)].map(|(label, flow)| {
            let points = flow.path.iter().filter_map(|at| Some((at.at_s, value(at)?)));
            (label.to_owned(), points.collect::<Vec<_>>())
        })
    };
    let mut text = format!("\n### {controller}\n\n");
    let mut add = |what: &str, title: &str, lines: &[plot::Line; 2]| {
        let file = format!("{controller}-{what}.svg");
        let _ = writeln!(text, "![{title}]({file})\n");
        fs::write(folder.join(file), plot::chart(title, "seconds", lines))
    };
    let window = format!("{controller}: congestion window, segments");
    add("window", &window, &lines(&|at| Some(at.window)))?;
    let pacing = lines(&|at| at.pacing_mbps);
    if pacing.iter().all(|(_, points)| !points.is_empty()) {
        add("pacing", &format!("{controller}: pacing rate, Mbit/s"), &pacing)?;
    }
    let link = USUAL_LINK;
    let _ = writeln!(
        text,
        "`ss -tin` of the kernel's sender beside the simulator's, on {} Mbit/s.",
        link.rate.0 / 1_000_000
    );
    Ok(text)
}
