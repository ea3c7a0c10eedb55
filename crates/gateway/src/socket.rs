//! Bytes of a connection.
//!
//! Every call that waits can be dropped while it waits without losing a byte: it waits
//! for the socket to be ready, and then reads or writes at once.

use std::cell::RefCell;
use std::io;
use std::time::Duration;

use bytes::BufMut;
use nix::sys::socket::{getsockopt, sockopt};
use socket2::{SockRef, TcpKeepalive};
use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::time::timeout;

/// What is read at a time, at most. On a fast link the system calls count; a connection has
/// this much memory only while something is in it.
pub(crate) const AT_ONCE: usize = 65_536;
/// What is read at first, and again when reads find less: most requests and many responses
/// fit, and memory of this size is cheap to have and to give back.
const AT_FIRST: usize = 4_096;

/// No more spares than this are kept.
const SPARES_AT_MOST: usize = 64;

thread_local! {
    /// Memory of the size [`AT_FIRST`] that inboxes have given back. A request takes two of
    /// those and gives them back, and the allocator would split and join its free memory each
    /// time.
    static SPARES: RefCell<Vec<Vec<u8>>> = const { RefCell::new(Vec::new()) };
}

/// What was read of a connection and not used yet.
#[derive(Debug)]
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    used: usize,
    /// What the next read asks for.
    next: usize,
}

impl Default for Inbox {
    fn default() -> Inbox {
        Inbox { bytes: Vec::new(), used: 0, next: AT_FIRST }
    }
}

impl Inbox {
    /// What is there.
    pub(crate) fn data(&self) -> &[u8] {
        &self.bytes[self.used..]
    }

    /// The next `size` bytes have been used.
    pub(crate) fn consume(&mut self, size: usize) {
        self.used += size;
        if self.used >= self.bytes.len() {
            self.bytes.clear();
            self.used = 0;
        }
    }

    /// Waits for bytes, and reads at most this many or fewer; 0 at the end of the stream.
    pub(crate) async fn fill(&mut self, stream: &TcpStream, most: u64) -> io::Result<usize> {
        let most = self.at_most(most);
        loop {
            stream.readable().await?;
            self.bytes.drain(..self.used);
            self.used = 0;
            self.make_room(most);
            match stream.try_read_buf(&mut (&mut self.bytes).limit(most)) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Ok(size) => {
                    self.found(size);
                    if (1..most).contains(&size) {
                        is_read_empty(stream);
                    }
                    return Ok(size);
                }
                other => return other,
            }
        }
    }

    /// How much is read at most where so much may be.
    pub(crate) fn at_most(&self, most: u64) -> usize {
        usize::try_from(most).map_or(self.next, |most| most.min(self.next))
    }

    /// Makes room for so much more, in what another inbox has given back if that is enough.
    fn make_room(&mut self, size: usize) {
        if self.bytes.capacity() == 0 && size <= AT_FIRST {
            let spare = SPARES.with_borrow_mut(Vec::pop);
            self.bytes = spare.unwrap_or_else(|| Vec::with_capacity(AT_FIRST));
        }
        self.bytes.reserve(size);
    }

    /// So much was there to be read.
    pub(crate) fn found(&mut self, size: usize) {
        if size >= self.next {
            self.next = (4 * size).min(AT_ONCE);
        } else if size < self.next / 4 {
            self.next = (self.next / 2).max(AT_FIRST);
        }
    }

    /// Whether as much has come again and again as is read at once.
    pub(crate) fn is_busy(&self) -> bool {
        self.next == AT_ONCE
    }

    /// Waits until the other end is gone or finishes, and keeps what it sends until then,
    /// up to a limit.
    pub(crate) async fn end(&mut self, stream: &TcpStream) {
        while self.data().len() < AT_ONCE {
            if !matches!(self.fill(stream, AT_ONCE as u64).await, Ok(1..)) {
                return;
            }
        }
        // It asks for more before it has what it asked for, and is certainly there.
        std::future::pending::<()>().await;
    }

    /// Gives the memory back while nothing is there.
    pub(crate) fn rest(&mut self) {
        if self.data().is_empty() {
            self.used = 0;
            let mut bytes = std::mem::take(&mut self.bytes);
            if bytes.capacity() == AT_FIRST {
                bytes.clear();
                SPARES.with_borrow_mut(|spares| {
                    if spares.len() < SPARES_AT_MOST {
                        spares.push(bytes);
                    }
                });
            }
        }
    }
}

/// Less has come than was asked for, so there is nothing more: whoever reads next waits for
/// the kernel to say that there is, and need not ask in vain. What comes from now on the
/// kernel tells this thread, and no other could have heard it in between.
fn is_read_empty(stream: &TcpStream) {
    let nothing = || io::Result::<()>::Err(io::ErrorKind::WouldBlock.into());
    // What is not said to block is what the call returns.
    let _ = stream.try_io(Interest::READABLE, nothing);
}

/// Writes all bytes; an error of kind `TimedOut` if for so long none can be written.
pub(crate) async fn write_all(
    stream: &TcpStream,
    mut bytes: &[u8],
    patience: Duration,
) -> io::Result<()> {
    while !bytes.is_empty() {
        match stream.try_write(bytes) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                timeout(patience, stream.writable()).await??;
            }
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Waits until a connection is reset, or its other end has vanished.
pub(crate) async fn broken(stream: &TcpStream) {
    while let Ok(ready) = stream.ready(Interest::ERROR).await {
        if ready.is_error() {
            return;
        }
    }
}

/// The payload of the largest segment that this connection sends, and usually of the largest
/// that it receives, in bytes; 0 if the kernel does not tell.
pub(crate) fn largest_segment(stream: &TcpStream) -> u64 {
    getsockopt(stream, sockopt::TcpMaxSeg).map_or(0, u64::from)
}

/// How many bytes have come and are not read.
pub(crate) fn unread(stream: &TcpStream) -> u64 {
    rustix::io::ioctl_fionread(stream).unwrap_or(0)
}

/// Whether it is open at the other end, which has sent nothing.
pub(crate) fn is_quiet(stream: &TcpStream) -> bool {
    let mut byte = [0];
    matches!(stream.try_read(&mut byte), Err(error) if error.kind() == io::ErrorKind::WouldBlock)
}

/// After so long without a byte it is asked whether the other end still lives.
const KEEPALIVE: Duration = Duration::from_secs(120);

/// Sets up a new connection: what is written leaves at once, and an end that has vanished
/// is found out. Without either it would still work.
pub(crate) fn prepare(stream: &TcpStream) {
    let _ = stream.set_nodelay(true);
    let _ = SockRef::from(stream).set_tcp_keepalive(&TcpKeepalive::new().with_time(KEEPALIVE));
}

/// Closes a connection so that the other end notices that something is missing.
pub(crate) fn abort(stream: TcpStream) {
    // Without it the end looks as if it were in order.
    let _ = SockRef::from(&stream).set_linger(Some(Duration::ZERO));
    drop(stream);
}

/// Finishes sending, and waits until the other end has, so that what was sent last is
/// read: a connection that is closed while something unread is there is reset.
pub(crate) async fn finish(stream: TcpStream, patience: Duration) {
    /// What a client may send after its answer.
    const MOST: usize = 1 << 20;

    let _ = SockRef::from(&stream).shutdown(std::net::Shutdown::Write);
    let mut inbox = Inbox::default();
    let drain = async {
        let mut all = 0;
        while let Ok(size @ 1..) = inbox.fill(&stream, AT_ONCE as u64).await
            && all < MOST
        {
            all += size;
            inbox.consume(size);
        }
    };
    // Then it has had its time.
    let _ = timeout(patience, drain).await;
}

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// What one connection has said is not taken for what the next one says.
    #[tokio::test]
    async fn memory_is_used_again_and_what_was_in_it_is_not() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut memories = Vec::new();
        for said in ["much that is nobody's business", "little"] {
            let server = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
            let (client, _) = listener.accept().await.unwrap();
            write_all(&server, said.as_bytes(), Duration::from_secs(5)).await.unwrap();
            let mut inbox = Inbox::default();
            inbox.fill(&client, 1_000_000).await.unwrap();
            assert_eq!(inbox.data(), said.as_bytes());
            memories.push(inbox.data().as_ptr());
            inbox.consume(said.len());
            inbox.rest();
            assert_eq!(inbox.bytes.capacity(), 0, "a connection at rest has none");
        }
        assert_eq!(memories[0], memories[1]);
    }

    #[tokio::test]
    async fn what_has_come_is_known_before_it_is_read() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (server, _) = listener.accept().await.unwrap();
        assert_eq!(unread(&client), 0);
        assert!(is_quiet(&client));
        write_all(&server, &[7; 30_000], Duration::from_secs(9)).await.unwrap();
        while unread(&client) < 30_000 {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        let mut inbox = Inbox::default();
        assert_eq!(inbox.fill(&client, 1_000).await.unwrap(), 1_000);
        assert_eq!((unread(&client), inbox.data()), (29_000, &[7; 1_000][..]));
        assert!(!is_quiet(&client));
    }
}
