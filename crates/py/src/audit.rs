//! Disciplines in Python under the audit that all of Tidegate's own pass.
//!
//! Random packets of a few flows arrive, the link asks, and time passes, in buffers that are
//! small enough to be full often. What breaks a rule is shrunk: operations go, one by one, as
//! long as it is still broken without them.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Once};

use pyo3::prelude::*;
use pyo3::types::PyType;
use tidegate_core::entry::Place;
use tidegate_core::random::Stream;
use tidegate_core::{Buffer, Bytes, Rate, Span};
use tidegate_store::work::in_words;
use tidegate_twins::audit::{Audited, Operation};

use crate::custom::Registered;

/// Operations of a case; more find little more.
const OPERATIONS: u64 = 120;

/// What is done to an object of the class.
#[derive(Clone)]
struct Case {
    place: Place,
    seed: u64,
    operations: Vec<Operation>,
}

/// What broke a rule, and the rule.
enum Broken {
    /// An exception of the class.
    Raised(PyErr),
    Rule(String),
}

/// Tries `cases` random sequences of operations; returns what broke a rule, in words, with
/// the exception if there was one.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "Python hands over what it has")]
pub(crate) fn check_discipline(
    py: Python<'_>,
    tested: Py<PyType>,
    cases: u64,
    seed: u64,
) -> PyResult<Option<(String, Option<PyErr>)>> {
    for number in 0..cases {
        py.check_signals()?;
        let mut case = Case::random(seed, number);
        let Some(mut broken) = tried(py, &tested, &case) else { continue };
        let mut place = 0;
        while place < case.operations.len() {
            let mut fewer = case.clone();
            fewer.operations.remove(place);
            match tried(py, &tested, &fewer) {
                Some(still) => (case, broken) = (fewer, still),
                None => place += 1,
            }
        }
        let (rule, raised) = match broken {
            Broken::Raised(error) => (error.to_string(), Some(error)),
            Broken::Rule(rule) => (rule, None),
        };
        return Ok(Some((format!("{rule}\nafter this, {case}"), raised)));
    }
    Ok(None)
}

/// What breaks a rule in this case, if anything does.
fn tried(py: Python<'_>, class: &Py<PyType>, case: &Case) -> Option<Broken> {
    let registered = Registered::new(class.clone_ref(py), Arc::new(AtomicBool::new(false)));
    let audit = AssertUnwindSafe(|| {
        let discipline = registered.build(case.place, case.seed);
        let mut audited = Audited::new(discipline, case.place.buffer);
        for operation in &case.operations {
            audited.apply(*operation);
        }
        audited.drain();
    });
    let outcome = quietly(|| panic::catch_unwind(audit));
    if let Some(fault) = registered.class.fault() {
        return Some(Broken::Raised(fault));
    }
    let panic = outcome.err()?;
    Some(Broken::Rule(in_words(&*panic).to_string()))
}

/// Does `work`, whose panics on this thread are expected and not printed.
fn quietly<T>(work: impl FnOnce() -> T) -> T {
    thread_local! {
        static QUIET: Cell<bool> = const { Cell::new(false) };
    }
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let loud = panic::take_hook();
        panic::set_hook(Box::new(move |panic| {
            if !QUIET.get() {
                loud(panic);
            }
        }));
    });
    QUIET.set(true);
    let done = work();
    QUIET.set(false);
    done
}

impl Case {
    fn random(seed: u64, number: u64) -> Case {
        let mut random = Stream::new(seed, &format!("case {number}"));
        let buffer = if random.index(2) == 0 {
            Buffer::packets(1 + random.index(12) as u32)
        } else {
            Buffer::bytes(Bytes(1 + random.index(12_000) as u64))
        };
        let place = Place::from(buffer).at_rate(Rate(10_000_000));
        let operation = |random: &mut Stream| match random.index(10) {
            0..5 => {
                let flow = random.index(5) as u8;
                Operation::Arrive { flow, size: Bytes(1 + random.index(3_000) as u64) }
            }
            5..9 => Operation::Send,
            _ => Operation::Wait(Span(random.index(2_000_000_000) as u64)),
        };
        let operations = (0..OPERATIONS).map(|_| operation(&mut random)).collect();
        Case { place, seed, operations }
    }
}

impl std::fmt::Display for Case {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "in a buffer of {}:", self.place.buffer.amount())?;
        for operation in &self.operations {
            match operation {
                Operation::Arrive { flow, size } => {
                    write!(f, "\n  a packet of flow {flow} and {size} arrives")?;
                }
                Operation::Send | Operation::SendWhenReady => write!(f, "\n  the link asks")?,
                Operation::Wait(span) => write!(f, "\n  {span} pass")?,
            }
        }
        write!(f, "\n  and the link asks until nothing is left")
    }
}
