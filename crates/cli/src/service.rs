//! What a service manager is told: systemd's notifications (sd_notify(3)).
//!
//! Where nobody asks for them, in an ordinary shell for example, nothing happens. The
//! watchdog is fed from the thread that serves, and only while a count goes on that stands
//! still in a program that is stuck: that is started anew.

use std::time::Duration;

use sd_notify::NotifyState;
use tokio::time::{MissedTickBehavior, interval};

/// How often it says what it does.
const STATUS_EVERY: Duration = Duration::from_secs(10);

/// It serves from now on, with its settings, as `status` says.
pub(crate) fn ready(status: &str) {
    tell(&[NotifyState::Ready, NotifyState::Status(status)]);
}

/// The settings are read again, until it is [`ready`].
pub(crate) fn reloading() {
    let Ok(now) = NotifyState::monotonic_usec_now() else { return };
    tell(&[NotifyState::Reloading, now]);
}

/// It ends.
pub(crate) fn stopping() {
    tell(&[NotifyState::Stopping, NotifyState::Status("stopping")]);
}

/// Says for ever what it does and, while the `count` of what it does goes on, that it works,
/// as often as the service manager wants to hear it.
pub(crate) async fn watch(status: impl Fn() -> String, count: impl Fn() -> u64) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return std::future::pending().await;
    }
    let watchdog = sd_notify::watchdog_enabled();
    // Three times in the time that it gives: one may be late on a busy machine.
    let every = watchdog.map_or(STATUS_EVERY, |time| STATUS_EVERY.min(time / 3));
    let mut ticks = interval(every.max(Duration::from_millis(1)));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut heard = None;
    loop {
        ticks.tick().await;
        let status = status();
        let mut states = vec![NotifyState::Status(&status)];
        let now = count();
        if watchdog.is_some() && heard.replace(now) != Some(now) {
            states.push(NotifyState::Watchdog);
        }
        tell(&states);
    }
}

/// A service manager that does not listen is no reason to stop.
fn tell(states: &[NotifyState<'_>]) {
    let _ = sd_notify::notify(states);
}
