//! What is measured.

use tidegate_core::Time;

use super::super::outcome::{Outcome, Sample};
use super::{Event, Run};

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

    pub(super) fn finish(mut self, end: Time) -> Outcome {
        assert!(self.downlink.port.is_conserved(), "a packet was made or lost unseen");
        let outstanding = self.exchanges.values().filter(|exchange| exchange.permit.is_some());
        assert_eq!(self.scheduler.outstanding(), outstanding.count(), "a place was lost");
        let measured = end.since(Time(self.setup.warm_up.0));
        let mut outcome = self.outcome;
        for (class, outcome) in outcome.classes.iter_mut().enumerate() {
            outcome.received = self.received[class] - self.received_base[class];
        }
        outcome.downlink = self.downlink.port.counters().since(&self.base);
        let could = self.setup.rate.volume(measured);
        outcome.utilisation = outcome.downlink.delivered_bytes.0 as f64 / could.0.max(1) as f64;
        outcome.queueing = self.downlink.queueing;
        outcome.measured = measured;
        outcome.reached = end;
        outcome
    }
}
