//! Comparisons on simulated links: many runs on all cores, summed up.
//!
//! | module | holds |
//! | --- | --- |
//! | [`experiment`] | the definition of a [`Study`](experiment::Study), and all its runs on one [`pool`] of threads |
//! | [`cache`] | stored runs, by everything that determines them |
//! | [`columns`] | the tables of rows, column by column, that CSV files and Python get |
//! | [`comparison`] | the runs of disciplines on a scenario, summed up |
//! | [`requests`] | the runs of ways of sharing a gateway's link, summed up |
//! | [`sweep`] | comparisons over the values of one or two keys of a scenario |
//! | [`verdict`] | what to run, what it gains and costs, and a grade of latency under load |
//! | [`ranking`] | who is best, seed by seed |
//! | [`discoveries`] | which of many differences are real |
//! | [`e_model`] | what a call is worth to those who talk |
//! | [`measured`] | what a result of Flent says of a link |
//! | [`rounds`] | what rounds of a live measurement say together |
//! | [`measure`] | the measures, as entries that CSV files, reports and tables go through |
//! | [`manifest`] | the inputs of results, so that they can be repeated byte for byte |
//! | [`data`] | the files that a scenario names, in the form of a manifest |
//! | [`shipped`] | the scenarios that come with Tidegate |
//! | [`builtin`] | those of them that users know by a name |
//!
//! The values of several runs are a [`Sample`]; together they give an [`Estimate`], a
//! mean or a median with its 95% interval.
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

pub mod builtin;
pub mod cache;
pub mod columns;
pub mod comparison;
pub mod data;
pub mod discoveries;
pub mod e_model;
mod estimate;
pub mod experiment;
pub mod machine;
pub mod manifest;
pub mod measure;
pub mod measured;
pub mod pool;
pub mod ranking;
pub mod requests;
pub mod rounds;
pub mod shipped;
pub mod sweep;
pub mod verdict;

pub use estimate::{Centre, Estimate, Sample};
