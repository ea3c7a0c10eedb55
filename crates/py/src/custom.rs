//! Disciplines that are written in Python.
//!
//! The packets stay here: Python gets an object for each, and hands it back when the packet is
//! to leave or is given up. So nothing that Python does can lose, double or change a packet
//! unseen; what breaks that rule, and every exception, ends the comparison. A discipline that
//! has failed serves what is queued in its order until the run has ended.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyList, PyType};
use tidegate_core::entry::{Drops, Entry, Place};
use tidegate_core::setting::{Kind, Parameter, Settings};
use tidegate_core::units::Amount;
use tidegate_core::{Backlog, Buffer, Discipline, LossReason, Losses, Time};
use tidegate_sim::scenario::DisciplineChoice;

use crate::error::TidegateError;

/// The setting that says which class it is.
const CLASS: &str = "class";

static PARAMETERS: [Parameter; 1] = [Parameter {
    name: CLASS,
    help: "the place of its class",
    kind: Kind::Count { least: 0, most: u32::MAX },
    default: "0",
}];

/// What stands for all of them; the registry does not have it, since only this process does.
static ENTRY: Entry = Entry {
    name: "custom",
    summary: "a discipline written in Python",
    source: "its class",
    linux: None,
    drops: Drops::Early,
    parameters: &PARAMETERS,
    fixed: &PARAMETERS,
    build: |settings, place, seed| Box::new(Custom::new(settings.count(CLASS), place, seed)),
};

/// The classes that comparisons need at the moment, by their places.
static CLASSES: LazyLock<Mutex<HashMap<u32, Arc<Class>>>> = LazyLock::new(Mutex::default);

/// A class of Python, and what went wrong in one of its objects.
pub(crate) struct Class {
    class: Py<PyType>,
    fault: Mutex<Option<PyErr>>,
    stop: Arc<AtomicBool>,
}

/// A class that can be used as long as this lives.
pub(crate) struct Registered {
    place: u32,
    pub(crate) class: Arc<Class>,
}

impl Registered {
    /// Makes `class` usable; its first fault sets `stop`.
    pub(crate) fn new(class: Py<PyType>, stop: Arc<AtomicBool>) -> Registered {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let place = NEXT.fetch_add(1, Ordering::Relaxed);
        let class = Arc::new(Class { class, fault: Mutex::default(), stop });
        locked(&CLASSES).insert(place, class.clone());
        Registered { place, class }
    }

    /// The discipline, called after its class.
    pub(crate) fn choice(&self, py: Python<'_>) -> PyResult<DisciplineChoice> {
        let label = self.class.class.bind(py).name()?.to_string();
        let place = self.place.to_string();
        let settings = ENTRY.settings(&[(CLASS, &place)]).expect("every place is a count");
        Ok(DisciplineChoice { label, entry: &ENTRY, settings })
    }

    /// An object of it, as runs get one.
    pub(crate) fn build(&self, place: Place, seed: u64) -> Box<dyn Discipline> {
        Box::new(Custom::new(self.place, place, seed))
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        locked(&CLASSES).remove(&self.place);
    }
}

impl Class {
    /// What went wrong first, if anything did.
    pub(crate) fn fault(&self) -> Option<PyErr> {
        locked(&self.fault).take()
    }

    fn fail(&self, error: PyErr) {
        locked(&self.fault).get_or_insert(error);
        self.stop.store(true, Ordering::Relaxed);
    }
}

/// A lock whose holder has failed guards nothing that is half done.
fn locked<T>(lock: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A packet as a discipline in Python sees it.
#[pyclass(module = "tidegate._native")]
pub(crate) struct Packet {
    packet: tidegate_core::Packet,
    marked: bool,
}

#[pymethods]
impl Packet {
    /// Its flow, for example "192.0.2.1:443 > 198.51.100.7:50000 tcp".
    #[getter]
    fn flow(&self) -> String {
        self.packet.flow.to_string()
    }

    /// Its size on the wire.
    #[getter]
    fn size_bytes(&self) -> u64 {
        self.packet.size.0
    }

    /// When it arrived, in nanoseconds from the start of the run.
    #[getter]
    fn arrived_ns(&self) -> u64 {
        self.packet.arrived.0
    }

    /// The number of its codepoint (DSCP).
    #[getter]
    fn dscp(&self) -> u8 {
        self.packet.dscp.number()
    }

    /// Whether its sender understands marks (ECN).
    #[getter]
    fn markable(&self) -> bool {
        self.packet.ecn.is_markable()
    }

    /// Tells its sender of congestion, if it is `markable`.
    fn mark(&mut self) {
        self.marked |= self.packet.ecn.is_markable();
    }

    fn __repr__(&self) -> String {
        format!("<Packet of {} B, {}>", self.packet.size.0, self.packet.flow)
    }
}

/// One object of a class, and what it should hold.
struct Custom {
    class: Arc<Class>,
    /// Nothing after a fault.
    object: Option<Py<PyAny>>,
    buffer: Buffer,
    queued: BTreeMap<u64, Py<Packet>>,
    backlog: Backlog,
}

impl Custom {
    fn new(class: u32, place: Place, seed: u64) -> Custom {
        let class = locked(&CLASSES).get(&class).expect("it is registered").clone();
        let Place { buffer, rate, .. } = place;
        let (packets, bytes) = match buffer.amount() {
            Amount::Packets(packets) => (Some(packets), None),
            Amount::Bytes(bytes) => (None, Some(bytes.0)),
        };
        let object = Python::attach(|py| {
            let arguments = (packets, bytes, rate.map(|rate| rate.0), seed);
            let object = class.class.bind(py).getattr("_at").and_then(|it| it.call1(arguments));
            object.map(Bound::unbind).inspect_err(|error| class.fail(error.clone_ref(py))).ok()
        });
        let (queued, backlog) = (BTreeMap::new(), Backlog::default());
        Custom { class, object, buffer, queued, backlog }
    }

    /// Does something with the object; what goes wrong is the end of it.
    fn with<T>(
        &mut self,
        work: impl FnOnce(&mut Custom, &Bound<'_, PyAny>) -> PyResult<T>,
    ) -> Option<T> {
        let object = self.object.take()?;
        Python::attach(|py| match work(self, object.bind(py)) {
            Ok(done) => {
                self.object = Some(object);
                Some(done)
            }
            Err(error) => {
                self.class.fail(error);
                None
            }
        })
    }

    /// Takes out the packet that Python hands back.
    fn take(&mut self, returned: &Bound<'_, PyAny>) -> PyResult<tidegate_core::Packet> {
        let py = returned.py();
        let other = || {
            let found = returned.repr().map_or_else(|_| "an object".into(), |it| it.to_string());
            TidegateError::new_err(format!("found {found}, expected a packet that is queued"))
        };
        let returned = returned.cast::<Packet>().map_err(|_| other())?;
        let handle = returned.borrow().packet.handle;
        match self.queued.get(&handle) {
            Some(queued) if queued.bind(py).is(returned) => Ok(self.take_out(py, handle)),
            _ => Err(other()),
        }
    }

    fn take_out(&mut self, py: Python<'_>, handle: u64) -> tidegate_core::Packet {
        let queued = self.queued.remove(&handle).expect("it is there");
        let packet = queued.borrow(py).packet;
        self.backlog.remove(packet.size);
        packet
    }

    /// Takes out the packets that Python has put into its list of losses.
    fn lose(
        &mut self,
        lost: &Bound<'_, PyList>,
        losses: &mut Losses,
        reason: impl Fn(&tidegate_core::Packet) -> LossReason,
    ) -> PyResult<()> {
        lost.iter().try_for_each(|packet| {
            let packet = self.take(&packet)?;
            losses.push(packet, reason(&packet));
            Ok(())
        })
    }
}

impl Discipline for Custom {
    fn enqueue(&mut self, now: Time, packet: tidegate_core::Packet, losses: &mut Losses) {
        if self.object.is_none() {
            losses.push(packet, LossReason::Refused);
            return;
        }
        let mut after = self.backlog;
        after.add(packet.size);
        let fits = self.buffer.holds(after);
        let own = packet.handle;
        let reason = |lost: &tidegate_core::Packet| match (fits, lost.handle == own) {
            (true, _) => LossReason::Early,
            (false, true) => LossReason::Refused,
            (false, false) => LossReason::PushedOut,
        };
        let put = self.with(|this, object| {
            let py = object.py();
            let offered = Py::new(py, Packet { packet, marked: false })?;
            this.queued.insert(own, offered.clone_ref(py));
            this.backlog = after;
            let lost = PyList::empty(py);
            object.call_method1("enqueue", (now.0, offered, &lost))?;
            this.lose(&lost, losses, reason)?;
            if this.buffer.holds(this.backlog) {
                return Ok(());
            }
            let Backlog { packets, bytes } = this.backlog;
            let message = format!(
                "enqueue: found {packets} packets of {} B queued, expected at most {}",
                bytes.0,
                this.buffer.amount()
            );
            Err(TidegateError::new_err(message))
        });
        if put.is_none() && self.queued.contains_key(&own) {
            Python::attach(|py| self.take_out(py, own));
            losses.push(packet, LossReason::Refused);
        }
    }

    fn dequeue(&mut self, now: Time, losses: &mut Losses) -> Option<tidegate_core::Packet> {
        if self.queued.is_empty() {
            return None;
        }
        let queued = self.queued.len();
        let sent = self.with(|this, object| {
            let lost = PyList::empty(object.py());
            let sent = object.call_method1("dequeue", (now.0, &lost))?;
            this.lose(&lost, losses, |_| LossReason::Early)?;
            if sent.is_none() {
                let message = format!("dequeue: found None, expected one of {queued} packets");
                return Err(TidegateError::new_err(message));
            }
            let packet = this.take(&sent)?;
            let marked = sent.cast::<Packet>()?.borrow().marked;
            // What can be marked is not lost by it, and the port counts the mark.
            Ok(if marked { losses.signal(packet) } else { Some(packet) })
        });
        sent.flatten().or_else(|| {
            let first = *self.queued.first_key_value()?.0;
            Some(Python::attach(|py| self.take_out(py, first)))
        })
    }

    fn reconfigure(&mut self, _: Time, _: &Settings, place: Place) {
        self.buffer = place.buffer;
    }

    fn backlog(&self) -> Backlog {
        self.backlog
    }
}
