//! Programs of others that load the link, each towards a server of its own kind.

use std::io::{self, Read};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::{self, JoinHandle, sleep};
use std::time::Duration;

use super::client::Clock;
use crate::failure::Failure;

const LOOK: Duration = Duration::from_millis(100);
/// How long a program may take to end after its time.
const END: Duration = Duration::from_secs(15);
/// The most bytes that one may print.
const MOST_PRINTED: u64 = 64 << 20;

/// What a program came to.
pub(super) struct Output {
    pub(super) printed: Vec<u8>,
    pub(super) status: ExitStatus,
}

/// A program that does not outlive whoever waits for it.
struct Running {
    child: Child,
    /// Reads along, since a program waits for whoever reads.
    reader: Option<JoinHandle<io::Result<Vec<u8>>>>,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Runs `commands` side by side until they end, which has to be within `END` of `end_s`;
/// returns what they printed, or nothing if the run is to end early. `package` is Debian's.
pub(super) fn outputs(
    commands: Vec<Command>,
    package: &str,
    end_s: f64,
    clock: Clock<'_>,
) -> Result<Vec<Output>, Failure> {
    let failed = |reason: &dyn std::fmt::Display| Failure::Other(format!("{package}: {reason}"));
    let begin = |mut command: Command| {
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().map_err(|reason| match reason.kind() {
            io::ErrorKind::NotFound => {
                failed(&format!("it is not installed; Debian has it in the package {package}"))
            }
            _ => failed(&reason),
        })?;
        let stdout = child.stdout.take().expect("it is a pipe");
        let reader = thread::spawn(move || {
            let mut text = Vec::new();
            stdout.take(MOST_PRINTED).read_to_end(&mut text).map(|_| text)
        });
        Ok(Running { child, reader: Some(reader) })
    };
    let mut all: Vec<Running> = commands.into_iter().map(begin).collect::<Result<_, Failure>>()?;
    let mut outputs = Vec::new();
    for running in &mut all {
        let status = loop {
            if let Some(status) = running.child.try_wait().map_err(|it| failed(&it))? {
                break status;
            }
            if clock.stopped() {
                return Ok(Vec::new());
            }
            if clock.now_s() > end_s + END.as_secs_f64() {
                return Err(failed(&"it does not end"));
            }
            sleep(LOOK);
        };
        let reader = running.reader.take().expect("each is waited for once");
        let printed = reader.join().expect("the reader does not panic");
        outputs.push(Output { printed: printed.map_err(|it| failed(&it))?, status });
    }
    Ok(outputs)
}
