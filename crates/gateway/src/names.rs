//! The addresses of names.
//!
//! The system's resolver takes a thread for each question, and threads are few. A question
//! that no name server answers keeps its thread for longer than anybody waits, so each user
//! has only some of them: whoever asks for names that lead nowhere delays nobody else.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;

use tidegate_core::request::UserId;
use tokio::sync::Semaphore;

/// Questions of one user at the same time. The names of a page are more than this, and an
/// answer takes milliseconds.
const AT_ONCE: usize = 4;

/// Whose questions are open.
#[derive(Debug, Default)]
pub(crate) struct Names {
    places: Rc<RefCell<BTreeMap<UserId, Arc<Semaphore>>>>,
}

impl Names {
    /// Asks for the addresses of a name on behalf of a user. The question goes on when
    /// nobody waits for the answer any more, and keeps its place until it is over.
    pub(crate) async fn find(
        &self,
        user: UserId,
        host: &str,
        port: u16,
    ) -> io::Result<Vec<SocketAddr>> {
        let new = || Arc::new(Semaphore::new(AT_ONCE));
        let of_user = self.places.borrow_mut().entry(user).or_insert_with(new).clone();
        let place = of_user.acquire_owned().await.map_err(io::Error::other)?;
        let (host, places) = (host.to_owned(), self.places.clone());
        let question = tokio::task::spawn_local(async move {
            let found = tokio::net::lookup_host((host, port)).await;
            drop(place);
            places.borrow_mut().retain(|_, of| of.available_permits() < AT_ONCE);
            found.map(Iterator::collect)
        });
        question.await.map_err(io::Error::other)?
    }
}
