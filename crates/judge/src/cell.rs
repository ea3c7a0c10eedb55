//! What is compared: each cell is a link, a queue, a load and a controller.
//!
//! The tolerances stand here, and stood here before anything was measured.

use std::fmt;

use tidegate_core::{Rate, Span};
use tidegate_qdisc::programs::PROGRAMS;
use tidegate_sim::tcp::congestion;

/// What a cell asks about, and how closely the simulator has to agree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// Do senders behave as Linux's do? The queue is a FIFO.
    Senders,
    /// Do queues behave as Linux's do? The senders use CUBIC.
    Queues,
    /// Do our disciplines as queues of the kernel do for Linux's senders what the simulator
    /// predicts? The senders use CUBIC.
    Programs,
    /// Do the disciplines of EFD and LAS, and their rivals, do for Linux's senders on a
    /// live link what the simulator predicts?
    Papers,
}

/// How far a figure of the simulator may be from the kernel's, as a part of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tolerance {
    /// For the mean of a size class.
    pub mean: f64,
    /// For its median; `None` if it is not judged.
    pub median: Option<f64>,
    /// For its 95th percentile.
    pub p95: f64,
}

impl Question {
    /// What is asked of Linux alone, in the order of the page.
    pub const OF_LINUX: [Question; 3] = [Question::Senders, Question::Queues, Question::Programs];

    /// How closely the simulator has to agree.
    #[must_use]
    pub fn tolerance(self) -> Tolerance {
        match self {
            Question::Senders => Tolerance { mean: 0.1, median: Some(0.1), p95: 0.1 },
            Question::Queues | Question::Programs | Question::Papers => {
                Tolerance { mean: 0.1, median: None, p95: 0.25 }
            }
        }
    }

    /// How long transfers have to end after the last start. The live link takes as long as
    /// the clock on the wall, so they get less time there.
    #[must_use]
    pub fn patience_s(self) -> f64 {
        match self {
            Question::Senders | Question::Queues | Question::Programs => 30.0,
            Question::Papers => 10.0,
        }
    }
}

/// For one long flow: of goodput, and of the queueing delay's mean and quantiles.
pub const GOODPUT_TOLERANCE: f64 = 0.03;
/// The same for the delay in the queue.
pub const DELAY_TOLERANCE: f64 = 0.1;

/// How far a figure of a loaded queue may be from the kernel's: a part of it, or this much
/// where that is more.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Allowance {
    /// Of the kernel's figure.
    pub part: f64,
    /// In the figure's own unit.
    pub least: f64,
}

impl Allowance {
    /// The allowance beside this figure of the kernel.
    #[must_use]
    pub fn of(self, kernel: f64) -> f64 {
        (self.part * kernel).max(self.least)
    }
}

/// What all long flows of a loaded queue carry together, in Mbit/s.
pub const LOADED_GOODPUT: Allowance = Allowance { part: GOODPUT_TOLERANCE, least: 0.0 };
/// Jain's index of what each of them carries. Nobody notices which of two downloads is 1/20
/// further from equal, and flows that a FIFO desynchronises differ by more from log to log.
pub const LOADED_FAIRNESS: Allowance = Allowance { part: 0.0, least: 0.05 };
/// The mean and the median of how long probes wait, in ms. No queue takes back a packet that
/// the link has begun: at 10 Mbit/s that is 1.2 ms, and whether a probe comes in front of it
/// or behind it is a matter of microseconds, of which the kernel spends some tens on the way.
/// So a part of a wait of that length says nothing, and half a packet's time is allowed: a
/// queue that makes the average probe wait for one more packet than Linux's is found out.
pub const LOADED_WAIT: Allowance = Allowance { part: DELAY_TOLERANCE, least: 0.6 };
/// Their 95th percentile: as of transfers, but for the reason above at least one packet's
/// time, since order statistics move by whole packets.
pub const LOADED_WAIT_P95: Allowance = Allowance { part: 0.25, least: 1.2 };
/// Probes that were lost, in percent of those sent. A log has 300 of them, so 1% is three.
pub const LOADED_LOST: Allowance = Allowance { part: 0.0, least: 1.0 };

/// An access link and the path behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link {
    /// Of IP packets.
    pub rate: Rate,
    /// One way, without the queue.
    pub delay: Span,
    /// What a FIFO in front of it holds.
    pub buffer_bytes: u64,
}

impl Link {
    const fn new(megabits: u64, round_trip_ms: u64, buffer_kb: u64) -> Link {
        Link {
            rate: Rate(megabits * 1_000_000),
            delay: Span::micros(round_trip_ms * 500),
            buffer_bytes: buffer_kb * 1000,
        }
    }
}

impl fmt::Display for Link {
    /// `10M40`: megabits a second, and milliseconds there and back.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}M{}", self.rate.0 / 1_000_000, self.delay.0 * 2 / 1_000_000)
    }
}

/// What holds packets back to the link's rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shaper {
    /// Linux's `tbf`, with room for two packets at once.
    Bucket,
    /// The queue itself, as CAKE does, which takes its quantum from the rate: in the
    /// simulator, too, it has to be told.
    Itself,
    /// The same, where the queue is a program of ours.
    Program,
    /// Our link in user space.
    Link,
}

/// The link of the queues, of the papers, and of long flows.
pub const USUAL_LINK: Link = Link::new(10, 40, 150);

/// A queue by both its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Queue {
    /// As cells are called.
    pub name: &'static str,
    /// As `tc` says it, if it is Linux's; `RATE` and `LIMIT` stand for the link's.
    pub kernel: &'static str,
    /// As `--disciplines` says it; `RATE` stands for the link's.
    pub ours: &'static str,
    /// The room that the kernel's has by default, as scenarios say it; `None` is the
    /// link's buffer.
    pub buffer: Option<&'static str>,
    /// The kernel's module, if it has one.
    pub module: Option<&'static str>,
    /// What it stands under.
    pub shaper: Shaper,
}

/// First in, first out, and the end is cut off.
const FIFO: Queue = Queue {
    name: "fifo",
    kernel: "bfifo limit LIMIT",
    ours: "fifo",
    buffer: None,
    module: None,
    shaper: Shaper::Bucket,
};

/// Every other queue with the defaults of the kernel, and of `tc`.
const QUEUES: [Queue; 9] = [
    Queue {
        name: "pie",
        kernel: "pie",
        ours: "pie",
        buffer: Some("1000 packets"),
        module: Some("sch_pie"),
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "codel",
        kernel: "codel",
        ours: "codel",
        buffer: Some("1000 packets"),
        module: Some("sch_codel"),
        shaper: Shaper::Bucket,
    },
    // By default `tc` takes thresholds of a quarter of the limit and a third of that,
    // a greatest probability of 2%, and from these a weight of 1/32.
    Queue {
        name: "red",
        kernel: "red limit 400000 avpkt 1000 bandwidth RATE",
        ours: "red:probability=0.02:max=100 kB:min=33333 B:gentle=off:weight=0.03125:packet_time=0.8 ms",
        buffer: Some("400 kB"),
        module: Some("sch_red"),
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "fq_codel",
        kernel: "fq_codel",
        ours: "fq-codel",
        buffer: Some("10240 packets"),
        module: None,
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "fq_pie",
        kernel: "fq_pie",
        ours: "fq-pie",
        buffer: Some("10240 packets"),
        module: Some("sch_fq_pie"),
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "sfq",
        kernel: "sfq",
        ours: "sfq",
        buffer: Some("127 packets"),
        module: Some("sch_sfq"),
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "fq",
        kernel: "fq",
        ours: "fq",
        buffer: Some("10000 packets"),
        module: Some("sch_fq"),
        shaper: Shaper::Bucket,
    },
    Queue {
        name: "cake",
        kernel: "cake bandwidth RATE raw",
        ours: "cake:bandwidth=RATE",
        buffer: Some("4 MB"),
        module: Some("sch_cake"),
        shaper: Shaper::Itself,
    },
    Queue {
        name: "cake-flows",
        kernel: "cake bandwidth RATE raw besteffort flows",
        ours: "cake:bandwidth=RATE:tins=besteffort:isolation=flows",
        buffer: Some("4 MB"),
        module: Some("sch_cake"),
        shaper: Shaper::Itself,
    },
];

/// A queue that marks what waits for longer than a threshold, and does little else: what a
/// scalable sender wants. Its name has the controller that it is for.
const STEP: Queue = Queue {
    name: "codel-step-dctcp",
    kernel: "codel target 50ms ce_threshold 5ms",
    ours: "codel:target=50 ms:ce_threshold=5 ms",
    buffer: Some("1000 packets"),
    module: Some("sch_codel"),
    shaper: Shaper::Bucket,
};

/// What the papers' queues hold: `EFD section 4.1`.
pub(crate) const PAPERS_BUFFER: &str = "300 packets";

/// A FIFO of Linux that holds as much: what the live link is to be compared with.
const PEER: Queue = Queue {
    name: "fifo",
    kernel: "pfifo limit 300",
    ours: "fifo",
    buffer: Some(PAPERS_BUFFER),
    module: None,
    shaper: Shaper::Bucket,
};

/// The disciplines of the papers and their rivals, as the registry calls them.
const PAPERS: [&str; 7] = ["fifo", "efd", "las", "lars", "run2c", "scfq", "fq-codel"];

/// Our disciplines that the kernel has as programs, as the registry calls them.
fn programs() -> impl Iterator<Item = Queue> {
    PROGRAMS.iter().map(|program| Queue {
        name: program.discipline,
        kernel: "",
        ours: program.discipline,
        buffer: Some(PAPERS_BUFFER),
        module: None,
        shaper: Shaper::Program,
    })
}

/// The controllers of the kernel, each with the names under which the simulator may
/// have it, the best match first.
const CONTROLLERS: [(&str, &[&str]); 3] =
    [("reno", &["reno", "newreno"]), ("cubic", &["cubic"]), ("bbr", &["bbr"])];

/// The same for one that only answers marks, and so has a queue of its own.
const SCALABLE: (&str, &[&str]) = ("dctcp", &["dctcp"]);

/// A link, a queue, a load and a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// What it asks.
    pub question: Question,
    /// Where.
    pub link: Link,
    /// The queue in front of the link.
    pub queue: Queue,
    /// Offered bits, in percent of the link's.
    pub load_percent: u32,
    /// The kernel's name of the senders' controller.
    pub controller: &'static str,
}

impl fmt::Display for Cell {
    /// `fifo-10M40-90-cubic`; where a live form has its part, what shapes comes first:
    /// `link-efd-10M40-80-reno`, `bpf-efd-10M40-90-cubic`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Cell { question, queue, link, load_percent, controller } = self;
        if *question == Question::Papers {
            f.write_str(if queue.shaper == Shaper::Link { "link-" } else { "tbf-" })?;
        }
        if *question == Question::Programs {
            f.write_str("bpf-")?;
        }
        write!(f, "{}-{link}-{load_percent}-{controller}", queue.name)
    }
}

impl Cell {
    /// The load as a part of the rate.
    #[must_use]
    pub fn load(&self) -> f64 {
        f64::from(self.load_percent) / 100.0
    }

    /// The simulator's name of the controller; `None` if it has none.
    #[must_use]
    pub fn ours(&self) -> Option<&'static str> {
        ours(self.controller)
    }
}

/// The simulator's name of a controller of the kernel; `None` if it has none.
#[must_use]
pub fn ours(controller: &str) -> Option<&'static str> {
    let mut known = CONTROLLERS.iter().chain([&SCALABLE]);
    let (_, names) = known.find(|(kernel, _)| *kernel == controller)?;
    names.iter().copied().find(|name| congestion::Entry::named(name).is_some())
}

/// The kernel's controllers.
pub fn controllers() -> impl Iterator<Item = &'static str> {
    CONTROLLERS.iter().map(|(kernel, _)| *kernel)
}

/// Every cell, in the order of the page.
#[must_use]
pub fn cells() -> Vec<Cell> {
    // Buffers of 3, 4, 1.2, 0.2 and 4.9 bandwidth-delay products.
    let senders = [
        (USUAL_LINK, 60),
        (USUAL_LINK, 90),
        (Link::new(5, 100, 250), 70),
        (Link::new(20, 20, 60), 80),
        (Link::new(50, 150, 190), 80),
        (Link::new(2, 30, 37), 110),
    ];
    let mut cells = Vec::new();
    for (link, load_percent) in senders {
        cells.extend(controllers().map(|controller| Cell {
            question: Question::Senders,
            link,
            queue: FIFO,
            load_percent,
            controller,
        }));
    }
    let of_linux = QUEUES.into_iter().map(|queue| (Question::Queues, queue));
    let ours = programs().map(|queue| (Question::Programs, queue));
    for (question, queue) in of_linux.chain(ours) {
        cells.extend([60, 90, 110].map(|load_percent| Cell {
            question,
            link: USUAL_LINK,
            queue,
            load_percent,
            controller: "cubic",
        }));
    }
    cells
}

/// The cells of the papers on the live link, in the order of the page. The load is that of
/// the dumbbell in underload of `EFD section 4`.
#[must_use]
pub fn papers_cells() -> Vec<Cell> {
    let live = PAPERS.map(|name| Queue {
        name,
        kernel: "",
        ours: name,
        buffer: Some(PAPERS_BUFFER),
        module: None,
        shaper: Shaper::Link,
    });
    let queues: Vec<Queue> = [PEER].into_iter().chain(live).collect();
    let cell = |controller, queue| Cell {
        question: Question::Papers,
        link: USUAL_LINK,
        queue,
        load_percent: 80,
        controller,
    };
    let with = |controller| queues.iter().map(move |queue| cell(controller, *queue));
    ["reno", "cubic"].into_iter().flat_map(with).collect()
}

/// The cell of one long flow on a FIFO, with `controller`.
#[must_use]
pub fn long_flow(controller: &'static str) -> Cell {
    Cell {
        question: Question::Senders,
        link: USUAL_LINK,
        queue: FIFO,
        load_percent: 100,
        controller,
    }
}

/// The cells of queues under long flows, in the order of the page: each queue of Linux, one
/// that marks with senders that heed it, and each of ours that the kernel has as a program.
#[must_use]
pub fn loaded_cells() -> Vec<Cell> {
    let of_linux = [FIFO].into_iter().chain(QUEUES).map(|queue| (Question::Queues, queue));
    let ours = programs().map(|queue| (Question::Programs, queue));
    let cell = |controller| {
        move |(question, queue)| Cell {
            question,
            link: USUAL_LINK,
            queue,
            load_percent: 100,
            controller,
        }
    };
    let marking = cell(SCALABLE.0)((Question::Queues, STEP));
    of_linux.map(cell("cubic")).chain([marking]).chain(ours.map(cell("cubic"))).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tidegate_core::registry;

    use super::*;

    #[test]
    fn every_cell_has_a_name_of_its_own() {
        let cells: Vec<Cell> = cells().into_iter().chain(papers_cells()).collect();
        let names: BTreeSet<String> = cells.iter().map(ToString::to_string).collect();
        assert_eq!(names.len(), cells.len());
        assert!(names.contains("fifo-10M40-90-cubic"));
        assert!(names.contains("bpf-efd-10M40-110-cubic"));
        assert!(names.contains("link-fifo-10M40-80-reno"));
        assert!(names.contains("tbf-fifo-10M40-80-reno"));
    }

    #[test]
    fn a_queue_that_shapes_is_told_the_rate_in_both_worlds() {
        for Queue { name, kernel, ours, shaper, .. } in QUEUES {
            let is_told = [kernel, ours].map(|words| words.contains("RATE"));
            assert!(shaper != Shaper::Itself || is_told == [true; 2], "{name}");
        }
    }

    #[test]
    fn the_papers_disciplines_are_in_the_registry() {
        assert!(PAPERS.iter().all(|name| registry::find(name).is_some()));
    }

    #[test]
    fn the_links_cover_what_was_asked_for() {
        let links: Vec<Link> = cells().iter().map(|cell| cell.link).collect();
        let products: Vec<f64> = links
            .iter()
            .map(|link| {
                let product = link.rate.0 as f64 / 8.0 * 2.0 * link.delay.as_seconds();
                link.buffer_bytes as f64 / product
            })
            .collect();
        assert!(products.iter().any(|product| *product < 0.3));
        assert!(products.iter().any(|product| *product > 4.0));
        assert!(links.iter().any(|link| link.rate == Rate(2_000_000)));
        assert!(links.iter().any(|link| link.rate == Rate(50_000_000)));
    }
}
