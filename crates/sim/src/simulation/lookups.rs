//! Packets of lookups: queries, and the answers of resolvers.
//!
//! A resolver has the answer in its cache and keeps nothing of who has asked: all that it
//! needs comes with the query, so it answers one that has waited too long as well.

use tidegate_core::{Bytes, Ecn, FlowKey};

use super::Programs;
use super::world::{Content, Segment, World};
use crate::lookups::{Lookup, LookupId};
use crate::lot::Lot;
use crate::scenario::{DnsProfile, NodeId};

/// A query, or the answer to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Message {
    /// The source of its lookup, and the number there.
    pub(super) traffic: u16,
    pub(super) number: u64,
    /// The number of its lookup among those that are open.
    pub(super) lookup: u32,
    /// Which attempt, from 0 on.
    attempt: u8,
    way: Way,
}

#[derive(Clone, Copy, Debug)]
enum Way {
    /// To the resolver, with who asks and how large the answer is.
    Query {
        from: NodeId,
        answer: u16,
    },
    Answer,
}

impl Message {
    pub(super) fn id(&self) -> LookupId {
        (self.traffic, self.number)
    }

    /// Attempts and both ways draw apart, and the same under every discipline.
    fn lot(&self) -> Lot {
        let way = match self.way {
            Way::Query { .. } => 0,
            Way::Answer => 1,
        };
        let attempts = self.number * u64::from(DnsProfile::MOST_ATTEMPTS);
        Lot::new(u64::from(self.traffic) << 32 | way, attempts + u64::from(self.attempt) + 1)
    }
}

impl World<'_> {
    /// Sends the next query of a lookup, of this size.
    pub(crate) fn send_query(&mut self, number: u32, lookup: &Lookup, size: Bytes) {
        let (traffic, of_source) = lookup.id;
        let message = Message {
            traffic,
            number: of_source,
            lookup: number,
            attempt: lookup.asked,
            way: Way::Query { from: lookup.from, answer: lookup.answer.0 as u16 },
        };
        self.send_message(lookup.from, lookup.to, lookup.key(), size, message);
    }

    fn send_message(
        &mut self,
        from: NodeId,
        destination: NodeId,
        key: FlowKey,
        size: Bytes,
        message: Message,
    ) {
        let spec = &self.scenario.traffic[usize::from(message.traffic)];
        let dscp = match message.way {
            Way::Query { .. } => spec.marking.sender,
            Way::Answer => spec.marking.receiver,
        };
        let (class, lot) = (spec.class, message.lot());
        let content = Content::Lookup(message);
        let ecn = Ecn::NotEct;
        self.send(from, Segment { key, destination, size, class, dscp, ecn, lot, content });
    }

    /// A query has arrived, which its resolver answers, or an answer has.
    pub(super) fn deliver_message(
        &mut self,
        message: Message,
        (resolver, key): (NodeId, FlowKey),
        programs: &mut Programs<'_>,
    ) {
        match message.way {
            Way::Query { from, answer } => {
                let size = Bytes(u64::from(answer));
                let message = Message { way: Way::Answer, ..message };
                self.send_message(resolver, from, key.reversed(), size, message);
            }
            Way::Answer => programs.resolvers.on_answer(self, message.lookup, message.id()),
        }
    }
}
