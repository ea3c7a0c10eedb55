//! What the command line asks for.

mod carry;
mod gateway;
mod link;
mod pages;
mod results;
mod speed;

use std::collections::BTreeSet;
use std::io;
use std::net::{Ipv4Addr, SocketAddrV4};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::Instant;

use clap::{Args, Parser, Subcommand};
use tidegate_core::framing::Framing;
use tidegate_core::{Buffer, Rate, registry};
use tidegate_judge::agent;
use tidegate_judge::cell::{self, Cell, Question};
use tidegate_judge::figures::{self, Row};
use tidegate_judge::flow::{self, Flow};
use tidegate_judge::guest::{Guest, GuestError, Job};
use tidegate_judge::host::BedError;
use tidegate_judge::kept::{self, Kept, Manifest};
use tidegate_judge::loaded;
use tidegate_judge::native;
use tidegate_judge::page;
use tidegate_judge::workload::{self, Transfer};
use tidegate_link::Queue;
use tidegate_qdisc::{Qdisc, programs};

/// The folder of what the guest measured, and of what the machine's own kernel did.
const GUEST: &str = "guest";
const NATIVE: &str = "native";

const EXAMPLES: &str = "\
Examples:
  tidegate-judge guest                        measures every cell in a guest with Debian's kernel
  tidegate-judge guest --cells fq_codel       only the cells whose names begin so
  tidegate-judge page                         writes docs/kernel from the kept figures
  tidegate-judge link                         the papers' disciplines on the live link
  tidegate-judge link-page                    writes docs/link from the kept figures
  tidegate-judge gateway saturated-2          a gateway and its rivals, live and simulated
  tidegate-judge pages                        pages in a browser beside a user of everything
  tidegate-judge speed                        what a gateway and its rivals cost
  tidegate-judge carry                        what a link carries, beside the kernel's bridge and tbf
  tidegate-judge log 10 90 1 > log.csv        the first log of a link of 10 Mbit/s at 90% load";

/// The same transfers through Linux and through the simulator.
#[derive(Parser)]
#[command(name = "tidegate-judge", after_help = EXAMPLES)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measures Debian's kernel in a guest and rewrites the kept figures.
    Guest {
        #[command(flatten)]
        which: Which,
        /// Where the guest's kernel is kept once it is fetched.
        #[arg(long, value_name = "FOLDER", default_value = "target/kernel-guest")]
        cache: PathBuf,
    },
    /// Measures this machine's own kernel, in real time, and rewrites its kept figures.
    ///
    /// It has reno, cubic and often bbr, but few queues: only cells with a FIFO are
    /// measured.
    Native {
        #[command(flatten)]
        which: Which,
    },
    /// Measures the papers' disciplines on the live link of this machine, in real time,
    /// and rewrites the kept figures.
    Link(link::Arguments),
    /// Simulates what was measured on the live link and writes the pages that compare both.
    LinkPage {
        /// The folder above that of the kept figures.
        #[arg(long, value_name = "FOLDER", default_value = link::FOLDER)]
        kept: PathBuf,
        /// The folder of the pages.
        #[arg(long, value_name = "FOLDER", default_value = "docs/link")]
        out: PathBuf,
    },
    /// Simulates what was measured of Linux and writes the pages that compare both.
    Page {
        /// The folder of the kept figures.
        #[arg(long, value_name = "FOLDER", default_value = kept::FOLDER)]
        kept: PathBuf,
        /// The folder of the pages.
        #[arg(long, value_name = "FOLDER", default_value = "docs/kernel")]
        out: PathBuf,
    },
    /// Runs a case of the live gateway and its rivals on networks of this machine, and prints
    /// what came out beside what the simulator predicts.
    Gateway(gateway::Arguments),
    /// Loads pages in Chromium while another user wants all of the link, with and without a
    /// gateway.
    Pages(pages::Arguments),
    /// Measures what Squid, HAProxy and Tidegate cost on a loopback interface.
    ///
    /// It takes root's rights, for a network of its own.
    Speed(speed::Arguments),
    /// Measures what a link in user space carries, beside the kernel's bridge and `tbf`.
    Carry(carry::Arguments),
    /// Prints a log of transfers: start_s,size_bytes.
    Log {
        /// The link's rate in Mbit/s.
        megabits: u64,
        /// The load in percent.
        load: u32,
        /// The log's number.
        number: u64,
    },
    /// The receiving agent: reads all that comes, until the sender's last probe.
    #[command(hide = true)]
    Sink {
        /// Where it listens.
        address: SocketAddrV4,
    },
    /// Gives the kernel one of our disciplines as a queue, and prints its name.
    #[command(hide = true)]
    Program {
        /// The discipline, with its defaults.
        discipline: String,
        /// The rate of IP packets, in bits a second.
        rate: u64,
        /// The buffer, in packets.
        packets: u32,
    },
    /// The sending agent.
    #[command(hide = true)]
    Send {
        /// The transfers.
        log: PathBuf,
        /// The sink's address.
        to: SocketAddrV4,
        /// The sender's own address.
        from: Ipv4Addr,
        /// The congestion controller.
        controller: String,
        /// How long it stays.
        seconds: f64,
        /// `yes`: look at the state of connections.
        watches: String,
    },
}

/// What is measured, and where the figures go.
#[derive(Args)]
struct Which {
    /// Only cells whose names begin with one of these, or the one cell of this name; long
    /// flows are called `long-<controller>`, queues under several of them `loaded-<queue>`.
    #[arg(long, value_name = "TEXT", value_delimiter = ',')]
    cells: Vec<String>,
    /// The number of logs for each cell.
    #[arg(long, value_name = "NUMBER", default_value_t = 4)]
    logs: u64,
    /// The folder of the kept figures.
    #[arg(long, value_name = "FOLDER", default_value = kept::FOLDER)]
    out: PathBuf,
    /// Also writes every transfer here: id,size_bytes,start_s,response_s for each log.
    #[arg(long, value_name = "FOLDER")]
    transfers: Option<PathBuf>,
    /// Prints the figures of each cell as a line of JSON.
    #[arg(long)]
    json: bool,
}

/// What is measured in one go.
enum Part {
    /// The transfers of a cell.
    Transfers(Cell),
    /// One long flow.
    Flow(Cell),
    /// Several, and probes.
    Loaded(Cell),
}

impl Part {
    /// Everything whose name is one of these or, where none is, begins with it; without any,
    /// everything.
    fn all(wanted: &[String]) -> Vec<Part> {
        let flows = cell::controllers().map(|name| Part::Flow(cell::long_flow(name)));
        let transfers = cell::cells().into_iter().map(Part::Transfers);
        let loaded = cell::loaded_cells().into_iter().map(Part::Loaded);
        let all: Vec<Part> = flows.chain(transfers).chain(loaded).collect();
        let names: BTreeSet<String> = all.iter().map(Part::name).collect();
        let fits = |name: &str| {
            let is_it = |text: &String| {
                name == text || !names.contains(text) && name.starts_with(text.as_str())
            };
            wanted.is_empty() || wanted.iter().any(is_it)
        };
        all.into_iter().filter(|part| fits(&part.name())).collect()
    }

    fn cell(&self) -> &Cell {
        let (Part::Transfers(cell) | Part::Flow(cell) | Part::Loaded(cell)) = self;
        cell
    }

    fn name(&self) -> String {
        match self {
            Part::Transfers(cell) => cell.to_string(),
            Part::Flow(cell) => format!("long-{}", cell.controller),
            Part::Loaded(cell) => loaded::name(cell),
        }
    }
}

pub(crate) fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("tidegate-judge: {error}");
            if error.is::<gateway::BadInput>() { ExitCode::from(2) } else { ExitCode::FAILURE }
        }
    }
}

fn run(task: Task) -> Result<(), Box<dyn std::error::Error>> {
    match task {
        Task::Guest { which, cache } => guest(&which, &cache)?,
        Task::Native { which } => native(&which)?,
        Task::Link(arguments) => link::link(&arguments)?,
        Task::LinkPage { kept, out } => link::page(&kept, &out)?,
        Task::Page { kept, out } => {
            let folder = kept.join(GUEST);
            let missing = format!("{}: nothing is kept; run 'make kernel-guest'", folder.display());
            let second = Kept::open(&kept, NATIVE)?;
            let kept = Kept::open(&kept, GUEST)?.ok_or(missing)?;
            page::write(&kept, second.as_ref(), &out, |name| eprintln!("{name}"))?;
        }
        Task::Gateway(arguments) => gateway::gateway(&arguments)?,
        Task::Pages(arguments) => pages::pages(&arguments)?,
        Task::Speed(arguments) => speed::speed(&arguments)?,
        Task::Carry(arguments) => carry::carry(&arguments)?,
        Task::Log { megabits, load, number } => {
            let rate = Rate(megabits * 1_000_000);
            let transfers = workload::transfers(rate, f64::from(load) / 100.0, number);
            workload::write(&transfers, io::stdout())?;
        }
        Task::Sink { address } => agent::sink(address, io::stdout())?,
        Task::Program { discipline, rate, packets } => {
            println!("{}", program(&discipline, rate, packets)?);
        }
        Task::Send { log, to, from, controller, seconds, watches } => {
            let watches = watches == "yes";
            let order =
                agent::Order { log: &log, to, from, controller: &controller, seconds, watches };
            agent::send(&order, io::stdout())?;
        }
    }
    Ok(())
}

/// Gives the kernel a discipline as a queue; returns what `tc` calls it.
fn program(
    discipline: &str,
    rate: u64,
    packets: u32,
) -> Result<String, Box<dyn std::error::Error>> {
    let entry = registry::find(discipline).ok_or("the registry does not have it")?;
    let program = programs::find(discipline).ok_or("the kernel does not have it")?;
    let queue = Queue {
        entry,
        settings: entry.settings(&[])?,
        limit: Buffer::packets(packets).into(),
        rate: Rate(rate),
        framing: Framing::RAW,
    };
    let qdisc = Qdisc::load(program, &queue, true, "")?;
    Ok(qdisc.name().into())
}

/// Measures in the guest, and keeps what was measured after each part.
fn guest(which: &Which, cache: &Path) -> Result<(), GuestError> {
    let guest = match Guest::prepare(cache) {
        Err(GuestError::Skipped(reason)) => {
            println!("SKIP the kernel in a guest: {reason}");
            return Ok(());
        }
        guest => guest?,
    };
    let command = "make kernel-guest";
    let mut kept = Kept::renew(&which.out, GUEST, manifest(&guest.release, command)?)?;
    let parts = Part::all(&which.cells);
    for (number, part) in parts.iter().enumerate() {
        let begun = Instant::now();
        match part {
            Part::Transfers(cell) => {
                let logs = logs(cell, which.logs);
                let job =
                    Job { cell, logs: &logs, seconds: None, sender_queue: None, watches: false };
                let events = guest.measure(&job)?;
                let responses: Vec<_> = events
                    .iter()
                    .zip(&logs)
                    .map(|(events, log)| flow::responses(events, log.len()))
                    .collect();
                keep(which, &mut kept, cell, &logs, &responses)?;
            }
            Part::Flow(cell) => {
                let logs = [vec![flow::ENDLESS]];
                let seconds = Some(flow::SECONDS);
                let job = Job { cell, logs: &logs, seconds, sender_queue: None, watches: true };
                let events = guest.measure(&job)?;
                kept.put_flow(cell.controller, Flow::of_events(&events[0], cell.link));
            }
            Part::Loaded(cell) => {
                let logs: Vec<_> = (1..=which.logs).map(loaded::log).collect();
                let seconds = Some(loaded::SECONDS);
                let job = Job { cell, logs: &logs, seconds, sender_queue: None, watches: false };
                let events = guest.measure(&job)?;
                let row = |(number, events): (u64, &Vec<_>)| {
                    loaded::Seen::of_events(events, cell).row(cell, number)
                };
                let rows: Vec<loaded::Row> = (1..).zip(&events).map(row).collect();
                if which.json {
                    let json = serde_json::to_string(&rows).map_err(io::Error::from)?;
                    println!("{json}");
                }
                kept.put_loaded(&part.name(), rows);
            }
        }
        kept.save()?;
        report(number, parts.len(), part, begun);
    }
    Ok(())
}

/// Measures on this machine, and keeps what was measured after each part.
fn native(which: &Which) -> Result<(), BedError> {
    let manifest = manifest(&native::release()?, "make kernel-native")?;
    let mut kept = Kept::renew(&which.out, NATIVE, manifest)?;
    let mut parts = Part::all(&which.cells);
    parts.retain(|part| part.cell().question == Question::Senders);
    for (number, part) in parts.iter().enumerate() {
        let begun = Instant::now();
        if let Err(error) = native_part(which, &mut kept, part) {
            let BedError::Missing(reason) = error else { return Err(error) };
            println!("SKIP {} on this machine's kernel: {reason}", part.name());
            continue;
        }
        kept.save()?;
        report(number, parts.len(), part, begun);
    }
    Ok(())
}

/// Measures a part on this machine.
fn native_part(which: &Which, kept: &mut Kept, part: &Part) -> Result<(), BedError> {
    match part {
        Part::Transfers(cell) => {
            let logs = logs(cell, which.logs);
            let mut responses = Vec::new();
            for log in &logs {
                let measured = native::measure(cell, log, None, false)?;
                responses.push(flow::responses(&measured.events, log.len()));
            }
            keep(which, kept, cell, &logs, &responses)?;
        }
        Part::Flow(cell) => {
            let measured = native::measure(cell, &[flow::ENDLESS], Some(flow::SECONDS), true)?;
            kept.put_flow(cell.controller, Flow::of_events(&measured.events, cell.link));
        }
        // They ask about queues, which this machine does not have.
        Part::Loaded(_) => {}
    }
    Ok(())
}

/// Says how far a measurement has come.
fn report(number: usize, all: usize, part: &Part, begun: Instant) {
    eprintln!("{}/{all} {} {} s", number + 1, part.name(), begun.elapsed().as_secs());
}

/// The logs of a cell, from the first.
fn logs(cell: &Cell, count: u64) -> Vec<Vec<Transfer>> {
    (1..=count).map(|log| workload::transfers(cell.link.rate, cell.load(), log)).collect()
}

/// Keeps the figures of a cell, and shows what is asked for.
fn keep(
    which: &Which,
    kept: &mut Kept,
    cell: &Cell,
    logs: &[Vec<Transfer>],
    responses: &[Vec<Option<f64>>],
) -> io::Result<()> {
    let name = cell.to_string();
    let mut rows: Vec<Row> = Vec::new();
    for (number, (log, responses)) in (1..).zip(logs.iter().zip(responses)) {
        rows.extend(figures::condense(&name, number, log, responses));
        if let Some(folder) = &which.transfers {
            write_transfers(&folder.join(&name), number, log, responses)?;
        }
    }
    if which.json {
        println!("{}", serde_json::to_string(&rows)?);
    }
    kept.put_rows(&name, rows);
    Ok(())
}

/// Writes each transfer of a log.
fn write_transfers(
    folder: &Path,
    log: u64,
    transfers: &[Transfer],
    responses: &[Option<f64>],
) -> io::Result<()> {
    std::fs::create_dir_all(folder)?;
    let mut text = String::from("id,size_bytes,start_s,response_s\n");
    for (id, (transfer, response)) in transfers.iter().zip(responses).enumerate() {
        let response = response.map_or(String::new(), |seconds| format!("{seconds:.6}"));
        let Transfer { size_bytes, start_s } = transfer;
        text += &format!("{id},{size_bytes},{start_s},{response}\n");
    }
    std::fs::write(folder.join(format!("{log}.csv")), text)
}

/// How today's figures come about.
fn manifest(kernel: &str, command: &str) -> io::Result<Manifest> {
    let date = Command::new("date").args(["-u", "+%F"]).output()?;
    let date = String::from_utf8_lossy(&date.stdout).trim().to_owned();
    let (kernel, command) = (kernel.into(), command.into());
    Ok(Manifest { kernel, command, date, machine: None, commit: None })
}
