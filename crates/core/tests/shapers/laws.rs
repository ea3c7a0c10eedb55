//! Laws of shapers and of an egress that hold exactly on every sample path.

use proptest::prelude::*;
use tidegate_core::discipline::fifo::Fifo;
use tidegate_core::egress::{Egress, Poll};
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::shaper::{CREDIT, Htb, Paced};
use tidegate_core::{Buffer, Bytes, Discipline, FlowKey, Losses, Packet, Port, Rate, Span, Time};
use tidegate_twins::audit::key;

const ROOMY: Buffer = Buffer::packets(u32::MAX);

fn fifo() -> Box<dyn Discipline> {
    Box::new(Fifo::new(ROOMY))
}

/// Gaps between arrivals, with their sizes.
fn arrivals() -> impl Strategy<Value = Vec<(u64, u8, Bytes)>> {
    prop::collection::vec((0..3_000_000_u64, 0..4_u8, (40..=1_500_u64).prop_map(Bytes)), 1..150)
}

/// What was sent: when it was taken, its number, and when its last bit has left.
type Sent = Vec<(Time, u64, Time)>;

/// Polls an egress `late` after a packet may leave, and then until none may, and
/// perhaps in vain as well.
fn serve(
    mut egress: Egress,
    arrivals: &[(u64, u8, Bytes)],
    mut late: impl FnMut() -> Span,
    in_vain: bool,
) -> Sent {
    let mut sent = Sent::new();
    let mut wake: Option<Time> = None;
    let mut arrivals = arrivals
        .iter()
        .scan(Time::ZERO, |now, (gap, flow, size)| {
            *now += Span(*gap);
            Some((*now, *flow, *size))
        })
        .enumerate()
        .peekable();
    loop {
        let arrival = arrivals.peek().map(|(_, (at, ..))| *at);
        // What arrives as the link becomes free is there when it asks.
        let now = match (arrival, wake) {
            (Some(arrival), Some(at)) if at < arrival => at,
            (Some(arrival), _) => arrival,
            (None, Some(at)) => at,
            (None, None) => return sent,
        };
        if arrival == Some(now) {
            let (number, (_, flow, size)) = arrivals.next().expect("it was peeked at");
            assert!(egress.offer(now, Packet::new(number as u64, key(flow), size)).is_empty());
        } else {
            wake = None;
            while let Poll::Packet { packet, sent: end } = egress.poll(now) {
                sent.push((now, packet.handle, end));
            }
        }
        if in_vain && egress.next_ready(now).is_some_and(|at| at > now) {
            assert!(matches!(egress.poll(now), Poll::ReadyAt(_)));
        }
        if wake.is_none() {
            wake = egress.next_ready(now).map(|at| at + late());
        }
    }
}

/// A link as the simulator has it: busy until the last bit has left.
fn plain_link(discipline: Box<dyn Discipline>, rate: Rate, arrivals: &[(u64, u8, Bytes)]) -> Sent {
    let mut port = Port::new(discipline);
    let (mut sent, mut now, mut busy_until) = (Sent::new(), Time::ZERO, Time::ZERO);
    let mut send_before = |port: &mut Port, busy_until: &mut Time, from: Time, until: Time| {
        let mut now = from;
        while port.backlog().packets > 0 && now.max(*busy_until) < until {
            now = now.max(*busy_until);
            let Some(packet) = port.take(now) else { break };
            *busy_until = now + rate.transmission(packet.size);
            sent.push((now, packet.handle, *busy_until));
        }
    };
    for (number, (gap, flow, size)) in arrivals.iter().enumerate() {
        let next = now + Span(*gap);
        send_before(&mut port, &mut busy_until, now, next);
        now = next;
        port.offer(now, Packet::new(number as u64, key(*flow), *size));
    }
    send_before(&mut port, &mut busy_until, now, Time::FAR_FUTURE);
    sent
}

const RATE: Rate = Rate(5_000_000);

proptest! {
    #[test]
    fn polled_on_time_an_egress_is_a_link_that_is_busy_until_the_last_bit_has_left(
        rate in (100_000..100_000_000_u64).prop_map(Rate), arrivals in arrivals(),
    ) {
        for name in ["fifo", "las", "scfq", "drr", "fq-codel", "efd"] {
            let entry = registry::find(name).expect("it is registered");
            let built = || entry.build(&[], ROOMY, 1).expect("defaults are valid");
            let egress = serve(Egress::new(built(), rate), &arrivals, || Span::ZERO, false);
            prop_assert_eq!(egress, plain_link(built(), rate, &arrivals), "{}", name);
        }
    }

    #[test]
    fn an_egress_in_front_of_a_shaper_of_the_same_rate_sends_as_the_shaper_does(
        arrivals in arrivals(),
    ) {
        let plain = plain_link(fifo(), RATE, &arrivals);
        let paced = Egress::new(Box::new(Paced::new(fifo(), RATE)), RATE);
        prop_assert_eq!(serve(paced, &arrivals, || Span::ZERO, false), plain);
    }

    /// Late by up to the credit, no packet is on the wire later than it would have
    /// been, and none is taken more than the credit before its last bit has to go.
    #[test]
    fn late_polls_within_the_credit_carry_as_much(
        arrivals in arrivals(), delays in prop::collection::vec(0..=CREDIT.0, 1..40),
    ) {
        let on_time = serve(Egress::new(fifo(), RATE), &arrivals, || Span::ZERO, false);
        let mut delays = delays.into_iter().cycle().map(Span);
        let late = || delays.next().expect("it goes round");
        let late = serve(Egress::new(fifo(), RATE), &arrivals, late, false);
        prop_assert_eq!(on_time.len(), late.len());
        for (on_time, late) in on_time.iter().zip(&late) {
            prop_assert_eq!(on_time.1, late.1);
            prop_assert!(late.2 <= on_time.2, "{:?} is later than {:?}", late, on_time);
            prop_assert!(late.0 <= on_time.0 + CREDIT);
        }
        check_windows(&late, &arrivals);
    }

    /// Of a longer delay, what is beyond the credit is lost, once for each late poll.
    #[test]
    fn later_polls_lose_no_more_than_what_is_beyond_the_credit(
        arrivals in arrivals(), delays in prop::collection::vec(0..3 * CREDIT.0, 1..40),
    ) {
        let on_time = serve(Egress::new(fifo(), RATE), &arrivals, || Span::ZERO, false);
        let (mut delays, mut beyond) = (delays.into_iter().cycle().map(Span), Span::ZERO);
        let late = || {
            let late = delays.next().expect("it goes round");
            beyond += late - CREDIT;
            late
        };
        let late = serve(Egress::new(fifo(), RATE), &arrivals, late, false);
        let ends = [&on_time, &late].map(|sent| sent.last().expect("all are sent").2);
        prop_assert!(ends[1] <= ends[0] + beyond, "{ends:?} with {beyond} lost");
        check_windows(&late, &arrivals);
    }

    #[test]
    fn polls_in_vain_change_nothing(
        arrivals in arrivals(), delays in prop::collection::vec(0..2 * CREDIT.0, 1..40),
    ) {
        let run = |in_vain| {
            let mut delays = delays.iter().cycle().map(|nanos| Span(*nanos));
            let late = || delays.next().expect("it goes round");
            serve(Egress::new(fifo(), RATE), &arrivals, late, in_vain)
        };
        prop_assert_eq!(run(true), run(false));
    }
}

/// In any time from one packet to another no more is taken than the rate carries in
/// it and in the credit, but for the last packet.
fn check_windows(sent: &Sent, arrivals: &[(u64, u8, Bytes)]) {
    let size = |number: &u64| arrivals[*number as usize].2;
    for (first, (from, ..)) in sent.iter().enumerate() {
        let mut taken = Bytes::ZERO;
        for (to, number, _) in &sent[first..] {
            let most = RATE.volume(to.since(*from) + CREDIT);
            assert!(taken <= most, "{taken} taken from {from} to {to}");
            taken += size(number);
        }
    }
}

/// Always backlogged and polled when it says, a shaper's rate is used to the last bit.
#[test]
fn a_backlogged_shaper_sends_at_its_rate_exactly() {
    const PACKETS: u64 = 2_000;
    // 500 bytes take 800 microseconds: nothing is rounded.
    let packet = |number: u64| {
        let class = (number % 3) as u16;
        let flow = FlowKey::v4([192, 0, 2, class as u8], 80, [10, 0, 0, 1], 50_000, FlowKey::TCP);
        Packet { class, ..Packet::new(number, flow, Bytes(500)) }
    };
    let shares = [5, 3, 2].map(|tenths| (RATE / 10 * tenths, fifo()));
    let shapers: [(&str, Box<dyn Discipline>, u64); 2] = [
        ("paced", Box::new(Paced::new(fifo(), RATE)), 0),
        // Of each bucket the burst, and the packet that takes it below zero.
        ("htb", Box::new(Htb::new(RATE, shares.into_iter().collect())), 4 * (1_600 + 500)),
    ];
    for (name, mut shaper, burst) in shapers {
        let (mut losses, mut now) = (Losses::new(), Time::ZERO);
        (0..PACKETS).for_each(|number| shaper.enqueue(now, packet(number), &mut losses));
        for number in 0..PACKETS {
            now = shaper.next_ready(now).expect("packets wait");
            assert!(shaper.dequeue(now, &mut losses).is_some(), "{name}, {number}");
            let carried = RATE.volume(now.since(Time::ZERO));
            let before = Bytes(number * 500);
            assert!(carried <= before && before <= carried + Bytes(burst), "{name}, {number}");
        }
        assert_eq!(shaper.rate(), Some(RATE));
    }
}

#[test]
fn what_does_not_hold_packets_back_has_no_rate() {
    for entry in DISCIPLINES {
        let discipline = entry.build(&[], ROOMY, 1).expect("defaults are valid");
        assert_eq!(discipline.rate(), None, "{}", entry.name);
    }
}

#[test]
fn a_new_rate_counts_from_the_next_packet_on() {
    let mut egress = Egress::new(fifo(), Rate(8_000_000));
    for number in 0..3 {
        assert!(egress.offer(Time::ZERO, Packet::new(number, key(0), Bytes(1_000))).is_empty());
    }
    let sent = |polled| match polled {
        Poll::Packet { sent, .. } => sent,
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(egress.poll(Time::ZERO)), Time(1_000_000));
    egress.set_rate(Rate(16_000_000));
    assert_eq!(egress.poll(Time(500_000)), Poll::ReadyAt(Time(1_000_000)));
    assert_eq!(sent(egress.poll(Time(1_000_000))), Time(1_500_000));
    assert_eq!(egress.rate(), Rate(16_000_000));
}

#[test]
fn a_link_that_is_idle_saves_up_nothing() {
    let mut egress = Egress::new(fifo(), Rate(8_000_000));
    let now = Time(5 * CREDIT.0);
    for number in 0..2 {
        assert!(egress.offer(now, Packet::new(number, key(0), Bytes(1_000))).is_empty());
    }
    assert!(matches!(egress.poll(now), Poll::Packet { sent, .. } if sent == now + Span::millis(1)));
    assert_eq!(egress.poll(now), Poll::ReadyAt(now + Span::millis(1)));
}
