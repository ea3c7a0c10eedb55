//! A path with a delay, in user space: a TUN device at each end, and two threads in each
//! direction that hold every packet for as long as its way takes, exactly.
//!
//! A server that waits before it answers cannot replace it, since handshakes and
//! acknowledgements take their time too. Packets are some tens of microseconds late, which
//! is as well as threads are woken.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;
use std::net::Ipv4Addr;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use tappers::{AddAddressV4, Interface, Tun};

use crate::host::{Host, Missing, hurry};

/// What the device of a path is called on both hosts.
pub(crate) const DEVICE: &str = "path";
/// The largest IP packet.
const LARGEST_PACKET: usize = 65_535;
/// Packets that a device holds for the thread that reads it: the path loses none.
const DEVICE_PACKETS: &str = "5000";

/// A host's end of a path, which is in a network of so many bits.
pub(crate) fn end(host: &Host, address: Ipv4Addr, bits: u8) -> Result<Arc<Tun>, Missing> {
    let device = host.run(move || {
        let mut device = Tun::new_named(Interface::new(DEVICE)?)?;
        let mut request = AddAddressV4::new(address);
        request.set_netmask(bits);
        device.add_addr(request)?;
        device.set_up()?;
        io::Result::Ok(device)
    });
    let device = device.map_err(|error| Missing(format!("a TUN device: {error}")))?;
    host.words("ip", &format!("link set {DEVICE} txqueuelen {DEVICE_PACKETS}"))?;
    Ok(Arc::new(device))
}

/// How late a path was with its packets.
#[derive(Debug, Default)]
pub(crate) struct Lateness(Mutex<Vec<u32>>);

impl Lateness {
    fn add(&self, late: Duration) {
        let late = u32::try_from(late.as_micros()).unwrap_or(u32::MAX);
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(late);
    }

    /// Of each packet, in microseconds, in the order in which they went.
    pub(crate) fn all_us(&self) -> Vec<u32> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// A packet on its way: when it arrives, its number, and its bytes.
type Flying = (Instant, u64, Vec<u8>);

/// Carries what comes out of `source` to `target`, until either device is gone. The `delay`
/// depends on the packet; packets with the same delay keep their order. Returns where it is
/// noted how late they were.
pub(crate) fn carry(
    source: &Arc<Tun>,
    target: &Arc<Tun>,
    delay: impl Fn(&[u8]) -> Duration + Send + 'static,
) -> Arc<Lateness> {
    let lateness = Arc::new(Lateness::default());
    let noted = Arc::clone(&lateness);
    let (flying, arriving) = mpsc::channel::<Flying>();
    let (source, target) = (source.clone(), target.clone());
    thread::spawn(move || {
        hurry();
        let mut buffer = [0; LARGEST_PACKET];
        let mut number = 0;
        while let Ok(length) = source.recv(&mut buffer) {
            let packet = &buffer[..length];
            if flying.send((Instant::now() + delay(packet), number, packet.to_vec())).is_err() {
                return;
            }
            number += 1;
        }
    });
    thread::spawn(move || {
        hurry();
        let mut waiting: BinaryHeap<Reverse<Flying>> = BinaryHeap::new();
        loop {
            let next = match waiting.peek() {
                None => arriving.recv().map_err(|_| RecvTimeoutError::Disconnected),
                Some(Reverse((due, ..))) => {
                    arriving.recv_timeout(due.saturating_duration_since(Instant::now()))
                }
            };
            match next {
                Ok(packet) => waiting.push(Reverse(packet)),
                Err(RecvTimeoutError::Disconnected) => return,
                Err(RecvTimeoutError::Timeout) => {}
            }
            while let Some(Reverse((due, ..))) = waiting.peek()
                && *due <= Instant::now()
                && let Some(Reverse((due, _, packet))) = waiting.pop()
            {
                noted.add(due.elapsed());
                if target.send(&packet).is_err() {
                    return;
                }
            }
        }
    });
    lateness
}
