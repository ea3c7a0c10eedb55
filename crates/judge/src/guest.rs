//! The guest bed: Debian's kernel in QEMU, in virtual time.
//!
//! One virtual processor executes a thousand instructions in a virtual microsecond
//! (`-icount shift=0`), and time without work is skipped (`sleep=off`). The guest's
//! clock then says nothing about the machine: a busy one takes longer, and measures the
//! same. A guest of 10 Mbit/s is 1 to 3% busy, an empty path of 40 ms takes 40.06 ms,
//! and `tbf` needs no more burst than two packets.
//!
//! A guest measures all logs of one cell, because it takes longer to boot than to
//! measure a log.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::agent::Event;
use crate::cell::{Cell, Shaper};
use crate::host::{BURST_BYTES, on_ethernet};
use crate::workload::{self, Transfer};

/// The script that fetches and builds what a guest consists of.
const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tools/kernel-guest.sh");
/// What it returns when this machine cannot have a guest.
const SKIPPED: i32 = 3;
/// A second initramfs begins at a multiple of this.
const ALIGNMENT: usize = 512;

/// Why there is no measurement.
#[derive(Debug, thiserror::Error)]
pub enum GuestError {
    /// This machine cannot have a guest; the reason.
    #[error("{0}")]
    Skipped(String),
    /// Something that should work did not.
    #[error("{0}")]
    Failed(String),
    /// A file or a program cannot be used.
    #[error("the guest: {0}")]
    Io(#[from] io::Error),
}

/// What to measure in one guest.
#[derive(Clone, Copy, Debug)]
pub struct Job<'a> {
    /// The link, the queue and the controller.
    pub cell: &'a Cell,
    /// The transfers of each log.
    pub logs: &'a [Vec<Transfer>],
    /// How long a log lasts; `None`: until transfers had time to end.
    pub seconds: Option<f64>,
    /// The sender's own queue; `None` is the kernel's default on a virtual wire.
    pub sender_queue: Option<&'a str>,
    /// Whether connections are looked at while they last.
    pub watches: bool,
}

/// A kernel and its initramfs.
#[derive(Clone, Debug)]
pub struct Guest {
    folder: PathBuf,
    /// The kernel's release: `7.3.4+deb13-amd64`.
    pub release: String,
}

impl Guest {
    /// Fetches what is missing in `folder` and builds the initramfs.
    ///
    /// # Errors
    /// When this machine cannot have a guest.
    pub fn prepare(folder: &Path) -> Result<Guest, GuestError> {
        let output = Command::new(SCRIPT)
            .arg(folder)
            .arg(std::env::current_exe()?)
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        let last = said.trim().lines().last().unwrap_or_default().to_owned();
        match output.status.code() {
            Some(0) => {
                let release = fs::read_to_string(folder.join("release"))?.trim().to_owned();
                Ok(Guest { folder: folder.to_path_buf(), release })
            }
            Some(SKIPPED) => Err(GuestError::Skipped(last)),
            _ => Err(GuestError::Failed(format!("tools/kernel-guest.sh: {}", said.trim()))),
        }
    }

    /// Measures, and returns what the agents saw in each log.
    ///
    /// # Errors
    /// When the guest does not come to its end.
    pub fn measure(&self, job: &Job) -> Result<Vec<Vec<Event>>, GuestError> {
        let name = format!("{}-{}", job.cell, std::process::id());
        let folder = self.folder.join("jobs").join(&name);
        fs::create_dir_all(folder.join("root/job"))?;
        write_job(job, &folder.join("root/job"))?;
        let initramfs = folder.join("initramfs");
        let mut bytes = fs::read(self.folder.join("root.cpio"))?;
        bytes.resize(bytes.len().next_multiple_of(ALIGNMENT), 0);
        bytes.extend(archive(&folder.join("root"))?);
        fs::write(&initramfs, bytes)?;
        let (console, results) = (folder.join("console"), folder.join("results"));
        let serial = |path: &Path| format!("file:{}", path.display());
        let output = Command::new("qemu-system-x86_64")
            // Random numbers are the same each time, as far as QEMU has a say.
            .args(["-seed", "1", "-accel", "tcg,thread=single"])
            .args(["-icount", "shift=0,sleep=off", "-rtc", "base=2026-01-01,clock=vm"])
            .args(["-cpu", "max", "-smp", "1", "-m", "1024", "-display", "none", "-no-reboot"])
            .args(["-nic", "none", "-serial", &serial(&console), "-serial", &serial(&results)])
            .args(["-append", "console=ttyS0 quiet panic=-1 mitigations=off tsc=reliable nokaslr"])
            .args([OsStr::new("-kernel"), self.folder.join("vmlinuz").as_os_str()])
            .args([OsStr::new("-initrd"), initramfs.as_os_str()])
            .stdin(Stdio::null())
            .output()?;
        let text = fs::read_to_string(&results).unwrap_or_default();
        let logs = parse(&text);
        // What began saw at least that.
        if logs.len() == job.logs.len() && logs.iter().all(|log| !log.is_empty()) {
            fs::remove_dir_all(&folder)?;
            return Ok(logs);
        }
        Err(GuestError::Failed(format!(
            "the guest ended after {} of {} logs of {}; its console is {}; QEMU says '{}'",
            logs.len(),
            job.logs.len(),
            job.cell,
            console.display(),
            String::from_utf8_lossy(&output.stderr).trim(),
        )))
    }
}

/// The rate at which the kernel has to shape, so that IP packets get the link's.
pub(crate) fn shaped_rate(cell: &Cell) -> u64 {
    on_ethernet(cell.link.rate.0)
}

/// What `tc` is told of the cell's queue.
pub(crate) fn queue_words(cell: &Cell) -> String {
    let limit = on_ethernet(cell.link.buffer_bytes);
    let rate = format!("{}bit", shaped_rate(cell));
    cell.queue.kernel.replace("RATE", &rate).replace("LIMIT", &limit.to_string())
}

/// What `tidegate-judge program` is told of the cell's queue, if it is one of ours.
fn program_words(cell: &Cell) -> String {
    match (cell.queue.shaper, cell.queue.buffer) {
        (Shaper::Program, Some(buffer)) => {
            let packets = buffer.trim_end_matches(" packets");
            format!("{} {} {packets}", cell.queue.ours, cell.link.rate.0)
        }
        _ => String::new(),
    }
}

/// Writes what the guest reads: the cell as variables of a shell, and the logs.
fn write_job(job: &Job, folder: &Path) -> io::Result<()> {
    let Job { cell, logs, seconds, sender_queue, watches } = *job;
    let yes = |condition| if condition { "yes" } else { "no" };
    let mut modules = vec!["tcp_bbr", "tcp_dctcp"];
    modules.extend(cell.queue.module);
    modules.extend(sender_queue.is_some().then_some("sch_fq"));
    let mut file = File::create(folder.join("cell"))?;
    writeln!(file, "MODULES='{}'", modules.join(" "))?;
    writeln!(file, "QUEUE='{}'", queue_words(cell))?;
    writeln!(file, "SHAPES={}", yes(cell.queue.shaper == Shaper::Itself))?;
    writeln!(file, "PROGRAM='{}'", program_words(cell))?;
    writeln!(file, "CONTROLLER={}", cell.controller)?;
    writeln!(file, "RATE={}", shaped_rate(cell))?;
    writeln!(file, "DELAY_US={}", cell.link.delay.0 / 1000)?;
    writeln!(file, "BURST={BURST_BYTES}")?;
    writeln!(file, "SENDER_QUEUE='{}'", sender_queue.unwrap_or_default())?;
    writeln!(file, "WATCHES={}", yes(watches))?;
    for (number, log) in logs.iter().enumerate() {
        // Names sort as numbers do.
        let name = format!("{number:03}");
        workload::write(log, File::create(folder.join(&name).with_extension("csv"))?)?;
        let last = log.last().map_or(0.0, |transfer| transfer.start_s);
        let seconds = seconds.unwrap_or(last + cell.question.patience_s());
        fs::write(folder.join(&name).with_extension("seconds"), format!("{seconds}\n"))?;
    }
    Ok(())
}

/// The files below `root` as the kernel unpacks them.
fn archive(root: &Path) -> io::Result<Vec<u8>> {
    let output = Command::new("sh")
        .args(["-c", "find . | busybox cpio -o -H newc"])
        .current_dir(root)
        .stderr(Stdio::null())
        .output()?;
    Ok(output.stdout)
}

/// The events of each log that came to its end.
fn parse(text: &str) -> Vec<Vec<Event>> {
    let mut logs = Vec::new();
    let mut events = Vec::new();
    for line in text.lines() {
        match line.trim() {
            line if line.starts_with("log ") => events.clear(),
            "end" => logs.push(std::mem::take(&mut events)),
            line => events.extend(line.parse::<Event>()),
        }
    }
    logs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_logs_that_ended_count() {
        let text = "log 000\r\n# clock tsc\r\nstart 5\r\nbegun 0 7\r\ndone 0 9\r\nend\r\nlog 001\r\nstart 90\r\n";
        let expected = vec![vec![Event::Start(5), Event::Begun(0, 7), Event::Done(0, 9)]];
        assert_eq!(parse(text), expected);
    }

    #[test]
    fn the_kernel_shapes_frames_so_that_packets_get_the_rate() {
        let cell = crate::cell::long_flow("cubic");
        // 10 Mbit/s of 1500 bytes are 10.093 of 1514; 150 kB of packets likewise.
        assert_eq!(shaped_rate(&cell), 10_093_333);
        assert_eq!(queue_words(&cell), "bfifo limit 151400");
    }
}
