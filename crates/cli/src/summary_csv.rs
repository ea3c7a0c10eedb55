//! `summary.csv`: every estimate of a comparison, one in each row, for tools
//! that pivot. Names of metrics carry the unit.

use csv::Writer;
use tidegate_study::Estimate;
use tidegate_study::comparison::{
    ClassResult, Comparison, DelayResult, DisciplineResult, LinkResult, TrafficResult,
};

const COLUMNS: [&str; 8] =
    ["discipline", "kind", "name", "metric", "mean", "half_width_95", "runs", "note"];

/// The content of the file.
pub(crate) fn of(comparison: &Comparison) -> Vec<u8> {
    let mut rows = Rows(Writer::from_writer(Vec::new()));
    rows.write(COLUMNS);
    for discipline in &comparison.disciplines {
        rows.discipline(discipline);
    }
    rows.0.into_inner().expect(MEMORY)
}

/// Why writing cannot fail.
const MEMORY: &str = "memory takes everything, and all rows have the same length";

struct Rows(Writer<Vec<u8>>);

/// What a row is about: discipline, kind (size class, traffic, traffic ratio, link), name.
#[derive(Clone, Copy)]
struct About<'a>(&'a str, &'a str, &'a str);

impl Rows {
    fn write<const N: usize>(&mut self, fields: [&str; N]) {
        self.0.write_record(fields).expect(MEMORY);
    }

    fn estimate(&mut self, about: About<'_>, metric: &str, estimate: Option<Estimate>) {
        let Some(Estimate { mean, half_width, runs }) = estimate else { return };
        let half_width = half_width.map_or_else(String::new, |half| half.to_string());
        let About(discipline, kind, name) = about;
        let (mean, runs) = (mean.to_string(), runs.to_string());
        self.write([discipline, kind, name, metric, &mean, &half_width, &runs, ""]);
    }

    /// A count over all runs together.
    fn count(&mut self, about: About<'_>, metric: &str, count: u64) {
        let About(discipline, kind, name) = about;
        self.write([discipline, kind, name, metric, &count.to_string(), "", "", "all runs"]);
    }

    fn discipline(&mut self, discipline: &DisciplineResult) {
        let label = discipline.label.as_str();
        let classes = discipline.classes.iter().chain([&discipline.short, &discipline.all]);
        for class in classes {
            self.class(About(label, "size class", &class.label), class);
        }
        for traffic in &discipline.traffic {
            self.traffic(About(label, "traffic", &traffic.name), traffic);
        }
        for ratio in &discipline.ratios {
            let name = format!("{} / {}", ratio.of, ratio.over);
            self.estimate(
                About(label, "traffic ratio", &name),
                "throughput_ratio",
                ratio.throughput,
            );
        }
        for link in &discipline.links {
            self.link(About(label, "link", &link.name), link);
        }
    }

    fn class(&mut self, about: About<'_>, class: &ClassResult) {
        self.count(about, "started_flows", class.started);
        self.count(about, "completed_flows", class.completed);
        self.count(about, "flows_with_loss", class.with_loss);
        self.estimate(about, "response_mean_s", class.mean_s);
        self.estimate(about, "response_median_s", class.median_s);
        self.estimate(about, "response_p95_s", class.p95_s);
        self.estimate(about, "slowdown_ratio", class.slowdown);
    }

    fn delay(&mut self, about: About<'_>, delay: &DelayResult) {
        self.estimate(about, "delay_mean_s", delay.mean_s);
        self.estimate(about, "delay_median_s", delay.median_s);
        self.estimate(about, "delay_p95_s", delay.p95_s);
        self.estimate(about, "delay_p99_s", delay.p99_s);
        self.estimate(about, "delay_max_s", delay.max_s);
    }

    fn traffic(&mut self, about: About<'_>, traffic: &TrafficResult) {
        self.count(about, "started_flows", traffic.started);
        self.count(about, "completed_flows", traffic.completed);
        self.estimate(about, "throughput_bps", traffic.throughput_bps);
        self.estimate(about, "long_goodput_bps", traffic.long_goodput_bps);
        self.estimate(about, "long_fairness_jain", traffic.fairness);
        self.estimate(about, "longest_stall_s", traffic.longest_stall_s);
        self.estimate(about, "loss_ratio", traffic.loss_ratio);
        self.estimate(about, "late_ratio", traffic.late_ratio);
        self.delay(about, &traffic.delay);
    }

    fn link(&mut self, about: About<'_>, link: &LinkResult) {
        self.count(about, "offered_packets", link.offered);
        self.count(about, "refused_packets", link.refused);
        self.count(about, "pushed_out_packets", link.pushed_out);
        self.count(about, "early_packets", link.early);
        self.count(about, "superseded_packets", link.superseded);
        self.count(about, "excess_packets", link.excess);
        self.count(about, "marked_packets", link.marked);
        self.count(about, "flows_tracked_peak", link.flows_peak as u64);
        self.estimate(about, "utilisation_ratio", link.utilisation);
        self.estimate(about, "loss_ratio", link.loss_ratio);
        self.estimate(about, "queue_packets", link.queue_packets);
        self.estimate(about, "flows_tracked", link.flows_tracked);
        self.delay(about, &link.delay);
    }
}
