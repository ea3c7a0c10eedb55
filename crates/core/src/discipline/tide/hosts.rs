//! Hosts, where Tide is to be fair between them first: so that nobody gains by having more
//! flows, nor by beginning new ones. A flow has two hosts, its source and its destination,
//! and is held to the stricter.
//!
//! **Shares.** A packet of a payer counts as many times as its host has payers. Hence a host
//! has one share, however many flows of its pay, and virtual time moves by the share of a
//! host.
//!
//! **Beginnings.** Each packet that comes moves the tag of its hosts by an eighth of its size,
//! from v - C on, and no flow of a host is in credit before that tag. A host whose flows get
//! up to eight shares stays where flows begin, and they have all of their credit. A host that
//! wants more runs into virtual time, and beyond: its new flows are payers, which wait until
//! virtual time is where they begin. Eight is as much as the toll leaves to flows in credit.
//! Neither happens while the host is the only one of its side that has something queued: it
//! takes nothing from anybody, as a server that sends alone.
//!
//! **Losses.** A full buffer takes the packet that would be sent last, also if it is its
//! flow's only one: else a host whose packets are each a flow fills the buffer, and whoever
//! comes then is refused.
//!
//! **Memory.** A host is known while a flow of it is remembered. A flow that begins where its
//! host stands has moved on by more than the host when it has sent; as long as the host's
//! tag matters, so does that flow's.
//!
//! **Bounds.** With L the largest packet, s the length of a slot:
//!
//! - Two hosts of which n and m flows are always backlogged as payers get the same in every
//!   interval, but for (n + m) L and 2 s.
//! - A host gets at most 8 (W + C + L + 2 s) + L while a payer of another host that is alone
//!   there gets W, whatever flows it begins.

use super::TOLL;
use super::mark::Mark;
use crate::discipline::hosts::{self, Sides};
use crate::packet::FlowKey;
use crate::units::Bytes;

/// Sources, and destinations, of the flows that are remembered.
#[derive(Debug)]
pub(super) struct Hosts {
    known: hosts::Hosts<Host>,
    /// How many of each side have something queued.
    backlogged: [u64; 2],
}

#[derive(Debug)]
struct Host {
    /// No flow of the host that is in credit has an earlier one.
    tag: Mark,
    backlogged: u32,
    payers: u32,
}

/// What these do is compiled apart, as what is rare: where hosts do not count, a packet should
/// not pay for registers that they would use.
impl Hosts {
    pub(super) fn new(seed: u64) -> Hosts {
        Hosts { known: hosts::Hosts::new(seed), backlogged: [0; 2] }
    }

    /// A flow is remembered; hosts that are new begin where flows do.
    #[cold]
    pub(super) fn join(&mut self, flow: FlowKey, begins: Mark) -> Sides {
        let fresh = || Host { tag: begins, backlogged: 0, payers: 0 };
        self.known.join([true; 2], flow, fresh)
    }

    /// A flow of these hosts is forgotten.
    #[cold]
    pub(super) fn leave(&mut self, sides: Sides) {
        self.known.leave(sides);
    }

    /// A flow of these hosts has something queued from now on.
    #[cold]
    pub(super) fn begin(&mut self, sides: Sides) {
        for (host, backlogged) in self.known.of(sides).zip(&mut self.backlogged) {
            *backlogged += u64::from(host.backlogged == 0);
            host.backlogged += 1;
        }
    }

    /// A flow of these hosts has nothing queued any more.
    #[cold]
    pub(super) fn end(&mut self, sides: Sides) {
        for (host, backlogged) in self.known.of(sides).zip(&mut self.backlogged) {
            host.backlogged -= 1;
            *backlogged -= u64::from(host.backlogged == 0);
        }
    }

    /// A packet of a flow has come: an eighth of its size, rounded up, moves the tags of its hosts.
    #[cold]
    pub(super) fn charge(&mut self, sides: Sides, size: Bytes, begins: Mark, farthest: Mark) {
        let eighth = Bytes(size.0.div_ceil(TOLL));
        for host in self.shared(sides) {
            host.tag = host.tag.latest(begins).after(eighth).earliest(farthest);
        }
    }

    /// The tag before which no flow of these hosts is in credit.
    #[cold]
    pub(super) fn floor(&mut self, sides: Sides, tag: Mark) -> Mark {
        self.shared(sides).fold(tag, |tag, host| tag.latest(host.tag))
    }

    /// Those of these hosts that are not alone on their side.
    fn shared(&mut self, sides: Sides) -> impl Iterator<Item = &mut Host> {
        let Hosts { known, backlogged } = self;
        let hosts = known.of(sides).zip(*backlogged);
        hosts.filter_map(|(host, backlogged)| (backlogged > 1).then_some(host))
    }

    /// A flow of these hosts has become a payer, or is none any more.
    #[cold]
    pub(super) fn pays(&mut self, sides: Sides, pays: bool) {
        for host in self.known.of(sides) {
            if pays {
                host.payers += 1;
            } else {
                host.payers -= 1;
            }
        }
    }

    /// The payers of the source or of the destination, whichever has more.
    #[cold]
    pub(super) fn payers(&mut self, sides: Sides) -> u64 {
        self.known.of(sides).map(|host| host.payers).fold(1, u32::max).into()
    }
}
