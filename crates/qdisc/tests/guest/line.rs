//! A line with a queue whose every frame the test writes and reads, and the same frames at
//! the same times through `core`.
//!
//! Frames are written to one device, which hands them to the queue of another as they are;
//! what leaves that queue is read here. So a frame may be anything, and from anybody.

use std::io;
use std::os::fd::AsFd as _;
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tappers::{Interface, Tap};
use tidegate_core::entry::Place;
use tidegate_core::{Egress, Poll, Time};
use tidegate_judge::host::Host;
use tidegate_link::Queue;
use tidegate_qdisc::Qdisc;
use tidegate_qdisc::layout::Statistics;
use tidegate_qdisc::programs::find;

use crate::device::{comes, skip};
use crate::frames::packet;

/// Nothing more leaves after so long, when the queue is empty.
const QUIET: u16 = 50;
/// How often the test looks at what is queued.
const LOOK_EVERY: usize = 50;

/// A frame that is to be sent at a time. Its number is in its last eight bytes.
pub(crate) struct Due {
    pub(crate) at: Duration,
    pub(crate) frame: Vec<u8>,
}

/// What became of the frames that were due.
pub(crate) struct Played {
    /// When each came to the queue.
    pub(crate) came: Vec<Duration>,
    /// When each left it.
    pub(crate) left: Vec<Option<Duration>>,
    /// The most packets that were seen queued.
    pub(crate) most_queued: u64,
    pub(crate) statistics: Statistics,
}

pub(crate) struct Line {
    host: Host,
    into: Tap,
    out: Tap,
}

impl Line {
    /// `None`, and why, if this machine cannot have it.
    pub(crate) fn new(test: &str) -> Option<Line> {
        let host = crate::device::host(test)?;
        let open = |name| -> io::Result<Tap> {
            let mut tap = Tap::new_named(Interface::new(name)?)?;
            tap.set_nonblocking(true)?;
            Ok(tap)
        };
        let both = host.run(move || Ok::<_, io::Error>([open("into")?, open("out")?]));
        let [into, out] = match both {
            Ok(both) => both,
            Err(error) => {
                skip(test, &format!("TAP: {error}"));
                return None;
            }
        };
        // Nobody but the test sends anything.
        for device in ["into", "out"] {
            host.set(&format!("ipv6/conf/{device}/disable_ipv6"), "1").unwrap();
        }
        for (program, line) in [
            ("ip", "link set into addrgenmode none arp off up"),
            ("ip", "link set out addrgenmode none arp off up"),
            ("tc", "qdisc add dev into ingress"),
            ("tc", "filter add dev into ingress matchall action mirred egress redirect dev out"),
        ] {
            host.words(program, line).unwrap();
        }
        Some(Line { host, into, out })
    }

    /// Sends frames through this queue when they are due, until all have left it.
    pub(crate) fn play(&self, queue: &Queue, due: &[Due]) -> Played {
        let program = find(queue.entry.name).unwrap();
        let qdisc = Qdisc::load(program, queue, true, "").unwrap();
        self.host.words("tc", &format!("qdisc add dev out root {}", qdisc.name())).unwrap();
        let start = Instant::now();
        let mut came = Vec::with_capacity(due.len());
        let mut most_queued = 0;
        let left = thread::scope(|scope| {
            let (over, is_over) = mpsc::channel();
            let reader = scope.spawn(move || self.read(start, due.len(), &is_over));
            for (number, Due { at, frame }) in due.iter().enumerate() {
                thread::sleep((start + *at).saturating_duration_since(Instant::now()));
                came.push(start.elapsed());
                assert_eq!(self.into.send(frame).unwrap(), frame.len());
                if number % LOOK_EVERY == 0 {
                    most_queued =
                        most_queued.max(qdisc.statistics().unwrap().word("queued_packets"));
                }
            }
            assert!(comes(|| qdisc.statistics().unwrap().word("queued_packets") == 0));
            over.send(()).unwrap();
            reader.join().unwrap()
        });
        let statistics = qdisc.statistics().unwrap();
        self.host.words("tc", "qdisc del dev out root").unwrap();
        qdisc.remove().unwrap();
        Played { came, left, most_queued, statistics }
    }

    /// When each of so many frames left, until it is over and nothing comes.
    fn read(
        &self,
        start: Instant,
        count: usize,
        is_over: &mpsc::Receiver<()>,
    ) -> Vec<Option<Duration>> {
        let mut left = vec![None; count];
        let mut frame = vec![0; 2_000];
        loop {
            while let Ok(length) = self.out.recv(&mut frame) {
                let number = u64::from_be_bytes(*frame[..length].last_chunk().unwrap());
                let before = left[number as usize].replace(start.elapsed());
                assert_eq!(before, None, "frame {number} left twice");
            }
            let mut waits = [PollFd::new(self.out.as_fd(), PollFlags::POLLIN)];
            let came = poll(&mut waits, PollTimeout::from(QUIET)).unwrap();
            if came == 0 && is_over.try_recv().is_ok() {
                return left;
            }
        }
    }
}

/// When each frame leaves by `core`, if each comes when it came to the kernel.
pub(crate) fn through_core(queue: &Queue, due: &[Due], came: &[Duration]) -> Vec<Option<Duration>> {
    let place = Place::from(queue.buffer()).at_rate(queue.rate);
    let mut egress = Egress::new((queue.entry.build)(&queue.settings, place, 7), queue.rate);
    let mut left = vec![None; due.len()];
    let mut serve = |egress: &mut Egress, mut now: Time, end: Time| loop {
        match egress.poll(now) {
            Poll::Packet { packet, .. } => {
                left[packet.handle as usize] = Some(Duration::from_nanos(now.0));
            }
            Poll::ReadyAt(time) if time <= end => now = time,
            Poll::ReadyAt(_) | Poll::Idle => return,
        }
    };
    let mut now = Time::ZERO;
    for (number, (Due { frame, .. }, came)) in due.iter().zip(came).enumerate() {
        let next = Time(came.as_nanos() as u64);
        serve(&mut egress, now, next);
        now = next;
        let mut packet = packet(number as u64, frame);
        packet.size = queue.framing.charge(packet.size);
        egress.offer(now, packet);
    }
    serve(&mut egress, now, Time::FAR_FUTURE);
    left
}
