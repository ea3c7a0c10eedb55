//! Bytes that go from one connection to another and are looked at by nobody.
//!
//! To read them and to write them again copies each twice, which is a third of what a tunnel costs
//! on a fast link. `splice(2)` moves the kernel's own pages instead: from a socket into a pipe,
//! and from there into the other socket. A pipe takes two descriptors, so it is borrowed when
//! something has come and given back when that is gone: a tunnel that carries nothing has none.
//! Clients that read slowly keep theirs, so there are only so many; who gets none reads.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use rustix::pipe::{PipeFlags, SpliceFlags, fcntl_setpipe_size, pipe_with, splice};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// There are never more pipes, with two descriptors each.
pub(crate) const MOST: usize = 64;
/// What goes through one at a time, at most: on a fast link the wake-ups count, of the gateway
/// and of who reads.
pub(crate) const AT_ONCE: usize = 262_144;

/// All pipes.
#[derive(Debug, Default)]
pub(crate) struct Pipes {
    /// Those that are not in use.
    spare: RefCell<Vec<Pipe>>,
    /// One for each that is open.
    open: Rc<()>,
}

/// A pipe, empty unless it is on the way from one connection to another.
#[derive(Debug)]
pub(crate) struct Pipe {
    read: OwnedFd,
    write: OwnedFd,
    size: usize,
    /// By which it counts as open.
    _open: Rc<()>,
}

impl Pipes {
    /// Waits for bytes and takes at most so many into a pipe, none at the end of the stream;
    /// `None` if there is no pipe, or nothing goes into it: who reads instead finds out why.
    pub(crate) async fn fill(&self, from: &TcpStream, most: usize) -> io::Result<Option<Pipe>> {
        loop {
            from.readable().await?;
            let Some(mut pipe) = self.take() else { return Ok(None) };
            let moved = from.try_io(Interest::READABLE, || step(from, &pipe.write, most));
            match moved {
                Ok(size) => {
                    pipe.size = size;
                    return Ok(Some(pipe));
                }
                Err(error) => {
                    self.give_back(pipe);
                    // A container may forbid the call.
                    if error.kind() != io::ErrorKind::WouldBlock {
                        return Ok(None);
                    }
                }
            }
        }
    }

    /// Sends on what is in a pipe; an error of kind `TimedOut` if for so long nothing could be
    /// sent.
    pub(crate) async fn drain(
        &self,
        mut pipe: Pipe,
        to: &TcpStream,
        patience: Duration,
    ) -> io::Result<()> {
        while pipe.size > 0 {
            match to.try_io(Interest::WRITABLE, || step(&pipe.read, to, pipe.size)) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => pipe.size -= size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    timeout(patience, to.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
        self.give_back(pipe);
        Ok(())
    }

    /// Closes those that are not in use.
    pub(crate) fn close_spare(&self) {
        self.spare.borrow_mut().clear();
    }

    fn take(&self) -> Option<Pipe> {
        if let Some(pipe) = self.spare.borrow_mut().pop() {
            return Some(pipe);
        }
        // One is that of `self`.
        if Rc::strong_count(&self.open) > MOST {
            return None;
        }
        let (read, write) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // Without it, as where somebody has many already, less goes through at a time.
        let _ = fcntl_setpipe_size(&write, AT_ONCE);
        Some(Pipe { read, write, size: 0, _open: self.open.clone() })
    }

    /// A pipe that is empty can be used again.
    fn give_back(&self, pipe: Pipe) {
        self.spare.borrow_mut().push(pipe);
    }
}

impl Pipe {
    /// What is in it.
    pub(crate) fn size(&self) -> usize {
        self.size
    }
}

fn step(from: impl AsFd, to: impl AsFd, most: usize) -> io::Result<usize> {
    let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
    Ok(splice(from, None, to, None, most, flags)?)
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    const PATIENCE: Duration = Duration::from_secs(5);

    /// Both ends of a connection.
    async fn pair() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let near = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        (near, listener.accept().await.unwrap().0)
    }

    #[tokio::test]
    async fn what_comes_goes_on_in_order_and_to_the_last_byte() {
        let ((mut server, from), (to, mut client)) = (pair().await, pair().await);
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 251) as u8).collect();
        let all = sent.clone();
        tokio::spawn(async move { server.write_all(&all).await.unwrap() });
        let received = tokio::spawn(async move {
            let mut received = Vec::new();
            client.read_to_end(&mut received).await.unwrap();
            received
        });
        let pipes = Pipes::default();
        loop {
            let pipe = pipes.fill(&from, 50_000).await.unwrap().unwrap();
            let size = pipe.size();
            assert!(size <= 50_000, "{size}");
            pipes.drain(pipe, &to, PATIENCE).await.unwrap();
            if size == 0 {
                break;
            }
        }
        drop(to);
        assert!(received.await.unwrap() == sent, "some bytes are not what was sent");
        assert_eq!(pipes.spare.borrow().len(), 1, "one pipe was enough");
    }

    /// Who reads nothing keeps what is in a pipe, and that pipe is nobody else's.
    #[tokio::test]
    async fn a_pipe_that_is_not_empty_is_not_used_again() {
        let ((mut server, from), (to, client)) = (pair().await, pair().await);
        tokio::spawn(async move {
            let piece = vec![7; 50_000];
            while server.write_all(&piece).await.is_ok() {}
        });
        let pipes = Pipes::default();
        let error = loop {
            let pipe = pipes.fill(&from, 50_000).await.unwrap().unwrap();
            if let Err(error) = pipes.drain(pipe, &to, Duration::from_millis(100)).await {
                break error;
            }
        };
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
        assert!(pipes.spare.borrow().is_empty());
        drop(client);
    }

    #[tokio::test]
    async fn there_are_only_so_many() {
        let pipes = Pipes::default();
        let mut all: Vec<_> = (0..MOST).map(|_| pipes.take().unwrap()).collect();
        assert!(pipes.take().is_none());
        // One that is given up makes room for another.
        all.pop();
        let pipe = pipes.take().unwrap();
        assert!(pipes.take().is_none());
        pipes.give_back(pipe);
        all.extend(pipes.take());
        assert!(all.len() == MOST && pipes.take().is_none());
        all.drain(..).for_each(|pipe| pipes.give_back(pipe));
        pipes.close_spare();
        assert_eq!(Rc::strong_count(&pipes.open), 1);
    }
}
