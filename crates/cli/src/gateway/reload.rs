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

/// How often files are looked at. A look is one system call, sees what replaces the file
/// by renaming, links and what another machine writes, and misses nothing that stays.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// The settings of a running gateway, and all that follows them.
pub(super) struct Settings {
    path: PathBuf,
    files: Vec<PathBuf>,
    control: Control,
    rules: Option<Rules>,
}

impl Settings {
    pub(super) fn new(
        path: &Path,
        config: &Config,
        control: Control,
        rules: Option<Rules>,
    ) -> Settings {
        Settings { path: path.into(), files: config.files.clone(), control, rules }
    }

    /// Reads the file again; all of it holds from then on, or nothing.
    pub(super) async fn reload(&mut self) -> Reloaded {
        let outcome = self.take().await;
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

    async fn take(&mut self) -> Reloaded {
        let config = file::read(&self.path).map_err(|error| error.to_string())?;
        let fixed = |fixed| format!("{}: {fixed}", self.path.display());
        self.control.permits(&config).map_err(fixed)?;
        // Only the kernel may still refuse.
        if let Some(rules) = &mut self.rules {
            rules.renew(&config).await?;
        }
        self.files.clone_from(&config.files);
        self.control.change(config).map_err(fixed)
    }

    /// The other files that the settings were read from.
    pub(super) fn files(&self) -> &[PathBuf] {
        &self.files
    }
}

/// Files that are looked at again and again.
pub(super) struct Watch(Vec<Watched>);

struct Watched {
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

impl Watched {
    fn new(path: &Path) -> Watched {
        let now = look(path);
        Watched { path: path.into(), read: now, last: now }
    }

    /// Looks at it; returns whether it is another than was read, and whoever writes it has
    /// stopped.
    fn has_changed(&mut self) -> bool {
        let now = look(&self.path);
        let rests = now.is_some() && now == self.last;
        self.last = now;
        rests && now != self.read
    }
}

impl Watch {
    /// The file of a gateway, and those that it names, which have been read.
    pub(super) fn new(path: &Path, files: &[PathBuf]) -> Watch {
        let mut watch = Watch(vec![Watched::new(path)]);
        watch.follow(files);
        watch
    }

    /// The file names these others from now on.
    pub(super) fn follow(&mut self, files: &[PathBuf]) {
        let mut number = 0;
        // The first is the file itself.
        self.0.retain(|watched| {
            number += 1;
            number == 1 || files.contains(&watched.path)
        });
        for path in files {
            if self.0.iter().all(|watched| watched.path != *path) {
                self.0.push(Watched::new(path));
            }
        }
    }

    /// They are about to be read.
    pub(super) fn note(&mut self) {
        self.0.iter_mut().for_each(|watched| watched.read = look(&watched.path));
    }

    /// Waits until one has changed.
    pub(super) async fn changed(&mut self) {
        loop {
            tokio::time::sleep(LOOK_EVERY).await;
            // Each has to be looked at, whether or not one before it has changed.
            let changed = self.0.iter_mut().filter_map(|it| it.has_changed().then_some(()));
            if changed.count() > 0 {
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
