//! Stored runs, by everything that determines them.
//!
//! A key is the SHA-256 of everything that a run's results depend on: the scenario with
//! the data that it names, the contender with its parameters, the seed, and the version
//! of the program. No key is a name that somebody must remember to change.

use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::sync::{Arc, Mutex};

use sha2::{Digest, Sha256};
use tidegate_sim::scenario::{DisciplineChoice, Scenario};

use crate::manifest::Contender;

/// The key of a stored run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u8; 32]);

/// In hexadecimal digits, as the name of a file.
impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

/// A scenario whose runs are stored.
#[derive(Clone, Debug)]
pub struct Content(Sha256);

impl Content {
    /// Everything in `scenario` on which a run of it depends.
    #[must_use]
    pub fn of(scenario: &Scenario) -> Content {
        // The other contenders change nothing, and neither does what was measured.
        let (disciplines, seeds, measured) = (Vec::new(), Vec::new(), Vec::new());
        let alone = Scenario { disciplines, seeds, measured, ..scenario.clone() };
        let mut content = Hashed(Sha256::new());
        content.add(format_args!("{} {alone:?}", env!("CARGO_PKG_VERSION")));
        Content(content.0)
    }

    /// The key of all its runs together: its disciplines with all its seeds.
    #[must_use]
    pub fn of_all(scenario: &Scenario) -> Key {
        let mut content = Hashed(Content::of(scenario).0);
        let contenders: Vec<_> = scenario.disciplines.iter().map(Contender::from).collect();
        content.add(format_args!(" {contenders:?} {:?}", scenario.seeds));
        Key(content.0.finalize().into())
    }

    /// The key of its run with this discipline and seed.
    #[must_use]
    pub fn key(&self, discipline: &DisciplineChoice, seed: u64) -> Key {
        let mut content = Hashed(self.0.clone());
        content.add(format_args!(" {:?} {seed}", Contender::from(discipline)));
        Key(content.0.finalize().into())
    }
}

/// Text that is hashed and not stored.
struct Hashed(Sha256);

impl Hashed {
    fn add(&mut self, text: fmt::Arguments<'_>) {
        self.write_fmt(text).expect("hashing takes everything");
    }
}

impl fmt::Write for Hashed {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        self.0.update(text);
        Ok(())
    }
}

/// Runs in memory, or the stored part of them.
#[derive(Debug)]
pub struct Cache<R>(Mutex<HashMap<Key, Arc<R>>>);

/// A thread that panics ends the program.
const POISON: &str = "no thread panics while it holds this lock";

impl<R> Default for Cache<R> {
    fn default() -> Cache<R> {
        Cache(Mutex::default())
    }
}

impl<R> Cache<R> {
    /// The run stored under `key`.
    #[must_use]
    pub fn find(&self, key: Key) -> Option<Arc<R>> {
        self.0.lock().expect(POISON).get(&key).cloned()
    }

    /// Stores `run` under `key`.
    pub fn keep(&self, key: Key, run: R) {
        self.0.lock().expect(POISON).insert(key, Arc::new(run));
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Span;

    use super::*;
    use crate::shipped;

    #[test]
    fn a_key_tells_apart_all_that_changes_results_and_nothing_else() {
        let scenario = || shipped::scenario("links/household.toml");
        let key = |scenario: &Scenario, discipline: &str, seed| {
            Content::of(scenario).key(&discipline.parse().unwrap(), seed)
        };
        let first = key(&scenario(), "efd", 1);
        assert_eq!(first, key(&scenario(), "efd", 1));
        let fewer = Scenario { seeds: vec![9], disciplines: Vec::new(), ..scenario() };
        assert_eq!(first, key(&fewer, "efd", 1));
        let longer = Scenario { duration: scenario().duration + Span(1), ..scenario() };
        let mut other_data = scenario();
        other_data.traffic.swap(0, 1);
        let others = [
            key(&scenario(), "efd", 2),
            key(&scenario(), "las", 1),
            key(&scenario(), "efd:threshold=31kB", 1),
            key(&scenario(), "efd:label=other", 1),
            key(&longer, "efd", 1),
            key(&other_data, "efd", 1),
        ];
        for (index, other) in others.iter().enumerate() {
            assert!(*other != first && !others[..index].contains(other), "{index}");
        }
    }

    #[test]
    fn the_key_of_all_runs_tells_apart_what_is_compared_and_how_often() {
        let mut scenario = shipped::scenario("links/household.toml");
        let first = Content::of_all(&scenario);
        assert_eq!(first, Content::of_all(&scenario.clone()));
        scenario.seeds.pop();
        let fewer = Content::of_all(&scenario);
        scenario.disciplines.pop();
        let narrower = Content::of_all(&scenario);
        assert!(first != fewer && fewer != narrower && first != narrower);
        assert_eq!(first.to_string().len(), 64);
    }

    #[test]
    fn what_is_kept_is_found() {
        let scenario = shipped::scenario("links/wifi-54.toml");
        let key = Content::of(&scenario).key(&"fifo".parse().unwrap(), 1);
        let cache = Cache::default();
        assert!(cache.find(key).is_none());
        cache.keep(key, 7);
        assert_eq!(cache.find(key).as_deref(), Some(&7));
    }
}
