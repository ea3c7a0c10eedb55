//! The generated page about the papers on the live link: `docs/link/`, an index with
//! response times by size, a line for each cell and what came of promises, and a page of
//! tables.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::io;
use std::path::Path;

use tidegate_study::Estimate;

use crate::causes::cause;
use crate::cell::{Cell, PAPERS_BUFFER, Question, Shaper, papers_cells};
use crate::figures::{CLASSES, Row};
use crate::kept::{Kept, Manifest};
use crate::page::{line, tolerances};
use crate::pooled;
use crate::promises::{self, DISCIPLINES, MOST_LATE, Outcome, STREAMS};
use crate::verdict::{self, Judged, Measure, Verdict};

/// A cell with the simulator's rows and what came of the comparison.
struct Compared {
    cell: Cell,
    ours: Vec<Row>,
    judged: Judged,
}

/// Simulates what was kept, and writes the pages into `folder`. `progress` hears the name
/// of each cell.
///
/// # Errors
/// When a file cannot be written, or the simulator lacks a cell.
pub fn write(kept: &Kept, folder: &Path, progress: impl Fn(&str)) -> io::Result<()> {
    let mut cells = Vec::new();
    for cell in papers_cells() {
        progress(&cell.to_string());
        let ours = verdict::ours(&cell, &kept.rows).map_err(io::Error::other)?;
        let judged = verdict::judge(&cell, &kept.rows, &ours);
        cells.push(Compared { cell, ours, judged });
    }
    cells.retain(|compared| compared.judged.logs > 0);
    fs::create_dir_all(folder)?;
    fs::write(folder.join("README.md"), index(kept, &cells))?;
    fs::write(folder.join("cells.md"), tables(&cells))
}

/// What stands in front of the link in a cell.
fn queue(cell: &Cell) -> String {
    match cell.queue.shaper {
        Shaper::Link => format!("`{}`", cell.queue.name),
        Shaper::Bucket | Shaper::Itself | Shaper::Program => {
            let kernel = cell.queue.kernel.split(' ').next().unwrap_or_default();
            format!("Linux's `{kernel}` under `tbf`")
        }
    }
}

fn index(kept: &Kept, cells: &[Compared]) -> String {
    let Manifest { kernel, command, date, machine, commit } = &kept.manifest;
    let unknown = || "unknown".into();
    let (machine, commit) =
        (machine.clone().unwrap_or_else(unknown), commit.clone().unwrap_or_else(unknown));
    let link = cells.first().map(|compared| compared.cell);
    let load = link.map_or(0, |cell| cell.load_percent);
    let mut page = format!(
        "# The papers on a live link\n\n\
         The disciplines of EFD and LAS, and their rivals, run in [the live link](../link.md) between \
         two real interfaces. Linux's own senders and receivers use it, with Reno and CUBIC, and the simulator \
         is given the very same transfers.\n\n\
         ```text\n\
         sender --- path, 20 ms each way --- provider === veth [link, 10 Mbit/s] veth === client\n\
         ```\n\n\
         Many transfers are short and a few are long: starts are Poisson, sizes lognormal with a mean of \
         27.7 kB, together {load}% of 10 Mbit/s (the underload of EFD section 4). The queue holds \
         {PAPERS_BUFFER}. A response time runs from the sender's SYN to the last byte that the receiver reads. \
         The link sends 10 Mbit/s of IP packets, headers of Ethernet not counted, towards the client; back, it \
         sends 1 Gbit/s through a FIFO, as the simulator does.\n\n\
         `make link-page` writes these pages from [what was measured](../../benches/link/README.md) \
         (Linux {kernel}, {machine}, `{command}` at {commit}, {date}) and from a new simulation.\n\n\
         A figure *holds* when the 95% interval of the ratio of the simulator's to the live one, paired log by \
         log, lies within the tolerance, is *out* when all of it lies outside, and *undecided* otherwise. \
         The tolerances were stated before the first measurement: {} for each size class.\n",
        tolerances(Question::Papers),
    );
    page += SHAPERS;
    page += &health(kept);
    for controller in controllers(cells) {
        page += &by_size(controller, cells, &kept.rows);
    }
    page += &beside_fifo(cells, &kept.rows);
    page += &verdicts(cells);
    page += &peer(kept, cells);
    page += &promised(kept);
    page + MARKS
}

/// Which model stands for which shaper.
const SHAPERS: &str = "\n## The shapers\n\n\
The live link hands a packet over at the start of the time that the packet takes, and the next one when that time \
has passed. Linux's `tbf` lets two packets go at once after a pause. A wire delivers a packet at the end of its time. \
None of these is a fault; but at 10 Mbit/s a full packet takes 1.2 ms, and a short transfer 60. So the simulator \
models each: a pace without a burst for the live link, a bucket of two packets for `tbf`.\n";

/// What is said of marks, which a test holds.
const MARKS: &str = "\n## Congestion marks\n\n\
[A test](../../crates/judge/tests/link_ecn.rs) sends with Linux's Reno and `net.ipv4.tcp_ecn = 1` through the live \
link with `codel` and `fq-codel`. The link marks packets and loses none; the receiver's kernel counts as many \
marks as the link wrote, and no error in any checksum; and `ss -ti` at the sender shows `ecn`, `delivered_ce`, a \
threshold at the window that the path holds, and nothing sent again. Without `tcp_ecn`, the same queue loses packets \
and marks none.\n";

/// How well the beds worked.
fn health(kept: &Kept) -> String {
    let all = || kept.health.iter();
    let logs = kept.health.len();
    if logs == 0 {
        return String::new();
    }
    let middle = |of: fn(&crate::kept::Health) -> u32| {
        let mut values: Vec<u32> = all().map(of).collect();
        values.sort_unstable();
        (values[values.len() / 2], values[values.len() - 1])
    };
    let (median, worst_median) = middle(|it| it.late_median_us);
    let (p99, worst_p99) = middle(|it| it.late_p99_us);
    let (most, worst) = middle(|it| it.late_max_us);
    let failures: u64 = all().map(|it| it.failures).sum();
    let sent: u64 = all().map(|it| it.sent_packets).sum();
    format!(
        "\n## The bed\n\n\
         Everything ran in real time, several beds at once on a machine that did other things, too. All threads that \
         touch packets had the priority of real time. The path knows how late it was with each packet: over {logs} logs, \
         the median of a log was {median} µs (at worst {worst_median}), the 99th percentile {p99} µs (at worst \
         {worst_p99}), and the latest packet of a log {:.1} ms (at worst {:.1}). The live link sent {:.1} million \
         packets; {failures} were lost by anything but its discipline.\n",
        f64::from(most) / 1e3,
        f64::from(worst) / 1e3,
        sent as f64 / 1e6,
    )
}

/// Each controller once, in the order of the cells.
fn controllers(cells: &[Compared]) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = cells.iter().map(|it| it.cell.controller).collect();
    names.dedup();
    names
}

/// Mean response times by size, live and simulated, with intervals.
fn by_size(controller: &str, cells: &[Compared], live: &[Row]) -> String {
    let mut page = format!(
        "\n## Response times by size, {controller}\n\n\
         Means in ms; above live, below the simulator's. The 95% intervals are over logs, which differ: both sides \
         of a field rise and fall together, and the ratios further down are log by log.\n\n| |"
    );
    let names = || CLASSES.iter().map(|(_, name)| name);
    names().for_each(|name| page += &format!(" {name} |"));
    page += "\n| --- |";
    names().for_each(|_| page += " --- |");
    page.push('\n');
    for compared in cells.iter().filter(|it| it.cell.controller == controller) {
        let name = compared.cell.to_string();
        let side = |rows: &[Row], class: usize| {
            let of_it = rows.iter().filter(|row| row.cell == name && row.class == class);
            let mean = Estimate::mean(of_it.map(|row| row.mean_ms));
            mean.map_or(String::new(), |mean| {
                mean.text(1.0, if mean.value < 100.0 { 1 } else { 0 })
            })
        };
        let _ = write!(page, "| {} |", queue(&compared.cell));
        for class in 0..CLASSES.len() {
            let _ = write!(page, " {}<br>{} |", side(live, class), side(&compared.ours, class));
        }
        page.push('\n');
    }
    page
}

/// What a discipline makes of FIFO's response times, live and simulated.
fn beside_fifo(cells: &[Compared], live: &[Row]) -> String {
    let classes = [0, 2, CLASSES.len() - 1];
    let mut page = String::from(
        "\n## What a discipline is worth\n\n\
         Mean response time as a part of that with `fifo` on the same link, paired log by log: live, and the \
         simulator's.\n\n| | |",
    );
    classes.iter().for_each(|class| page += &format!(" {}, live | simulated |", CLASSES[*class].1));
    page += "\n| --- | --- |";
    classes.iter().for_each(|_| page += " --- | --- |");
    page.push('\n');
    let is_live = |it: &&Compared| it.cell.queue.shaper == Shaper::Link;
    for compared in cells.iter().filter(is_live) {
        let same = |it: &&Compared| {
            it.cell.controller == compared.cell.controller && it.cell.queue.name == "fifo"
        };
        let Some(fifo) = cells.iter().filter(is_live).find(same) else { continue };
        if fifo.cell == compared.cell {
            continue;
        }
        let _ = write!(page, "| {} | {} |", compared.cell.controller, queue(&compared.cell));
        for class in classes {
            let part = |of: &[Row], than: &[Row]| {
                let mean = ratio(&pick(of, &compared.cell, class), &pick(than, &fifo.cell, class));
                mean.map_or(String::new(), |mean| mean.text(1.0, 2))
            };
            let _ = write!(page, " {} | {} |", part(live, live), part(&compared.ours, &fifo.ours));
        }
        page.push('\n');
    }
    page
}

/// The means of a class of a cell, by log.
fn pick(rows: &[Row], cell: &Cell, class: usize) -> BTreeMap<u64, f64> {
    let name = cell.to_string();
    let of_it = rows.iter().filter(|row| row.cell == name && row.class == class);
    of_it.map(|row| (row.log, row.mean_ms)).collect()
}

/// The ratio in each log that both have.
fn ratio(of: &BTreeMap<u64, f64>, than: &BTreeMap<u64, f64>) -> Option<Estimate> {
    Estimate::mean(of.iter().filter_map(|(log, value)| Some(value / than.get(log)?)))
}

/// A line for each cell, and all logs of a queue together.
fn verdicts(cells: &[Compared]) -> String {
    let figures: Vec<Verdict> = cells.iter().flat_map(|it| it.judged.verdicts()).collect();
    let count = |verdict| figures.iter().filter(|each| **each == verdict).count();
    let mut page = format!(
        "\n## The simulator beside the live link\n\n\
         Of {} figures {} hold, {} are undecided and {} are out ([all of them](cells.md)).\n\n\
         | cell | logs | figures that hold | undecided | out | verdict | farthest | cause |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        figures.len(),
        count(Verdict::Holds),
        count(Verdict::Undecided),
        count(Verdict::Out),
    );
    for compared in cells {
        page += &line(&compared.cell, &Ok(compared.judged.clone()));
    }
    let ratios: Vec<_> = cells.iter().map(|it| (it.cell, it.judged.ratios.clone())).collect();
    page + &pooled::table(Question::Papers, &ratios)
}

/// The live link's FIFO beside Linux's: what the link itself adds.
fn peer(kept: &Kept, cells: &[Compared]) -> String {
    let mut page = String::from(
        "\n## The live link beside `tbf`\n\n\
         Both with a FIFO of the same size, both live: the ratio of the link's to `tbf`'s, with the same tolerances. \
         What is lost in a full FIFO depends on the least difference in time, so the intervals are as wide as \
         between two runs of the same kernel; and `tbf` lets a second packet go 1.2 ms earlier after a pause.\n\n\
         | | logs | hold, undecided, out | mean of ≤ 3 kB | 3-10 kB | 10-30 kB | 30-100 kB | > 100 kB |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- |\n",
    );
    for linux in cells.iter().filter(|it| it.cell.queue.shaper == Shaper::Bucket) {
        let (name, controller) = (linux.cell.to_string(), linux.cell.controller);
        let is_ours = |it: &&Compared| {
            let cell = &it.cell;
            cell.queue.shaper == Shaper::Link
                && (cell.queue.name, cell.controller) == (linux.cell.queue.name, controller)
        };
        let Some(link) = cells.iter().find(is_ours) else { continue };
        let of_link = link.cell.to_string();
        // The judge compares rows of one name.
        let renamed = |row: &Row| Row { cell: name.clone(), ..row.clone() };
        let rows: Vec<Row> =
            kept.rows.iter().filter(|row| row.cell == of_link).map(renamed).collect();
        let judged = verdict::judge(&linux.cell, &kept.rows, &rows);
        let count = |verdict| judged.verdicts().filter(|each| *each == verdict).count();
        let _ = write!(
            page,
            "| {controller} | {} | {}, {}, {} |",
            judged.logs,
            count(Verdict::Holds),
            count(Verdict::Undecided),
            count(Verdict::Out),
        );
        for class in &judged.classes {
            let ratio = class.figures[0].ratio.as_ref();
            let _ = write!(page, " {} |", ratio.map_or(String::new(), |ratio| ratio.text(1.0, 2)));
        }
        page.push('\n');
    }
    page
}

/// What came of calls and videos with promises.
fn promised(kept: &Kept) -> String {
    if kept.promises.is_empty() {
        return String::new();
    }
    let residual = promises::residual();
    let mut page = String::from(
        "\n## Promises kept\n\n\
         A call and a video stand beside four downloads without end (CUBIC), for 30 s after a warm-up of 5. They declare what \
         they send, and `tidegate curves` says that the link can keep these promises:\n\n\
         | stream | sends | declares | promised | could be promised |\n| --- | --- | --- | --- | --- |\n",
    );
    for stream in &STREAMS {
        let shortest = residual.shortest_deadline(stream.name).expect("it is promised");
        let _ = writeln!(
            page,
            "| {} | {} x {} every {:.1} ms | {} | {} | {:.2} ms |",
            stream.name,
            stream.at_once,
            stream.packet,
            stream.every.as_seconds() * 1e3,
            stream.envelope,
            stream.deadline,
            shortest.as_seconds() * 1e3,
        );
    }
    let _ = write!(
        page,
        "\nA packet is late if it is not on the wire within what was promised, or lost. A delay is from the sender \
         to the receiver, less the path's 20 ms, and with the time that the packet takes at 10 Mbit/s. It includes \
         how late the bed was; 'longest in the queue' is what the link itself says of packets with a promise, from the arrival of one \
         until it was handed over, and 'the bed was late' what the path says of its latest packet. Under `deadlines`, at most {}% of a stream may be late: that was stated before the first \
         measurement, for what the bed is late.\n\n\
         | discipline | stream | late, each run | simulated | median | p99 | longest | simulated | longest in the queue | \
         the bed was late | downloads | verdict |\n\
         | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n",
        MOST_LATE * 100.0,
    );
    for discipline in DISCIPLINES {
        for (stream, predicted) in STREAMS.iter().zip(promises::predicted(discipline)) {
            let of_it = |outcome: &&Outcome| {
                outcome.discipline == discipline && outcome.stream == stream.name
            };
            let runs: Vec<&Outcome> = kept.promises.iter().filter(of_it).collect();
            if runs.is_empty() {
                continue;
            }
            let percent = |share: f64| format!("{:.2}%", share * 100.0);
            let late: Vec<String> = runs.iter().map(|run| percent(run.late_share())).collect();
            let worst =
                |of: fn(&Outcome) -> f64| runs.iter().map(|run| of(run)).fold(0.0, f64::max);
            let queued = runs.iter().filter_map(|run| run.queued_max_ms).reduce(f64::max);
            let rest = runs.iter().map(|run| run.rest_mbps).sum::<f64>() / runs.len() as f64;
            let verdict = match discipline {
                "deadlines" if runs.iter().all(|run| run.late_share() <= MOST_LATE) => "holds",
                "deadlines" => "**out**",
                _ => "no promise",
            };
            let _ = writeln!(
                page,
                "| `{discipline}` | {} | {} | {} | {:.1} ms | {:.1} ms | {:.1} ms | {:.1} ms | {} | {:.1} ms | {rest:.2} Mbit/s | {verdict} |",
                stream.name,
                late.join(", "),
                percent(predicted.late_share),
                worst(|run| run.median_ms),
                worst(|run| run.p99_ms),
                worst(|run| run.max_ms),
                predicted.max_ms,
                queued.map_or(String::new(), |ms| format!("{ms:.1} ms")),
                worst(|run| run.bed_late_ms),
            );
        }
    }
    page + "\nMedians, percentiles and longest delays are those of the worst run.\n"
}

/// Every figure of every cell.
fn tables(cells: &[Compared]) -> String {
    let mut page = format!(
        "# The live link and the simulator, cell by cell\n\n\
         Tolerances: {}. [How this came about](README.md).\n\n\
         Times are in ms, means over logs with their 95% intervals; the ratio is that of the simulator's to the live \
         one, paired log by log.\n",
        tolerances(Question::Papers)
    );
    for Compared { cell, judged, .. } in cells {
        let _ = write!(page, "\n## {cell}\n\n");
        if let Some(cause) = cause(&cell.to_string()).filter(|_| judged.verdict() == Verdict::Out) {
            let _ = write!(page, "Out: {cause}\n\n");
        }
        page += "| size | done, live | simulated | measure | live | simulated | ratio | verdict |\n\
                 | --- | --- | --- | --- | --- | --- | --- | --- |\n";
        for class in &judged.classes {
            let names = Measure::ALL.iter().zip(["mean", "median", "p95"]);
            for ((_, name), figure) in names.zip(&class.figures) {
                let done = |(begun, done): (usize, usize)| format!("{done} of {begun}");
                let ratio = figure.ratio.as_ref().map_or(String::new(), |ratio| ratio.text(1.0, 2));
                let _ = writeln!(
                    page,
                    "| {} | {} | {} | {name} | {} | {} | {ratio} | {} |",
                    class.name,
                    done(class.kernel_count),
                    done(class.ours_count),
                    figure.kernel.text(1.0, 1),
                    figure.ours.text(1.0, 1),
                    figure.verdict.map_or("not judged", Verdict::name),
                );
            }
        }
    }
    page
}
