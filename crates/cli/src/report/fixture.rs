//! A comparison as a household link might give it: short web transfers, a
//! call, long downloads, and disciplines that treat them differently.

use tidegate_study::comparison::{
    ClassResult, Comparison, DelayResult, DisciplineResult, DistributionPoint, LinkPoint,
    LinkResult, PageResult, ProgressPoint, RatioResult, SizePoint, TrafficResult,
};
use tidegate_study::verdict::Verdict;
use tidegate_study::{Centre, Estimate, Sample, e_model};

use super::{Provenance, answer};
use crate::answered::Answered;
use crate::live_form::LiveForm;

/// How a discipline behaves, relative to FIFO.
struct Temper {
    label: &'static str,
    short: f64,
    large: f64,
    call: f64,
    call_loss: f64,
    refused: f64,
    pushed_out: f64,
    flows: f64,
}

const TEMPERS: [Temper; 8] = [
    temper("fifo", 1.0, 1.0, 1.0, 0.031, 0.042, 0.0, 0.0),
    temper("las", 0.12, 1.9, 0.7, 0.22, 0.001, 0.046, 310.0),
    temper("run2c", 0.21, 1.25, 1.05, 0.028, 0.040, 0.0, 240.0),
    temper("scfq", 0.34, 1.05, 0.02, 0.0, 0.0, 0.041, 14.0),
    temper("efd", 0.16, 1.01, 0.016, 0.000_4, 0.002, 0.039, 9.0),
    temper("fq-codel", 0.4, 1.02, 0.03, 0.0, 0.0, 0.052, 15.0),
    temper("lars", 0.15, 1.3, 0.02, 0.001, 0.001, 0.042, 290.0),
    temper("efd, threshold 40 packets", 0.19, 1.0, 0.018, 0.000_3, 0.002, 0.04, 12.0),
];

#[expect(clippy::too_many_arguments, reason = "a row of a table")]
const fn temper(
    label: &'static str,
    short: f64,
    large: f64,
    call: f64,
    call_loss: f64,
    refused: f64,
    pushed_out: f64,
    flows: f64,
) -> Temper {
    Temper { label, short, large, call, call_loss, refused, pushed_out, flows }
}

/// Numbers without order, the same in every run.
struct Noise(u64);

impl Noise {
    /// From 0 to 1.
    fn next(&mut self) -> f64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 40) as f64 / (1_u64 << 24) as f64
    }

    /// Around `value`, with an interval of about a twentieth of it.
    fn sample(&mut self, centre: Centre, value: f64, runs: usize) -> Option<Sample> {
        let value = value * (0.98 + 0.04 * self.next());
        let run = |seed| (seed, Some(value * (0.9 + 0.2 * self.next())));
        Sample::of(centre, (1..=runs as u64).map(run))
    }

    fn mean(&mut self, value: f64, runs: usize) -> Option<Sample> {
        self.sample(Centre::Mean, value, runs)
    }

    fn median(&mut self, value: f64, runs: usize) -> Option<Sample> {
        self.sample(Centre::Median, value, runs)
    }
}

/// What is called a duration, and what is sampled of it.
const DURATION: f64 = 120.0;

/// The first so many of eight disciplines, each with so many runs.
pub(crate) fn comparison(disciplines: usize, runs: usize) -> Comparison {
    Comparison {
        beside: Vec::new(),
        parts: Vec::new(),
        title: "A household at 16 Mbit/s".into(),
        description: "Web pages, a call and two backups share a link in the evening.".into(),
        duration_s: DURATION,
        warm_up_s: 5.0,
        seeds: (1..=runs as u64).collect(),
        partial: false,
        waited: 0,
        short_flow_bytes: 15_000,
        long_flow_bytes: 1_000_000,
        disciplines: TEMPERS[..disciplines].iter().map(|temper| discipline(temper, runs)).collect(),
    }
}

/// The same with its verdict, and a form of what it names.
pub(super) fn answered(comparison: Comparison) -> Answered {
    let verdict = Verdict::of(&comparison);
    let form = |label: &String| LiveForm {
        label: label.clone(),
        notes: vec!["eth1 is the port towards the slow link.".into()],
        tc: vec![format!("tc qdisc replace dev eth1 root {label} bandwidth 15200kbit nat ingress")],
        takes_tidegate: false,
        undo: vec!["tc qdisc del dev eth1 root".into()],
        sqm: vec!["uci set sqm.@queue[0].download='15200'".into()],
        sqm_undo: vec!["uci set sqm.@queue[0].enabled='0'".into()],
    };
    let live_forms = verdict.run.iter().map(form).collect();
    Answered { said: answer::words(&verdict), verdict, live_forms, comparison }
}

/// What stands around it.
pub(super) fn provenance() -> Provenance {
    let pair = |one: &str, other: &str| (one.to_string(), other.to_string());
    Provenance {
        version: "tidegate 0.1.0".into(),
        command: "tidegate compare household.toml --seeds 10 --output household".into(),
        links: vec![
            "down: 16 Mbit/s, 10 ms, buffer 300 packets, discipline under test".into(),
            "up: 2 Mbit/s, 10 ms, buffer 100 packets, FIFO".into(),
        ],
        traffic: vec![
            "web: 20 transfers/s, Zipf sizes of 6 to 6849 segments".into(),
            "call: 64 kbit/s in packets of 200 B".into(),
            "backup: 2 transfers without an end".into(),
        ],
        disciplines: vec![pair("fifo", ""), pair("efd", "threshold 20 packets")],
        other: vec![pair("processor", "8 cores"), pair("system", "Linux 6.1, x86_64")],
        scenario: "title = \"A household\"\n\n[[link]]\nname = \"down\" # <tested> & more\n".into(),
        files: vec![
            pair("manifest.json", "for programs"),
            pair("flows.csv", "one row for each flow"),
        ],
    }
}

fn discipline(temper: &Temper, runs: usize) -> DisciplineResult {
    let mut noise = Noise(temper.label.len() as u64 * 77 + (temper.short * 1e4) as u64);
    let noise = &mut noise;
    let mean_of = |size: f64| {
        // Short transfers feel the queue, large ones the rate.
        let weight = 1.0 / (1.0 + (size / 60_000.0).powi(2));
        let factor = temper.short * weight + temper.large * (1.0 - weight);
        factor * (0.22 + size * 8.0 / 3.0e6)
    };
    let class = |noise: &mut Noise, label: &str, up_to: Option<u64>, size: f64, started: u64| {
        let mean = mean_of(size);
        ClassResult {
            label: label.into(),
            up_to_bytes: up_to,
            started,
            completed: started - started / 200,
            with_loss: started / 9,
            mean_s: noise.mean(mean, runs),
            median_s: noise.median(mean * 0.7, runs),
            p95_s: noise.median(mean * 2.9, runs),
            slowdown: noise.mean(1.0 + mean * 12.0, runs),
        }
    };
    let classes = vec![
        class(noise, "up to 15 kB", Some(15_000), 9_000.0, 18_404),
        class(noise, "15 kB to 100 kB", Some(100_000), 40_000.0, 5_120),
        class(noise, "100 kB to 1 MB", Some(1_000_000), 3.0e5, 801),
        class(noise, "over 1 MB", None, 4.0e6, 95),
    ];
    let bins = (5..20).map(|bin| 100.0 * 10_f64.powf(f64::from(bin) / 4.0));
    let response_by_size = bins
        .map(|from| {
            let to = from * 10_f64.powf(0.25);
            let flows = 3 + (1.0e8 / from.powf(1.3)) as u64;
            let spread = 1.0 + 4.0 / (flows as f64).sqrt() * (noise.next() - 0.5);
            let mean = mean_of((from * to).sqrt()) * spread;
            let half = mean * (0.01 + 2.5 / (flows as f64).sqrt()) * (0.5 + noise.next());
            let interval = (runs > 1).then_some((mean - half, mean + half));
            let mean_s = Estimate { centre: Centre::Mean, value: mean, interval, runs };
            SizePoint { from_bytes: from, to_bytes: to, flows, mean_s }
        })
        .collect();
    let short_mean = mean_of(9_000.0);
    DisciplineResult {
        label: temper.label.into(),
        name: temper.label.split(',').next().unwrap_or_default().into(),
        runs,
        classes,
        short: class(noise, "short, up to 15 kB", Some(15_000), 9_000.0, 18_404),
        all: class(noise, "all", None, 20_000.0, 24_420),
        response_by_size,
        short_distribution: distribution(short_mean * 0.3 + 0.02, short_mean),
        traffic: vec![
            web(noise, temper, runs),
            call(noise, temper, runs),
            backup(noise, temper, runs),
        ],
        ratios: vec![RatioResult {
            of: "web".into(),
            over: "backup".into(),
            throughput: noise.median(1.03 * temper.large, runs),
        }],
        links: vec![
            link(noise, temper, runs, "down", true),
            link(noise, &TEMPERS[0], runs, "up", false),
        ],
    }
}

fn distribution(least: f64, scale: f64) -> Vec<DistributionPoint> {
    (1..=400)
        .map(|index| {
            let fraction = f64::from(index) / 400.0;
            let exceeding = (1.0 - fraction).max(0.000_5);
            DistributionPoint { at_s: least - scale * 0.6 * exceeding.ln(), fraction }
        })
        .collect()
}

fn silent(name: &str) -> TrafficResult {
    TrafficResult {
        name: name.into(),
        replayed: false,
        datagrams: false,
        started: 0,
        completed: 0,
        throughput_bps: None,
        fairness: None,
        long_goodput_bps: None,
        longest_stall_s: None,
        loss_ratio: None,
        deadline_s: None,
        late_ratio: None,
        call_rating: None,
        recorded_call: None,
        pages: None,
        adapts: false,
        video: None,
        lookups: None,
        arrived: 0,
        delay: DelayResult { mean_s: None, median_s: None, p95_s: None, p99_s: None, max_s: None },
        delay_distribution: Vec::new(),
        progress: Vec::new(),
    }
}

fn web(noise: &mut Noise, temper: &Temper, runs: usize) -> TrafficResult {
    TrafficResult {
        started: 24_420,
        completed: 24_311,
        throughput_bps: noise.mean(7.9e6, runs),
        fairness: noise.mean(0.6 / temper.large, runs),
        long_goodput_bps: noise.mean(2.1e6 / temper.large, runs),
        longest_stall_s: noise.median(2.2 * temper.large, runs),
        pages: Some(PageResult {
            started: 640,
            completed: 633,
            loaded_ratio: noise.mean(0.99, runs),
            load_mean_s: noise.mean(5.1 * temper.short, runs),
            load_median_s: noise.median(4.2 * temper.short, runs),
            load_p95_s: noise.median(13.0 * temper.short, runs),
            short_mean_s: noise.mean(0.16 * temper.short, runs),
            short_p95_s: noise.median(0.4 * temper.short, runs),
            load_distribution: distribution(0.8, 4.3 * temper.short),
        }),
        ..silent("web")
    }
}

fn call(noise: &mut Noise, temper: &Temper, runs: usize) -> TrafficResult {
    let delay = 0.18 * temper.call;
    TrafficResult {
        datagrams: true,
        started: runs as u64,
        throughput_bps: noise.mean(6.4e4 * (1.0 - temper.call_loss), runs),
        loss_ratio: noise.mean(temper.call_loss, runs),
        deadline_s: Some(0.15),
        late_ratio: noise.mean(temper.call_loss + 0.04 * temper.call, runs),
        recorded_call: None,
        call_rating: noise.mean(e_model::rating(0.03 + delay, temper.call_loss), runs),
        delay: DelayResult {
            mean_s: noise.mean(0.01 + delay * 0.6, runs),
            median_s: noise.median(0.01 + delay * 0.5, runs),
            p95_s: noise.median(0.01 + delay, runs),
            p99_s: noise.median(0.01 + delay * 1.4, runs),
            max_s: noise.median(0.01 + delay * 2.1, runs),
        },
        arrived: 48_000,
        delay_distribution: distribution(0.01, delay * 0.6),
        ..silent("call")
    }
}

fn backup(noise: &mut Noise, temper: &Temper, runs: usize) -> TrafficResult {
    let mut progress = Vec::new();
    for number in 0..2 {
        let mut arrived = 0.0;
        for step in 0..=400 {
            let at_s = f64::from(step) * DURATION / 400.0;
            progress.push(ProgressPoint { number, at_s, arrived_bytes: arrived as u64 });
            let stalled = temper.large > 1.5 && noise.next() < 0.3;
            let share = if stalled { 0.0 } else { 0.5 + noise.next() };
            arrived += share * 4.0e6 / 8.0 * DURATION / 400.0 / temper.large;
        }
    }
    TrafficResult {
        started: 2 * runs as u64,
        throughput_bps: noise.mean(7.7e6 / temper.large, runs),
        fairness: noise.mean(0.95 / temper.large.sqrt(), runs),
        long_goodput_bps: noise.mean(3.9e6 / temper.large, runs),
        longest_stall_s: noise.median(1.3 * temper.large.powi(3), runs),
        progress,
        ..silent("backup")
    }
}

fn link(noise: &mut Noise, temper: &Temper, runs: usize, name: &str, tested: bool) -> LinkResult {
    let offered = 1_412_345_u64;
    let part = |ratio: f64| (offered as f64 * ratio) as u64;
    let mut queue = 120.0_f64;
    let over_time: Vec<_> = (0..400)
        .map(|step| {
            queue = (queue + (noise.next() - 0.48) * 60.0).clamp(0.0, 300.0);
            LinkPoint {
                at_s: f64::from(step) * DURATION / 400.0,
                packets: queue as u32,
                flows_tracked: (temper.flows * (0.6 + 0.8 * noise.next())) as usize,
                lost: part(temper.refused) / 400 * u64::from(step as u32),
                delivered_bytes: 580_000 * u64::from(step as u32),
                backlog_s: Some(queue.floor() * 1_500.0 * 8.0 / 16e6),
                capacity_bytes: Some(600_000 * u64::from(step as u32)),
            }
        })
        .collect();
    LinkResult {
        name: name.into(),
        tested,
        utilisation: noise.mean(0.95, runs),
        offered,
        refused: part(temper.refused),
        pushed_out: part(temper.pushed_out),
        loss_ratio: noise.mean(temper.refused + temper.pushed_out, runs),
        delay: DelayResult {
            mean_s: noise.mean(0.09, runs),
            median_s: noise.median(0.08, runs),
            p95_s: noise.median(0.19, runs),
            p99_s: noise.median(0.21, runs),
            max_s: noise.median(0.22, runs),
        },
        queue_packets: noise.mean(140.0, runs),
        flows_tracked: noise.mean(temper.flows, runs),
        flows_peak: (temper.flows * 1.4) as usize,
        over_time,
        ..LinkResult::default()
    }
}
