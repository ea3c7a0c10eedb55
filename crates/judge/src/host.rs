//! Hosts on this machine: threads with a network of their own.
//!
//! Each has a network namespace, which ends with the process, so that nothing needs to be
//! cleaned up. This takes root's rights, and `ip`.

use std::fs;
use std::io;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use nix::sched::{CloneFlags, unshare};
use nix::unistd::gettid;

const PACKET_BYTES: u64 = 1500;
const FRAME_BYTES: u64 = 1514;
/// What `tbf` may send at once: two packets.
pub(crate) const BURST_BYTES: u64 = 2 * FRAME_BYTES;

/// A rate or a size of full IP packets as `tc` has to be told it: shapers and queues count
/// the header of Ethernet too.
pub(crate) fn on_ethernet(of_packets: u64) -> u64 {
    of_packets * FRAME_BYTES / PACKET_BYTES
}

/// What this machine lacks.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Missing(pub String);

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum BedError {
    /// This machine lacks something.
    #[error(transparent)]
    Missing(#[from] Missing),
    /// Something that should work did not.
    #[error("{0}")]
    Failed(String),
    /// The same, with a file or a socket.
    #[error("the live bed: {0}")]
    Io(#[from] io::Error),
}

type Job = Box<dyn FnOnce() + Send>;

/// A thread in a network namespace of its own.
#[derive(Debug)]
pub struct Host {
    jobs: mpsc::Sender<Job>,
    thread: i32,
}

impl Host {
    /// A host with a loopback device and nothing else.
    ///
    /// # Errors
    /// This machine does not permit it.
    pub fn new() -> Result<Host, Missing> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, opened) = mpsc::channel();
        thread::spawn(move || {
            let entered = unshare(CloneFlags::CLONE_NEWNET).map(|()| gettid().as_raw());
            let works = entered.is_ok();
            if ready.send(entered).is_ok() && works {
                queue.iter().for_each(|job| job());
            }
        });
        let thread = opened
            .recv()
            .expect("the thread answers before it ends")
            .map_err(|error| Missing(format!("a network namespace: {error}")))?;
        let host = Host { jobs, thread };
        host.words("ip", "link set lo up")?;
        Ok(host)
    }

    /// The number of the thread, by which `ip` knows its network.
    #[must_use]
    pub fn thread(&self) -> i32 {
        self.thread
    }

    /// Has this host do something, and returns where its result comes out.
    ///
    /// # Panics
    /// When an earlier job has.
    pub fn begin<T: Send + 'static>(
        &self,
        job: impl FnOnce() -> T + Send + 'static,
    ) -> mpsc::Receiver<T> {
        let (done, result) = mpsc::channel();
        // Whoever no longer waits does not want the result.
        let job = move || drop(done.send(job()));
        self.jobs.send(Box::new(job)).expect("the host lives as long as its bed");
        result
    }

    /// Has this host do something, and waits for the result.
    ///
    /// # Panics
    /// When the job does.
    pub fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        self.begin(job).recv().expect("the job does not panic")
    }

    /// Runs a program of one line on this host.
    ///
    /// # Errors
    /// It does not exist, or fails.
    pub fn words(&self, program: &'static str, line: &str) -> Result<(), Missing> {
        let words: Vec<String> = line.split_whitespace().map(String::from).collect();
        let output =
            self.run(move || Command::new(program).args(&words).stdin(Stdio::null()).output());
        let failed = |reason: &str| Missing(format!("{program} {line}: {reason}"));
        let output = output.map_err(|error| failed(&error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        Err(failed(String::from_utf8_lossy(&output.stderr).trim()))
    }

    /// Writes a setting below `/proc/sys/net`.
    ///
    /// # Errors
    /// There is no such setting.
    pub fn set(&self, setting: &str, value: &'static str) -> io::Result<()> {
        let path = format!("/proc/sys/net/{setting}");
        self.run(move || fs::write(path, value))
    }
}

/// Has the calling thread run before all that is ordinary. It works without, but a
/// busy machine then makes packets late.
pub fn hurry() {
    let thread = gettid().to_string();
    let _ =
        Command::new("chrt").args(["--reset-on-fork", "--fifo", "--pid", "1", &thread]).output();
}

/// The same for the programs and threads that the calling thread starts from now on.
pub fn hurry_programs() {
    let thread = gettid().to_string();
    let _ = Command::new("chrt").args(["--rr", "--pid", "1", &thread]).output();
}
