//! `tidegate gateway top`: what a running gateway does, moment by moment.
//!
//! A gateway counts since its start; the difference of two of its states is what happened
//! between them. A counter that has become smaller is that of a gateway that was started
//! anew: what it has then is what happened.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::Rate;
use tidegate_gateway::{ClassStatus, Status, UserStatus};

use super::admin::Admin;
use crate::arguments::GatewayTopArguments;
use crate::failure::Failure;
use crate::moments;

/// What happened between two states.
#[derive(Debug, PartialEq, Serialize)]
struct Moment {
    seconds: f64,
    rate_bps: u64,
    /// What servers have sent, in percent of the rate.
    use_percent: f64,
    waiting: u64,
    outstanding: u64,
    held: u64,
    tunnels: u64,
    connections: u64,
    classes: Vec<Class>,
    users: Vec<User>,
}

#[derive(Debug, PartialEq, Serialize)]
struct Class {
    name: String,
    weight: u32,
    users: u32,
    rate_bps: f64,
    /// In percent of what all classes have received.
    share_percent: f64,
    requests_per_s: f64,
    failed: u64,
    /// The mean time in line of the requests and tunnels that ended; nothing without one.
    waited_ms: Option<f64>,
}

#[derive(Debug, PartialEq, Serialize)]
struct User {
    user: String,
    class: String,
    rate_bps: f64,
}

impl Moment {
    fn between(before: &Status, after: &Status) -> Moment {
        let is_anew = after.uptime_s < before.uptime_s;
        let since =
            |before: u64, after: u64| if is_anew { after } else { after.saturating_sub(before) };
        let seconds = if is_anew { after.uptime_s } else { after.uptime_s - before.uptime_s };
        let seconds = seconds.max(0.001);
        let rate = |bytes: u64| bytes as f64 * 8.0 / seconds;
        let empty = ClassStatus::default();
        let pairs = after.classes.iter().map(|class| {
            let earlier = before.classes.iter().find(|earlier| earlier.name == class.name);
            (earlier.unwrap_or(&empty), class)
        });
        let all: u64 = pairs.clone().map(|(a, b)| since(a.received_bytes, b.received_bytes)).sum();
        let classes = pairs.map(|(earlier, class)| {
            let received = since(earlier.received_bytes, class.received_bytes);
            let failed = since(earlier.failed, class.failed);
            let ended = since(earlier.completed, class.completed) + failed;
            let waited = class.waited_s - if is_anew { 0.0 } else { earlier.waited_s };
            Class {
                name: class.name.clone(),
                weight: class.weight,
                users: class.users,
                rate_bps: rate(received),
                share_percent: 100.0 * received as f64 / all.max(1) as f64,
                requests_per_s: ended as f64 / seconds,
                failed,
                waited_ms: (ended > 0).then(|| 1_000.0 * waited / ended as f64),
            }
        });
        let listed = || before.busy_users.iter().chain(&before.top_users);
        let mut users: Vec<_> = after
            .busy_users
            .iter()
            .map(|user| {
                let is_same = |it: &&UserStatus| (&it.user, &it.class) == (&user.user, &user.class);
                // Of who was in no list, the gateway knows the average of the last seconds.
                let rate_bps = listed().find(is_same).map_or(user.received_bps as f64, |earlier| {
                    rate(since(earlier.received_bytes, user.received_bytes))
                });
                User { user: user.user.clone(), class: user.class.clone(), rate_bps }
            })
            .filter(|user| user.rate_bps > 0.0)
            .collect();
        users.sort_by(|a, b| b.rate_bps.total_cmp(&a.rate_bps));
        Moment {
            seconds,
            rate_bps: after.rate_bps,
            use_percent: 100.0 * rate(all) / after.rate_bps as f64,
            waiting: after.waiting,
            outstanding: after.outstanding,
            held: after.held,
            tunnels: after.tunnels,
            connections: after.connections,
            classes: classes.collect(),
            users,
        }
    }

    fn text(&self) -> String {
        let mut text = format!(
            "{:.1} s: {:.0}% of {}; {} in line, {} outstanding, {} hold a place, {} tunnels, {} \
             connections\n\n{:<20}",
            self.seconds,
            self.use_percent,
            Rate(self.rate_bps),
            self.waiting,
            self.outstanding,
            self.held,
            self.tunnels,
            self.connections,
            "class",
        );
        let columns = ["weight", "users", "Mbit/s", "share", "requests/s", "failed", "waited ms"];
        for column in columns {
            let _ = write!(text, " {column:>10}");
        }
        for class in &self.classes {
            let waited = class.waited_ms.map_or("-".into(), |waited| format!("{waited:.0}"));
            let _ = write!(
                text,
                "\n{:<20} {:>10} {:>10} {:>10.2} {:>9.1}% {:>10.1} {:>10} {waited:>10}",
                class.name,
                class.weight,
                class.users,
                class.rate_bps / 1e6,
                class.share_percent,
                class.requests_per_s,
                class.failed,
            );
        }
        text.push('\n');
        for user in &self.users {
            let rate = user.rate_bps / 1e6;
            let _ = write!(text, "\n{:<43} {:<20} {rate:>10.2} Mbit/s", user.user, user.class);
        }
        text + "\n"
    }
}

pub(crate) fn top(arguments: &GatewayTopArguments) -> Result<(), Failure> {
    let admin = Admin::of(&arguments.file)?;
    let GatewayTopArguments { every, times, json, .. } = *arguments;
    moments::show(every, times, json, || admin.status(), Moment::between, Moment::text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(uptime_s: f64, bytes: [u64; 2], completed: u64, waited_s: f64) -> Status {
        let class = |name: &str, received_bytes| ClassStatus {
            name: name.into(),
            weight: 1,
            completed,
            waited_s,
            received_bytes,
            ..ClassStatus::default()
        };
        let classes = vec![class("a", bytes[0]), class("b", bytes[1])];
        Status { uptime_s, rate_bps: 1_000_000, classes, ..Status::default() }
    }

    #[test]
    fn a_moment_is_the_difference_of_two_states() {
        let before = status(10.0, [1_000_000, 0], 100, 3.0);
        let moment = Moment::between(&before, &status(12.0, [1_150_000, 50_000], 104, 3.2));
        assert_eq!((moment.seconds, moment.use_percent), (2.0, 80.0));
        let [a, b] = &moment.classes[..] else { panic!("two classes") };
        assert_eq!((a.rate_bps, a.share_percent, b.share_percent), (600_000.0, 75.0, 25.0));
        assert_eq!(a.requests_per_s, 2.0);
        assert!(a.waited_ms.is_some_and(|waited| (waited - 50.0).abs() < 1e-6), "{a:?}");
        let rest = Moment::between(&before, &status(11.0, [1_000_000, 0], 100, 3.0));
        assert_eq!((rest.use_percent, rest.classes[0].waited_ms), (0.0, None));
    }

    #[test]
    fn users_who_are_busy_now_are_shown_whatever_they_received_before() {
        let user = |name: &str, received_bytes, received_bps| UserStatus {
            user: name.into(),
            class: "a".into(),
            received_bytes,
            received_bps,
        };
        let mut before = status(10.0, [0, 0], 0, 0.0);
        before.top_users = vec![user("much before", 9_000_000, 0), user("both", 1_000_000, 0)];
        let mut after = status(12.0, [0, 0], 0, 0.0);
        after.top_users = vec![user("much before", 9_000_000, 0)];
        after.busy_users = vec![user("new", 100_000, 300_000), user("both", 1_050_000, 5)];
        let users = Moment::between(&before, &after).users;
        let users: Vec<_> = users.iter().map(|it| (it.user.as_str(), it.rate_bps)).collect();
        assert_eq!(users, [("new", 300_000.0), ("both", 200_000.0)]);
    }

    #[test]
    fn a_gateway_that_was_started_anew_has_what_it_counts() {
        let before = status(1_000.0, [9_000_000, 0], 100, 3.0);
        let moment = Moment::between(&before, &status(4.0, [100_000, 0], 2, 0.5));
        assert_eq!((moment.seconds, moment.classes[0].rate_bps), (4.0, 200_000.0));
        assert_eq!(moment.classes[0].waited_ms, Some(250.0));
    }
}
