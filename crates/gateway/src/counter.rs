//! What the access link has carried, as the counter of its interface says.
//!
//! The kernel's counter begins anew with the interface: one of a modem or a tunnel comes
//! and goes with each connection to the provider. What the scheduler is told never goes
//! back, and never leaps: it grows by what the counter grew, and by nothing while it cannot
//! be read. The file stays open, so that it can be read when no descriptors are left.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use tidegate_core::Bytes;

/// Of the network namespace of this process, unlike `/sys`, and of nothing but processes,
/// which a service manager may hide.
const COUNTERS: &str = "/proc/self/net/dev";

/// A line has some 120 bytes, and a router some interfaces for each of its networks.
const LARGEST: u64 = 1 << 20;

/// The counter of an interface.
#[derive(Debug)]
pub(crate) struct Counter {
    interface: String,
    file: File,
    /// What the kernel said last; `None` while there is no such interface.
    last: Option<Bytes>,
    carried: Bytes,
}

impl Counter {
    /// Finds an interface.
    ///
    /// # Errors
    /// There is none of this name.
    pub(crate) fn open(interface: &str) -> io::Result<Counter> {
        let file = File::open(COUNTERS)?;
        let last = received_by(interface, &read(&file)?);
        if last.is_none() {
            let reason = format!("there is no network interface '{interface}'");
            return Err(io::Error::new(io::ErrorKind::NotFound, reason));
        }
        Ok(Counter { interface: interface.into(), file, last, carried: Bytes::ZERO })
    }

    /// What it has carried since it was opened.
    pub(crate) fn carried(&mut self) -> Bytes {
        // What cannot be read has not changed.
        if let Ok(counters) = read(&self.file) {
            self.counts(received_by(&self.interface, &counters));
        }
        self.carried
    }

    fn counts(&mut self, received: Option<Bytes>) {
        if let Some(received) = received {
            // One that is new counts from zero.
            let before = self.last.filter(|last| *last <= received).unwrap_or(Bytes::ZERO);
            self.carried += received - before;
        }
        self.last = received;
    }
}

fn read(file: &File) -> io::Result<String> {
    let mut text = Vec::new();
    let mut piece = [0; 4_096];
    while (text.len() as u64) < LARGEST {
        match file.read_at(&mut piece, text.len() as u64)? {
            0 => break,
            size => text.extend_from_slice(&piece[..size]),
        }
    }
    String::from_utf8(text).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// proc_net(5): a line for each interface, whose first number is what it received.
fn received_by(interface: &str, counters: &str) -> Option<Bytes> {
    let mut lines = counters.lines().filter_map(|line| line.split_once(':'));
    let (_, numbers) = lines.find(|(name, _)| name.trim() == interface)?;
    numbers.split_whitespace().next()?.parse().ok().map(Bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_interface_is_found_by_its_whole_name() {
        let counters = "Inter-|   Receive                            |  Transmit\n \
            face |bytes    packets errs drop fifo frame compressed multicast|bytes\n    \
            lo: 100 1 0 0 0 0 0 0 100 1 0 0 0 0 0 0\n\
            eth0.7:20000000000 7 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n  \
            eth0: 30 7 0 0 0 0 0 0 5 1 0 0 0 0 0 0\n";
        assert_eq!(received_by("eth0", counters), Some(Bytes(30)));
        assert_eq!(received_by("eth0.7", counters), Some(Bytes(20_000_000_000)));
        assert_eq!(received_by("eth", counters), None);
    }

    #[test]
    fn what_is_carried_never_goes_back_and_never_leaps() {
        let mut counter = Counter::open("lo").expect("every machine has it");
        counter.last = Some(Bytes(1_000));
        let mut after = |received| {
            counter.counts(received);
            counter.carried
        };
        assert_eq!(after(Some(Bytes(1_300))), Bytes(300));
        assert_eq!(after(None), Bytes(300), "the interface is gone");
        assert_eq!(after(Some(Bytes(50))), Bytes(350), "it is there again, and new");
        assert_eq!(after(Some(Bytes(70))), Bytes(370));
        assert_eq!(after(Some(Bytes(20))), Bytes(390), "it has been away between two looks");
        assert!(Counter::open("no-such-if").is_err());
    }

    #[test]
    fn the_counter_of_loopback_grows_with_what_it_carries() {
        let mut counter = Counter::open("lo").expect("every machine has it");
        let before = counter.carried();
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        let address = socket.local_addr().expect("it is bound");
        socket.send_to(&[0; 10_000], address).expect("loopback takes it");
        assert!(counter.carried() >= before + Bytes(10_000));
    }
}
