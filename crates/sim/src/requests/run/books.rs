//! What is measured.

use tidegate_core::Time;

use super::super::outcome::{Outcome, Sample, Unfinished};
use super::shaping::Shaper;
use super::{Event, Exchange, Run};

impl Run<'_> {
    pub(super) fn sample(&mut self) {
        let now = self.kernel.now();
        self.kernel.schedule(now + self.setup.sample_every, Event::Sample);
        self.outcome.samples.push(Sample {
            at: now,
            window: self.scheduler.window(),
            held: self.scheduler.held(),
            outstanding: self.scheduler.outstanding(),
            waiting: self.scheduler.waiting(),
            queued: self.downlink.port.backlog().packets,
            received: self.received.clone(),
            carried: self.downlink.port.counters().delivered_bytes,
        });
    }

    /// Counts what the end cuts off, and holds it against what the scheduler has.
    fn leave_off(&mut self) {
        let exchanges = std::mem::take(&mut self.exchanges);
        let mut all = Unfinished::default();
        for exchange in exchanges.values() {
            self.end_pause(exchange);
            let at = |unfinished: &mut Unfinished| {
                *match exchange {
                    Exchange { permit: Some(_), .. } => &mut unfinished.outstanding,
                    Exchange { released: Some(_), .. } => &mut unfinished.leaving,
                    Exchange { asked: Some(_), .. } => &mut unfinished.waiting,
                    _ => &mut unfinished.arriving,
                } += 1;
            };
            at(&mut all);
            if exchange.began >= Time(self.setup.warm_up.0) {
                let class = self.askers[exchange.asker as usize].class;
                at(&mut self.outcome.classes[class].unfinished);
            }
        }
        let of_scheduler = (self.scheduler.waiting() as u64, self.scheduler.outstanding() as u64);
        assert_eq!(of_scheduler, (all.waiting, all.outstanding), "a place was lost");
        drop(exchanges);
        assert_eq!(self.scheduler.held(), 0, "the window keeps a place of nobody");
        for class in &self.outcome.classes {
            let ended = class.completed + class.failures.all() + class.abandoned;
            assert_eq!(
                class.asked,
                ended + class.unfinished.all(),
                "a request ended twice or never"
            );
        }
    }

    pub(super) fn finish(mut self, end: Time) -> Outcome {
        assert!(self.downlink.port.is_conserved(), "a packet was made or lost unseen");
        let shaped = self.shaper.iter().all(|shaper| shaper.port.is_conserved());
        assert!(shaped, "the shaper made a packet, or lost one unseen");
        self.leave_off();
        let measured = end.since(Time(self.setup.warm_up.0));
        let mut outcome = self.outcome;
        for (class, outcome) in outcome.classes.iter_mut().enumerate() {
            outcome.received = self.received[class] - self.received_base[class];
        }
        outcome.downlink = self.downlink.port.counters().since(&self.base);
        let could = self.setup.rate.volume(measured);
        outcome.utilisation = outcome.downlink.delivered_bytes.0 as f64 / could.0.max(1) as f64;
        outcome.shaper = self.shaper.as_ref().map(Shaper::counted);
        outcome.queueing = self.downlink.queueing;
        outcome.measured = measured;
        outcome.reached = end;
        outcome
    }
}
