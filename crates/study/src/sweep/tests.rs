use std::path::PathBuf;
use std::sync::atomic::AtomicUsize;

use tidegate_sim::scenario::file::{Folder, Overrides, vary};

use super::*;

const SMALL: &str = r#"
    title = "Small"
    duration = "2 s"
    seeds = 2
    disciplines = ["fifo", "efd"]
    dumbbell = { pairs = 2, rate = "4 Mbit/s", buffer = "30 packets" }
    [[traffic.transfers]]
    name = "files"
    from = "senders"
    to = "receivers"
    load = "3 Mbit/s"
    sizes = "20 kB"
"#;

fn plan(axes: &[&str]) -> Result<Plan, SettingError> {
    let axes = axes.iter().map(|axis| axis.parse().unwrap()).collect();
    let read = |settings: &[Setting]| {
        vary::parse("small", SMALL, &Folder(".".into()), &Overrides::default(), settings)
    };
    Plan::of(axes, read)
}

fn never() -> AtomicBool {
    AtomicBool::new(false)
}

/// A folder for one test, which begins empty.
fn folder(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[test]
fn a_point_is_what_its_scenario_gives_alone_whatever_the_threads() {
    let plan = plan(&["rate=2 Mbit/s,8 Mbit/s", "dumbbell.pairs=1,3"]).unwrap();
    let sweep = plan.sum_up(run(&plan, 1, &never(), None, &|_| ()).unwrap());
    let places: Vec<_> = sweep.points.iter().map(|point| point.at.join(" ")).collect();
    assert_eq!(places, ["2 Mbit/s 1", "2 Mbit/s 3", "8 Mbit/s 1", "8 Mbit/s 3"]);
    assert_eq!(sweep, plan.sum_up(run(&plan, 4, &never(), None, &|_| ()).unwrap()));
    for ((_, scenario), point) in plan.points.iter().zip(&sweep.points) {
        let Ok(runs) = experiment::run(scenario, 2, &never(), &experiment::Forget);
        assert_eq!(point.result, Some(Found::of(scenario, &runs)));
    }
    assert!(!sweep.partial());
    let themes = sweep.themes();
    let slowdown = themes.iter().find(|it| it.facts.name == "slowdown_ratio").unwrap();
    let value = |point: usize| sweep.points[point].result.as_ref().unwrap().value(0, slowdown);
    assert!(value(0).unwrap().value > value(2).unwrap().value, "a slower link is slower");
    assert_eq!(sweep.most_urgent(), Some("response_mean_s"));
}

#[test]
fn what_was_measured_is_not_measured_again() {
    let folder = folder("kept");
    let ran = AtomicUsize::new(0);
    let count = |span: Span| {
        // The runs of a stored point are told of all at once.
        ran.fetch_add((span == Span::seconds(2)).into(), Ordering::Relaxed);
    };
    let go = |plan: &Plan, stop: &AtomicBool| run(plan, 1, stop, Some(&folder), &count).unwrap();
    // Stopped within the first run of the second point.
    let small = plan(&["rate=2 Mbit/s,8 Mbit/s"]).unwrap();
    let stop = never();
    let until = |span: Span| {
        count(span);
        stop.store(ran.load(Ordering::Relaxed) == 5, Ordering::Relaxed);
    };
    let first = run(&small, 1, &stop, Some(&folder), &until).unwrap();
    assert!(first[0].is_some() && first[1].is_none());
    assert!(small.sum_up(first.clone()).partial());
    let all = go(&small, &never());
    assert_eq!(ran.load(Ordering::Relaxed), 5 + 4);
    assert_eq!(all[0], first[0]);
    // To the last digit, as if it had not been stored.
    assert_eq!(all, run(&small, 2, &never(), None, &|_| ()).unwrap());
    let large = plan(&["rate=2 Mbit/s,8 Mbit/s,9 Mbit/s"]).unwrap();
    assert_eq!(go(&large, &never())[..2], all);
    assert_eq!(ran.load(Ordering::Relaxed), 9 + 4);
    // What is no result is measured again.
    for file in std::fs::read_dir(&folder).unwrap() {
        std::fs::write(file.unwrap().path(), "{").unwrap();
    }
    assert_eq!(go(&small, &never()), all);
    std::fs::remove_dir_all(folder).unwrap();
}

#[test]
fn everything_is_checked_before_anything_runs() {
    let error = |axes: &[&str]| plan(axes).unwrap_err().to_string();
    assert!(error(&["rate=2 Mbit/s,0 Mbit/s"]).starts_with("rate: found '0 Mbit/s'"));
    assert!(error(&["rate=2 Mbit/s", "rate=3 Mbit/s"]).contains("the same key twice"));
    let many = error(&["rate=1 Mbit/s..9 Mbit/s:40", "dumbbell.pairs=10..99:50"]);
    assert_eq!(many, "dumbbell.pairs: found 2000 points in all, expected at most 1000");
}
