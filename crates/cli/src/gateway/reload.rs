//! A running gateway gets other settings: when its file changes, on SIGHUP, and when the
//! admin port is asked to. All three take one way: all of the file holds, or nothing.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use tidegate_gateway::{Config, Control, Reloaded, file};

use super::admin::Admin;
use super::rules::Rules;
use crate::arguments::GatewayReloadArguments;
use crate::failure::Failure;
use crate::output::{print, print_json};

/// How often the file is looked at. A look is one system call, sees what replaces the file
/// by renaming, links and what another machine writes, and misses nothing that stays.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The settings of a running gateway, and all that follows them.
pub(super) struct Settings {
    path: PathBuf,
    /// What holds.
    config: Config,
    control: Control,
    rules: Option<Rules>,
}

impl Settings {
    pub(super) fn new(
        path: &Path,
        config: Config,
        control: Control,
        rules: Option<Rules>,
    ) -> Settings {
        Settings { path: path.into(), config, control, rules }
    }

    /// Reads the file again; all of it holds from then on, or nothing.
    pub(super) fn reload(&mut self) -> Reloaded {
        let outcome = self.take();
        match &outcome {
            Ok(changes) => {
                let changes: Vec<_> = changes.iter().map(|change| change.key.as_str()).collect();
                let changes = changes.join(", ");
                tracing::info!(changes, "the file was read again");
            }
            Err(error) => tracing::error!(error, "the earlier settings stay"),
        }
        outcome
    }

    fn take(&mut self) -> Reloaded {
        let config = file::read(&self.path).map_err(|error| error.to_string())?;
        let changes = self.control.change(config.clone());
        let changes = changes.map_err(|fixed| format!("{}: {fixed}", self.path.display()))?;
        if let Some(rules) = &mut self.rules
            && let Err(reason) = rules.renew(&config)
        {
            let back = self.control.change(self.config.clone());
            back.expect("what could change can change back");
            return Err(reason);
        }
        self.config = config;
        Ok(changes)
    }
}

/// A file that is looked at again and again.
pub(super) struct Watch {
    path: PathBuf,
    /// How it looked when it was read.
    read: Option<Look>,
    /// How it looked the last time.
    last: Option<Look>,
}

/// What differs when a file was written or replaced: device, number, size, and the time of
/// the last change in seconds and nanoseconds.
type Look = (u64, u64, u64, i64, i64);

fn look(path: &Path) -> Option<Look> {
    let it = fs::metadata(path).ok()?;
    Some((it.dev(), it.ino(), it.size(), it.ctime(), it.ctime_nsec()))
}

impl Watch {
    pub(super) fn new(path: &Path) -> Watch {
        let now = look(path);
        Watch { path: path.into(), read: now, last: now }
    }

    /// It is about to be read.
    pub(super) fn note(&mut self) {
        self.read = look(&self.path);
    }

    /// Waits until it is another than was read, and whoever writes it has stopped.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            let now = look(&self.path);
            let rests = now.is_some() && now == self.last;
            self.last = now;
            if rests && now != self.read {
                return;
            }
        }
    }
}

pub(crate) fn reload(arguments: &GatewayReloadArguments) -> Result<(), Failure> {
    let answer = Admin::of(&arguments.file)?.reload()?;
    if arguments.json {
        return print_json(&answer);
    }
    let changes = answer["changes"].as_array().map_or(&[][..], Vec::as_slice);
    if changes.is_empty() {
        return print("the file was read again, and nothing differs\n");
    }
    let text = |change: &serde_json::Value| {
        let of = |key: &str| change[key].as_str().unwrap_or_default().to_owned();
        format!("{}: {}, before {}\n", of("key"), of("after"), of("before"))
    };
    print(&changes.iter().map(text).collect::<String>())
}
