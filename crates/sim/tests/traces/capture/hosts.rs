//! Which side is the user's, and the rhythm of a flow.

use std::net::Ipv6Addr;

use tidegate_core::{Bytes, FlowKey, Rate, Span, Time};
use tidegate_sim::trace::{Capture, CapturedPacket, Direction, Hosts};

use super::writer::{HOME, HOME_6, SERVER, SERVER_6, address};

/// A capture of one packet for each pair of ends.
fn capture<A: Into<std::net::IpAddr> + Copy>(ends: &[(A, A)]) -> Capture {
    let packets = ends.iter().map(|&(from, to)| CapturedPacket {
        at: Time::ZERO,
        flow: FlowKey::new((from.into(), 1).into(), (to.into(), 2).into(), FlowKey::UDP),
        size: Bytes(100),
        tcp: None,
        dscp: Default::default(),
        ecn: Default::default(),
    });
    Capture { packets: packets.collect(), ..Capture::default() }
}

fn directions(capture: &Capture) -> Vec<Option<Direction>> {
    let hosts = capture.local_hosts();
    capture.packets.iter().map(|packet| hosts.direction(packet.flow)).collect()
}

const UP: Option<Direction> = Some(Direction::Up);
const DOWN: Option<Direction> = Some(Direction::Down);

#[test]
fn private_addresses_are_the_users() {
    let router = [192, 168, 1, 1];
    let capture = capture(&[(HOME, SERVER), (SERVER, HOME), (HOME, router), (SERVER, HOME)]);
    assert_eq!(directions(&capture), [UP, DOWN, None, DOWN]);
    let hosts: Vec<_> = capture.local_hosts().addresses().collect();
    assert_eq!(hosts, [address(router), address(HOME)]);
}

#[test]
fn without_private_addresses_the_busiest_is_the_user() {
    let servers = [[198, 51, 100, 1], [198, 51, 100, 2], [198, 51, 100, 3]];
    let user = [100, 64, 3, 4];
    let capture = capture(&[
        (servers[0], user),
        (user, servers[0]),
        (user, servers[1]),
        (user, servers[2]),
        (servers[2], servers[1]),
    ]);
    assert_eq!(directions(&capture), [DOWN, UP, UP, UP, None]);
}

#[test]
fn of_two_that_are_as_busy_the_user_spoke_first() {
    let both_private = [10, 0, 0, 1];
    for (first, second) in [(HOME, both_private), (both_private, HOME)] {
        let capture = capture(&[(first, second), (second, first), (second, first)]);
        assert_eq!(directions(&capture), [UP, DOWN, DOWN]);
    }
}

#[test]
fn an_ipv6_household_is_a_network() {
    let second = Ipv6Addr::from_bits(HOME_6.to_bits() + 5);
    let link_local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 1);
    let multicast = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0xfb);
    let other_server = Ipv6Addr::new(0x2001, 0xdb8, 8, 8, 0, 0, 0, 8);
    let capture = capture(&[
        (link_local, multicast),
        (HOME_6, multicast),
        (SERVER_6, HOME_6),
        (second, other_server),
        (second, HOME_6),
        (HOME_6, link_local),
    ]);
    assert_eq!(directions(&capture), [None, None, DOWN, UP, None, None]);
    assert_eq!(capture.local_hosts().addresses().count(), 2);
}

#[test]
fn the_two_families_are_judged_apart() {
    let mut both = capture(&[(HOME, SERVER), (SERVER, HOME)]);
    both.packets.extend(capture(&[(HOME_6, SERVER_6), (SERVER_6, HOME_6)]).packets);
    assert_eq!(directions(&both), [UP, DOWN, UP, DOWN]);
}

#[test]
fn who_knows_better_says_so() {
    let capture = capture(&[(HOME, SERVER)]);
    let hosts = Hosts::new([address(SERVER)]);
    assert_eq!(hosts.direction(capture.packets[0].flow), DOWN);
    assert_eq!(Hosts::default().direction(capture.packets[0].flow), None);
    assert_eq!(Capture::default().local_hosts(), Hosts::default());
}

#[test]
fn the_rhythm_of_a_flow_has_its_mean_rate() {
    let mut capture = capture(&[(HOME, SERVER); 4]);
    for (packet, millis) in capture.packets.iter_mut().zip([0, 20, 40, 70]) {
        packet.at = Time::ZERO + Span::millis(millis);
    }
    let flow = capture.packets[0].flow;
    let profile = capture.call_profile(flow).expect("four packets make a rhythm");
    let gaps: Vec<_> = profile.packets.iter().map(|(gap, _)| gap.0 / 1_000_000).collect();
    assert_eq!(gaps, [20, 20, 30, 20]);
    assert_eq!(profile.period(), Span::millis(90));
    assert_eq!(profile.mean_rate(), Rate(400 * 8 * 100 / 9));
    assert_eq!(capture.call_profile(flow.reversed()), None);
}
