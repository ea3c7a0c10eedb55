//! A packet ranks by the sum of `L * 2^(t / half_life)` over its flow's earlier
//! packets, summed again for each packet.
//!
//! The rule of rounding: the fraction has 32 bits after the point; its power, with 63,
//! is the library's, which a test of its own holds to `libm`; terms and sums keep 64
//! significant bits, and the smaller term of a sum keeps what lies within those of the
//! larger. The rest is cut off.

use tidegate_core::discipline::lars::power;
use tidegate_core::{FlowKey, Packet, Span, Time};

use super::{History, Memory, Rule};

pub(super) struct Lars {
    pub(super) half_life: Span,
    pub(super) memory: Memory,
}

/// `mantissa * 2^power`, with a mantissa of exactly 64 bits except for zero.
#[derive(Clone, Copy)]
struct Number {
    mantissa: u128,
    power: u64,
}

fn cut(mut number: Number) -> Number {
    while number.mantissa >= 1 << 64 {
        number = Number { mantissa: number.mantissa / 2, power: number.power + 1 };
    }
    number
}

fn sum(one: Number, other: Number) -> Number {
    let (mut less, more) = if one.power < other.power { (one, other) } else { (other, one) };
    while less.power < more.power && less.mantissa > 0 {
        less = Number { mantissa: less.mantissa / 2, power: less.power + 1 };
    }
    cut(Number { mantissa: less.mantissa + more.mantissa, power: more.power })
}

impl Rule for Lars {
    fn rank(&self, history: &History, now: Time, packet: &Packet) -> u128 {
        let records = history.of(packet.flow);
        let term = |record: &&super::Record| {
            let Time(at) = record.arrived.time;
            let Span(half_life) = self.half_life;
            let fraction = (u128::from(at % half_life) << 32) / u128::from(half_life);
            cut(Number {
                mantissa: u128::from(power(fraction as u32)) * u128::from(record.packet.size.0),
                power: at / half_life,
            })
        };
        let terms = self.memory.remembered(&records, now).iter().map(term);
        let terms = terms.filter(|term| term.mantissa > 0);
        // All mantissas have 64 bits, so numbers compare by power first.
        let rank = |number: Number| u128::from(number.power) << 64 | number.mantissa;
        terms.reduce(sum).map_or(0, rank)
    }

    fn tracks(&self, history: &History, now: Time, flow: FlowKey) -> bool {
        !self.memory.forgot(&history.of(flow), now)
    }
}
