//! The log of `gateway run`: lines on standard output, written by a thread of their own.
//!
//! The gateway never waits for its log. A full disk, or a pipe that nobody empties, costs
//! lines and no requests. What is lost is counted: standard error hears of a failure once,
//! when it begins, and the log of how many lines are missing, where they are missing.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use super::say;

/// Lines that wait to be written: a quarter of a minute at 500 requests a second, of some
/// 250 bytes each.
const MOST_WAITING: usize = 8_192;
/// What is written at a time.
const AT_ONCE: usize = 65_536;
/// How long the end of the gateway waits for its last lines.
const PATIENCE: Duration = Duration::from_secs(1);

/// Takes lines.
#[derive(Clone)]
pub(crate) struct Log {
    queue: SyncSender<Vec<u8>>,
    /// Lines in the queue, or being written.
    waiting: Arc<AtomicUsize>,
    /// Lines that were not written, and that nobody has been told of.
    lost: Arc<AtomicU64>,
}

impl Log {
    /// A log, and who writes its lines to `out`.
    pub(crate) fn to<W: Write + Send + 'static>(out: W) -> (Log, Writer<W>) {
        let (queue, lines) = sync_channel(MOST_WAITING);
        let log = Log { queue, waiting: Arc::default(), lost: Arc::default() };
        let (waiting, lost) = (log.waiting.clone(), log.lost.clone());
        (log, Writer { out, lines, waiting, lost, is_failing: false, is_torn: false })
    }

    /// Waits a moment for what was not written yet.
    pub(crate) fn finish(&self) {
        let since = Instant::now();
        while self.waiting.load(Ordering::Acquire) > 0 && since.elapsed() < PATIENCE {
            thread::sleep(Duration::from_millis(2));
        }
    }
}

/// A line at a time, as `tracing_subscriber` writes them.
impl Write for Log {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.waiting.fetch_add(1, Ordering::AcqRel);
        if self.queue.try_send(line.to_vec()).is_err() {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            self.lost.fetch_add(1, Ordering::AcqRel);
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
    lines: Receiver<Vec<u8>>,
    waiting: Arc<AtomicUsize>,
    lost: Arc<AtomicU64>,
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
        while let Ok(mut batch) = self.lines.recv() {
            let mut count = 1;
            while batch.len() < AT_ONCE
                && let Ok(line) = self.lines.try_recv()
            {
                batch.extend_from_slice(&line);
                count += 1;
            }
            self.write(batch);
            self.waiting.fetch_sub(count, Ordering::AcqRel);
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
                let lost = self.lost.swap(0, Ordering::AcqRel);
                if lost > 0 {
                    tracing::warn!(lost, "lines of this log are missing before this one");
                }
            }
            Err(error) => {
                let missing = &batch[written.max(ends_of_others)..];
                let lost = missing.iter().filter(|byte| **byte == b'\n').count();
                self.lost.fetch_add(lost as u64, Ordering::AcqRel);
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
        assert_eq!(log.lost.load(Ordering::Acquire), 2);
        disk.0.lock().unwrap().0 = 1_000;
        log.write_all(b"fourth\n").unwrap();
        log.finish();
        assert_eq!(log.lost.load(Ordering::Acquire), 0, "it has been said");
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
        // What is being written is no longer in the queue.
        for _ in 0..MOST_WAITING + AT_ONCE + more {
            log.write_all(b"x\n").unwrap();
        }
        assert!(log.lost.load(Ordering::Acquire) >= more as u64);
        drop(resume);
        log.finish();
        assert_eq!(log.waiting.load(Ordering::Acquire), 0);
    }
}
