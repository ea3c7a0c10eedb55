//! A request gateway on the user's side of an access link (`MSF section 5`).
//!
//! ```text
//! clients --- gateway === access link === provider --- servers, near and far
//! ```
//!
//! Clients fetch pages of objects through a gateway that terminates TCP on both
//! sides. The access link's downlink is the bottleneck, and its queue is at the
//! provider's end. The gateway follows a request scheduler of `tidegate-core`:
//! it sends a request to the server when it is released, and reads a long response as far
//! as permitted. [`Http`] says how many responses a connection carries, and [`Kept`] which
//! connections to servers wait for the next request; all of them have the simulator's
//! full TCP.
//!
//! [`Setup`] describes the network and the demand, [`run`] runs it with one
//! scheduler and one seed, and [`Outcome`] contains the results. [`run_way`]
//! runs it in any [`Way`]: without a gateway, behind a shaper, or with a cap
//! for each class.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use tidegate_core::Span;
//! use tidegate_sim::requests::{SchedulerChoice, Setup, run};
//!
//! let setup = Setup { duration: Span::seconds(60), warm_up: Span::ZERO, ..Setup::today() };
//! let msf = SchedulerChoice::new("msf", "msf", &[])?.expect("it is in the catalogue");
//! let outcome = run(&setup, &msf, 1, &AtomicBool::new(false));
//! assert!(outcome.classes.iter().all(|class| class.completed > 0 && class.failures.all() == 0));
//! # Ok::<(), tidegate_core::setting::SettingError>(())
//! ```

mod demand;
mod failures;
mod network;
mod outcome;
mod run;
mod setup;
mod wanted;
mod ways;

pub(crate) use demand::{Asker, Sizes};
pub use demand::{Loop, RequestLog};
pub(crate) use failures::Fate;
pub use failures::{Presence, ServerFailures};
pub(crate) use network::Hosts;
pub use outcome::{ClassOutcome, Failures, Outcome, Pauses, SMALL, Sample, Unfinished};
pub(crate) use outcome::{Ending, Whereabouts};
pub use run::{run, run_way};
pub use setup::{
    Cbr, Class, Demand, Http, Kept, SchedulerChoice, ServerGroup, Setup, Through, Uplink,
};
pub(crate) use wanted::Wanted;
pub use ways::{RIVALS, Rival, SHAPED, Way, Weights, names};
