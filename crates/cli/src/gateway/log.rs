//! The log of `gateway run`: lines on standard output, written by a thread of their own.
//!
//! The gateway never waits for its log. A full disk, or a pipe that nobody empties, costs
//! lines and no requests. What is lost is counted: standard error hears of a failure once,
//! when it begins, and the log of how many lines are missing, where they are missing.

use std::io::{self, Write};
use std::mem;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use super::say;

/// What waits to be written at most, in bytes: a quarter of a minute at 500 requests a
/// second, of some 250 bytes each.
const MOST_WAITING: usize = 2 << 20;
/// How long lines gather. To wake a thread costs as much as a small request, so it wakes
/// for many lines at a time; whoever watches the log does not notice.
const GATHER: Duration = Duration::from_millis(20);
/// How long the end of the gateway waits for its last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes lines.
#[derive(Clone)]
pub(crate) struct Log(Arc<Shared>);

#[derive(Default)]
struct Shared {
    /// Lines that wait.
    lines: Mutex<Vec<u8>>,
    /// There are lines again.
    begin: Condvar,
    /// Whether something is being written.
    is_writing: AtomicBool,
    /// Lines that were not written, and that nobody has been told of.
    lost: AtomicU64,
}

impl Shared {
    /// Nobody panics with half a line in it.
    fn lines(&self) -> MutexGuard<'_, Vec<u8>> {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Log {
    /// A log, and who writes its lines to `out`.
    pub(crate) fn to<W: Write + Send + 'static>(out: W) -> (Log, Writer<W>) {
        let shared = Arc::<Shared>::default();
        let writer = Writer { out, shared: shared.clone(), is_failing: false, is_torn: false };
        (Log(shared), writer)
    }

    /// Waits a moment for what was not written yet.
    pub(crate) fn finish(&self) {
        let since = Instant::now();
        while self.is_busy() && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn is_busy(&self) -> bool {
        let lines = self.0.lines();
        !lines.is_empty() || self.0.is_writing.load(Ordering::Acquire)
    }
}

/// A line at a time, as `tracing_subscriber` writes them.
impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        let mut lines = self.0.lines();
        if lines.len() + line.len() > MOST_WAITING {
            self.0.lost.fetch_add(1, Ordering::AcqRel);
        } else {
            if lines.is_empty() {
                self.0.begin.notify_one();
            }
            lines.extend_from_slice(line);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes lines.
pub(crate) struct Writer<W> {
    out: W,
    shared: Arc<Shared>,
    is_failing: bool,
    /// Whether what was written last is a part of a line.
    is_torn: bool,
}

impl<W: Write + Send + 'static> Writer<W> {
    /// Writes what waits, and all that comes, on a thread that has the rights of this one.
    pub(crate) fn start(self) -> io::Result<()> {
        thread::Builder::new().name("log".into()).spawn(move || self.write_all()).map(drop)
    }

    fn write_all(mut self) {
        let shared = self.shared.clone();
        loop {
            let lines = shared.lines();
            let is_idle = |lines: &mut Vec<u8>| lines.is_empty();
            let lines = shared.begin.wait_while(lines, is_idle);
            drop(lines.unwrap_or_else(PoisonError::into_inner));
            thread::sleep(GATHER);
            let mut lines = shared.lines();
            shared.is_writing.store(true, Ordering::Release);
            let batch = mem::take(&mut *lines);
            drop(lines);
            self.write(batch);
            shared.is_writing.store(false, Ordering::Release);
        }
    }

    fn write(&mut self, mut batch: Vec<u8>) {
        let ends_of_others = usize::from(self.is_torn);
        if self.is_torn {
            batch.insert(0, b'\n');
        }
        let mut written = 0;
        let result = loop {
            match self.out.write(&batch[written..]) {
                Ok(0) if written == batch.len() => break self.out.flush(),
                Ok(0) => break Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => written += size,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => break Err(error),
            }
        };
        if written > 0 {
            self.is_torn = batch[written - 1] != b'\n';
        }
        match result {
            Ok(()) => {
                self.is_failing = false;
                let lost = self.shared.lost.swap(0, Ordering::AcqRel);
                if lost > 0 {
                    tracing::warn!(lost, "lines of this log are missing before this one");
                }
            }
            Err(error) => {
                let missing = &batch[written.max(ends_of_others)..];
                let lost = missing.iter().filter(|byte| **byte == b'\n').count();
                self.shared.lost.fetch_add(lost as u64, Ordering::AcqRel);
                if !std::mem::replace(&mut self.is_failing, true) {
                    say(&format!("the log cannot be written: {error}; the gateway goes on"));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;
    use std::sync::mpsc;

    use super::*;

    /// A disk with so much room, and what was written to it.
    #[derive(Clone, Default)]
    struct Disk(Arc<Mutex<(usize, Vec<u8>)>>);

    impl Write for Disk {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let (room, written) = &mut *self.0.lock().unwrap();
            let size = bytes.len().min(*room);
            if size == 0 && !bytes.is_empty() {
                return Err(io::ErrorKind::StorageFull.into());
            }
            *room -= size;
            written.extend_from_slice(&bytes[..size]);
            Ok(size)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn lines_that_do_not_fit_are_counted_and_the_next_ones_are_whole() {
        let disk = Disk::default();
        disk.0.lock().unwrap().0 = 10;
        let (mut log, writer) = Log::to(disk.clone());
        writer.start().unwrap();
        for line in ["first\n", "second\n", "third\n"] {
            log.write_all(line.as_bytes()).unwrap();
            log.finish();
        }
        assert_eq!(log.0.lost.load(Ordering::Acquire), 2);
        disk.0.lock().unwrap().0 = 1_000;
        log.write_all(b"fourth\n").unwrap();
        log.finish();
        assert_eq!(log.0.lost.load(Ordering::Acquire), 0, "it has been said");
        let written = disk.0.lock().unwrap().1.clone();
        assert_eq!(String::from_utf8(written).unwrap(), "first\nseco\nfourth\n");
    }

    #[test]
    fn nobody_waits_for_a_pipe_that_nobody_empties() {
        struct Stalled(mpsc::Receiver<()>);
        impl Write for Stalled {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let _ = self.0.recv();
                Ok(bytes.len())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let (resume, stalled) = mpsc::channel();
        let (mut log, writer) = Log::to(Stalled(stalled));
        writer.start().unwrap();
        let more = 100;
        // What is being written waits no longer.
        for _ in 0..MOST_WAITING + more {
            log.write_all(b"x\n").unwrap();
        }
        assert!(log.0.lost.load(Ordering::Acquire) >= more as u64);
        drop(resume);
        log.finish();
        assert!(!log.is_busy());
    }
}
