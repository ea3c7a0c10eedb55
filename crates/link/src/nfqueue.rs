//! A queue of packets that a router holds until their verdicts come: NFQUEUE.
//!
//! On a router, the link need not carry packets itself. A [rule](rules) of its packet
//! filter has the kernel hold them, and send their headers here; a verdict lets one go or
//! drops it. Routing, address translation and connection tracking remain the router's, and
//! a packet that waits in a queue waits in the kernel.
//!
//! - **Order.** Packets leave in the order of their verdicts, whatever the order in which
//!   they came. The kernel looks for a packet from the oldest on, so that a verdict takes
//!   the longer, the more older ones wait.
//! - **Sizes.** The kernel splits super-packets before it holds them, and fills in their
//!   checksums: what comes here is what a link carries.
//! - **Losses.** [`Drops`] counts packets that the kernel lost because nobody took them.
//!   Whoever closes a queue loses all that it holds; packets that come later wait for nobody
//!   where the rules say `bypass`, and are dropped where they do not.
//! - **Cost.** A packet takes one system call to read, and [`Queue::flush`] sends the
//!   verdicts of up to 111 packets in one. Nothing is allocated for a packet.
//! - **Who may.** It takes the capability `CAP_NET_ADMIN`, in the network namespace of the
//!   thread that opens the queue.

pub mod filter;
mod message;
pub mod rules;

use std::fs;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_sys::constants::NETLINK_NETFILTER;
use netlink_sys::{Socket, SocketAddr};
use rustix::thread::CapabilitySet;

pub use message::{Held, Message, MessageError, Verdict, parse};

/// To copy the headers of packets, and not what they carry: IPv6 with extension headers
/// and TCP with options fit.
pub const HEADERS: u32 = 128;

/// To copy whole packets. The kernel copies at most this much, which is all of a packet of
/// any link.
pub const WHOLE: u32 = 65_531;

/// Reads in a call of [`Queue::receive`], so that a flood of arrivals does not keep
/// whoever receives from letting packets go.
const READS: usize = 64;

/// Bytes of verdicts in a call. The kernel takes messages of up to a page, less some
/// hundred bytes, from a pool, and maps memory for larger ones, which costs more than a
/// second call.
const VERDICTS: usize = 111 * message::VERDICT;
// `SKB_WITH_OVERHEAD` of a page of 4 kB.
const _: () = assert!(VERDICTS <= 4_096 - 320);

/// What the kernel may keep of messages that are not read yet, in bytes. One takes about
/// 2 kB of it, and so this is for 8,000 packets; it is taken only while they wait.
const UNREAD: usize = 16 << 20;

/// What a queue is told when it is opened.
///
/// ```
/// use tidegate_link::nfqueue::{HEADERS, Settings};
///
/// let settings = Settings { number: 7, copy_bytes: HEADERS, longest: 1_024, fail_open: true };
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// The number by which rules name the queue.
    pub number: u16,
    /// How much of a packet is copied, in bytes from its IP header on: [`HEADERS`], or
    /// [`WHOLE`] where packets are to be replaced. What is 0 or more than `WHOLE` is
    /// `WHOLE`.
    pub copy_bytes: u32,
    /// Most packets that the kernel holds. It should be more than the lane in front of it
    /// does, which then decides what is lost.
    pub longest: u32,
    /// Whether packets beyond that are let go at once, and not dropped.
    pub fail_open: bool,
}

/// Why a queue is not opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The kernel cannot hold packets.
    #[error("found no nfnetlink_queue in this kernel, expected it built in or as a module: {0}")]
    Unsupported(io::Error),
    /// The capability is missing.
    #[error("queue {number}: found no right to hold packets, expected CAP_NET_ADMIN")]
    NotPermitted {
        /// The queue.
        number: u16,
    },
    /// Somebody else holds its packets.
    #[error("queue {number}: found it in use{}, expected it free", by(*.port))]
    Taken {
        /// The queue.
        number: u16,
        /// The netlink port of who does, in most programs the number of their process. Only
        /// root may know.
        port: Option<u32>,
    },
    /// The kernel does not answer as it should.
    #[error("queue {number}: {reason}")]
    Failed {
        /// The queue.
        number: u16,
        /// What went wrong.
        reason: io::Error,
    },
}

fn by(port: Option<u32>) -> String {
    port.map_or_else(String::new, |port| format!(", by the netlink port {port}"))
}

/// Packets that the kernel lost before anybody could decide about them, since the queue
/// was opened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Drops {
    /// It held as many as it may. With [`fail_open`](Settings::fail_open), they were let go
    /// instead, and are not counted.
    pub full: u32,
    /// Too many messages were not read yet.
    pub unread: u32,
}

/// A queue of packets that wait for verdicts.
///
/// ```no_run
/// use tidegate_link::nfqueue::{HEADERS, Queue, Settings, Verdict};
///
/// let settings = Settings { number: 7, copy_bytes: HEADERS, longest: 1_024, fail_open: true };
/// let mut queue = Queue::open(&settings)?;
/// let mut waiting = Vec::new();
/// loop {
///     // Before this, wait with `poll` until the queue can be read.
///     queue.receive(|held| waiting.push((held.length, held.id)))?;
///     // Short ones first.
///     waiting.sort_unstable();
///     for (_, id) in waiting.drain(..) {
///         queue.verdict(id, Verdict::Accept)?;
///     }
///     queue.flush()?;
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Queue {
    socket: Socket,
    number: u16,
    /// Where a message is read to.
    message: Box<[u8]>,
    /// Verdicts that are not sent yet.
    verdicts: Vec<u8>,
    refused: u64,
}

impl Queue {
    /// Makes a queue ours: from now on, the kernel holds its packets.
    ///
    /// # Errors
    /// The kernel does not do that, for us, or with this number.
    pub fn open(settings: &Settings) -> Result<Queue, OpenError> {
        let &Settings { number, copy_bytes, longest, fail_open } = settings;
        let failed = |reason| OpenError::Failed { number, reason };
        let mut socket = Socket::new(NETLINK_NETFILTER).map_err(OpenError::Unsupported)?;
        socket.bind_auto().map_err(failed)?;
        // To the kernel: then it takes no messages of others.
        socket.connect(&SocketAddr::new(0, 0)).map_err(failed)?;
        // A message that is lost is counted by the kernel, and no reason to stop.
        socket.set_no_enobufs(true).map_err(failed)?;
        let _ = rustix::net::sockopt::set_socket_recv_buffer_size_force(&socket, UNREAD);

        let copy_bytes = if copy_bytes == 0 { WHOLE } else { copy_bytes.min(WHOLE) };
        let room = copy_bytes as usize + message::AROUND_PAYLOAD;
        let mut queue = Queue {
            socket,
            number,
            message: vec![0; room].into(),
            verdicts: Vec::with_capacity(VERDICTS),
            refused: 0,
        };
        queue.bind(&message::bind(number, copy_bytes, longest, fail_open))?;
        queue.socket.set_non_blocking(true).map_err(failed)?;
        Ok(queue)
    }

    /// Sends the message that makes the queue ours, and waits for the answer.
    fn bind(&mut self, request: &[u8]) -> Result<(), OpenError> {
        let number = self.number;
        let failed = |reason| OpenError::Failed { number, reason };
        self.socket.send(request, 0).map_err(failed)?;
        let mut answer = None;
        while answer.is_none() {
            let Queue { socket, message, verdicts, .. } = self;
            let bytes = read(socket, message).map_err(failed)?.unwrap_or_default();
            let parsed = parse(bytes, |message| match message {
                Message::Answer { errno } => answer = Some(errno),
                // They may come before the answer. Nobody is there to decide about them.
                Message::Held(held) => message::decide(verdicts, number, held.id, Verdict::Accept),
            });
            parsed.map_err(|error| failed(invalid(error)))?;
        }
        let refusal = answer.filter(|errno| *errno != 0).map(io::Error::from_raw_os_error);
        match refusal {
            None => self.flush().map_err(failed),
            Some(reason) => Err(self.refusal(reason)),
        }
    }

    /// Why the kernel refuses to bind the queue: it says the same of rights that are
    /// missing and of a queue of somebody else.
    fn refusal(&self, reason: io::Error) -> OpenError {
        let number = self.number;
        let row = row(number);
        if let Ok(Some(Row { port, .. })) = row {
            return OpenError::Taken { number, port: Some(port) };
        }
        match reason.kind() {
            // The list is root's to read: whoever has the right and not the list meets a
            // queue of somebody else.
            io::ErrorKind::PermissionDenied if row.is_err() && may_hold() => {
                OpenError::Taken { number, port: None }
            }
            io::ErrorKind::PermissionDenied => OpenError::NotPermitted { number },
            // There is nobody in the kernel for such messages.
            io::ErrorKind::InvalidInput => OpenError::Unsupported(reason),
            _ => OpenError::Failed { number, reason },
        }
    }

    /// Takes packets that have come, at most 64, and returns how many: none if none wait.
    /// It does not wait for any.
    ///
    /// # Errors
    /// The socket fails; or the kernel says something that contradicts itself, which is
    /// [`InvalidData`](io::ErrorKind::InvalidData) with a [`MessageError`]. The packets
    /// before that were handed over.
    pub fn receive(&mut self, mut each: impl FnMut(Held<'_>)) -> io::Result<usize> {
        let mut count = 0;
        for _ in 0..READS {
            let Queue { socket, message, refused, .. } = self;
            let Some(bytes) = read(socket, message)? else { break };
            let parsed = parse(bytes, |message| match message {
                Message::Held(held) => {
                    count += 1;
                    each(held);
                }
                Message::Answer { errno } => *refused += u64::from(errno != 0),
            });
            parsed.map_err(invalid)?;
        }
        Ok(count)
    }

    /// Decides about a packet. The verdict may wait for [`Queue::flush`].
    ///
    /// # Errors
    /// A packet is to be replaced by more than 65,531 bytes, which is
    /// [`InvalidInput`](io::ErrorKind::InvalidInput); or as of [`Queue::flush`]. Then the
    /// verdict is not given.
    pub fn verdict(&mut self, id: u32, verdict: Verdict<'_>) -> io::Result<()> {
        let payload = if let Verdict::Replace(payload) = verdict { payload.len() } else { 0 };
        if payload > message::MOST_PAYLOAD {
            let expected = message::MOST_PAYLOAD;
            let wrong = format!("found a packet of {payload} bytes, expected at most {expected}");
            return Err(io::Error::new(io::ErrorKind::InvalidInput, wrong));
        }
        if self.verdicts.len() + message::VERDICT + payload > VERDICTS {
            self.flush()?;
        }
        message::decide(&mut self.verdicts, self.number, id, verdict);
        Ok(())
    }

    /// Gives all verdicts that wait. Packets that are let go leave the router in this call.
    ///
    /// # Errors
    /// The kernel does not take them. They wait on, and can be given again.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.verdicts.is_empty() {
            self.socket.send(&self.verdicts, 0)?;
            self.verdicts.clear();
        }
        Ok(())
    }

    /// Verdicts that the kernel refused, as far as [`Queue::receive`] has heard: mostly of
    /// packets that are gone, because the interface is that they were to leave by.
    #[must_use]
    pub fn refused(&self) -> u64 {
        self.refused
    }

    /// Packets that the kernel lost. It reads a file of the kernel's, and has to be asked by
    /// a thread in the network namespace of the queue.
    ///
    /// # Errors
    /// The kernel's list of queues cannot be read, or lacks this one.
    pub fn drops(&self) -> io::Result<Drops> {
        row(self.number)?.map(|row| row.drops).ok_or_else(|| {
            let missing = format!("found no queue {} in {LIST}, expected it", self.number);
            io::Error::new(io::ErrorKind::NotFound, missing)
        })
    }
}

impl Drop for Queue {
    /// Gives the verdicts that wait, and leaves the queue. Closing the socket would do, but
    /// not while a program that another thread starts has it too.
    fn drop(&mut self) {
        let _ = self.flush();
        let _ = self.socket.send(&message::unbind(self.number), 0);
    }
}

impl AsFd for Queue {
    /// The socket: it can be read when packets have come.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Reads what comes next from the kernel; `None` if nothing has come.
fn read<'a>(socket: &Socket, into: &'a mut [u8]) -> io::Result<Option<&'a [u8]>> {
    let found = loop {
        let mut free = &mut *into;
        match socket.recv(&mut free, libc::MSG_TRUNC) {
            Ok(read) => break read,
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(None),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    };
    let cut = MessageError::Cut { found, expected: into.len() };
    into.get(..found).map(Some).ok_or_else(|| invalid(cut))
}

/// Whether this thread has the right to hold packets.
fn may_hold() -> bool {
    let rights = rustix::thread::capabilities(None);
    rights.is_ok_and(|rights| rights.effective.contains(CapabilitySet::NET_ADMIN))
}

fn invalid(error: MessageError) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, error)
}

/// The kernel's list of queues in the network namespace of this thread.
const LIST: &str = "/proc/thread-self/net/netfilter/nfnetlink_queue";

/// What it says of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    port: u32,
    drops: Drops,
}

fn row(number: u16) -> io::Result<Option<Row>> {
    Ok(find_row(&fs::read_to_string(LIST)?, number))
}

/// Its columns are the queue, the netlink port of who has it, the packets in it, how and
/// how much of them is copied, both sorts of drops, and more.
fn find_row(list: &str, number: u16) -> Option<Row> {
    list.lines().find_map(|line| {
        let mut columns = line.split_ascii_whitespace().map(str::parse);
        let mut next = || columns.next()?.ok();
        let columns: [u32; 7] = [next()?, next()?, next()?, next()?, next()?, next()?, next()?];
        let [queue, port, _, _, _, full, unread] = columns;
        (queue == u32::from(number)).then_some(Row { port, drops: Drops { full, unread } })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_kernels_list_is_read() {
        let list = "    0  31621     0 2 65531     0     0        0  1\n    \
                    7 3210001     4 2   128    12     3       19  1\n";
        let row = Row { port: 3_210_001, drops: Drops { full: 12, unread: 3 } };
        assert_eq!(find_row(list, 7), Some(row));
        assert_eq!(find_row(list, 8), None);
        assert_eq!(find_row("7 1 2\n\nx", 7), None);
    }
}
