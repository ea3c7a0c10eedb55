//! The simulated request gateway: shares, small responses, the window.

use tidegate_core::{Buffer, Bytes, Rate, Span, Time};
use tidegate_sim::requests::{Cbr, Demand, Outcome, Setup, Uplink};

use super::{outcome, shares, within};

/// The paper's set-up, for a shorter time.
fn short() -> Setup {
    Setup { duration: Span::seconds(400), warm_up: Span::seconds(60), ..Setup::paper() }
}

/// With so many loops that every class always has requests waiting.
fn backlogged() -> Setup {
    let mut setup = short();
    for class in &mut setup.classes {
        class.demand = Demand::Closed { loops: 20, pause: Span::seconds(5) };
    }
    setup
}

#[test]
fn the_same_seed_gives_the_same_run_and_another_one_does_not() {
    let setup = Setup { duration: Span::seconds(60), warm_up: Span::seconds(5), ..Setup::today() };
    let samples = |seed| outcome(&setup, "msf", &[], seed).samples;
    assert_eq!(samples(1), samples(1));
    assert_ne!(samples(1), samples(2));
}

#[test]
fn what_the_link_carries_is_what_classes_receive_and_headers() {
    let setup = short();
    for name in ["fifo", "paper", "msf"] {
        let outcome = outcome(&setup, name, &[], 1);
        let received: u64 = outcome.classes.iter().map(|class| class.received.0).sum();
        let carried = outcome.downlink.delivered_bytes.0;
        // 960 of 1 000 bytes are payload. The rest are handshakes, what was
        // sent twice, and what waits in the gateway at either end.
        let share = received as f64 / carried as f64;
        assert!((0.92..=0.96).contains(&share), "{name}: {share} of the link is payload");
        let completed: u64 = outcome.classes.iter().map(|class| class.completed).sum();
        assert!(completed > 1_000, "{name}: {completed} responses");
    }
}

#[test]
fn classes_get_their_weights_and_without_a_scheduler_they_do_not() {
    let setup = backlogged();
    for (name, given) in [("paper", &[][..]), ("msf", &[]), ("drr", &[])] {
        let [first, second] = shares(&setup, name, given);
        assert!(within(first, 4.0, 0.12) && within(second, 2.0, 0.12), "{name}: {first}, {second}");
    }
    for (name, given) in [("fifo", &[][..]), ("drr", &[("window", "unlimited")])] {
        let [first, second] = shares(&setup, name, given);
        assert!(within(first, 1.0, 0.15) && within(second, 1.0, 0.15), "{name}: {first}, {second}");
    }
}

#[test]
fn a_silent_classes_share_goes_to_the_others_in_proportion() {
    let mut setup = backlogged();
    setup.classes[0].silent.push((Time::ZERO, Time::FAR_FUTURE));
    let outcome = outcome(&setup, "paper", &[], 1);
    assert_eq!(outcome.classes[0].received.0, 0);
    let ratio = outcome.throughput_bps(1) / outcome.throughput_bps(2);
    assert!(within(ratio, 2.0, 0.12), "{ratio}");
    assert!(outcome.utilisation > 0.96, "{}", outcome.utilisation);
}

#[test]
fn shares_are_those_of_users_unless_users_do_not_count() {
    let mut setup = backlogged();
    setup.classes[0].clients = 8;
    let [by_user, _] = shares(&setup, "paper", &[]);
    assert!(within(by_user, 8.0, 0.15), "{by_user}");
    let [by_class, _] = shares(&setup, "paper", &[("shares", "class")]);
    assert!(within(by_class, 4.0, 0.15), "{by_class}");
}

#[test]
fn many_users_keep_their_shares_beside_the_long_responses_of_others() {
    let mut setup = Setup { sample_every: Span::seconds(10), ..Setup::today() };
    setup.duration = Span::seconds(400);
    setup.classes[0].clients = 24;
    // Of 400 seconds, each user of class 2 has 900 kB, which is a few large responses.
    let seeds = 1..=8;
    let mut shares = [0.0; 2];
    for seed in seeds.clone() {
        let outcome = outcome(&setup, "msf", &[], seed);
        for (class, share) in shares.iter_mut().enumerate() {
            let ratio = outcome.throughput_bps(class) / outcome.throughput_bps(2);
            *share += ratio / seeds.clone().count() as f64;
        }
    }
    // Six times as many users as in class 2. When long responses of the others filled the
    // link while class 0 waited for the window, it had less than half of this.
    assert!(within(shares[0], 24.0, 0.1) && within(shares[1], 2.0, 0.1), "{shares:?}");
}

#[test]
fn small_responses_come_sooner_with_the_read_gate_and_later_in_the_paper() {
    for setup in [short(), Setup { duration: Span::seconds(400), ..Setup::today() }] {
        let small = |name| {
            let outcome = outcome(&setup, name, &[], 1);
            outcome.all(|class| &class.small).quantile(0.5).expect("many are small")
        };
        let (fifo, paper, msf) = (small("fifo"), small("paper"), small("msf"));
        assert!(msf < 0.7 * fifo, "msf {msf} s, fifo {fifo} s");
        assert!(paper > 1.5 * fifo, "paper {paper} s, fifo {fifo} s");
    }
}

#[test]
fn the_window_stays_while_requests_are_few() {
    let mut setup = short();
    let silent = (Time(150_000_000_000), Time(300_000_000_000));
    setup.classes.iter_mut().take(2).for_each(|class| class.silent.push(silent));
    setup.classes[2].demand = Demand::Closed { loops: 1, pause: Span::seconds(10) };
    let outcome = outcome(&setup, "paper", &[], 1);
    let window_at = |second: usize| outcome.samples[second].window;
    assert!(window_at(140) > 4.0, "{}", window_at(140));
    // The first seconds of silence still have requests waiting.
    assert_eq!(window_at(200), window_at(299));
    let used = |from: usize, to: usize| {
        let carried = outcome.samples[to].carried - outcome.samples[from].carried;
        carried.0 as f64 * 8.0 / (to - from) as f64 / setup.rate.0 as f64
    };
    assert!(used(200, 299) < 0.5, "{}", used(200, 299));
    assert!(used(320, 399) > 0.95, "{}", used(320, 399));
}

#[test]
fn a_link_with_room_for_all_serves_open_demand_in_full() {
    let mut setup = short();
    // 12 clients with a page of 27.7 kB each every 8 s: a sixth of the link.
    for class in &mut setup.classes {
        class.demand = Demand::Open { every: Span::seconds(8) };
    }
    let fifo = outcome(&setup, "fifo", &[], 1);
    for name in ["msf", "paper"] {
        let outcome = outcome(&setup, name, &[], 1);
        let completed = |outcome: &Outcome| -> u64 {
            outcome.classes.iter().map(|class| class.completed).sum()
        };
        // The last few are cut off by the end.
        assert!(completed(&fifo).abs_diff(completed(&outcome)) <= 5);
        assert!(outcome.classes.iter().all(|class| class.failures.all() == 0));
    }
}

/// Two fifths of the link, for 40 s of every 80 s.
fn passing() -> Vec<Cbr> {
    let (on, off) = (Span::seconds(40), Span::seconds(40));
    vec![Cbr { rate: Rate(800_000), packet: Bytes(1_000), off, on, whose: None }]
}

#[test]
fn what_passes_is_on_and_off_and_belongs_to_no_class() {
    let mut setup = Setup { passing: passing(), duration: Span::seconds(200), ..Setup::paper() };
    for class in &mut setup.classes {
        class.silent.push((Time::ZERO, Time::FAR_FUTURE));
    }
    let outcome = outcome(&setup, "paper", &[], 1);
    // 100 packets a second; at a sample the last one can be on the wire.
    for (second, packets) in [(39, 0), (41, 100), (79, 3_900), (119, 4_000), (159, 7_900)] {
        let carried = outcome.samples[second].carried.0 / 1_000;
        assert!((packets..=packets + 1).contains(&carried), "{carried} packets after {second} s");
    }
    assert!(outcome.classes.iter().all(|class| class.received == Bytes::ZERO));
    // Of the last 100 s it was on for 40.
    assert!(within(outcome.utilisation, 0.4 * 0.4, 0.01), "{}", outcome.utilisation);
}

#[test]
fn classes_share_what_passing_traffic_leaves() {
    let setup = Setup { passing: passing(), ..backlogged() };
    let [first, second] = shares(&setup, "paper", &[]);
    assert!(within(first, 4.0, 0.12) && within(second, 2.0, 0.12), "{first}, {second}");
    let (alone, beside) =
        (outcome(&backlogged(), "paper", &[], 1), outcome(&setup, "paper", &[], 1));
    let payload = |outcome: &Outcome| -> f64 {
        outcome.classes.iter().map(|class| class.received.0 as f64).sum()
    };
    // It takes a fifth of the link, which is used as well as without it.
    let left = payload(&beside) / payload(&alone);
    assert!(within(left, 0.8, 0.03), "{left} of the payload is left");
    assert!(beside.utilisation > 0.96, "{}", beside.utilisation);
}

#[test]
fn unrequested_datagrams_of_a_user_count_for_the_class() {
    // 30% of the link for a user of class 0, to which 57% are due.
    let for_class_0 = |whose| Cbr {
        rate: Rate(600_000),
        packet: Bytes(1_000),
        off: Span::ZERO,
        on: Span::seconds(1_000),
        whose,
    };
    let mut setup = Setup { passing: vec![for_class_0(Some((0, 1)))], ..backlogged() };
    let [first, second] = shares(&setup, "paper", &[]);
    assert!(within(first, 4.0, 0.12) && within(second, 2.0, 0.12), "{first}, {second}");
    // All of it arrives, and class 0 receives it beside its responses.
    for class in &mut setup.classes {
        class.silent.push((Time::ZERO, Time::FAR_FUTURE));
    }
    let alone = outcome(&setup, "paper", &[], 1);
    assert!(within(alone.throughput_bps(0), 600_000.0, 0.001), "{}", alone.throughput_bps(0));
    assert_eq!(alone.classes[1].received, Bytes::ZERO);
    // As traffic of no class it is in no counter: then class 0 has its share without it.
    let nobodys = Setup { passing: vec![for_class_0(None)], ..backlogged() };
    let outcome = outcome(&nobodys, "paper", &[], 1);
    let (share, datagrams) = (outcome.throughput_bps(0) / outcome.throughput_bps(2), 600_000.0);
    assert!(within(share, 4.0, 0.12), "{share}");
    assert!((outcome.throughput_bps(0) + datagrams) / outcome.throughput_bps(2) > 6.0);
}

/// An uplink of 256 kbit/s with four uploads, behind this discipline.
fn uploading(discipline: &str, uploads: u32) -> Setup {
    let queue = discipline.parse().expect("it is registered");
    let queue = Some((queue, Buffer::packets(61)));
    let mut setup = short();
    for class in &mut setup.classes {
        class.demand = Demand::Open { every: Span::seconds(8) };
    }
    Setup { uplink: Uplink { rate: Some(Rate(256_000)), queue, uploads }, ..setup }
}

#[test]
fn uploads_fill_the_uplink_and_delay_requests_unless_a_queue_keeps_them_apart() {
    let run = |discipline, uploads| outcome(&uploading(discipline, uploads), "paper", &[], 1);
    let uplink = |outcome: &Outcome| {
        let sent = outcome.uplink.expect("its queue has a discipline").delivered_bytes;
        sent.0 as f64 * 8.0 / outcome.measured.as_seconds() / 256_000.0
    };
    let response = |outcome: &Outcome| outcome.all(|class| &class.response).mean().unwrap();
    let alone = run("fifo", 0);
    assert!(uplink(&alone) < 0.3, "{}", uplink(&alone));
    let [drop_tail, fair, priority] = ["fifo", "drr:full=longest", "run2c"].map(|discipline| {
        let outcome = run(discipline, 4);
        assert!(uplink(&outcome) > 0.95, "{discipline}: {}", uplink(&outcome));
        response(&outcome) / response(&alone)
    });
    // A packet waits behind a full queue, a packet of each upload, or one packet.
    assert!(drop_tail > 1.5 * fair && fair > 1.3 * priority && priority < 1.3);
}
