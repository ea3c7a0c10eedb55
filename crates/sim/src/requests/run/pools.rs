//! A gateway that reads each class no faster than a rate, as the delay pools of
//! Squid do with one aggregate bucket for each class (`Squid`, `delay_parameters`).
//!
//! A bucket is refilled once a second with what its rate brings in that time, which
//! is also the most that it holds. A response is read as data come in, while the
//! bucket of its class has bytes; then it waits in line for the next second. An
//! empty bucket takes nothing from a full one: what a class leaves is lost.

use std::collections::VecDeque;

use tidegate_core::{Rate, Span};

use super::super::connection::Side;
use super::{Event, Run};
use crate::tcp::Endpoint;

/// How often buckets are filled.
const REFILL_EVERY: Span = Span::seconds(1);

/// The bucket of one class.
pub(super) struct Pool {
    /// Bytes that a refill brings, and the most that there are.
    restore: u64,
    level: u64,
    /// Responses that found the bucket empty, each once.
    waiting: VecDeque<u64>,
}

impl Pool {
    /// It begins half full (`delay_initial_bucket_level`).
    pub(super) fn new(rate: Rate) -> Pool {
        let restore = rate.volume(REFILL_EVERY).0;
        Pool { restore, level: restore / 2, waiting: VecDeque::new() }
    }

    /// Reads what has come in at this end beyond `read`, as far as there are bytes.
    pub(super) fn draw(&mut self, number: u64, end: &mut Endpoint, read: u64) {
        end.read_up_to(read + self.level);
        let fresh = end.delivered() - read;
        end.read_up_to(read + fresh);
        self.level -= fresh;
        if self.level == 0 && !self.waiting.contains(&number) {
            self.waiting.push_back(number);
        }
    }
}

impl Run<'_> {
    /// Nothing is read on a new connection before its class's bucket is asked.
    pub(super) fn hold(&mut self, connection: u64) {
        if let Some(state) = self.connections.get_mut(&connection) {
            state.ends[Side::Opener as usize].read_up_to(0);
        }
    }

    pub(super) fn plan_refill(&mut self) {
        self.kernel.schedule(self.kernel.now() + REFILL_EVERY, Event::Refill);
    }

    /// Fills the buckets, and reads for those that waited for it.
    pub(super) fn refill(&mut self) {
        for class in 0..self.pools.len() {
            let pool = &mut self.pools[class];
            pool.level = (pool.level + pool.restore).min(pool.restore);
            while self.pools[class].level > 0
                && let Some(number) = self.pools[class].waiting.pop_front()
            {
                self.relay(number);
                if let Some(server) = self.exchanges.get(&number).and_then(|e| e.server) {
                    self.act(server, Side::Opener);
                }
            }
        }
        self.plan_refill();
    }
}
