//! How long a frame is on the air: OFDM with channels of 20 MHz (IEEE
//! 802.11-2016 clause 17).

use std::fmt;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Rate, Span};

/// IEEE 802.11-2016 Table 17-21, aSlotTime.
pub const SLOT: Span = Span::micros(9);
/// IEEE 802.11-2016 Table 17-21, aSIFSTime: between a frame and its acknowledgement.
pub const SIFS: Span = Span::micros(16);
/// IEEE 802.11-2016 section 10.3.7: SIFS and two slots.
pub const DIFS: Span = Span(SIFS.0 + 2 * SLOT.0);
/// IEEE 802.11-2016 Table 17-21, aRxPHYStartDelay: the time until a receiver knows
/// that a frame has begun.
pub const RECEPTION_START: Span = Span::micros(20);
/// IEEE 802.11-2016 section 17.3: 16 us of preamble, 4 us of SIGNAL.
const PREAMBLE_AND_SIGNAL: Span = Span::micros(20);
/// IEEE 802.11-2016 Table 17-5, T_SYM.
const SYMBOL: Span = Span::micros(4);
/// IEEE 802.11-2016 section 17.3.5: 16 bits of SERVICE before the data, 6 tail bits
/// after.
const SERVICE_AND_TAIL_BITS: u64 = 22;
/// IEEE 802.11-2016 section 9.3.2: the MAC header of a data frame without QoS
/// (24 bytes), the FCS (4), and LLC and SNAP in front of the IP packet (8).
const DATA_OVERHEAD: Bytes = Bytes(24 + 4 + 8);
/// IEEE 802.11-2016 section 9.3.1.5.
pub(super) const ACK: Bytes = Bytes(14);

/// The rate at which the data of a frame are sent; one of eight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DataRate(Rate);

impl DataRate {
    /// All rates, ascending (IEEE 802.11-2016 Table 17-4).
    pub const ALL: [DataRate; 8] = [
        DataRate::mbits(6),
        DataRate::mbits(9),
        DataRate::mbits(12),
        DataRate::mbits(18),
        DataRate::mbits(24),
        DataRate::mbits(36),
        DataRate::mbits(48),
        DataRate::mbits(54),
    ];
    /// The rates that every station must know, in which acknowledgements are sent
    /// (IEEE 802.11-2016 section 17.3.5: the mandatory rates).
    const BASIC: [DataRate; 3] = [DataRate::mbits(24), DataRate::mbits(12), DataRate::mbits(6)];
    /// The lowest.
    pub const SLOWEST: DataRate = DataRate::mbits(6);
    /// The highest.
    pub const FASTEST: DataRate = DataRate::mbits(54);

    pub(super) const fn mbits(rate: u64) -> DataRate {
        DataRate(Rate(rate * 1_000_000))
    }

    /// `rate`, if it is one of the eight.
    #[must_use]
    pub fn new(rate: Rate) -> Option<DataRate> {
        DataRate::ALL.into_iter().find(|known| known.0 == rate)
    }

    /// In bits per second.
    #[must_use]
    pub fn rate(self) -> Rate {
        self.0
    }

    /// The rate of the acknowledgement of a frame that was sent at this rate: the
    /// highest basic rate not above it (IEEE 802.11-2016 section 10.7.6.5.2).
    #[must_use]
    pub fn of_acknowledgement(self) -> DataRate {
        let basic = DataRate::BASIC.into_iter().find(|basic| *basic <= self);
        basic.expect("the lowest rate is a basic one")
    }

    /// How long a MAC frame of `size`, FCS included, takes: whole symbols.
    pub(super) fn air_time(self, size: Bytes) -> Span {
        // This is exact: every rate is a multiple of the 250 000 symbols per
        // second.
        let bits_per_symbol = self.0.0 * SYMBOL.0 / NANOS_PER_SECOND;
        let symbols = (size.0 * 8 + SERVICE_AND_TAIL_BITS).div_ceil(bits_per_symbol);
        PREAMBLE_AND_SIGNAL + SYMBOL * symbols
    }

    /// How long a data frame with an IP packet of `size` takes.
    #[must_use]
    pub fn data_time(self, size: Bytes) -> Span {
        self.air_time(size + DATA_OVERHEAD)
    }

    /// How long the acknowledgement of a frame sent at this rate takes.
    #[must_use]
    pub fn acknowledgement_time(self) -> Span {
        self.of_acknowledgement().air_time(ACK)
    }
}

/// The time to wait after a frame that could not be read, instead of DIFS: as if an
/// acknowledgement at the lowest rate followed it (IEEE 802.11-2016 section
/// 10.3.2.3.7).
#[must_use]
pub fn eifs() -> Span {
    SIFS + DataRate::SLOWEST.acknowledgement_time() + DIFS
}

impl fmt::Display for DataRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_take_whole_symbols() {
        let micros = |rate: u64, size| DataRate::mbits(rate).data_time(Bytes(size)).0 / 1_000;
        // 1 536 bytes are 12 310 bits with service and tail: 57 symbols of 216 bits.
        assert_eq!(micros(54, 1_500), 20 + 57 * 4);
        // The same: 513 symbols of 24 bits.
        assert_eq!(micros(6, 1_500), 20 + 513 * 4);
        // 76 bytes are 630 bits: three symbols of 216.
        assert_eq!(micros(54, 40), 20 + 3 * 4);
        // The same: 342 symbols of 36 bits, which are no whole bytes.
        assert_eq!(micros(9, 1_500), 20 + 342 * 4);
    }

    #[test]
    fn acknowledgements_go_at_the_highest_basic_rate_that_is_not_faster() {
        // 134 bits: two symbols of 96 bits, three of 48, six of 24.
        let micros = [44, 44, 32, 32, 28, 28, 28, 28];
        for (rate, micros) in DataRate::ALL.into_iter().zip(micros) {
            assert_eq!(rate.acknowledgement_time(), Span::micros(micros), "{rate}");
        }
    }

    #[test]
    fn the_gaps_are_those_of_the_standard() {
        assert_eq!(DIFS, Span::micros(34));
        assert_eq!(eifs(), Span::micros(16 + 44 + 34));
        assert_eq!(DataRate::new(Rate(11_000_000)), None);
        assert_eq!(DataRate::new(Rate(36_000_000)), Some(DataRate::mbits(36)));
    }
}
