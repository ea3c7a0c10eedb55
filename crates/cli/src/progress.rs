//! A progress bar for people at a terminal, once there is something to wait for.

use std::io::{self, IsTerminal};
use std::sync::Once;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use tidegate_core::Span;

/// Work shorter than this needs no bar.
const PATIENCE: Duration = Duration::from_secs(1);

/// Simulated time of all runs together.
pub(crate) struct Progress {
    bar: ProgressBar,
    begun: Instant,
    shown: Once,
    terminal: bool,
}

impl Progress {
    /// Nothing to do yet; [`Progress::extend`] announces more.
    pub(crate) fn of_unknown_length() -> Progress {
        Progress::new(0, Span::ZERO)
    }

    /// Announces this much more simulated time.
    pub(crate) fn extend(&self, span: Span) {
        self.bar.inc_length(span.0);
    }

    /// Shows what is going on.
    pub(crate) fn say(&self, what: &str) {
        self.bar.set_message(what.to_string());
    }

    /// Does something that writes to the terminal, with the bar out of the way.
    pub(crate) fn aside<T>(&self, write: impl FnOnce() -> T) -> T {
        self.bar.suspend(write)
    }

    /// The progress of `runs` runs of `duration` each, before the first begins.
    pub(crate) fn new(runs: usize, duration: Span) -> Progress {
        let total = duration * runs as u64;
        let bar = ProgressBar::with_draw_target(Some(total.0), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template("{bar:40} {percent:>3}%  {msg}  {eta} left")
            .expect("the template is right");
        bar.set_style(style);
        bar.set_message(format!("{runs} runs"));
        let terminal = io::stderr().is_terminal();
        Progress { bar, begun: Instant::now(), shown: Once::new(), terminal }
    }

    /// Records that this much more simulated time has been run.
    pub(crate) fn advance(&self, span: Span) {
        self.bar.inc(span.0);
        if self.terminal && self.begun.elapsed() >= PATIENCE {
            self.shown.call_once(|| {
                self.bar.set_draw_target(ProgressDrawTarget::stderr());
                self.bar.reset_eta();
            });
        }
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
