//! Gateways on the simulator's one network: disciplines and marks at the provider,
//! cells of stations, many classes, links of any rate.

use std::num::NonZeroU32;
use std::path::Path;

use tidegate_core::{Buffer, Bytes, Rate, Span, Time};
use tidegate_sim::pages::Pages;
use tidegate_sim::requests::{Class, Demand, Http, Outcome, ServerGroup, Setup, Through};
use tidegate_sim::scenario::file::{Folder, gateway};
use tidegate_sim::scenario::{Protocol, SizeLaw};

use super::outcome;

/// Three classes that always have something to ask for on 10 Mbit/s, with this in
/// the file.
fn busy(extra: &str) -> Setup {
    let text = format!(
        "title = \"T\"\nduration = \"80 s\"\nwarm_up = \"20 s\"\n\
         [link]\nrate = \"10 Mbit/s\"\nbuffer = \"300 kB\"\n{extra}\n\
         [[class]]\nname = \"all\"\nclients = 12\npause = \"1 s\"\n\
         [[servers]]\ncount = 12\ndelay = [\"5 ms\", \"40 ms\"]\n\
         rate = [\"50 Mbit/s\", \"100 Mbit/s\"]\n"
    );
    let comparison = gateway::parse("busy.toml", &text, &Folder(Path::new(".").into()));
    comparison.expect("the file is right").setup
}

/// Means over three seeds.
fn mean(setup: &Setup, name: &str, of: impl Fn(&Outcome) -> f64) -> f64 {
    (1..=3).map(|seed| of(&outcome(setup, name, &[], seed))).sum::<f64>() / 3.0
}

fn small_median(outcome: &Outcome) -> f64 {
    outcome.all(|class| &class.small).quantile(0.5).expect("some responses are small")
}

fn completed(outcome: &Outcome) -> u64 {
    outcome.classes.iter().map(|class| class.completed).sum()
}

#[test]
fn with_ecn_a_discipline_at_the_provider_marks_and_drops_fewer() {
    for (discipline, name) in [("codel", "direct"), ("fq-codel", "fifo"), ("red", "direct")] {
        let queue = format!("queue = {{ name = \"{discipline}\", ecn = \"on\" }}");
        let without = outcome(&busy(&queue), name, &[], 1).downlink;
        let with = outcome(&busy(&format!("{queue}\n[tcp]\necn = true")), name, &[], 1).downlink;
        assert_eq!(without.marked, 0, "{discipline} marks what cannot be marked");
        assert!(without.lost() > 100, "{discipline}: {} packets lost without", without.lost());
        assert!(with.marked > 100, "{discipline}: {} packets marked", with.marked);
        let (fewer, more) = (with.lost(), without.lost());
        assert!(2 * fewer < more, "{discipline}: {fewer} packets lost, {more} without ECN");
    }
}

#[test]
fn fifo_at_the_provider_marks_nothing_even_with_ecn() {
    let with = outcome(&busy("[tcp]\necn = true"), "direct", &[], 1);
    let without = outcome(&busy(""), "direct", &[], 1);
    assert_eq!(with.downlink.marked, 0);
    assert_eq!(with.downlink, without.downlink);
}

#[test]
fn flow_queues_at_the_provider_shorten_small_responses_without_a_gateway() {
    // Most where each response has a handshake that would wait.
    for (http, part) in [("[http]\nprotocol = \"http1.0\"", 0.75), ("", 0.9)] {
        let fifo = mean(&busy(http), "direct", small_median);
        let queues = format!("queue = \"fq-codel\"\n{http}");
        let queues = mean(&busy(&queues), "direct", small_median);
        assert!(queues < part * fifo, "{queues} s, {fifo} s with FIFO, {http}");
    }
}

#[test]
fn a_cell_slower_than_the_link_limits_what_its_stations_get() {
    let cell = |rate| busy(&format!("[wifi]\nrates = [\"{rate}\"]"));
    for name in ["msf", "fifo", "direct", "shaped-fq-codel"] {
        let used = |rate| outcome(&cell(rate), name, &[], 1);
        let (slow, fast) = (used("6 Mbit/s"), used("54 Mbit/s"));
        assert!(completed(&slow) > 300 && completed(&fast) > 300, "{name}");
        // 6 Mbit/s are at most 5.4 Mbit/s of payload one way, less with answers.
        assert!((0.3..0.54).contains(&slow.utilisation), "{name}: {}", slow.utilisation);
        assert!(fast.utilisation > 0.85, "{name}: {}", fast.utilisation);
    }
}

#[test]
fn a_cell_faster_than_the_link_leaves_its_classes_what_the_scheduler_gives_them() {
    let mut setup = busy("[wifi]\nrates = [\"54 Mbit/s\"]\nairtime_fairness = true");
    setup.classes = [3, 1].map(|weight| class(weight, 6, 20)).to_vec();
    let share = mean(&setup, "msf", |o| o.throughput_bps(0) / o.throughput_bps(1));
    assert!((2.6..3.4).contains(&share), "{share} instead of 3");
}

#[test]
fn counting_acknowledged_bytes_differs_from_counting_sent_bytes() {
    let figures = |name| {
        let outcome = outcome(&busy(""), name, &[], 1);
        (completed(&outcome), outcome.shaper.expect("it is one"))
    };
    assert_ne!(figures("shaped-las"), figures("shaped-las-ack"));
}

/// Three greedy users, of whom the second and the third are in one class, or are not.
#[test]
fn a_part_of_a_class_shares_with_it() {
    let share = |name: &str, part_of| {
        let mut classes = vec![class(1, 1, 8), class(1, 1, 8), class(1, 1, 8)];
        classes[2].part_of = part_of;
        let setup = Setup {
            sizes: SizeLaw::Constant(Bytes(50_000)),
            duration: Span::seconds(60),
            warm_up: Span::seconds(10),
            classes,
            ..Setup::today()
        };
        let given: &[_] = if name == "msf" { &[("shares", "class")] } else { &[] };
        let outcome = outcome(&setup, name, given, 1);
        let received: Vec<_> = outcome.classes.iter().map(|it| it.received.0 as f64).collect();
        received[0] / received.iter().sum::<f64>()
    };
    for name in ["msf", "htb", "pools"] {
        let (whole, apart) = (share(name, Some(1)), share(name, None));
        assert!((whole - 1.0 / 2.0).abs() < 0.03, "{name}: {whole}");
        assert!((apart - 1.0 / 3.0).abs() < 0.03, "{name}: {apart}");
    }
}

/// 100 kB over a link of 80 kbit/s of its own take ten seconds at least, and its neighbours'
/// next to nothing.
#[test]
fn a_class_may_have_slow_links_of_its_own() {
    let mut setup = Setup {
        rate: Rate(20_000_000),
        sizes: SizeLaw::Constant(Bytes(100_000)),
        duration: Span::seconds(60),
        warm_up: Span::ZERO,
        classes: vec![class(1, 1, 1), class(1, 1, 1)],
        ..Setup::today()
    };
    setup.classes[1].client_rate = Some(Rate(80_000));
    for name in ["msf", "direct"] {
        let outcome = outcome(&setup, name, &[], 1);
        let of = |class: usize, place| outcome.classes[class].response.quantile(place).unwrap();
        assert!(of(0, 1.0) < 5.0 && of(1, 0.0) > 10.0, "{name}: {} {}", of(0, 1.0), of(1, 0.0));
    }
}

/// A client takes 480 kB in a minute; the rest of 20 MB waits for it, and little of that at
/// the gateway or on the link behind it, whose queue has no end.
#[test]
fn a_gateway_does_not_read_what_its_client_does_not_take() {
    for protocol in [Protocol::Http11, Protocol::Http2] {
        let mut setup = Setup {
            rate: Rate(20_000_000),
            sizes: SizeLaw::Constant(Bytes(20_000_000)),
            http: Http { protocol, ..Http::TODAY },
            duration: Span::seconds(70),
            warm_up: Span::seconds(10),
            classes: vec![class(1, 1, 1)],
            ..Setup::today()
        };
        let received = |setup: &Setup, name| outcome(setup, name, &[], 1).classes[0].received;
        for name in ["msf", "fifo"] {
            setup.classes[0].client_rate = Some(Rate(64_000));
            let slow = received(&setup, name);
            assert!((400_000..1_000_000).contains(&slow.0), "{protocol:?}, {name}: {slow}");
            setup.classes[0].client_rate = None;
            let quick = received(&setup, name);
            assert!(quick > Bytes(2_000_000), "{protocol:?}, {name}: {quick}");
        }
    }
}

/// From 200 ms away, windows of 24 kB bring a tenth of 10 Mbit/s. Nobody else wants any of it.
#[test]
fn one_response_from_afar_fills_the_link_whether_or_not_it_would_be_held_back() {
    let away = (Span::millis(100), Span::millis(100));
    let mut setup = Setup {
        rate: Rate(10_000_000),
        buffer: Buffer::bytes(Bytes(250_000)),
        sizes: SizeLaw::Constant(Bytes(1_000_000_000)),
        servers: vec![ServerGroup { count: 1, delay: away, rate: (Rate(1 << 30), Rate(1 << 30)) }],
        duration: Span::seconds(40),
        warm_up: Span::seconds(10),
        classes: vec![class(1, 1, 1)],
        ..Setup::today()
    };
    for through in [Through::Requests, Through::Tunnels] {
        setup.classes[0].through = through;
        for name in ["msf", "fifo", "pools"] {
            let used = outcome(&setup, name, &[], 1).utilisation;
            assert!(used > 0.9, "{through:?}, {name}: {used}");
        }
    }
}

fn class(weight: u32, clients: u32, loops: u32) -> Class {
    Class {
        name: format!("weight {weight}"),
        weight: NonZeroU32::new(weight).expect("no weight is zero"),
        part_of: None,
        clients,
        demand: Demand::Closed { loops, pause: Span::seconds(1) },
        pages: Pages::Drawn,
        sizes: None,
        request: None,
        through: Through::Requests,
        failures: None,
        client_rate: None,
        presence: None,
        silent: Vec::new(),
    }
}

#[test]
fn classes_beyond_the_first_256_have_their_own_share() {
    let mut silent = class(1, 1, 1);
    silent.silent.push((Time::ZERO, Time::FAR_FUTURE));
    let mut setup = Setup {
        rate: Rate(20_000_000),
        buffer: Buffer::packets(300),
        sizes: SizeLaw::Constant(Bytes(200_000)),
        servers: vec![ServerGroup {
            count: 4,
            delay: (Span::millis(5), Span::millis(10)),
            rate: (Rate(100_000_000), Rate(100_000_000)),
        }],
        duration: Span::seconds(40),
        warm_up: Span::seconds(10),
        ..Setup::today()
    };
    setup.classes = vec![silent; 300];
    let busy = [0, 43, 255, 256, 299];
    for number in busy {
        setup.classes[number] = class(1, 1, 20);
    }
    for name in ["htb", "msf"] {
        let outcome = outcome(&setup, name, &[], 1);
        for number in busy {
            let share = outcome.throughput_bps(number) / outcome.throughput_bps(0);
            assert!((0.85..1.18).contains(&share), "{name}: class {number} gets {share} of 0's");
        }
        let others: u64 = outcome.classes.iter().map(|class| class.asked).sum();
        let of_busy: u64 = busy.iter().map(|number| outcome.classes[*number].asked).sum();
        assert_eq!(others, of_busy, "{name}: a silent class has asked");
    }
}

#[test]
fn links_of_any_rate_a_file_may_have_run_to_the_end() {
    for rate in [Rate(1_000), Rate(10_000_000_000)] {
        for name in ["msf", "htb", "direct", "pools", "shaped-fq-codel"] {
            let setup = Setup {
                rate,
                classes: vec![class(1, 1, 1), class(2, 1, 2)],
                duration: Span::seconds(60),
                warm_up: Span::seconds(1),
                ..Setup::today()
            };
            let outcome = outcome(&setup, name, &[], 1);
            assert_eq!(outcome.reached, Time(60_000_000_000), "{name} at {rate}");
            // A packet that is being sent as the time ends counts whole.
            let could = rate.volume(outcome.measured).0 + 1_500;
            let carried = outcome.downlink.delivered_bytes.0;
            assert!(carried <= could, "{name} at {rate}: {carried} bytes of {could}");
        }
    }
}
