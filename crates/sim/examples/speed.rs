//! The speed of one run: `speed SCENARIO.toml [DISCIPLINE [SEED]]` runs it once on
//! one core and prints time, memory and the run's results, so that the figures can
//! be compared with those of another simulator.
//!
//! ```text
//! cargo run --release -p tidegate-sim --example speed -- scenarios/papers/EFD/dumbbell.toml
//! ```

use std::error::Error;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::time::Instant;

use tidegate_core::registry;
use tidegate_sim::metrics::Discard;
use tidegate_sim::scenario::{DisciplineChoice, file};
use tidegate_sim::simulation;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = PathBuf::from(arguments.next().ok_or("usage: speed SCENARIO [DISCIPLINE [SEED]]")?);
    let name = arguments.next().unwrap_or_else(|| "fifo".into());
    let seed = arguments.next().map_or(Ok(1), |text| text.parse())?;
    let scenario = file::read(&path)?;
    let entry = registry::find(&name).ok_or("no such discipline")?;
    let choice = DisciplineChoice::with_defaults(entry);

    let start = Instant::now();
    let summary = simulation::run(&scenario, &choice, seed, &mut Discard, &AtomicBool::new(false));
    let wall = start.elapsed().as_secs_f64();

    println!("{name}, seed {seed}: {wall:.3} s for {} simulated", scenario.duration);
    println!("{} events, {:.0} ns each", summary.events, wall * 1e9 / summary.events as f64);
    if let Some(memory) = peak_memory() {
        println!("peak memory {memory}");
    }
    for (spec, link) in scenario.links.iter().zip(&summary.links) {
        let Some(link) = link else { continue };
        println!(
            "{}: {} packets, utilisation {:.4}, loss {:.3}%, queue delay mean {:.1} ms",
            spec.name,
            link.counters.delivered,
            link.utilisation,
            link.loss_ratio() * 100.0,
            link.delay.mean().unwrap_or(0.0) * 1e3,
        );
    }
    println!(
        "{:>12} {:>8} {:>8} {:>8} {:>8} {:>8}",
        "up to B", "started", "done", "mean s", "median", "p95"
    );
    for (index, class) in summary.classes.iter().enumerate() {
        let bound = scenario.size_classes.get(index).map_or("more".into(), |b| b.0.to_string());
        let times =
            [class.response.mean(), class.response.quantile(0.5), class.response.quantile(0.95)];
        let [mean, median, p95] = times.map(|time| time.map_or("-".into(), |s| format!("{s:.3}")));
        println!(
            "{bound:>12} {:>8} {:>8} {mean:>8} {median:>8} {p95:>8}",
            class.started, class.completed
        );
    }
    Ok(())
}

/// The largest memory the process has held, where the system says it.
fn peak_memory() -> Option<String> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    Some(line.trim().to_string())
}
