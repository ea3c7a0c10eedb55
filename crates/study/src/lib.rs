//! Comparisons on simulated links: many runs on all cores, and what sums up over them.
//!
//! A study runs one [`Scenario`](tidegate_sim::scenario::Scenario) once for each
//! discipline and seed. [`experiment`] runs it on one [`pool`] of threads,
//! [`comparison`] condenses the runs into means with intervals ([`Estimate`]), and
//! [`shipped`] brings the scenarios that come with Tidegate.
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use tidegate_core::Span;
//! use tidegate_study::comparison::Comparison;
//! use tidegate_study::{experiment, shipped};
//!
//! let mut scenario = shipped::scenario("papers/EFD/dumbbell.toml");
//! (scenario.duration, scenario.warm_up) = (Span::seconds(2), Span::ZERO);
//! scenario.seeds = vec![1, 2];
//! let never = AtomicBool::new(false);
//! let Ok(runs) = experiment::run(&scenario, 2, &never, &experiment::Forget);
//! let comparison = Comparison::of(&scenario, &runs);
//! assert_eq!(comparison.disciplines.len(), scenario.disciplines.len());
//! ```

pub mod comparison;
mod estimate;
pub mod experiment;
pub mod pool;
pub mod shipped;

pub use estimate::{Estimate, student_quantile};
