//! What a gateway has come to, from all who know a part of it.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use tidegate_core::request::ClassId;
use tokio::time::Instant;

use crate::books::{Account, Smoothed, Stage, approach};
use crate::gate::Standing;
use crate::gateway::House;
use crate::history::{Columns, History};
use crate::status::{ClassStatus, Status, UserStatus, name_of};
use crate::times::{Buckets, Times};

/// Users in each list of a status.
const TOP_USERS: usize = 10;
/// How often it is looked at who wants something: users come and go faster than seconds.
pub(crate) const LOOK_EVERY: Duration = Duration::from_millis(100);
/// How many looks make a sample of the history.
const LOOKS: u32 = 10;

/// What was seen of late.
#[derive(Debug)]
pub(crate) struct Recent {
    carried: Smoothed,
    /// What each class is entitled to, in bits per second.
    shares: Vec<f64>,
    history: History,
    looks: u32,
    looked: Instant,
    sampled: Instant,
}

impl Recent {
    #[expect(clippy::disallowed_methods, reason = "the page says at what time of day it began")]
    pub(crate) fn new() -> Recent {
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let now = Instant::now();
        Recent {
            carried: Smoothed::default(),
            shares: Vec::new(),
            history: History::new(u64::try_from(since.as_millis()).unwrap_or(u64::MAX)),
            looks: 0,
            looked: now,
            sampled: now,
        }
    }
}

impl Recent {
    /// From now on each class has the figures of the one that was at this position, or none.
    pub(crate) fn rearrange(&mut self, earlier: &[Option<usize>]) {
        let before = std::mem::take(&mut self.shares);
        if !before.is_empty() {
            let of = |at: &Option<usize>| before.get((*at)?).copied();
            self.shares = earlier.iter().map(|at| of(at).unwrap_or_default()).collect();
        }
        self.history.rearrange(earlier);
    }
}

impl House {
    /// To be called every [`LOOK_EVERY`], or nearly so.
    pub(crate) fn look(&self) {
        let now = Instant::now();
        let config = self.config.get();
        let ids = (0..config.classes.len() as u32).map(ClassId);
        let users: Vec<_> =
            ids.map(|id| self.gate.class(id).map_or(0, |state| state.users)).collect();
        let recent = &mut *self.recent.borrow_mut();
        match config.shares(&users) {
            Some(shares) => {
                let passed = (now - recent.looked).as_secs_f64();
                recent.shares.resize(shares.len(), 0.0);
                for (average, share) in recent.shares.iter_mut().zip(shares) {
                    approach(average, share, passed);
                }
            }
            None => recent.shares.clear(),
        }
        recent.looked = now;
        recent.looks += 1;
        if recent.looks < LOOKS {
            return;
        }
        let seconds = (now - recent.sampled).as_secs_f64();
        (recent.looks, recent.sampled) = (0, now);
        self.books.second(seconds);
        recent.carried.update(self.gate.standing().carried, seconds);
        let status = self.status_with(recent);
        recent.history.push(&status);
    }

    /// What it has come to.
    pub(crate) fn status(&self) -> Status {
        self.status_with(&self.recent.borrow())
    }

    fn status_with(&self, recent: &Recent) -> Status {
        let Standing { window, held, outstanding, waiting, tunnels, overdue, carried } =
            self.gate.standing();
        let config = self.config.get();
        let classes = config.classes.iter().zip((0..).map(ClassId)).map(|(class, id)| {
            let counts = self.books.class(id);
            let share = recent.shares.get(id.0 as usize);
            let typical = |stage| self.books.times(id, stage, Times::typical).flatten();
            ClassStatus {
                name: class.name.clone(),
                weight: class.weight.get(),
                users: self.gate.class(id).map_or(0, |state| state.users),
                completed: counts.completed,
                failed: counts.failed,
                refused: counts.refused,
                dropped_datagrams: counts.dropped,
                received_bytes: counts.received.0,
                besides_bytes: counts.besides.0,
                waited_s: counts.waited.as_seconds(),
                received_bps: self.books.rate(id) as u64,
                share_bps: share.map(|share| *share as u64),
                waited: typical(Stage::Waited),
                first_byte: typical(Stage::FirstByte),
                service: typical(Stage::Service),
            }
        });
        let users = |of: fn(&Account) -> u64| {
            let top = self.books.top(TOP_USERS, of).into_iter();
            top.map(|(class, user, account)| UserStatus {
                user: self.logins.name(user).map_or_else(|| name_of(user), |name| (*name).into()),
                class: self.class_name(class),
                received_bytes: account.received.0,
                received_bps: account.rate() as u64,
            })
        };
        let busy = users(|account| account.rate() as u64);
        Status {
            scheduler: config.scheduler.name.into(),
            rate_bps: config.rate.0,
            uptime_s: self.since.elapsed().as_secs_f64(),
            carried_bytes: carried.0,
            carried_bps: recent.carried.bits_per_second as u64,
            window: Some(window).filter(|window| window.is_finite()),
            held: held.into(),
            outstanding: outstanding as u64,
            waiting: waiting as u64,
            tunnels: tunnels as u64,
            uploads: self.uploads.get().into(),
            overdue,
            quic_flows: self.flows.len() as u64,
            connections: self.connections.len() as u64,
            kept: self.servers.kept() as u64,
            classes: classes.collect(),
            top_users: users(|account| account.received.0).collect(),
            busy_users: busy.filter(|user| user.received_bps > 0).collect(),
        }
    }

    /// The samples of the history from this number on.
    pub(crate) fn history(&self, since: u64) -> Columns {
        let config = self.config.get();
        let names: Vec<_> = config.classes.iter().map(|class| class.name.clone()).collect();
        self.recent.borrow().history.columns(&names, since)
    }

    /// For each class all times in line, and all until the first and the last byte.
    pub(crate) fn times(&self) -> Vec<[Buckets; 3]> {
        let all = |id, stage| {
            self.books.times(id, stage, |times| times.all().clone()).unwrap_or_default()
        };
        let ids = (0..self.config.get().classes.len() as u32).map(ClassId);
        ids.map(|id| [Stage::Waited, Stage::FirstByte, Stage::Service].map(|it| all(id, it)))
            .collect()
    }
}
