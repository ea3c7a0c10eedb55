//! What Tide promises to hosts where shares are fair between them, each with the worst load
//! for it. The figures are derived in `discipline/tide/hosts.rs`.

use tidegate_core::{FlowKey, Packet};

use super::tide::{CREDIT, FULL, Queue, SLOT};

/// How many shares a host may have in credit.
const SHARES: i64 = 8;

/// The queue of hosts that receive what is queued, or send it.
struct Hosts {
    queue: Queue,
    receive: bool,
}

impl Hosts {
    fn new(buffer: u32, receive: bool) -> Hosts {
        Hosts { queue: Queue::new("on", buffer), receive }
    }

    fn arrive(&mut self, (host, flow): (u8, u32), size: i64) {
        let [_, a, b, c] = flow.to_be_bytes();
        let key = FlowKey::v4([192, 0, 2, host], 50_000, [10, a, b, c], 443, FlowKey::UDP);
        let key = if self.receive { key.reversed() } else { key };
        self.queue.take(u64::from(host) << 32 | u64::from(flow), key, size);
    }

    /// The host, the flow and the size of what is sent.
    fn send(&mut self) -> ((u8, u32), i64) {
        let packet = self.queue.give();
        (owner(&packet), packet.size.0.cast_signed())
    }
}

fn owner(packet: &Packet) -> (u8, u32) {
    ((packet.handle >> 32) as u8, packet.handle as u32)
}

/// A round of n packets moves the tag of a host with n flows by n packets, so two hosts
/// differ by a round of each, as two flows differ by a packet of each.
#[test]
fn hosts_have_the_same_however_many_flows_of_theirs_pay() {
    const FLOWS: [i64; 4] = [1, 2, 7, 40];
    for receive in [false, true] {
        let mut hosts = Hosts::new(1_000_000, receive);
        for (host, flows) in (0..).zip(FLOWS) {
            for flow in 0..flows as u32 {
                (0..40).for_each(|_| hosts.arrive((host, flow + 1_000 * u32::from(host)), FULL));
            }
        }
        let mut had = [0; FLOWS.len()];
        // Beginning when all have had their credit.
        let warm_up = FLOWS.iter().sum::<i64>() * (CREDIT / FULL + 2);
        let mut highest = [[0; FLOWS.len()]; FLOWS.len()];
        for sent in 0..100_000 {
            let (flow, size) = hosts.send();
            hosts.arrive(flow, size);
            if sent < warm_up {
                continue;
            }
            had[usize::from(flow.0)] += size;
            for (one, host) in highest.iter_mut().enumerate() {
                for (other, highest) in host.iter_mut().enumerate() {
                    let ahead = had[one] - had[other];
                    *highest = ahead.max(*highest);
                    let bound = (FLOWS[one] + FLOWS[other]) * FULL + 2 * SLOT;
                    assert!(*highest - ahead <= bound, "{one}, {other}: {ahead} after {highest}");
                }
            }
        }
        assert!(had.iter().all(|had| *had > 20_000 * FULL), "{had:?}");
    }
}

/// A host that puts every packet into a flow of its own, `standing` at a time, or so many
/// and then none until all are sent. What it has sent moves its tag by an eighth, from where
/// flows begin on, and is not sent before virtual time is there.
#[test]
fn a_host_whose_flows_are_all_new_has_eight_shares_and_no_more() {
    const PAYERS: u8 = 2;
    for (standing, in_bursts) in [(1, false), (10, false), (200, false), (3, true), (100, true)] {
        for receive in [false, true] {
            let mut hosts = Hosts::new(1_000_000, receive);
            for payer in 0..PAYERS {
                (0..40).for_each(|_| hosts.arrive((payer, u32::from(payer)), FULL));
            }
            for _ in 0..2 * i64::from(PAYERS) * CREDIT / FULL {
                let (flow, size) = hosts.send();
                hosts.arrive(flow, size);
            }
            let (mut paid, mut hopped, mut next, mut waiting) = ([0; 2], 0, 1_000, 0);
            for _ in 0..200_000 {
                let wants = if in_bursts { waiting == 0 } else { waiting < standing };
                if wants {
                    for _ in waiting..standing {
                        hosts.arrive((PAYERS, next), FULL);
                        next += 1;
                    }
                    waiting = standing;
                }
                let (flow, size) = hosts.send();
                if flow.0 == PAYERS {
                    (hopped, waiting) = (hopped + size, waiting - 1);
                } else {
                    paid[usize::from(flow.0)] += size;
                    hosts.arrive(flow, size);
                }
                for paid in paid {
                    let most = SHARES * (paid + CREDIT + FULL + 2 * SLOT) + FULL;
                    assert!(hopped <= most, "{standing}, {in_bursts}: {hopped} of {most}");
                }
            }
            assert!(hopped > paid[0] && paid[0] > 1_000 * FULL, "{standing}: {hopped}, {paid:?}");
        }
    }
}

/// One host fills the buffer with flows of one packet, beside a call and two payers of other
/// hosts: the call waits for nobody, and loses nothing.
#[test]
fn a_host_that_fills_the_buffer_with_new_flows_loses_what_others_keep() {
    const HOPPER: u8 = 9;
    const CALL: u8 = 8;
    let mut hosts = Hosts::new(300, false);
    let (mut next, mut lost) = (0, [0; 2]);
    for step in 0..100_000 {
        // Twice as much as can be sent comes of the hopper alone.
        for _ in 0..2 {
            hosts.arrive((HOPPER, next), FULL);
            next += 1;
        }
        if step % 4 == 0 {
            hosts.arrive((0, 0), FULL);
            hosts.arrive((1, 1), FULL);
        }
        let calls = step % 17 == 0;
        if calls {
            hosts.arrive((CALL, 5_000_000), 200);
        }
        for loss in hosts.queue.losses.as_slice() {
            let (host, _) = owner(&loss.packet);
            assert_ne!(host, CALL, "{step}");
            lost[usize::from(host == HOPPER)] += 1;
        }
        hosts.queue.losses.clear();
        let (flow, _) = hosts.send();
        // Until the hopper has had its eight shares of the first credit.
        if calls && step > 1_000 {
            assert_eq!(flow.0, CALL, "{step}");
        }
    }
    // Payers that ask for half of all have lost what is above their shares.
    assert!(lost[1] > 100_000 && lost[0] < lost[1] / 2, "{lost:?}");
}
