//! LARS, least attained recent service: LAS that forgets at a steady pace.
//!
//! A packet ranks by the service of its flow, as under LAS, but service decays by
//! half every `half_life` (Heusse 2010; `EFD section 2`). The service of a flow
//! that sends at a steady rate therefore stops rising at `rate * half_life / ln 2`,
//! slow flows stay ahead of fast ones however old they are, and one backlogged flow
//! locks another out for at most one half-life.
//!
//! What decides is which flow has less service at the same time. Since all services
//! decay alike, any time will do, and this discipline compares their values at the
//! start of the run: a packet of `L` bytes at time `t` adds `L * 2^(t /
//! half_life)`, and nothing has to decay. That sum is the rank of the flow's next
//! packet. It never falls, so a flow's packets stay in order. Ranks taken at
//! different times, each as the service stood then, would let a packet that comes
//! after a pause overtake one that still waits.
//!
//! The sum is kept with 64 significant bits and a separate exponent, so that it is
//! valid at any time. All of it are integers, so that the kernel, which has no
//! floating point, ranks packets alike. The cost is O(log n) per packet in the number
//! of queued packets.

use super::attained::AttainedQueue;
use super::{Backlog, Discipline, Losses, Memory};
use crate::buffer::Buffer;
use crate::entry::{Drops, Entry, Place};
use crate::packet::Packet;
use crate::setting::{Kind, Parameter, Settings};
use crate::units::{Bytes, Span, Time};

/// The registry's entry for [`Lars`].
pub const ENTRY: Entry = Entry {
    name: "lars",
    summary: "least attained recent service: LAS with service that decays by half in a half-life",
    source: "Heusse 2010",
    linux: None,
    drops: Drops::WhenFull,
    parameters: &[HALF_LIFE, Memory::SWEEP, Memory::IDLE],
    fixed: &[],
    build: |settings, Place { buffer, .. }, seed| {
        let half_life = settings.span(HALF_LIFE.name);
        Box::new(Lars::new(half_life, Memory::from_settings(settings), buffer, seed))
    },
};

/// The source speaks of a fading factor; a half-life states how long a backlogged
/// flow can lock another out, whatever the rate.
const HALF_LIFE: Parameter = Parameter {
    name: "half_life",
    help: "time in which a flow's service decays by half",
    kind: Kind::Span { least: Span::millis(1), most: Span::seconds(86_400) },
    default: "1 s",
};

/// A queue by decaying service of each packet's flow.
#[derive(Debug)]
pub struct Lars {
    inflation: Inflation,
    queue: AttainedQueue<Inflated, Inflated>,
}

impl Lars {
    /// An empty queue that holds at most `buffer`, in which service decays by
    /// half every `half_life` and flows are remembered as `memory` says; the
    /// hash of its flow table depends on `seed`.
    #[must_use]
    pub fn new(half_life: Span, memory: Memory, buffer: Buffer, seed: u64) -> Lars {
        Lars {
            inflation: Inflation::new(half_life),
            queue: AttainedQueue::new(memory, buffer, seed),
        }
    }
}

impl Discipline for Lars {
    fn enqueue(&mut self, now: Time, packet: Packet, losses: &mut Losses) {
        let inflation = self.inflation;
        self.queue.enqueue(now, packet, losses, |attained| {
            let rank = *attained;
            *attained = rank.plus(inflation.of(packet.size, now));
            rank
        });
    }

    fn dequeue(&mut self, now: Time, _losses: &mut Losses) -> Option<Packet> {
        self.queue.dequeue(now)
    }

    fn reconfigure(&mut self, now: Time, settings: &Settings, Place { buffer, .. }: Place) {
        self.inflation.set_half_life(now, settings.span(HALF_LIFE.name));
        self.queue.reconfigure(now, Memory::from_settings(settings), buffer);
    }

    fn backlog(&self) -> Backlog {
        self.queue.backlog()
    }

    fn flows_tracked(&self) -> usize {
        self.queue.flows_tracked()
    }
}

/// How large a byte is at a time. With one half-life for ever it is
/// `2^(t / half_life)`; another half-life changes how fast it grows from then on.
#[derive(Clone, Copy, Debug)]
struct Inflation {
    half_life: Span,
    /// When the half-life was set.
    since: Time,
    /// Half-lives that had passed until then: whole ones, and of the next this much.
    passed: u64,
    rest: Span,
}

impl Inflation {
    fn new(half_life: Span) -> Inflation {
        Inflation { half_life, since: Time::ZERO, passed: 0, rest: Span::ZERO }
    }

    /// Whole half-lives that have passed, and how much of the next in units of 2^-32.
    fn at(&self, now: Time) -> (u64, u32) {
        // The rest is below a day: this is exact until a day before the end of time.
        let nanos = now.since(self.since).0.saturating_add(self.rest.0);
        let part = (u128::from(nanos % self.half_life.0) << 32) / u128::from(self.half_life.0);
        (self.passed + nanos / self.half_life.0, part as u32)
    }

    /// The same share of a half-life has passed, but the next is of another length.
    fn set_half_life(&mut self, now: Time, half_life: Span) {
        if half_life == self.half_life {
            return;
        }
        let (passed, part) = self.at(now);
        let rest = (u128::from(part) * u128::from(half_life.0)) >> 32;
        *self = Inflation { half_life, since: now, passed, rest: Span(rest as u64) };
    }

    fn of(&self, size: Bytes, now: Time) -> Inflated {
        let (whole, part) = self.at(now);
        Inflated::new(size, whole, part)
    }
}

/// Bytes times `2^(t / half_life)`, as `mantissa * 2^(exponent - 127)`.
///
/// The mantissa has its highest bit set, or everything is zero, so that numbers
/// compare as their fields do, from first to last. What does not fit into 64 bits
/// is cut off: adding never makes a number smaller, and loses less than 2^-63 of
/// it. The steady state of 100 Gbit/s with a half-life of a day still registers a
/// packet of 40 bytes, which is 2^-45 of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Inflated {
    exponent: u64,
    mantissa: u64,
}

impl Inflated {
    /// Bytes times `2^(whole + part / 2^32)`.
    fn new(size: Bytes, whole: u64, part: u32) -> Inflated {
        let product = u128::from(size.0) * u128::from(power(part));
        if product == 0 {
            return Inflated::default();
        }
        // From 63 leading zeros, for one byte at time zero, down to none.
        let zeros = product.leading_zeros();
        let mantissa = ((product << zeros) >> 64) as u64;
        Inflated { exponent: whole + u64::from(128 - zeros), mantissa }
    }

    fn plus(self, other: Inflated) -> Inflated {
        let (small, large) = if self < other { (self, other) } else { (other, self) };
        let shift = u32::try_from(large.exponent - small.exponent).unwrap_or(u32::MAX);
        let addend = small.mantissa.checked_shr(shift).unwrap_or(0);
        let (mantissa, carried) = large.mantissa.overflowing_add(addend);
        if carried {
            Inflated { exponent: large.exponent + 1, mantissa: mantissa >> 1 | 1 << 63 }
        } else {
            Inflated { exponent: large.exponent, mantissa }
        }
    }
}

/// `2^(2^-k)` for k from 1 to 32, in units of 2^-63.
const ROOTS: [u64; 32] = [
    0xb504_f333_f9de_6484,
    0x9837_f051_8db8_a96f,
    0x8b95_c1e3_ea8b_d6e7,
    0x85aa_c367_cc48_7b15,
    0x82cd_8698_ac2b_a1d7,
    0x8164_d1f3_bc03_0773,
    0x80b1_ed4f_d999_ab6c,
    0x8058_d7d2_d5e5_f6b1,
    0x802c_6436_d0e0_4f51,
    0x8016_302f_1746_7628,
    0x800b_179c_8202_8fd1,
    0x8005_8baf_7fee_3b5d,
    0x8002_c5d0_0fdc_fcb7,
    0x8001_62e6_1bed_4a49,
    0x8000_b172_92f7_02a4,
    0x8000_58b9_2abb_ae02,
    0x8000_2c5c_8dad_e4d7,
    0x8000_162e_44ea_f636,
    0x8000_0b17_21fa_7c19,
    0x8000_058b_90de_7e4d,
    0x8000_02c5_c867_8f37,
    0x8000_0162_e431_dba0,
    0x8000_00b1_7218_72d1,
    0x8000_0058_b90c_1aa9,
    0x8000_002c_5c86_05a4,
    0x8000_0016_2e43_00e6,
    0x8000_000b_1721_7ff8,
    0x8000_0005_8b90_bfdd,
    0x8000_0002_c5c8_5fe7,
    0x8000_0001_62e4_2ff2,
    0x8000_0000_b172_17f8,
    0x8000_0000_58b9_0bfc,
];

/// `2^(part / 2^32)` for parts of which one byte is not zero, the highest byte's first.
static POWERS: [[u64; 256]; 4] = {
    let mut powers = [[1 << 63; 256]; 4];
    let mut entry = 0;
    while entry < 4 * 256 {
        let (byte, value) = (entry / 256, entry % 256);
        let mut bit = 0;
        while bit < 8 {
            if value >> (7 - bit) & 1 == 1 {
                powers[byte][value] = times(powers[byte][value], ROOTS[byte * 8 + bit]);
            }
            bit += 1;
        }
        entry += 1;
    }
    powers
};

/// The product of two numbers in units of 2^-63, of which the rest is cut off.
const fn times(a: u64, b: u64) -> u64 {
    ((a as u128 * b as u128) >> 63) as u64
}

/// `2^(part / 2^32)` in units of 2^-63. What is cut off of it is below 2^-58.
///
/// ```
/// use tidegate_core::discipline::lars::power;
/// assert_eq!(power(0), 1 << 63);
/// // The root of two.
/// assert_eq!(power(1 << 31), 13_043_817_825_332_782_212);
/// ```
#[must_use]
pub fn power(part: u32) -> u64 {
    let [a, b, c, d] = part.to_be_bytes().map(usize::from);
    times(times(times(POWERS[0][a], POWERS[1][b]), POWERS[2][c]), POWERS[3][d])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::discipline::LossReason;
    use crate::discipline::trial::Trial;

    #[test]
    fn powers_are_those_of_floating_point() {
        let parts = [0, 1, 1 << 31, u32::MAX, 0x1234_5678, 0xdead_beef, 3_000_000_000];
        for part in parts {
            let expected = libm::exp2(f64::from(part) / (1_u64 << 32) as f64);
            let found = power(part) as f64 / (1_u64 << 63) as f64;
            assert!((found / expected - 1.0).abs() < 1e-15, "{part}: {found}, {expected}");
        }
    }

    fn lars(packets: u32) -> Trial<Lars> {
        let buffer = Buffer::packets(packets);
        Trial::new(Lars::new(Span::seconds(1), Memory::default(), buffer, 1))
    }

    #[test]
    fn serves_by_what_is_left_of_the_service() {
        let mut trial = lars(10);
        trial.arrive('a', 2_000);
        assert_eq!(trial.send(), Some(0));
        // Two half-lives on, 500 bytes are left of it: `b` passes with 0 and 400,
        // but not with 800.
        trial.now = Time::ZERO + Span::seconds(2);
        trial.arrive_all([('b', 400), ('b', 400), ('b', 400), ('a', 400)]);
        assert_eq!(trial.drain(), [1, 2, 4, 3]);
    }

    #[test]
    fn a_starved_flow_keeps_its_order_and_its_place_among_others() {
        let mut trial = lars(10);
        trial.arrive_all([('a', 1_000), ('a', 1_000), ('b', 500)]);
        assert_eq!(trial.send(), Some(0));
        assert_eq!(trial.send(), Some(2));
        // `a` ranked 1000 at time zero, which is 31 by now; `b` has 15 and then 55.
        trial.now = Time::ZERO + Span::seconds(5);
        trial.arrive_all([('b', 40), ('b', 40), ('a', 40)]);
        assert_eq!(trial.drain(), [3, 1, 4, 5]);
    }

    #[test]
    fn a_full_buffer_gives_up_the_flow_that_has_had_most_of_late() {
        let mut trial = lars(3);
        trial.arrive('a', 10_000);
        assert_eq!(trial.send(), Some(0));
        trial.now = Time::ZERO + Span::seconds(10);
        // Of 10 000 bytes 9.8 are left: ranks 0, 100, 9.8, 200, 59.8.
        trial.arrive_all([('b', 100), ('b', 100), ('a', 50), ('b', 100), ('a', 100)]);
        assert_eq!(trial.lost(), [(4, LossReason::Refused), (2, LossReason::PushedOut)]);
    }

    #[test]
    fn numbers_are_sizes_times_powers_of_two() {
        let half_life = Span::seconds(1);
        let at = |seconds| Time::ZERO + Span::seconds(seconds);
        let one = Inflation::new(half_life).of(Bytes(1), at(0));
        assert_eq!(one, Inflated { exponent: 64, mantissa: 1 << 63 });
        assert_eq!(
            Inflation::new(half_life).of(Bytes(8), at(0)),
            Inflation::new(half_life).of(Bytes(1), at(3))
        );
        assert_eq!(one.plus(one), Inflation::new(half_life).of(Bytes(2), at(0)));
        assert_eq!(one.plus(Inflated::default()), one);
        let three = one.plus(Inflation::new(half_life).of(Bytes(1), at(1)));
        assert_eq!(three, Inflation::new(half_life).of(Bytes(3), at(0)));
        assert_eq!(three.plus(one), Inflation::new(half_life).of(Bytes(1), at(2)));
        let largest = Inflation::new(Span::millis(1)).of(Bytes(u64::MAX), Time::FAR_FUTURE);
        assert_eq!(largest.plus(one), largest);
        assert!(largest.plus(largest) > largest);
    }

    #[test]
    fn another_half_life_goes_on_from_what_has_passed_of_the_last() {
        let at = |millis| Time::ZERO + Span::millis(millis);
        let constant = Inflation::new(Span::seconds(1));
        let mut changed = constant;
        // Three and a half have passed; the other half takes 5 s of the new one.
        changed.set_half_life(at(3_500), Span::seconds(10));
        assert_eq!(changed.of(Bytes(7), at(3_500)), constant.of(Bytes(7), at(3_500)));
        assert_eq!(changed.of(Bytes(7), at(8_500)), constant.of(Bytes(7), at(4_000)));
        assert_eq!(changed.of(Bytes(7), at(18_500)), constant.of(Bytes(7), at(5_000)));
    }
}
