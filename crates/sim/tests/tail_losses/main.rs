//! Losses in a transfer of up to ten segments, every pattern of them: 2 046.
//!
//! The sender may open the connection or accept it. Its window is ten segments,
//! so that all are sent at once; those of the pattern are lost the first time and
//! arrive when they are sent again. Nothing follows that would show a loss at the
//! end, which is what tail loss probes and detection by time are for (RFC 8985).
//!
//! [`table`] holds the simulator to times worked out by hand and to a slow
//! [`twin`] of the RFCs, to the nanosecond. [`beside_the_kernel`] holds it to the
//! kernel of this machine.

#[cfg(target_os = "linux")]
mod beside_the_kernel;
#[cfg(target_os = "linux")]
#[path = "../kernel/mod.rs"]
mod kernel;
#[path = "../tcp/pair/mod.rs"]
mod pair;
mod short_buffers;
mod table;
mod twin;

use std::fmt;

use pair::{CLIENT, Fate, ISN, Pair, SERVER};
use tidegate_core::{Span, Time};
use tidegate_sim::tcp::TcpConfig;

/// The initial window of today's TCP.
const MOST: u32 = 10;

/// A transfer and its losses.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Case {
    segments: u32,
    /// What is lost the first time. Bit 0 stands for the first segment.
    lost: u32,
    /// What of it is lost the second time too.
    lost_again: u32,
    /// Whether the sender opens the connection.
    opens: bool,
}

impl Case {
    /// All patterns of losses in transfers of so many segments; what is sent again
    /// arrives.
    fn all(segments: impl IntoIterator<Item = u32>, opens: bool) -> impl Iterator<Item = Case> {
        segments.into_iter().flat_map(move |segments| {
            (0..1 << segments).map(move |lost| Case { segments, lost, lost_again: 0, opens })
        })
    }

    /// All patterns in which something is lost twice.
    fn all_twice(
        segments: impl IntoIterator<Item = u32>,
        opens: bool,
    ) -> impl Iterator<Item = Case> {
        Case::all(segments, opens).flat_map(|case| {
            (1..=case.lost)
                .filter(move |again| again & !case.lost == 0)
                .map(move |lost_again| Case { lost_again, ..case })
        })
    }

    /// Whether a transmission of a segment is lost, of which there were `earlier`.
    fn loses(&self, segment: u32, earlier: u32) -> bool {
        let mask = [self.lost, self.lost_again].get(earlier as usize).copied().unwrap_or(0);
        mask >> segment & 1 == 1
    }

    /// Nothing that is sent after the first loss arrives.
    fn loses_a_tail_only(&self) -> bool {
        let first = self.lost.trailing_zeros();
        first < self.segments && self.lost.count_ones() == self.segments - first
    }
}

/// `ooxX` for four segments of which the third is lost once and the fourth twice.
impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mark = |at| match (self.loses(at, 0), self.loses(at, 1)) {
            (false, _) => 'o',
            (true, false) => 'x',
            (true, true) => 'X',
        };
        let pattern: String = (0..self.segments).map(mark).collect();
        write!(f, "{pattern} {}", if self.opens { "opens" } else { "accepts" })
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// How it went.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Outcome {
    /// From the SYN to the last byte in the receiver's hands.
    response: Span,
    timeouts: u64,
    /// Where they are counted.
    probes: Option<u64>,
    retransmissions: u64,
}

/// The path: how long it takes, and how much longer for a segment with payload, as
/// on a link whose rate is finite.
#[derive(Clone, Copy)]
struct Path {
    one_way: Span,
    payload: Span,
}

/// The transfer in the simulator, both ends with the same settings.
fn simulate(case: Case, config: &TcpConfig, path: Path) -> Outcome {
    let sender = if case.opens { CLIENT } else { SERVER };
    let mss = config.mss;
    let bytes = u64::from(case.segments * mss);
    let mut transmissions = [0; MOST as usize];
    let mut pair = Pair::new(config.clone(), config.clone()).deciding(move |from, header, _| {
        if header.payload == 0 {
            return Fate::Pass;
        }
        assert_eq!(from, sender);
        let segment = (header.sequence - ISN[sender] - 1) / mss;
        let earlier = &mut transmissions[segment as usize];
        *earlier += 1;
        if case.loses(segment, *earlier - 1) { Fate::Lose } else { Fate::Delay(path.payload) }
    });
    pair.traced = false;
    pair.delay = path.one_way;
    pair.ends[sender].write(bytes);
    pair.poll(CLIENT);
    let mut response = None;
    while pair.ends[sender].acknowledged() < bytes {
        assert!(pair.step(Time::FAR_FUTURE), "{case} does not end");
        if response.is_none() && pair.ends[1 - sender].delivered() == bytes {
            response = Some(pair.now.since(Time::ZERO));
        }
    }
    let counted = pair.ends[sender].statistics();
    Outcome {
        response: response.expect("what is acknowledged has been delivered"),
        timeouts: counted.timeouts.into(),
        probes: Some(counted.tail_loss_probes.into()),
        retransmissions: counted.retransmissions,
    }
}
