//! Queues come and go, under load as well, and nothing is left of them: no program, no map,
//! no packet, no line in the kernel's log.

use std::fs::{self, File, OpenOptions};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use libbpf_rs::query::{MapInfoIter, ProgInfoIter};
use tidegate_core::Rate;
use tidegate_core::setting::Settings;
use tidegate_link::Queue;
use tidegate_qdisc::layout::Statistics;
use tidegate_qdisc::programs::{PROGRAMS, find};
use tidegate_qdisc::{Qdisc, missing};

use crate::device::{Device, comes, queue};

const CLOSED: Rate = Rate(0);
const OPEN: Rate = Rate(100_000_000_000);
/// How often a device gets a queue and loses it.
const ADDITIONS: u64 = 1_000;
/// Packets that are queued when it does.
const QUEUED: u64 = 50;
/// How often a program is loaded and removed.
const LOADS: usize = 50;
/// Packets of a flood, each of a flow of its own.
const FLOOD: u32 = 100_000;
/// Flows that are known at the same time (`MOST_FLOWS` in bpf/parameters.h).
pub(crate) const MOST_FLOWS: u64 = 65_536;
/// What the kernel's memory may differ by. The packets of all additions would be over 40 MB,
/// the entries that they note 8 MB, and one more page for each addition 4 MB.
const TOLERANCE_KB: u64 = 2_048;
/// The same of buffers for packets, of which all additions use 50 000.
const TOLERANCE_BUFFERS: u64 = 1_000;

/// What the kernel has.
#[derive(Debug, PartialEq)]
struct Holdings {
    programs: usize,
    maps: usize,
    slab_kb: u64,
    percpu_kb: u64,
    vmalloc_kb: u64,
    buffers: u64,
}

impl Holdings {
    fn now() -> Holdings {
        let memory = fs::read_to_string("/proc/meminfo").unwrap();
        let kb = |name: &str| {
            let line = memory.lines().find_map(|line| line.strip_prefix(name)).unwrap();
            line.trim_end_matches("kB").trim().parse().unwrap()
        };
        let slabs = fs::read_to_string("/proc/slabinfo").unwrap();
        let buffers = slabs.lines().filter(|line| line.starts_with("skbuff_"));
        let active = |line: &str| -> Option<u64> { line.split_whitespace().nth(1)?.parse().ok() };
        Holdings {
            programs: ProgInfoIter::default().count(),
            maps: MapInfoIter::default().count(),
            slab_kb: kb("Slab:"),
            percpu_kb: kb("Percpu:"),
            vmalloc_kb: kb("VmallocUsed:"),
            buffers: buffers.map(|line| active(line).unwrap()).sum(),
        }
    }

    /// Whether it is no more than there was.
    fn is_back_at(&self, before: &Holdings) -> bool {
        self.programs == before.programs
            && self.maps == before.maps
            && self.slab_kb <= before.slab_kb + TOLERANCE_KB
            && self.percpu_kb <= before.percpu_kb + TOLERANCE_KB
            && self.vmalloc_kb <= before.vmalloc_kb + TOLERANCE_KB
            && self.buffers <= before.buffers + TOLERANCE_BUFFERS
    }
}

/// What the kernel says from now on.
struct Log(File);

impl Log {
    fn follow() -> Log {
        let mut options = OpenOptions::new();
        options.read(true).custom_flags(nix::libc::O_NONBLOCK);
        let mut file = options.open("/dev/kmsg").unwrap();
        file.seek(SeekFrom::End(0)).unwrap();
        Log(file)
    }

    /// Lines that complain.
    fn complaints(&mut self) -> Vec<String> {
        const WORDS: [&str; 7] = ["WARNING", "BUG", "leak", "Oops", "refcount", "stall", "blocked"];
        let mut found = Vec::new();
        let mut record = vec![0; 8_192];
        while let Ok(length) = self.0.read(&mut record) {
            let line = String::from_utf8_lossy(&record[..length]).into_owned();
            if WORDS.iter().any(|word| line.contains(word)) {
                found.push(line);
            }
        }
        found
    }
}

/// What a test begins with, and compares at its end.
pub(crate) struct Traces {
    before: Holdings,
    log: Log,
}

impl Traces {
    pub(crate) fn begin() -> Traces {
        assert_eq!(Qdisc::all(), []);
        // What went before is taken apart by now.
        thread::sleep(Duration::from_secs(2));
        Traces { before: Holdings::now(), log: Log::follow() }
    }

    /// The kernel takes things apart after a while.
    pub(crate) fn are_gone(mut self, of: &str) {
        assert_eq!(Qdisc::all(), []);
        let mut after = Holdings::now();
        let are_gone = comes(|| {
            after = Holdings::now();
            after.is_back_at(&self.before)
        });
        println!("{of}: {:?} before, {after:?} after", self.before);
        assert!(are_gone, "{of}: {:?} before, {after:?} after", self.before);
        assert_eq!(self.log.complaints(), Vec::<String>::new());
    }
}

pub(crate) fn lost(statistics: &Statistics) -> u64 {
    let reasons = ["refused", "pushed_out", "early", "excess", "no_memory"];
    reasons.map(|reason| statistics.word(&format!("{reason}_packets"))).iter().sum()
}

/// Every packet that came is somewhere.
pub(crate) fn assert_nothing_vanished(statistics: &Statistics, of: &str) {
    let word = |name| statistics.word(name);
    let known =
        word("sent_packets") + lost(statistics) + word("queued_packets") + word("cleared_packets");
    assert_eq!(word("arrived_packets"), known, "{of}: {statistics:?}");
}

/// Sends until it is told to stop, and returns how many packets.
fn load(device: &Device) -> (Arc<AtomicBool>, thread::JoinHandle<u64>) {
    let stop = Arc::new(AtomicBool::new(false));
    let sender = device.sender();
    let is_over = Arc::clone(&stop);
    let sends = thread::spawn(move || {
        let mut count = 0_u64;
        while !is_over.load(Ordering::Relaxed) {
            sender.send((count % 37) as u16, 100 + (count % 900) as usize);
            count += 1;
            // Others have the processor in between.
            if count.is_multiple_of(20) {
                thread::sleep(Duration::from_micros(300));
            }
        }
        count
    });
    (stop, sends)
}

#[test]
fn the_log_is_read() {
    if missing().is_some() {
        return;
    }
    let mut log = Log::follow();
    let mut log_of_kernel = File::options().write(true).open("/dev/kmsg").unwrap();
    // Without its end, a line is not there yet.
    log_of_kernel.write_all(b"a test's WARNING\n").unwrap();
    let complaints = log.complaints();
    assert!(complaints.iter().any(|line| line.contains("a test's WARNING")), "{complaints:?}");
}

#[test]
fn nothing_is_left_of_queues_that_go_with_their_packets() {
    let Some(device) = Device::new("nothing_is_left_of_queues_that_go_with_their_packets") else {
        return;
    };
    let sender = device.sender();
    for program in PROGRAMS {
        let mut traces = None;
        let mut tc = device.waiting_tc();
        // A list and a tree as often as it is said; the others share their code.
        let additions = match program.discipline {
            "efd" | "las" => ADDITIONS,
            _ => ADDITIONS / 10,
        };
        // The first time, caches grow.
        for additions in [10, additions] {
            if additions > 10 {
                traces = Some(Traces::begin());
            }
            let closed = queue(program, 100, CLOSED);
            let qdisc = Qdisc::load(program, &closed, true, "").unwrap();
            let in_use = || qdisc.statistics().unwrap().word("in_use");
            for number in 1..=additions {
                tc.tell(&format!("qdisc add dev out root {}", qdisc.name()));
                assert!(comes(|| in_use() == 1), "{} added {number} times", qdisc.name());
                // It is in use a moment before packets reach it.
                let is_reached = || {
                    sender.send(0, 22);
                    qdisc.statistics().unwrap().word("queued_packets") == 1
                };
                assert!(comes(is_reached), "{} added {number} times", qdisc.name());
                (1..QUEUED).for_each(|packet| sender.send((packet % 7) as u16, 22));
                assert_eq!(qdisc.statistics().unwrap().word("queued_packets"), QUEUED);
                tc.tell("qdisc del dev out root");
                assert!(comes(|| in_use() == 0), "{} removed {number} times", qdisc.name());
                let statistics = qdisc.statistics().unwrap();
                assert_eq!(statistics.word("queued_packets"), 0);
                assert_eq!(statistics.word("cleared_packets"), QUEUED * number);
            }
            qdisc.remove().unwrap();
        }
        traces.unwrap().are_gone(program.discipline);
    }
}

#[test]
fn nothing_is_left_of_programs_that_are_removed() {
    let Some(_device) = Device::new("nothing_is_left_of_programs_that_are_removed") else {
        return;
    };
    for program in PROGRAMS {
        let words = queue(program, 100, CLOSED);
        Qdisc::load(program, &words, true, "").unwrap().remove().unwrap();
        let traces = Traces::begin();
        for _ in 0..LOADS {
            let qdisc = Qdisc::load(program, &words, true, "a note").unwrap();
            assert_eq!(qdisc.name(), format!("{}_1", program.discipline));
            assert!(MapInfoIter::default().count() > traces.before.maps);
            qdisc.remove().unwrap();
            let is_free = || MapInfoIter::default().count() == traces.before.maps;
            assert!(comes(is_free), "{}", program.discipline);
        }
        traces.are_gone(program.discipline);
    }
}

#[test]
fn a_second_device_is_refused() {
    let Some(device) = Device::new("a_second_device_is_refused") else { return };
    let mut traces = None;
    for program in PROGRAMS {
        // The first one loads what the kernel keeps.
        if program.discipline == PROGRAMS[1].discipline {
            traces = Some(Traces::begin());
        }
        let words = queue(program, 100, CLOSED);
        let qdisc = Qdisc::load(program, &words, true, "").unwrap();
        device.tc(&format!("qdisc add dev out root {}", qdisc.name())).unwrap();
        let error = device.tc(&format!("qdisc add dev other root {}", qdisc.name())).unwrap_err();
        assert!(error.contains("busy"), "{error}");
        // The refusal takes nothing from the first one.
        assert_eq!(qdisc.statistics().unwrap().word("in_use"), 1);
        device.tc("qdisc del dev out root").unwrap();
        device.tc(&format!("qdisc add dev other root {}", qdisc.name())).unwrap();
        device.tc("qdisc del dev other root").unwrap();
        qdisc.remove().unwrap();
    }
    traces.unwrap().are_gone("a second device");
}

#[test]
fn queues_go_under_load() {
    let Some(device) = Device::new("queues_go_under_load") else { return };
    for program in PROGRAMS {
        let (stop, sends) = load(&device);
        let words = queue(program, 100, Rate(1_000_000));
        let mut traces = None;
        for rounds in [1, 10] {
            if rounds > 1 {
                traces = Some(Traces::begin());
            }
            let qdisc = Qdisc::load(program, &words, true, "").unwrap();
            for _ in 0..rounds {
                device.tc(&format!("qdisc add dev out root {}", qdisc.name())).unwrap();
                thread::sleep(Duration::from_millis(20));
                device.ip("link set out down");
                device.ip("link set out up");
                thread::sleep(Duration::from_millis(20));
                device.tc("qdisc del dev out root").unwrap();
                let statistics = qdisc.statistics().unwrap();
                assert_eq!([statistics.word("queued_packets"), statistics.word("in_use")], [0, 0]);
            }
            let statistics = qdisc.statistics().unwrap();
            assert_nothing_vanished(&statistics, program.discipline);
            for name in ["sent_packets", "cleared_packets"] {
                assert!(statistics.word(name) > 0, "{}: {statistics:?}", program.discipline);
            }
            qdisc.remove().unwrap();
        }
        stop.store(true, Ordering::Relaxed);
        sends.join().unwrap();
        traces.unwrap().are_gone(program.discipline);
    }
}

#[test]
fn changes_under_load_lose_nothing() {
    let Some(device) = Device::new("changes_under_load_lose_nothing") else { return };
    for program in PROGRAMS {
        let first = queue(program, 1_000, Rate(20_000_000));
        let settings = |size: &str| -> Settings {
            let parameters = first.entry.parameters.iter().map(|parameter| parameter.name);
            let sizes = parameters.filter(|name| ["threshold", "credit"].contains(name));
            let given: Vec<_> = sizes.map(|name| (name, size)).collect();
            first.entry.settings(&given).unwrap()
        };
        let qdisc = Qdisc::load(program, &first, true, "").unwrap();
        device.tc(&format!("qdisc add dev out root {}", qdisc.name())).unwrap();
        let before = device.sent();
        let (stop, sends) = load(&device);
        for round in 0..60 {
            let rate = [20_000_000, 300_000, 0, 5_000_000][round % 4];
            let packets = [1_000, 3, 200][round % 3];
            let changed = Queue {
                rate: Rate(rate),
                settings: settings(["1 kB", "100 kB", "4 kB"][round / 2 % 3]),
                ..queue(program, packets, OPEN)
            };
            qdisc.change(&changed, true).unwrap();
            thread::sleep(Duration::from_millis(10));
        }
        stop.store(true, Ordering::Relaxed);
        let offered = sends.join().unwrap();
        // What is queued by now waits.
        qdisc.change(&queue(program, 1_000, CLOSED), true).unwrap();
        let waiting = qdisc.statistics().unwrap();
        assert_nothing_vanished(&waiting, program.discipline);
        assert_eq!(waiting.word("arrived_packets"), offered, "{}", program.discipline);
        assert!(lost(&waiting) > 0, "{waiting:?}");
        qdisc.change(&queue(program, 1_000, OPEN), true).unwrap();
        assert!(comes(|| qdisc.statistics().unwrap().word("queued_packets") == 0));
        let sent = qdisc.statistics().unwrap();
        assert_eq!(sent.word("sent_packets") + lost(&sent), offered, "{}", program.discipline);
        // What CoDel drops of those that waited is no loss by the change.
        let aside = |statistics: &Statistics| lost(statistics) - statistics.word("early_packets");
        assert_eq!(aside(&sent), aside(&waiting), "{}", program.discipline);
        assert_eq!(device.sent() - before, sent.word("sent_packets"), "{}", program.discipline);
        device.tc("qdisc del dev out root").unwrap();
        qdisc.remove().unwrap();
    }
}

#[test]
fn a_flood_of_flows_is_bounded_and_forgotten() {
    let Some(device) = Device::new("a_flood_of_flows_is_bounded_and_forgotten") else { return };
    let sender = device.sender();
    // The routes that the kernel remembers of so many addresses and ports.
    sender.flood(1_000);
    for program in ["efd", "las", "lars", "run2c", "tide"].map(|name| find(name).unwrap()) {
        let words = queue(program, 1_000, OPEN);
        // After the first flood the kernel keeps pages that are in part free, and uses them in
        // the second one.
        for is_first in [true, false] {
            let traces = Traces::begin();
            let qdisc = Qdisc::load(program, &words, true, "").unwrap();
            device.tc(&format!("qdisc add dev out root {}", qdisc.name())).unwrap();
            sender.flood(FLOOD);
            let statistics = qdisc.statistics().unwrap();
            let [arrived, sent, flows, peak, crowded] =
                ["arrived_packets", "sent_packets", "flows", "flows_peak", "crowded"]
                    .map(|name| statistics.word(name));
            assert_eq!([arrived, sent], [u64::from(FLOOD); 2], "{}", program.discipline);
            if ["efd", "tide"].contains(&program.discipline) {
                // They remember none when all packets have left.
                assert_eq!([flows, crowded], [0, 0]);
            } else {
                assert!(0 < flows && flows <= MOST_FLOWS, "{}: {flows}", program.discipline);
                assert_eq!(peak, MOST_FLOWS, "{}", program.discipline);
                assert!(crowded > 0, "{}", program.discipline);
                let grown = Holdings::now().slab_kb.saturating_sub(traces.before.slab_kb);
                println!("{}: {flows} flows in {grown} kB", program.discipline);
                // So that the comparison below sees whether they go.
                assert!(!is_first || grown > 2 * TOLERANCE_KB, "{}", program.discipline);
            }
            device.tc("qdisc del dev out root").unwrap();
            qdisc.remove().unwrap();
            if !is_first {
                traces.are_gone(program.discipline);
            }
        }
    }
}
