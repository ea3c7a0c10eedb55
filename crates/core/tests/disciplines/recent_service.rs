//! LARS against its promises, checked without its arithmetic.

use std::collections::BTreeMap;

use proptest::prelude::*;
use tidegate_core::{
    Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Rate, Span, Time, registry,
};
use tidegate_twins::audit::{self, Operation};

use super::laws::usual_operations;

const UNLIMITED: Buffer = Buffer::packets(u32::MAX);

fn lars(half_life: Span) -> Box<dyn Discipline> {
    let half_life = format!("{} ns", half_life.0);
    let entry = registry::find("lars").expect("it is registered");
    // Nothing is forgotten: what is tested is decay.
    let given = [("half_life", half_life.as_str()), ("idle", "86400 s")];
    entry.build(&given, UNLIMITED, 1).unwrap_or_else(|error| panic!("{error}"))
}

/// What is left after `span` of a service of 1.
fn left(span: Span, half_life: Span) -> f64 {
    0.5_f64.powf(span.as_seconds() / half_life.as_seconds())
}

proptest! {
    /// The packet sent is one whose flow had least as it came, with all services
    /// decayed to the present. Floating point tells services apart from 1e-9 on.
    #[test]
    fn the_least_decayed_service_goes_first(
        operations in usual_operations(),
        half_life in (1_000_000..20_000_000_000_u64).prop_map(Span),
    ) {
        let mut discipline = lars(half_life);
        let (mut now, mut losses) = (Time::ZERO, Losses::new());
        // For each flow: service, and as of when.
        let mut services = BTreeMap::<FlowKey, (f64, Time)>::new();
        // For each queued packet: the service of its flow, and as of when.
        let mut queued = BTreeMap::<u64, (f64, Time)>::new();
        for (handle, operation) in (0..).zip(operations) {
            match operation {
                Operation::Wait(span) => now += span,
                Operation::Arrive { flow, size } => {
                    let flow = audit::key(flow);
                    let (service, at) = services.entry(flow).or_insert((0.0, now));
                    let decayed = *service * left(now.since(*at), half_life);
                    queued.insert(handle, (decayed, now));
                    (*service, *at) = (decayed + size.0 as f64, now);
                    discipline.enqueue(now, Packet::new(handle, flow, size), &mut losses);
                }
                Operation::Send | Operation::SendWhenReady => {
                    let Some(sent) = discipline.dequeue(now, &mut losses) else { continue };
                    let decayed = |(service, at): &(f64, Time)| {
                        service * left(now.since(*at), half_life)
                    };
                    let own = queued.remove(&sent.handle).map(|entry| decayed(&entry));
                    let least = queued.values().map(decayed).fold(f64::INFINITY, f64::min);
                    prop_assert!(own.is_some_and(|own| own <= least * (1.0 + 1e-9)));
                }
            }
        }
    }
}

/// A link of `rate` with two packets of `size` queued of each flow at all
/// times: the first flow has had it alone for 30 half-lives when the second
/// comes. How long does the second keep the first from being served?
fn lock_out(rate: Rate, size: Bytes, half_life: Span) -> Span {
    const OLD: u8 = 0;
    const NEW: u8 = 1;
    let (mut discipline, mut losses) = (lars(half_life), Losses::new());
    let (mut now, mut handle) = (Time::ZERO, 0);
    let mut arrive = |discipline: &mut Box<dyn Discipline>, now, flow| {
        discipline.enqueue(now, Packet::new(handle, audit::key(flow), size), &mut losses);
        handle += 1;
    };
    let mut began = None;
    arrive(&mut discipline, now, OLD);
    arrive(&mut discipline, now, OLD);
    loop {
        if began.is_none() && now.since(Time::ZERO) >= half_life * 30 {
            began = Some(now);
            arrive(&mut discipline, now, NEW);
            arrive(&mut discipline, now, NEW);
        }
        let sent = discipline.dequeue(now, &mut Losses::new()).expect("both are backlogged");
        if let Some(began) = began.filter(|_| sent.flow == audit::key(OLD)) {
            return now.since(began);
        }
        let flow = if sent.flow == audit::key(OLD) { OLD } else { NEW };
        now += rate.transmission(size);
        arrive(&mut discipline, now, flow);
    }
}

/// The old flow's service of `C h / ln 2` halves while the new one's grows from
/// nothing to the same. Service is counted as packets come and not as they
/// leave, and comes in packets: each flow may be off by its two queued ones. At
/// the end one packet time makes up for one packet.
#[test]
fn one_flow_locks_another_out_for_one_half_life() {
    const PACKET_TIMES: u64 = 4;
    for (rate, size, half_life) in [
        (Rate(1_000_000), Bytes(1_500), Span::seconds(10)),
        (Rate(10_000_000), Bytes(1_500), Span::seconds(1)),
        (Rate(10_000_000), Bytes(200), Span::millis(200)),
        (Rate(100_000_000), Bytes(1_500), Span::millis(100)),
        (Rate(100_000_000), Bytes(9_000), Span::seconds(1)),
        (Rate(1_000_000_000), Bytes(40), Span::millis(5)),
    ] {
        let tolerance = rate.transmission(size) * PACKET_TIMES;
        let off = |half_life: Span, found: Span| found.0.abs_diff(half_life.0);
        let found = lock_out(rate, size, half_life);
        let what = format!("{rate} with {size}: {found} of {half_life}");
        assert!(off(half_life, found) <= tolerance.0, "{what}");
        let longer = lock_out(rate, size, half_life * 105 / 100);
        assert!(off(half_life, longer) > tolerance.0, "5% more goes unnoticed: {what}");
    }
}
