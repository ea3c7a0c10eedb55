//! A full link for minutes, among faults of every kind.

use std::fmt::Write as _;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, interval, sleep};

use crate::gateway::{Gateway, sum};
use crate::servers::{Link, RATE, free_address, serve};
use crate::users::{Times, ask, misbehave};

/// The gateway is told a little less than the link carries, so that the queue is its own.
const TOLD: [&str; 2] = ["18 Mbit/s", "18.1 Mbit/s"];
const LIMITS: &str =
    "[timeouts]\nserver = \"10 s\"\nhead = \"5 s\"\nclient = \"10 s\"\nkept = \"10 s\"";
/// Users of each class who ask, each with so many questions at a time.
const USERS: u64 = 6;
const AT_ONCE: u64 = 3;
/// Users who misbehave, and how often at a time.
const BAD_USERS: u64 = 4;
const BAD_AT_ONCE: u64 = 10;
const EVERY: Duration = Duration::from_secs(30);
/// Time that the first look does not count: sizes are learned, and buffers grow.
const WARM_UP: Duration = Duration::from_secs(30);
/// What memory may grow by after the first minute.
const GROWTH: u64 = 4_000_000;

#[tokio::test]
#[ignore = "it takes ten minutes, or TIDEGATE_SOAK_SECONDS"]
async fn a_full_link_and_faults_for_long_leave_shares_and_memory_as_they_are() {
    let seconds: u64 =
        std::env::var("TIDEGATE_SOAK_SECONDS").map_or(600, |text| text.parse().unwrap());
    let mut gateway = Gateway::start("soak", TOLD[0], LIMITS);
    let before = gateway.descriptors();
    let (server, dead) = (free_address(), free_address());
    let (alive, is_alive) = watch::channel(true);
    let serving = tokio::spawn(serve(server, Link::new(), is_alive));

    let times: [Times; 2] = Default::default();
    let mut users = JoinSet::new();
    for user in 0..USERS {
        for number in 0..AT_ONCE {
            for class in [1, 2] {
                let times = times[usize::from(class) - 1].clone();
                let seed = (u64::from(class) * USERS + user) * AT_ONCE + number;
                users.spawn(ask(gateway.address, server, class, user, number == 0, seed, times));
            }
        }
    }
    for user in 0..BAD_USERS {
        for number in 0..BAD_AT_ONCE {
            let seed = 1_000 + user * BAD_AT_ONCE + number;
            users.spawn(misbehave(gateway.address, server, dead, user, seed));
        }
    }

    let since = Instant::now();
    let mut ticks = interval(Duration::from_secs(1));
    let mut rows = Rows::default();
    println!("{}", Rows::HEAD);
    // A machine that pauses misses no second, and so no end of a fault.
    for second in 0..seconds {
        ticks.tick().await;
        if second % 20 == 10 {
            gateway.reload(TOLD[(second / 20) as usize % 2], LIMITS);
        }
        match second % 60 {
            // The server is killed, and starts again.
            25 => drop(alive.send(false)),
            26 => drop(alive.send(true)),
            // The machine stops for a moment.
            35 => gateway.signal("-STOP"),
            36 => gateway.signal("-CONT"),
            // No more descriptors.
            45 => gateway.permit(60),
            47 => gateway.permit(10_000),
            _ => {}
        }
        assert!(gateway.is_running(), "the gateway has ended");
        if second > 0 && second.is_multiple_of(EVERY.as_secs()) {
            println!("{}", rows.look(&gateway, second, &times).await);
        }
    }

    users.shutdown().await;
    // What is kept to servers is closed after ten seconds.
    let mut left = usize::MAX;
    for _ in 0..60 {
        left = gateway.descriptors();
        if left <= before {
            break;
        }
        sleep(Duration::from_secs(1)).await;
    }
    let status = gateway.status().await.expect("it answers");
    // What the users who have left still received says nothing about shares.
    let mut last = Rows { at: rows.at, received: rows.received, ..Rows::default() };
    println!("{}", last.look(&gateway, since.elapsed().as_secs(), &times).await);
    for key in ["held", "outstanding", "waiting", "tunnels", "connections", "kept"] {
        assert_eq!(status[key], 0, "{key}");
    }
    assert!(left <= before, "{left} descriptors are left of {before}");
    let ended = sum(&status, "completed") + sum(&status, "failed") + sum(&status, "refused");
    sleep(Duration::from_secs(1)).await;
    let logged = gateway.logged.load(Ordering::Relaxed);
    println!("{ended} requests and tunnels ended, {logged} lines of the log are about them");
    assert_eq!(ended, logged, "the log is complete");
    rows.check();
    serving.abort();
}

/// What was seen so far.
#[derive(Default)]
struct Rows {
    at: u64,
    received: [u64; 3],
    memory: Vec<u64>,
    ratios: Vec<f64>,
}

impl Rows {
    const HEAD: &str = "second  MB   descr. conn. tunnels held line  kept   a      b      c Mbit/s  used % \
                        a:b   small a: median p95 ms  b: median p95 ms";

    async fn look(&mut self, gateway: &Gateway, second: u64, times: &[Times; 2]) -> String {
        let Some(status) = gateway.status().await else { return format!("{second:>6} no answer") };
        let count = |key: &str| status[key].as_u64().unwrap();
        let received =
            [0, 1, 2].map(|class| status["classes"][class]["received_bytes"].as_u64().unwrap());
        let seconds = (second - self.at).max(1) as f64;
        let rates =
            [0, 1, 2].map(|class| (received[class] - self.received[class]) as f64 * 8.0 / seconds);
        let memory = gateway.memory();
        let ratio = rates[0] / rates[1];
        if second > WARM_UP.as_secs() && rates[1] > 0.0 {
            self.memory.push(memory);
            self.ratios.push(ratio);
        }
        (self.at, self.received) = (second, received);
        let mut row = format!(
            "{second:>6} {:>4.1} {:>6} {:>5} {:>7} {:>4} {:>4} {:>5}",
            memory as f64 / 1e6,
            gateway.descriptors(),
            count("connections"),
            count("tunnels"),
            count("held"),
            count("waiting"),
            count("kept"),
        );
        for rate in rates {
            let _ = write!(row, " {:>6.2}", rate / 1e6);
        }
        let used = rates.iter().sum::<f64>() / RATE * 100.0;
        let _ = write!(row, "        {used:>5.1} {ratio:>5.2}");
        for times in times {
            let mut times = std::mem::take(&mut *times.lock().unwrap());
            times.sort();
            let at = |part: f64| {
                times.get((times.len() as f64 * part) as usize).map_or(0, Duration::as_millis)
            };
            let _ = write!(row, "          {:>6} {:>6}", at(0.5), at(0.95));
        }
        row
    }

    /// Memory does not grow, and shares are what weights say.
    fn check(&self) {
        if self.ratios.len() < 3 {
            return println!("too short to say anything about memory and shares");
        }
        let (first, last) = (self.memory[0], *self.memory.last().expect("there are three"));
        assert!(last <= first + GROWTH, "memory grows from {first} to {last}");
        let mean = self.ratios.iter().sum::<f64>() / self.ratios.len() as f64;
        println!("mean of a:b {mean:.2}");
        assert!((2.5..6.5).contains(&mean), "shares {mean}");
    }
}
