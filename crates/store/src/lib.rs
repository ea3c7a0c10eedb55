//! What is kept of runs: tables of Arrow, and studies as folders of Parquet.
//!
//! A [`Study`] is one scenario at every point of a grid over some of its keys, under each
//! discipline, with each seed. Every run is on its own: it is done by any thread, process or
//! machine, and ends in a few [`Part`]s of Parquet, whose bytes depend on nothing but the
//! study and the run. A [`Folder`] keeps them under the values that made them, which is what
//! readers of Parquet call partitions. A run that lies there is not done again, so a study
//! that was interrupted continues, and one with more seeds or values reuses what there is.
//! Memory holds the runs that are going on, and no others.
//!
//! | module | holds |
//! | --- | --- |
//! | [`rows`] | rows of a run as batches of Arrow, from the columns of `tidegate-study` |
//! | [`measures`] | what the measures say of a run, in the same form |
//! | [`study`] | what is compared: the grid, and the run at each place of it |
//! | [`mod@file`] | a study as a file, `STUDY.toml` |
//! | [`folder`] | where the parts of runs lie, and the manifest beside them |
//! | [`work`] | all runs of a study on the cores of this machine |
//! | [`reading`] | a table of all runs, read file by file |
//! | [`differences`] | which disciplines differ, seed by seed, by such a table |
//!
//! ```
//! use std::sync::atomic::AtomicBool;
//! use tidegate_store::{Folder, Source, Study, Table, work};
//!
//! let source = Source::builtin("dumbbell").expect("it comes with Tidegate");
//! let mut asked = source.alone();
//! asked.over = vec!["rate=5 Mbit/s,20 Mbit/s".parse()?];
//! asked.overrides.duration = Some("5 s".parse()?);
//! asked.overrides.seeds = Some(vec![1, 2]);
//! asked.overrides.disciplines = Some(vec!["fifo".parse()?, "tide".parse()?]);
//! let study = Study::new(asked)?;
//!
//! let place = std::env::temp_dir().join(format!("tidegate-study-{}", std::process::id()));
//! let folder = Folder::prepare(&place, &study)?;
//! let failures = work::run(&study, &folder, 2, &AtomicBool::new(false), &|| ())?;
//! assert!(failures.is_empty() && folder.missing(&study).is_empty());
//! assert!(place.join("runs/rate=5%20Mbit%2Fs/discipline=tide/2.parquet").is_file());
//!
//! let rows = folder.read(&study, Table::Runs)?.map(|batch| Ok(batch?.num_rows()));
//! let rows: Vec<usize> = rows.collect::<Result<_, arrow_schema::ArrowError>>()?;
//! assert_eq!(rows.len(), 8);
//! # std::fs::remove_dir_all(&place)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod differences;
pub mod file;
pub mod folder;
pub mod measures;
pub mod reading;
pub mod rows;
pub mod study;
pub mod work;

pub use folder::{Folder, FolderError};
pub use reading::Reading;
pub use study::{Asked, Part, Point, Run, Source, Study, StudyError, Table};
pub use work::Failure;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
