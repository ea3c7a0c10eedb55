//! The claims of BE: Chakraborty, Gries, Thiele.

mod access;
mod capacity;
mod idle;
mod optimality;
mod over_time;
mod overload;
mod theorems;
mod worst_case;

use tidegate_sim::scenario::Scenario;
use tidegate_study::shipped;

use crate::{Claim, Paper};

/// BE.
pub(super) const PAPER: Paper = Paper {
    key: "BE",
    reference: "S. Chakraborty, M. Gries, L. Thiele: Supporting a Low Delay Best-Effort Class in \
                the Presence of Real-Time Traffic. IEEE Real-Time and Embedded Technology and \
                Applications Symposium, 2002",
    setting: "One link of 10 Mbit/s, three real-time and three best-effort sources that send in \
              bursts, each as early as its TSpec allows, with the parameters of tables 3 and 4, \
              for 360 s. Delays run from a packet's arrival at the queue to the end of its \
              transmission. The paper does not say what happens to a packet that no longer fits \
              into its burst (here it waits for the next one), how large the queue is (here 10 000 \
              packets, which is never reached), or which weighted fair queueing it uses (here \
              self-clocked). Figure 8 draws its approximating lines, but the paper does not give \
              their parameters; here a fit chooses them. 'Exact' is the paper's algorithm 1, which \
              it calls infeasible, in a form with bounded state.",
};

/// In the order of the paper.
pub(super) const CLAIMS: &[Claim] = &[
    theorems::THEOREMS,
    idle::NEVER_WORSE,
    overload::OVERLOAD,
    access::MAXIMUM,
    access::MEAN,
    over_time::OVER_TIME,
    over_time::EXCERPT,
    capacity::APPROXIMATIONS,
];

const ACCESS: &str = "papers/BE/access.toml";

/// The paper's access link.
fn access() -> Scenario {
    shipped::scenario(ACCESS)
}

#[cfg(test)]
mod tests {
    use tidegate_core::contract::Contracts;

    use super::*;

    /// What the sources may send is what the contracts say.
    #[test]
    fn sources_keep_to_the_contracts() {
        let scenario = access();
        let contracts = scenario.disciplines[0].settings.contracts("flows");
        let Contracts { flows, .. } = &*contracts;
        assert_eq!(flows.len(), scenario.traffic.len());
        for (flow, source) in flows.iter().zip(&scenario.traffic) {
            assert_eq!(flow.name, source.name);
            assert_eq!(flow.selector.class, Some(source.class));
        }
        for (flow, source) in contracts.real_time().zip(&scenario.traffic) {
            assert_eq!(source.deadline, Some(flow.deadline), "{}", flow.name);
        }
    }
}
