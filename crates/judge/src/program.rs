//! Programs that a measurement starts: each has a folder of its own, and ends with it.

use std::fs::{self, File};
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use nix::unistd::{SysconfVar, sysconf};

use crate::host::{BedError, Missing};

/// How long a program may take to listen.
const PATIENCE: Duration = Duration::from_secs(20);

/// A folder that any user may write to, for programs give up root's rights. It is deleted
/// when this goes.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> io::Result<Folder> {
        use std::os::unix::fs::PermissionsExt;
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("tidegate-bed-{}-{number}", std::process::id());
        let folder = Folder(std::env::temp_dir().join(name));
        fs::create_dir_all(&folder.0)?;
        fs::set_permissions(&folder.0, fs::Permissions::from_mode(0o777))?;
        Ok(folder)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    /// Writes a file and returns where it is.
    pub(crate) fn write(&self, name: &str, text: &str) -> io::Result<PathBuf> {
        let path = self.0.join(name);
        fs::write(&path, text)?;
        Ok(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

pub(crate) fn squid(file: &Path) -> Command {
    let mut command = Command::new("squid");
    command.args(["-N", "-f"]).arg(file);
    command
}

pub(crate) fn haproxy(file: &Path) -> Command {
    let mut command = Command::new("haproxy");
    command.args(["-db", "-f"]).arg(file);
    command
}

pub(crate) fn tidegate(program: &Path, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(["gateway", "run"]).arg(file);
    command
}

/// Whether somebody listens there.
pub(crate) fn listens(address: SocketAddr) -> bool {
    TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_ok()
}

/// What a process has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Usage {
    /// Of the processor, since it started.
    pub(crate) cpu: Duration,
    /// Of memory, in bytes, now.
    pub(crate) resident: u64,
}

/// A program that runs until this goes.
pub(crate) struct Started {
    name: String,
    child: Child,
    folder: Folder,
}

impl Started {
    /// Starts it by `spawn`, which decides where. What it says goes into its folder.
    pub(crate) fn new(
        mut command: Command,
        folder: Folder,
        spawn: impl FnOnce(Command) -> io::Result<Child>,
    ) -> Result<Started, BedError> {
        let said = File::create(folder.path().join("said"))?;
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(said);
        let name = command.get_program().to_string_lossy().into_owned();
        match spawn(command) {
            Ok(child) => Ok(Started { name, child, folder }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Err(Missing(format!("there is no program '{name}'")).into())
            }
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    /// What it has taken so far.
    pub(crate) fn usage(&self) -> io::Result<Usage> {
        let of = |file| fs::read_to_string(format!("/proc/{}/{file}", self.id()));
        let found = cpu_ticks(&of("stat")?).zip(resident(&of("status")?));
        let (ticks, resident) = found.ok_or(io::ErrorKind::InvalidData)?;
        let second = sysconf(SysconfVar::CLK_TCK)?.ok_or(io::ErrorKind::Unsupported)?;
        let cpu = Duration::from_secs_f64(ticks as f64 / second as f64);
        Ok(Usage { cpu, resident })
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// What is wrong with it, and the last that it has said.
    pub(crate) fn failed(&self, what: &str) -> BedError {
        let said = fs::read_to_string(self.folder.path().join("said")).unwrap_or_default();
        let last = said.lines().rev().find(|line| !line.trim().is_empty());
        let last = last.unwrap_or("it says nothing");
        BedError::Failed(format!("{} {what}: {last}", self.name))
    }

    /// Waits until `listens` says so.
    pub(crate) fn until_it_listens(
        mut self,
        listens: impl Fn() -> bool,
    ) -> Result<Started, BedError> {
        let begun = Instant::now();
        while !listens() {
            if self.has_ended() || begun.elapsed() > PATIENCE {
                return Err(self.failed("does not listen"));
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(self)
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Ticks of the clock in user and in kernel mode, as `/proc/<pid>/stat` has them.
fn cpu_ticks(stat: &str) -> Option<u64> {
    // The name, in parentheses, may contain anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse::<u64>);
    Some(fields.next()?.ok()? + fields.next()?.ok()?)
}

/// Bytes of memory, as `/proc/<pid>/status` has them.
fn resident(status: &str) -> Option<u64> {
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    let kilobytes: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kilobytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_process_has_taken_is_read_as_the_kernel_writes_it() {
        let stat = "7 (a ) b) S 1 7 7 0 -1 4194304 124 0 0 0 31 11 0 0 20 0 1 0 234644 3133440";
        assert_eq!(cpu_ticks(stat), Some(42));
        assert_eq!(cpu_ticks("7 (a) S 1"), None);
        assert_eq!(resident("VmPeak:\t 9 kB\nVmRSS:\t   17 kB\n"), Some(17 * 1024));
        assert_eq!(resident("VmPeak:\t 9 kB\n"), None);
    }
}
