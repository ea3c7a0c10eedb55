//! Queues that hold packets back to a rate of their own, in front of a link that is
//! faster: so that the queue builds up here, where a discipline decides, and not
//! behind it.

use std::sync::Arc;

use tidegate_core::discipline::Discipline;
use tidegate_core::entry::Place;
use tidegate_core::shaper::{Htb, Paced};
use tidegate_core::{Buffer, Rate};

use super::DisciplineChoice;

/// A shaper with its queues.
#[derive(Clone, Debug)]
pub struct Shaper {
    /// What it lets through.
    pub rate: Rate,
    /// How its queues share that.
    pub sharing: Sharing,
    /// What each queue holds.
    pub queue: Buffer,
    /// The class of a packet by the host that it is for, its [`NodeId`](super::NodeId);
    /// packets for others keep the class that they have.
    pub classes: Arc<[u16]>,
}

/// How the queues of a shaper share its rate.
#[derive(Clone, Debug)]
pub enum Sharing {
    /// One queue, by a discipline; one that has a rate of its own keeps to that one.
    One(DisciplineChoice),
    /// HTB with a leaf for each class: its own rate, and the discipline of all leaves.
    Leaves(Vec<Rate>, DisciplineChoice),
}

impl Shaper {
    pub(crate) fn build(&self, seed: u64) -> Box<dyn Discipline> {
        let queue = |choice: &DisciplineChoice, rate| {
            choice.build(Place::from(self.queue).at_rate(rate), seed)
        };
        match &self.sharing {
            Sharing::One(choice) => {
                let queue = queue(choice, self.rate);
                // A shaper around one that is as slow would only add its own waits.
                if queue.rate().is_some() { queue } else { Box::new(Paced::new(queue, self.rate)) }
            }
            Sharing::Leaves(rates, choice) => {
                let leaves = rates.iter().map(|rate| (*rate, queue(choice, *rate)));
                Box::new(Htb::new(self.rate, leaves.collect()))
            }
        }
    }
}
