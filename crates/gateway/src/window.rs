//! How far a server may be ahead of what is read of its response.
//!
//! The scheduler says how many bytes. Linux has no such option: it has a receive buffer, which
//! is memory, and offers the server a part of what is free of it. What follows from that:
//!
//! - *Which part* depends on the kernel. It is half, or since Linux 6.6 as much as the largest
//!   segment so far has of payload; and the kernel tells it only by the largest window that it
//!   would offer. Connections learn it one from another, for the first segments of one come
//!   before it is known there.
//! - *A window never grows beyond that of the first buffer*, however large the buffer becomes,
//!   unless the largest window (`TCP_WINDOW_CLAMP`) is raised, too. With 24 kB, what comes
//!   from 200 ms away would come with 1 Mbit/s.
//! - *The handshake fixes the scale* by what the window may become, and windows are rounded up
//!   by it, with each segment again where the buffer fills up. A scale for windows that are
//!   never needed would have more come than there is memory for.
//! - *TCP never takes an offer back*: what it offered comes, and what there is no memory for is
//!   lost and has to be sent again. What is read is offered again in the same call if the
//!   buffer is nearly full; so one that should shrink does so before it is read, by what will be.

use std::cell::Cell;
use std::os::fd::AsFd;
use std::rc::Rc;

use nix::sys::socket::{SetSockOpt, getsockopt, setsockopt, sockopt};
use tidegate_core::Bytes;
use tokio::net::{TcpSocket, TcpStream};

use crate::config::LEAST_BUFFER;
use crate::socket::{largest_segment, unread};

/// What may come ahead at most: a round trip of 100 ms at 320 Mbit/s.
pub(crate) const MOST_BUFFER: Bytes = Bytes(4 << 20);

/// There is room for so many segments: a sender waits, up to a fifth of a second, until a
/// whole one fits (RFC 9293 section 3.8.6.2.1). Only those of the loopback interface, of 64 kB,
/// are so large that it matters.
const SEGMENTS: u64 = 8;

/// The window that a handshake offers at most, which has no scale (RFC 9293 section 3.1).
const FIRST_OFFER: u64 = 65_535;

mod option {
    use nix::{getsockopt_impl, libc, setsockopt_impl, sockopt_impl};

    // From Linux's socket.h; the libraries do not have it.
    const SO_BUF_LOCK: i32 = 72;

    sockopt_impl!(
        /// Whether the sizes of the buffers are fixed (Linux 5.15).
        BufferLock, SetOnly, libc::SOL_SOCKET, SO_BUF_LOCK, u32
    );
    sockopt_impl!(
        /// The largest window that is offered.
        LargestWindow, Both, libc::IPPROTO_TCP, libc::TCP_WINDOW_CLAMP, u32
    );
}

/// Of so many bytes of memory, the kernel offers a part.
const WHOLE: u64 = 256;
/// That part, unless it is known better.
const HALF: u64 = 128;
/// It counts as no less: a server that sends hardly any payload gets no more memory for it.
const QUARTER: u64 = 64;

/// The first segments change the part; after them it is looked at once in so many times. A system
/// call or two for each request cost some percent of the requests per second of processor time.
const SELDOM: u32 = 64;

/// The part of its memory that the kernel offers, as the last connection has found: half or
/// more, so that no server can have others begin with more than is due.
#[derive(Clone, Debug)]
pub(crate) struct Offered(Rc<Cell<u64>>);

impl Default for Offered {
    fn default() -> Offered {
        Offered(Rc::new(Cell::new(HALF)))
    }
}

/// The window of a connection that is held back.
#[derive(Debug)]
pub(crate) struct Window {
    /// The receive buffer, in memory.
    memory: Cell<u64>,
    /// The largest window, as it is known to be set.
    largest: Cell<u64>,
    /// Of [`WHOLE`] bytes of memory, so many are offered here, and on other connections.
    offered: Cell<u64>,
    elsewhere: Offered,
    /// What should come ahead, and the least and the most that may.
    wanted: Cell<u64>,
    /// How often that has been said.
    said: Cell<u32>,
    least: u64,
    most: Cell<u64>,
    /// The payload of the largest segment.
    segment: u64,
}

/// The buffer that a connection which is not there yet has, in memory.
#[derive(Clone, Copy, Debug)]
pub(crate) struct First(u64);

impl First {
    /// Has the handshake to come offer as little as a connection may have.
    ///
    /// A buffer whose size is fixed also fixes the scale of the window, which would then never
    /// be larger. So the size is set, and then no longer fixed.
    pub(crate) fn offer(socket: &TcpSocket, offered: &Offered) -> First {
        let memory = LEAST_BUFFER.0 * WHOLE / offered.0.get();
        if set_memory(socket, memory) && fixes_nothing(socket) {
            return First(memory);
        }
        // Before Linux 5.15, the buffer has to be as large as it will be.
        set_memory(socket, 2 * MOST_BUFFER.0);
        First(2 * FIRST_OFFER)
    }
}

/// Has the handshake to come leave it open how large the window may be; whether it will
/// depends on the kernel.
pub(crate) fn fixes_nothing(socket: &TcpSocket) -> bool {
    set(socket, option::LargestWindow, MOST_BUFFER.0) && set(socket, option::BufferLock, 0)
}

impl Window {
    /// The window of a connection that has come up. From here on the kernel does not size its
    /// buffer.
    pub(crate) fn of(stream: &TcpStream, first: First, elsewhere: Offered) -> Window {
        set_memory(stream, first.0);
        let segment = largest_segment(stream);
        let largest = getsockopt(stream, option::LargestWindow).map_or(0, u64::from);
        let window = Window {
            memory: Cell::new(first.0),
            // Nothing is known from this one, for nothing has come.
            largest: Cell::new(largest),
            offered: Cell::new(elsewhere.0.get()),
            elsewhere,
            wanted: Cell::new(0),
            said: Cell::new(0),
            least: LEAST_BUFFER.0.max(SEGMENTS * segment),
            most: Cell::new(MOST_BUFFER.0),
            segment,
        };
        window.resize(stream, LEAST_BUFFER);
        window
    }

    /// So much should come ahead. A window grows at once, if that is worth system calls, and
    /// shrinks as it is read.
    pub(crate) fn resize(&self, stream: &TcpStream, size: Bytes) {
        self.wanted.set(size.0.max(self.least).min(self.most.get()));
        let said = self.said.get().wrapping_add(1);
        self.said.set(said);
        if said.is_power_of_two() || said.is_multiple_of(SELDOM) || self.should_grow() {
            self.learn(stream);
        }
        if !self.should_grow() {
            return;
        }
        let wanted = self.memory_for(self.wanted.get());
        set_memory(stream, wanted);
        // The kernel gives what its administrator permits.
        let memory = memory(stream).unwrap_or(wanted);
        self.memory.set(memory);
        let largest = memory * self.offered.get() / WHOLE;
        if memory < wanted {
            self.most.set(largest);
        }
        if set(stream, option::LargestWindow, largest) {
            self.largest.set(largest);
        }
    }

    /// At most so much is read next.
    ///
    /// Of what segments take besides their payload only the usual part is counted as free, and
    /// one of which a part is read is still there as a whole.
    pub(crate) fn shrink(&self, stream: &TcpStream, most: usize) {
        let (before, wanted) = (self.memory.get(), self.memory_for(self.wanted.get()));
        if before <= wanted {
            return;
        }
        let read = unread(stream).min(most as u64).saturating_sub(self.segment);
        let memory = wanted.max(before.saturating_sub(self.memory_for(read)));
        if memory < before {
            set_memory(stream, memory);
            self.memory.set(memory);
        }
    }

    fn should_grow(&self) -> bool {
        let before = self.memory.get();
        self.memory_for(self.wanted.get()) > before + before / 4
    }

    /// Finds out which part of its memory the kernel offers, if that has changed: then it has
    /// set the largest window anew.
    fn learn(&self, stream: &TcpStream) {
        let Ok(largest) = getsockopt(stream, option::LargestWindow) else { return };
        let largest = u64::from(largest);
        if largest == self.largest.get() {
            return;
        }
        self.largest.set(largest);
        if let Some(memory) = memory(stream) {
            let offered = (largest * WHOLE / memory.max(1)).clamp(QUARTER, WHOLE);
            self.offered.set(offered);
            self.elsewhere.0.set(offered.max(HALF));
        }
    }

    /// The memory of which so much is offered, as the kernel can have it.
    fn memory_for(&self, size: u64) -> u64 {
        size * WHOLE / self.offered.get() / 2 * 2
    }
}

/// Sets how much memory a receive buffer has, and whether that went well.
fn set_memory(socket: &impl AsFd, memory: u64) -> bool {
    // The kernel doubles it, for what segments take besides their payload.
    setsockopt(socket, sockopt::RcvBuf, &((memory / 2) as usize)).is_ok()
}

fn memory(stream: &TcpStream) -> Option<u64> {
    getsockopt(stream, sockopt::RcvBuf).ok().map(|memory| memory as u64)
}

fn set(socket: &impl AsFd, option: impl SetSockOpt<Val = u32>, value: u64) -> bool {
    u32::try_from(value).is_ok_and(|value| setsockopt(socket, option, &value).is_ok())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use tokio::time::sleep;

    use super::*;
    use crate::socket::{Inbox, write_all};

    const PATIENCE: Duration = Duration::from_secs(9);

    mod info {
        use nix::{getsockopt_impl, libc, sockopt_impl};

        sockopt_impl!(
            /// What the kernel knows of a connection.
            TcpInfo, GetOnly, libc::IPPROTO_TCP, libc::TCP_INFO, libc::tcp_info
        );
    }

    /// The payload of a segment of Ethernet.
    const ETHERNET: u32 = 1_448;

    /// A connection to a server whose segments have so much payload.
    async fn connection(segment: Option<u32>) -> (TcpStream, Window, Arc<TcpStream>) {
        let socket = TcpSocket::new_v4().unwrap();
        if let Some(segment) = segment {
            setsockopt(&socket, sockopt::TcpMaxSeg, &segment).unwrap();
        }
        socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        let listener = socket.listen(1).unwrap();
        let socket = TcpSocket::new_v4().unwrap();
        let offered = Offered::default();
        let first = First::offer(&socket, &offered);
        let client = socket.connect(listener.local_addr().unwrap()).await.unwrap();
        let window = Window::of(&client, first, offered);
        let (server, _) = listener.accept().await.unwrap();
        (client, window, Arc::new(server))
    }

    /// Sends so much, as fast as it may.
    fn send(server: &Arc<TcpStream>, size: usize) {
        let server = server.clone();
        tokio::spawn(async move { write_all(&server, &vec![7; size], PATIENCE).await });
    }

    /// How many segments a server had to send again.
    fn again(server: &TcpStream) -> u32 {
        getsockopt(server, info::TcpInfo).unwrap().tcpi_total_retrans
    }

    /// What is there when nothing more comes.
    async fn comes(client: &TcpStream) -> u64 {
        let mut before = 0;
        loop {
            sleep(Duration::from_millis(100)).await;
            let now = unread(client);
            if now == before {
                return now;
            }
            before = now;
        }
    }

    /// Reads so much, and says before and after each piece what should come ahead.
    async fn read(client: &TcpStream, window: &Window, wanted: Bytes, size: usize, piece: u64) {
        let mut inbox = Inbox::default();
        let mut left = size;
        while left > 0 {
            window.shrink(client, inbox.at_most(piece));
            let read = inbox.fill(client, piece).await.unwrap();
            inbox.consume(read);
            window.resize(client, wanted);
            left = left.saturating_sub(read);
        }
    }

    /// The handshake offers little. That it fixes no scale, and that a window grows with its
    /// buffer, shows only over a longer path: see the live case `far-10`.
    #[tokio::test]
    async fn what_comes_ahead_is_what_is_wanted_however_small_the_first_offer_was() {
        let (client, window, server) = connection(Some(ETHERNET)).await;
        send(&server, 60_000_000);
        let first = comes(&client).await;
        assert!((12_000..=48_000).contains(&first), "{first} bytes came ahead of 24 000");
        for wanted in [1_000_000, 3_000_000] {
            read(&client, &window, Bytes(wanted), 20_000_000, 60_000).await;
            let there = comes(&client).await;
            assert!((wanted / 4..=wanted * 5 / 4).contains(&there), "{there} of {wanted}");
        }
    }

    /// No growth makes it look, and it says far less often than [`SELDOM`] what should come.
    #[tokio::test]
    async fn a_window_that_stays_small_learns_the_part_from_its_first_segments() {
        let (client, window, server) = connection(Some(ETHERNET)).await;
        send(&server, 1_000_000);
        read(&client, &window, LEAST_BUFFER, 160_000, 8_000).await;
        let said = getsockopt(&client, option::LargestWindow).unwrap();
        assert_eq!(window.largest.get(), u64::from(said));
        assert!(window.said.get() < SELDOM, "{} times", window.said.get());
    }

    /// With less, servers on the same machine wait again and again until a segment fits.
    #[tokio::test]
    async fn there_is_room_for_a_few_segments_however_large_they_are() {
        let (client, window, server) = connection(None).await;
        send(&server, 20_000_000);
        read(&client, &window, Bytes(1_000_000), 4_000_000, 60_000).await;
        read(&client, &window, LEAST_BUFFER, 4_000_000, 60_000).await;
        let memory = window.memory.get();
        assert!((4 * 65_536..1_000_000).contains(&memory), "{memory} bytes of memory");
    }

    #[tokio::test]
    async fn a_window_shrinks_by_what_is_read() {
        let (client, window, server) = connection(Some(ETHERNET)).await;
        send(&server, 60_000_000);
        for _ in 0..3 {
            read(&client, &window, Bytes(1_000_000), 4_000_000, 60_000).await;
            let before = comes(&client).await;
            for _ in 0..100 {
                read(&client, &window, LEAST_BUFFER, 8_000, 8_000).await;
            }
            let after = comes(&client).await;
            assert!(after < before * 2 / 3, "{after} bytes are there after {before}");
        }
        assert!(again(&server) <= 20, "{} segments came twice", again(&server));
    }

    /// A server that sends little for a while may then send all that it was offered before.
    #[tokio::test]
    async fn what_was_offered_fits_when_a_window_shrinks() {
        let (client, window, server) = connection(Some(ETHERNET)).await;
        send(&server, 8_000_000);
        read(&client, &window, Bytes(1_000_000), 8_000_000, 60_000).await;
        send(&server, 8_000);
        sleep(Duration::from_millis(100)).await;
        let (before, sent) = (window.memory.get(), again(&server));
        read(&client, &window, LEAST_BUFFER, 8_000, 8_000).await;
        assert!(window.memory.get() < before, "it shrinks by that");
        send(&server, 400_000);
        let there = comes(&client).await;
        assert_eq!(there, 400_000, "of 400 kB that were offered");
        let twice = again(&server) - sent;
        assert!(twice <= 2, "{twice} segments came twice");
    }
}
