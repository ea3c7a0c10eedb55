//! Who has logged in.
//!
//! A client shows its password with every request. To check one takes milliseconds on
//! purpose, so a right one is remembered, as a digest that nobody can compute without a
//! secret of this process, and the next request pays next to nothing. A user has one
//! right password: no more is ever remembered than there are users. What is wrong is not
//! remembered, or whoever guesses would fill the memory.
//!
//! Checks run one at a time beside the thread that serves, so that guesses take at most
//! one core. A wrong one is answered late, and until then no other of the same address is
//! checked: however many connections somebody guesses on, others can log in.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use sha2::{Digest as _, Sha256};
use tidegate_core::request::UserId;
use tokio::sync::Semaphore;
use tokio::time::sleep;

use crate::message::Credentials;
use crate::passwords::Passwords;

/// How long a wrong password waits for its answer.
const PENALTY: Duration = Duration::from_secs(1);

/// The numbers of users by name begin here. As addresses, these would be multicast, from
/// which nothing ever comes (RFC 4291 section 2.7).
const FIRST: u64 = 0xff00_0000_0000_0000;

type Digest = [u8; 32];

/// All that is remembered.
#[derive(Debug)]
pub(crate) struct Logins {
    secret: [u8; 32],
    right: RefCell<BTreeMap<Rc<str>, Digest>>,
    /// Those who were here, each at its number.
    users: RefCell<Vec<Rc<str>>>,
    turn: Semaphore,
    /// The turns of those whose passwords are checked, by address.
    turns: RefCell<BTreeMap<UserId, Rc<Semaphore>>>,
}

impl Logins {
    /// Nobody has logged in.
    pub(crate) fn new() -> Logins {
        let mut secret = [0; 32];
        let filled = rustix::rand::getrandom(&mut secret, rustix::rand::GetRandomFlags::empty());
        // It fails for larger requests, and on kernels before 3.17.
        assert!(filled == Ok(secret.len()), "the kernel has random numbers");
        Logins {
            secret,
            right: RefCell::default(),
            users: RefCell::default(),
            turn: Semaphore::new(1),
            turns: RefCell::default(),
        }
    }

    /// Whether these are the name and the password of a user; `client` shows them.
    pub(crate) async fn check(
        &self,
        client: UserId,
        passwords: &Arc<Passwords>,
        credentials: &Credentials,
    ) -> bool {
        let Credentials { name, password } = credentials;
        // Of another hash of the same name nothing is remembered: passwords change.
        let digest = passwords.hash(name).map(|hash| self.digest(hash, password));
        let is_known =
            || digest.is_some() && self.right.borrow().get(name.as_str()) == digest.as_ref();
        if is_known() {
            return true;
        }
        let one = || Rc::new(Semaphore::new(1));
        let turns = self.turns.borrow_mut().entry(client).or_insert_with(one).clone();
        let own_turn = turns.acquire().await;
        // A browser asks on several connections at once, of which the first has paid.
        let is_right = is_known() || {
            let turn = self.turn.acquire().await;
            let (all, whose) = (passwords.clone(), credentials.clone());
            let check = move || all.verify(&whose.name, &whose.password);
            let is_right = tokio::task::spawn_blocking(check).await.unwrap_or(false);
            drop(turn);
            is_right
        };
        match digest.filter(|_| is_right) {
            Some(digest) => {
                let mut right = self.right.borrow_mut();
                right.retain(|name, _| passwords.hash(name).is_some());
                right.insert(name.as_str().into(), digest);
            }
            None => sleep(PENALTY).await,
        }
        drop(own_turn);
        // The map has one, and this another.
        if Rc::strong_count(&turns) == 2 {
            self.turns.borrow_mut().remove(&client);
        }
        is_right
    }

    fn digest(&self, hash: &str, password: &[u8]) -> Digest {
        // All hashes are of one length, so nothing can be taken for something else.
        let parts = Sha256::new().chain_update(self.secret).chain_update(hash);
        parts.chain_update(password).finalize().into()
    }

    /// The user of this name, who gets the next number if it is new.
    pub(crate) fn user(&self, name: &str) -> (UserId, Rc<str>) {
        let mut users = self.users.borrow_mut();
        let found = users.iter().position(|user| **user == *name);
        let number = found.unwrap_or_else(|| {
            users.push(name.into());
            users.len() - 1
        });
        (UserId(FIRST + number as u64), users[number].clone())
    }

    /// The name of a user who has one.
    pub(crate) fn name(&self, user: UserId) -> Option<Rc<str>> {
        let number = user.0.checked_sub(FIRST)?;
        self.users.borrow().get(usize::try_from(number).ok()?).cloned()
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::Instant;

    use super::*;

    const HERE: UserId = UserId(7);

    fn credentials(name: &str, password: &str) -> Credentials {
        Credentials { name: name.into(), password: password.into() }
    }

    fn passwords(password: &str, cost: u32) -> Arc<Passwords> {
        let hash = bcrypt::hash(password, cost).expect("the cost is within range");
        Arc::new(Passwords::parse(&format!("anna:{hash}")).expect("it is correct"))
    }

    #[tokio::test]
    async fn a_right_password_is_paid_for_once_and_until_it_changes() {
        let logins = Logins::new();
        // A tenth of a second, for what takes a microsecond when it is remembered.
        let slow = passwords("sesame", 11);
        let anna = credentials("anna", "sesame");
        let (first, second) =
            tokio::join!(logins.check(HERE, &slow, &anna), logins.check(HERE, &slow, &anna));
        assert!(first && second);
        let since = Instant::now();
        for _ in 0..1_000 {
            assert!(logins.check(HERE, &slow, &anna).await);
        }
        let thousand = since.elapsed();
        let since = Instant::now();
        assert!(slow.verify("anna", b"sesame"));
        assert!(thousand < since.elapsed(), "{thousand:?}");

        let changed = passwords("simsala", 4);
        assert!(!logins.check(HERE, &changed, &anna).await);
        assert!(logins.check(HERE, &changed, &credentials("anna", "simsala")).await);
        assert!(!logins.check(HERE, &changed, &credentials("bert", "simsala")).await);
        assert!(!logins.check(HERE, &Arc::default(), &anna).await);
        assert_eq!(logins.right.borrow().len(), 1);
        assert!(logins.turns.borrow().is_empty());
    }

    #[tokio::test]
    async fn guesses_do_not_hold_up_whoever_serves() {
        let logins = Logins::new();
        let slow = passwords("sesame", 11);
        let guess = credentials("anna", "guess");
        let mut others = 0;
        tokio::select! {
            found = logins.check(HERE, &slow, &guess) => assert!(!found),
            () = async {
                loop {
                    tokio::task::yield_now().await;
                    others += u32::from(logins.turn.available_permits() == 0);
                }
            } => {}
        }
        assert!(others > 1_000, "{others}");
        assert!(logins.right.borrow().is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn whoever_guesses_waits_for_all_guesses_and_others_do_not() {
        let logins = Logins::new();
        let fast = passwords("sesame", 4);
        let since = Instant::now();
        let wrong = credentials("anna", "guess");
        let guess = || logins.check(HERE, &fast, &wrong);
        let other = async {
            let anna = credentials("anna", "sesame");
            assert!(logins.check(UserId(8), &fast, &anna).await);
            since.elapsed()
        };
        let (.., other) = tokio::join!(guess(), guess(), guess(), other);
        assert!(since.elapsed() >= 3 * PENALTY && other < PENALTY, "{other:?}");
        assert!(logins.turns.borrow().is_empty());
    }

    #[test]
    fn users_keep_their_numbers() {
        let logins = Logins::new();
        let [anna, bert] = ["anna", "bert"].map(|name| logins.user(name).0);
        assert_ne!(anna, bert);
        assert_eq!(logins.user("anna").0, anna);
        assert_eq!(logins.name(bert).as_deref(), Some("bert"));
        assert_eq!(logins.name(crate::user_of("2001:db8::1".parse().unwrap())), None);
    }
}
