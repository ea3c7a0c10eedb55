//! Records of the datagram flows of one source: calls, streams, replayed packets.

use tidegate_core::{Bytes, Span, Time};

use crate::metrics::{FlowRecord, RecordedFlow};
use crate::traffic::{DatagramFlow, Source};

/// The flows of a source that sends datagrams.
pub(crate) struct DatagramFlows {
    flows: Vec<Flow>,
    has_deadline: bool,
}

struct Flow {
    plan: DatagramFlow,
    sent: u64,
    arrived: u64,
    lost: u32,
    late: u32,
    started: Time,
    delivered: Bytes,
    last_arrival: Time,
    longest_stall: Span,
    /// The sum of the delays of what arrived, in nanoseconds.
    delays: u128,
    longest_delay: Span,
}

impl DatagramFlows {
    pub(crate) fn new(source: &dyn Source, has_deadline: bool) -> DatagramFlows {
        let flows = source.datagram_flows().into_iter().map(Flow::new).collect();
        DatagramFlows { flows, has_deadline }
    }

    /// Counts a datagram that is sent; returns its number in its flow.
    pub(crate) fn sent(&mut self, flow: u32, now: Time) -> u64 {
        let flow = &mut self.flows[flow as usize];
        if flow.sent == 0 {
            flow.started = now;
            flow.last_arrival = now;
        }
        flow.sent += 1;
        flow.sent
    }

    /// The warm-up is over: flows without a planned end count from now on.
    pub(crate) fn forget_warm_up(&mut self, now: Time) {
        for flow in
            self.flows.iter_mut().filter(|flow| flow.plan.datagrams.is_none() && flow.sent > 0)
        {
            let plan = flow.plan.clone();
            *flow = Flow::new(plan);
            (flow.started, flow.last_arrival) = (now, now);
            // It has begun, although nothing that it sent counts.
            flow.sent = 1;
        }
    }

    /// A datagram that was `sent` then has arrived; returns whether that ends the flow.
    pub(crate) fn arrived(&mut self, flow: u32, sent: Time, now: Time, size: Bytes) -> bool {
        let flow = &mut self.flows[flow as usize];
        flow.arrived += 1;
        flow.delays += u128::from(now.since(sent).0);
        flow.longest_delay = flow.longest_delay.max(now.since(sent));
        flow.delivered += size;
        flow.longest_stall = flow.longest_stall.max(now.since(flow.last_arrival));
        flow.last_arrival = now;
        flow.is_over()
    }

    /// A datagram is lost; returns whether that ends the flow.
    pub(crate) fn lost(&mut self, flow: u32) -> bool {
        let flow = &mut self.flows[flow as usize];
        flow.lost += 1;
        flow.is_over()
    }

    /// A datagram had not arrived when it was due.
    pub(crate) fn late(&mut self, flow: u32) {
        self.flows[flow as usize].late += 1;
    }

    /// The flow's row. It is finished when the fate of all its datagrams is
    /// known and the last byte that arrived was that of the last one to arrive.
    pub(crate) fn record(&self, traffic: usize, number: u32) -> FlowRecord {
        let flow = &self.flows[number as usize];
        let finished = flow.is_over() && flow.arrived > 0;
        FlowRecord {
            traffic,
            number: u64::from(number),
            size: flow.plan.size,
            start: flow.started,
            congestion: None,
            response: finished.then(|| flow.last_arrival.since(flow.started)),
            end: finished.then_some(flow.last_arrival),
            delivered: flow.delivered,
            lost: flow.lost,
            late: self.has_deadline.then_some(flow.late),
            retransmissions: 0,
            timeouts: 0,
            longest_stall: flow.longest_stall,
            unloaded: None,
            recorded: flow.plan.recorded.clone().map(|(key, host)| RecordedFlow {
                key,
                host,
                packets: flow.sent,
                delay_mean: flow.mean_delay(),
                delay_max: flow.longest_delay,
            }),
        }
    }

    /// Numbers of the flows that have begun and are not over.
    pub(crate) fn unfinished(&self) -> Vec<u32> {
        (0..)
            .zip(&self.flows)
            .filter(|(_, flow)| flow.sent > 0 && !flow.is_over())
            .map(|(n, _)| n)
            .collect()
    }
}

impl Flow {
    fn new(plan: DatagramFlow) -> Flow {
        Flow {
            plan,
            sent: 0,
            arrived: 0,
            lost: 0,
            late: 0,
            started: Time::ZERO,
            delivered: Bytes::ZERO,
            last_arrival: Time::ZERO,
            longest_stall: Span::ZERO,
            delays: 0,
            longest_delay: Span::ZERO,
        }
    }

    fn mean_delay(&self) -> Option<Span> {
        let mean = self.delays.checked_div(self.arrived.into())?;
        Some(Span(u64::try_from(mean).expect("a mean is at most the largest")))
    }

    fn is_over(&self) -> bool {
        self.plan.datagrams.is_some_and(|all| self.arrived + u64::from(self.lost) >= all)
    }
}
