//! Bytes from one connection to another that stay in the kernel.
//!
//! Reading and writing copies each byte twice. What nobody looks at can be spliced: the
//! kernel passes its pages through a pipe. A pipe takes two descriptors and, for each piece
//! of what it holds, a slot; so only directions that carry much have one, and only while
//! they do.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

use rustix::pipe::{
    PipeFlags, SpliceFlags, fcntl_getpipe_size, fcntl_setpipe_size, pipe_with, splice,
};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What is asked for: the kernel counts a slot of a page for each piece, and a piece that has
/// come over a network is a packet.
const SIZE: usize = 256 << 10;
/// With fewer slots, each call moves less than a copy would. The kernel gives fewer to a user
/// who has many pipes.
const LEAST: usize = 64 << 10;
/// What is taken at a time, at most: what a scheduler counts on, and a client can lose.
pub(crate) const MOST: u64 = 256 << 10;

/// More directions than these copy: whoever keeps pipes and uses them no more takes nothing
/// else from others.
pub(crate) const MOST_PIPES: u32 = 64;
/// How many there are.
static OPEN: AtomicU32 = AtomicU32::new(0);

/// A pipe with what has been taken of one connection and not yet given to the other.
#[derive(Debug)]
pub(crate) struct Pipe {
    output: OwnedFd,
    input: OwnedFd,
    held: usize,
}

impl Pipe {
    /// A pipe; `None` where it would be none of use.
    pub(crate) fn new() -> Option<Pipe> {
        if OPEN.load(Relaxed) >= MOST_PIPES {
            return None;
        }
        let (output, input) = pipe_with(PipeFlags::CLOEXEC | PipeFlags::NONBLOCK).ok()?;
        // The kernel gives what its administrator permits.
        let _ = fcntl_setpipe_size(&input, SIZE);
        let is_of_use = fcntl_getpipe_size(&input).is_ok_and(|size| size >= LEAST);
        is_of_use.then(|| {
            OPEN.fetch_add(1, Relaxed);
            Pipe { output, input, held: 0 }
        })
    }

    /// Waits for bytes, and takes at most this many or fewer; 0 at the end of the stream. The
    /// pipe has to be empty.
    pub(crate) async fn fill(&mut self, from: &TcpStream, most: u64) -> io::Result<usize> {
        debug_assert_eq!(self.held, 0, "a full pipe looks like a silent connection");
        let most = most.min(MOST) as usize;
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        loop {
            from.readable().await?;
            let taken = from.try_io(Interest::READABLE, || {
                Ok(splice(from, None, &self.input, None, most, flags)?)
            });
            match taken {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(size) => {
                    self.held = size;
                    return Ok(size);
                }
                other => return other,
            }
        }
    }

    /// Gives all that is held to the other connection; an error of kind `TimedOut` if for so
    /// long it takes nothing.
    pub(crate) async fn empty(&mut self, to: &TcpStream, patience: Duration) -> io::Result<()> {
        let flags = SpliceFlags::MOVE | SpliceFlags::NONBLOCK;
        while self.held > 0 {
            let given = to.try_io(Interest::WRITABLE, || {
                Ok(splice(&self.output, None, to, None, self.held, flags)?)
            });
            match given {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(size) => self.held -= size,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    timeout(patience, to.writable()).await??;
                }
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        OPEN.fetch_sub(1, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::TcpListener;

    use super::*;

    /// One, as soon as another test lets go of all.
    async fn pipe() -> Pipe {
        loop {
            match Pipe::new() {
                Some(pipe) => return pipe,
                None => tokio::time::sleep(Duration::from_millis(5)).await,
            }
        }
    }

    async fn connection() -> (TcpStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (one, other) = tokio::join!(TcpStream::connect(address), listener.accept());
        (one.unwrap(), other.unwrap().0)
    }

    #[tokio::test]
    async fn what_is_taken_of_one_connection_comes_out_of_the_other() {
        let ((mut server, from), (to, mut client)) = (connection().await, connection().await);
        let sent: Vec<u8> = (0..3_000_000_u32).map(|at| (at % 249) as u8).collect();
        let expected = sent.clone();
        let sending = tokio::spawn(async move { server.write_all(&sent).await });
        let passing = tokio::spawn(async move {
            let mut pipe = pipe().await;
            while pipe.fill(&from, 100_000).await.unwrap() > 0 {
                pipe.empty(&to, Duration::from_secs(9)).await.unwrap();
            }
        });
        let mut came = Vec::new();
        client.read_to_end(&mut came).await.unwrap();
        assert!(came == expected);
        sending.await.unwrap().unwrap();
        passing.await.unwrap();
    }

    #[tokio::test]
    async fn a_client_that_takes_nothing_is_given_up() {
        let ((mut server, from), (to, _client)) = (connection().await, connection().await);
        let _sending = tokio::spawn(async move { server.write_all(&vec![0; 30_000_000]).await });
        let mut pipe = pipe().await;
        let given_up = loop {
            pipe.fill(&from, MOST).await.unwrap();
            if let Err(error) = pipe.empty(&to, Duration::from_millis(50)).await {
                break error;
            }
        };
        assert_eq!(given_up.kind(), io::ErrorKind::TimedOut);
    }

    #[test]
    fn there_are_only_so_many_and_those_that_go_make_room() {
        // Other tests have some of their own meanwhile.
        let pipes: Vec<_> = std::iter::from_fn(Pipe::new).take(200).collect();
        assert!(!pipes.is_empty() && pipes.len() <= MOST_PIPES as usize);
        drop(pipes);
        assert!(OPEN.load(Relaxed) < MOST_PIPES);
    }
}
