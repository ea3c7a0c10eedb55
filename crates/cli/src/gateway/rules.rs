//! `tidegate gateway rules`: what hands connections to a gateway, set and taken back.
//!
//! `nft` takes a whole table or nothing of it. While `gateway run --rules` runs, the table
//! belongs to a process of `nft` that lives as long as its standard input is open: however
//! the gateway ends, the kernel removes the table then, and connections go to their
//! servers again.

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread::sleep;
use std::time::{Duration, Instant};

use tidegate_gateway::others::Others;
use tidegate_gateway::{Config, Control, file, rules};
use tokio::task::spawn_blocking;
use tokio::time::{MissedTickBehavior, interval};

use crate::failure::Failure;
use crate::output;

/// How long `nft` may take to set rules.
const PATIENCE: Duration = Duration::from_secs(5);

/// How often it is looked whether it has.
const LOOK_EVERY: Duration = Duration::from_millis(10);

/// How often counters are read: each time takes the processor for some milliseconds.
const COUNT_EVERY: Duration = Duration::from_secs(1);

/// The rules as a program for `nft -f`, and what else has to be done.
pub(crate) fn print(path: &Path) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    let mut text = rules::removal() + &ruleset(path, &config, false)?;
    for (set, _) in rules::routes(&config) {
        text += &format!("# ip {set}\n");
    }
    output::print(&text)
}

/// Sets the rules until they are removed, or the machine starts anew.
pub(crate) fn apply(path: &Path) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    let text = rules::removal() + &ruleset(path, &config, false)?;
    let routes = Routes::set(&config)?;
    nft(&["-f", "-"], &text)?;
    routes.stay();
    Ok(())
}

/// Removes them, if there are any.
pub(crate) fn remove(path: &Path) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    let removed = nft(&["-f", "-"], &rules::removal());
    rules::routes(&config).iter().for_each(|(_, undo)| drop(ip(undo)));
    removed
}

fn ruleset(path: &Path, config: &Config, owned: bool) -> Result<String, Failure> {
    rules::ruleset(config, owned).ok_or_else(|| {
        let expected = "a table such as [intercept] with listen = \"0.0.0.0:3130\"";
        Failure::Input(format!("{}: intercept: found nothing, expected {expected}", path.display()))
    })
}

/// Rules that hold as long as this lives, and this process.
pub(crate) struct Rules {
    nft: Child,
    /// What `nft` complains about.
    complaints: Receiver<String>,
    _routes: Routes,
}

impl Rules {
    pub(crate) fn set(path: &Path, config: &Config) -> Result<Rules, Failure> {
        let text = ruleset(path, config, true)?;
        nft(&["-c", "-f", "-"], &(rules::removal() + &text))?;
        nft(&["-f", "-"], &rules::removal())?;
        let routes = Routes::set(config)?;
        let mut nft = Command::new("nft");
        let nft = nft.arg("-i").stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::piped());
        let mut nft = nft.spawn().map_err(|reason| missing(&reason))?;
        let complaints = listen(nft.stderr.take());
        let mut rules = Rules { nft, complaints, _routes: routes };
        rules.tell(&text).map_err(Failure::Other)?;
        let since = Instant::now();
        while table().map_err(Failure::Other)?.is_none() {
            rules.is_well(since).map_err(Failure::Other)?;
            sleep(LOOK_EVERY);
        }
        Ok(rules)
    }

    /// The rules are those of this configuration from now on.
    ///
    /// # Errors
    /// `nft` or the kernel refuses them, and the earlier ones hold.
    pub(crate) async fn renew(&mut self, config: &Config) -> Result<(), String> {
        let text = rules::deletion() + &rules::ruleset(config, true).unwrap_or_default();
        let look = || async {
            spawn_blocking(table).await.unwrap_or_else(|reason| Err(reason.to_string()))
        };
        let before = look().await?;
        self.tell(&text)?;
        let since = Instant::now();
        // A table that was made anew has another number.
        while look().await? == before {
            self.is_well(since).map_err(|reason| format!("{reason}; the earlier rules hold"))?;
            tokio::time::sleep(LOOK_EVERY).await;
        }
        Ok(())
    }

    /// Whether `nft`, which was told something at this time, may still take it.
    fn is_well(&self, since: Instant) -> Result<(), String> {
        match self.complaints.try_recv() {
            Ok(complaint) => Err(format!("nft: {complaint}")),
            Err(_) if since.elapsed() > PATIENCE => Err("nft does not take the rules".into()),
            Err(_) => Ok(()),
        }
    }

    /// `nft` reads a line at a time, and each is a transaction.
    fn tell(&mut self, program: &str) -> Result<(), String> {
        // What it said before is about something else.
        self.complaints.try_iter().for_each(drop);
        let line = program.replace('\n', "; ") + "\n";
        let input = self.nft.stdin.as_mut().ok_or("nft is gone")?;
        input.write_all(line.as_bytes()).map_err(|reason| format!("nft: {reason}"))
    }
}

impl Drop for Rules {
    fn drop(&mut self) {
        drop(self.nft.stdin.take());
        let _ = self.nft.wait();
    }
}

/// Tells a gateway what its clients receive besides, for ever.
pub(crate) async fn count_others(control: &Control) {
    let mut others = Others::default();
    let mut ticks = interval(COUNT_EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut is_well = true;
    loop {
        ticks.tick().await;
        let listed = spawn_blocking(list).await.unwrap_or_else(|reason| Err(reason.to_string()));
        let read = |listing: String| others.read(&listing).map_err(|reason| reason.to_string());
        let new = listed.and_then(read);
        match &new {
            Ok(new) => {
                new.iter().for_each(|(address, size)| control.received_besides(*address, *size));
            }
            // Once, and not every second.
            Err(error) if is_well => tracing::error!(error, "nothing is counted besides"),
            Err(_) => {}
        }
        is_well = new.is_ok();
    }
}

/// The table with its counters, as JSON.
fn list() -> Result<String, String> {
    nft_says(&["-j", "list", "table", "inet", rules::TABLE])
}

fn nft_says(arguments: &[&str]) -> Result<String, String> {
    let said = Command::new("nft").args(arguments).output();
    let output = said.map_err(|reason| format!("nft: {reason}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).into()),
        false => Err(format!("nft: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}

/// The kernel's number of the table, if there is one: of each that is made it is another.
fn table() -> Result<Option<u64>, String> {
    let listed = insist(|| nft_says(&["-j", "list", "tables"]))?;
    let listed: serde_json::Value = serde_json::from_str(&listed)
        .map_err(|reason| format!("nft's list of tables: {reason}"))?;
    let items = listed["nftables"].as_array().map_or(&[][..], Vec::as_slice);
    let mut tables = items.iter().map(|item| &item["table"]);
    let own = tables.find(|table| table["family"] == "inet" && table["name"] == rules::TABLE);
    Ok(own.and_then(|table| table["handle"].as_u64()))
}

/// What this says, asked again while it is nothing: while an earlier table went, nft 1.0.6 has
/// said nothing, and that all was well.
fn insist(mut asked: impl FnMut() -> Result<String, String>) -> Result<String, String> {
    let since = Instant::now();
    loop {
        let said = asked()?;
        if !said.trim().is_empty() || since.elapsed() > PATIENCE {
            return Ok(said);
        }
        sleep(LOOK_EVERY);
    }
}

/// Hears what `nft` complains about: of each mistake the line that names it, and not the
/// program, which is a line of its own.
fn listen(complaints: Option<ChildStderr>) -> Receiver<String> {
    let (sender, heard) = channel();
    std::thread::spawn(move || {
        let lines = complaints.into_iter().flat_map(|from| BufReader::new(from).lines()).flatten();
        for line in lines.filter(|line| line.contains("Error:")) {
            // Whoever started it may be gone before it.
            let _ = sender.send(line.replacen("Error: ", "", 1));
        }
    });
    heard
}

/// Routes that are taken back when this goes.
struct Routes(Vec<String>);

impl Routes {
    fn set(config: &Config) -> Result<Routes, Failure> {
        let mut routes = Routes(Vec::new());
        for (set, undo) in rules::routes(config) {
            // A rule may stand twice.
            let _ = ip(&undo);
            ip(&set).map_err(|reason| Failure::Other(format!("ip {set}: {reason}")))?;
            routes.0.push(undo);
        }
        Ok(routes)
    }

    fn stay(mut self) {
        self.0.clear();
    }
}

impl Drop for Routes {
    fn drop(&mut self) {
        self.0.iter().for_each(|undo| drop(ip(undo)));
    }
}

fn ip(arguments: &str) -> Result<(), String> {
    let ran = Command::new("ip").args(arguments.split(' ')).output();
    match ran {
        Ok(output) if output.status.success() => Ok(()),
        Ok(output) => Err(String::from_utf8_lossy(&output.stderr).trim().into()),
        Err(reason) => Err(reason.to_string()),
    }
}

/// Runs `nft` with this on its standard input.
fn nft(arguments: &[&str], text: &str) -> Result<(), Failure> {
    let mut nft = Command::new("nft");
    let nft = nft.args(arguments).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn();
    let mut nft = nft.map_err(|reason| missing(&reason))?;
    let failed = |reason: &dyn std::fmt::Display| Failure::Other(format!("nft: {reason}"));
    if let Some(mut input) = nft.stdin.take() {
        input.write_all(text.as_bytes()).map_err(|reason| failed(&reason))?;
    }
    let output = nft.wait_with_output().map_err(|reason| failed(&reason))?;
    match output.status.success() {
        true => Ok(()),
        false => Err(failed(&String::from_utf8_lossy(&output.stderr).trim())),
    }
}

fn missing(reason: &std::io::Error) -> Failure {
    let hint = match reason.kind() {
        std::io::ErrorKind::NotFound => "; Debian has it in the package nftables",
        _ => "",
    };
    Failure::Other(format!("nft: {reason}{hint}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_says_nothing_is_asked_again() {
        let mut answers = ["", "\n", "{}", "more"].iter();
        assert_eq!(
            insist(|| Ok(answers.next().expect("it is asked on").to_string())),
            Ok("{}".into())
        );
        assert_eq!(insist(|| Err("nft: gone".into())), Err("nft: gone".into()));
    }
}
