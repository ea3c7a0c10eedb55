//! What the gateway has done for each class and user, since its start and of late.

use std::cell::RefCell;
use std::collections::BTreeMap;

use tidegate_core::request::{ClassId, UserId};
use tidegate_core::{Bytes, Span};

use crate::times::Times;

/// Users that are remembered: whoever received the least makes room for the next.
const MOST_USERS: usize = 4_096;

/// A rate follows a change within some seconds: an eye can read it, and it is of now.
const SMOOTHING_S: f64 = 3.0;

/// All counts.
#[derive(Debug)]
pub(crate) struct Books {
    classes: RefCell<Vec<Class>>,
    users: RefCell<BTreeMap<(ClassId, UserId), Account>>,
}

#[derive(Debug)]
struct Class {
    counts: Counts,
    smoothed: Smoothed,
    taken: [Times; 3],
}

impl Class {
    fn new() -> Class {
        Class {
            counts: Counts::default(),
            smoothed: Smoothed::default(),
            taken: std::array::from_fn(|_| Times::new()),
        }
    }
}

/// What of a request takes time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its time in line, also that of a request in a tunnel.
    Waited,
    /// From its release to the first byte of its response, also in a tunnel.
    FirstByte,
    /// From its release to the last byte of its response; in a tunnel nobody knows it.
    Service,
}

/// What a user has received.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Account {
    pub(crate) received: Bytes,
    smoothed: Smoothed,
}

/// The rate at which a count grows, as an exponential average.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Smoothed {
    before: Bytes,
    pub(crate) bits_per_second: f64,
}

impl Smoothed {
    /// So many seconds later, the count is this.
    pub(crate) fn update(&mut self, count: Bytes, seconds: f64) {
        let rate = (count - self.before).0 as f64 * 8.0 / seconds;
        approach(&mut self.bits_per_second, rate, seconds);
        self.before = count;
    }
}

/// Moves an average towards what has held for so many seconds.
pub(crate) fn approach(average: &mut f64, value: f64, seconds: f64) {
    *average += (value - *average) * (1.0 - (-seconds / SMOOTHING_S).exp());
}

impl Account {
    /// Its rate of late, in bits per second.
    pub(crate) fn rate(&self) -> f64 {
        self.smoothed.bits_per_second
    }
}

/// What was done for a class.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    /// Requests and tunnels that ended in order, that failed, and that were refused
    /// because they could not be understood.
    pub(crate) completed: u64,
    pub(crate) failed: u64,
    pub(crate) refused: u64,
    /// Datagrams of QUIC that no queue had room for.
    pub(crate) dropped: u64,
    /// What servers sent for it.
    pub(crate) received: Bytes,
    /// What its clients received besides.
    pub(crate) besides: Bytes,
    /// How long its requests were in line, all together.
    pub(crate) waited: Span,
}

impl Books {
    pub(crate) fn new(classes: usize) -> Books {
        let classes = RefCell::new((0..classes).map(|_| Class::new()).collect());
        Books { classes, users: RefCell::default() }
    }

    /// From now on each class has the counts of the one that was at this position, or none
    /// yet. What belongs to no class any more is forgotten.
    pub(crate) fn rearrange(&self, earlier: &[Option<usize>]) {
        let mut classes = self.classes.borrow_mut();
        let mut before: Vec<_> = classes.drain(..).map(Some).collect();
        let mut take = |at: &Option<usize>| before.get_mut((*at)?)?.take();
        *classes = earlier.iter().map(|at| take(at).unwrap_or_else(Class::new)).collect();
        let now = |class: ClassId| {
            let position = earlier.iter().position(|at| *at == Some(class.0 as usize))?;
            Some(ClassId(position as u32))
        };
        let users = self.users.take().into_iter();
        let users = users.filter_map(|((class, user), it)| Some(((now(class)?, user), it)));
        self.users.replace(users.collect());
    }

    /// Changes the counts of a class.
    pub(crate) fn count(&self, class: ClassId, change: impl FnOnce(&mut Counts)) {
        let mut classes = self.classes.borrow_mut();
        if let Some(class) = classes.get_mut(class.0 as usize) {
            change(&mut class.counts);
        }
    }

    /// A server has sent this much for a user.
    pub(crate) fn received(&self, class: ClassId, user: UserId, size: Bytes) {
        self.count(class, |counts| counts.received += size);
        let users = &mut *self.users.borrow_mut();
        if let Some(account) = users.get_mut(&(class, user)) {
            account.received += size;
            return;
        }
        if users.len() >= MOST_USERS {
            let least = users.iter().min_by_key(|(_, account)| account.received);
            let least = least.map(|(name, _)| *name);
            least.map(|least| users.remove(&least));
        }
        let smoothed = Smoothed::default();
        users.insert((class, user), Account { received: size, smoothed });
    }

    /// This stage of a request took so long.
    pub(crate) fn took(&self, class: ClassId, stage: Stage, span: Span) {
        let mut classes = self.classes.borrow_mut();
        if let Some(class) = classes.get_mut(class.0 as usize) {
            class.taken[stage as usize].record(span);
        }
    }

    /// Reads the times of a stage.
    pub(crate) fn times<R>(
        &self,
        class: ClassId,
        stage: Stage,
        read: impl FnOnce(&Times) -> R,
    ) -> Option<R> {
        let classes = self.classes.borrow();
        classes.get(class.0 as usize).map(|class| read(&class.taken[stage as usize]))
    }

    /// About a second is over.
    pub(crate) fn second(&self, seconds: f64) {
        for class in &mut *self.classes.borrow_mut() {
            class.smoothed.update(class.counts.received, seconds);
            class.taken.iter_mut().for_each(Times::second);
        }
        for account in self.users.borrow_mut().values_mut() {
            account.smoothed.update(account.received, seconds);
        }
    }

    /// The counts of a class.
    pub(crate) fn class(&self, class: ClassId) -> Counts {
        let classes = self.classes.borrow();
        classes.get(class.0 as usize).map_or_else(Counts::default, |class| class.counts)
    }

    /// What a class receives of late, in bits per second.
    pub(crate) fn rate(&self, class: ClassId) -> f64 {
        let classes = self.classes.borrow();
        classes.get(class.0 as usize).map_or(0.0, |class| class.smoothed.bits_per_second)
    }

    /// The users of whom there is the most, the first of them first.
    pub(crate) fn top(
        &self,
        count: usize,
        of: impl Fn(&Account) -> u64,
    ) -> Vec<(ClassId, UserId, Account)> {
        let users = self.users.borrow();
        let accounts = users.iter().map(|((class, user), account)| (*class, *user, *account));
        let mut all: Vec<_> = accounts.collect();
        all.sort_by_key(|(class, user, account)| (std::cmp::Reverse(of(account)), *class, *user));
        all.truncate(count);
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn those_who_received_the_most_are_never_forgotten() {
        let books = Books::new(1);
        let large = u64::MAX - 3;
        for user in [large, large + 1] {
            books.received(ClassId(0), UserId(user), Bytes(1_000_000));
        }
        for user in 0..2 * MOST_USERS as u64 {
            books.received(ClassId(0), UserId(user), Bytes(user));
        }
        let top: Vec<_> = books
            .top(3, |account| account.received.0)
            .into_iter()
            .map(|(_, user, _)| user.0)
            .collect();
        assert_eq!(top, [large, large + 1, 2 * MOST_USERS as u64 - 1]);
        assert_eq!(books.users.borrow().len(), MOST_USERS);
        let all = 2_000_000 + (0..2 * MOST_USERS as u64).sum::<u64>();
        assert_eq!(books.class(ClassId(0)).received, Bytes(all));
    }

    #[test]
    fn counts_go_with_their_classes() {
        let books = Books::new(3);
        for class in 0..3 {
            books.received(ClassId(class), UserId(7), Bytes(10 + u64::from(class)));
        }
        books.rearrange(&[Some(2), None, Some(0)]);
        let received = [0, 1, 2].map(|class| books.class(ClassId(class)).received.0);
        assert_eq!(received, [12, 0, 10]);
        let top: Vec<_> = books.top(9, |account| account.received.0);
        let top: Vec<_> = top.into_iter().map(|(class, _, it)| (class.0, it.received.0)).collect();
        assert_eq!(top, [(0, 12), (2, 10)]);
    }

    #[test]
    fn rates_are_those_of_the_last_seconds() {
        let books = Books::new(1);
        let (idle, busy) = (UserId(1), UserId(2));
        books.received(ClassId(0), idle, Bytes(50_000_000));
        for _ in 0..60 {
            books.received(ClassId(0), busy, Bytes(125_000));
            books.second(1.0);
        }
        let top = |of: fn(&Account) -> u64| books.top(9, of)[0].1;
        assert_eq!(top(|account| account.received.0), idle);
        assert_eq!(top(|account| account.rate() as u64), busy);
        // A megabit per second, and what is left of what came a minute ago.
        let rate = books.rate(ClassId(0));
        assert!((1e6..1.01e6).contains(&rate), "{rate}");
        (0..60).for_each(|_| books.second(1.0));
        assert!(books.rate(ClassId(0)) < 100.0);
    }
}
