//! How long an aggregate is on the air: high throughput (802.11n, IEEE 802.11-2016
//! clause 19) and very high throughput (802.11ac, clause 21), beside the OFDM of 20
//! MHz in which all replies are sent.
//!
//! Every stream has the same modulation, with a binary convolutional code and no
//! STBC, at 5 GHz, where no signal extension follows a frame. VHT has up to 4 of
//! its 8 streams.

use std::fmt;

use tidegate_core::units::NANOS_PER_SECOND;
use tidegate_core::{Bytes, Rate, Span};

use super::phy::{self, DataRate};

/// IEEE 802.11-2016 section 9.3.2: the MAC header of a data frame with QoS (26
/// bytes), the FCS (4), and LLC and SNAP in front of the IP packet (8).
const DATA_OVERHEAD: Bytes = Bytes(26 + 4 + 8);
/// IEEE 802.11-2016 section 9.7.1: in front of each frame of an aggregate.
const DELIMITER: Bytes = Bytes(4);
/// IEEE 802.11-2016 section 9.7.1: every frame but the last is padded to this.
const ALIGNMENT: u64 = 4;
/// IEEE 802.11-2016 section 9.3.1.9: control, addresses, BA control, starting
/// sequence, a bitmap of 8 bytes, FCS.
const COMPRESSED_BLOCK_ACK: Bytes = Bytes(32);
/// IEEE 802.11-2016 Tables 19-6 and 21-5, T_SYM: with the long guard interval.
const SYMBOL: Span = Span::micros(4);
/// IEEE 802.11-2016 Tables 19-6 and 21-5, T_SYMS: with the short one.
const SHORT_SYMBOL: Span = Span(3_600);
/// IEEE 802.11-2016 Table 21-29, aPPDUMaxTime; its cause also applies to HT-mixed
/// frames: L-SIG counts no more than 4 095 bytes at 6 Mbit/s.
const LONGEST: Span = Span::micros(5_484);

/// Which generation of 802.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Generation {
    /// High throughput: 802.11n, in its mixed format.
    Ht,
    /// Very high throughput: 802.11ac.
    Vht,
}

impl Generation {
    /// The largest A-MPDU: IEEE 802.11-2016 Tables 9-163 and 9-249, the largest
    /// exponent.
    const fn largest(self) -> Bytes {
        match self {
            Generation::Ht => Bytes(65_535),
            Generation::Vht => Bytes(1_048_575),
        }
    }

    /// The highest modulation and coding scheme of one stream.
    const fn highest(self) -> u8 {
        match self {
            Generation::Ht => 7,
            Generation::Vht => 9,
        }
    }

    /// Data rate, in bit/s, up to which one encoder suffices.
    const fn of_one_encoder(self) -> u64 {
        match self {
            Generation::Ht => 300_000_000,
            Generation::Vht => 600_000_000,
        }
    }

    /// What precedes the data symbols: the legacy preamble and L-SIG (20 us), then
    /// SIG, STF and an LTF for each stream, or four for three (sections 19.3.9 and
    /// 21.3.8).
    fn preamble(self, streams: u8) -> Span {
        let training = Span::micros(4) * u64::from(if streams == 3 { 4 } else { streams });
        let signals = match self {
            Generation::Ht => Span::micros(8 + 4),
            Generation::Vht => Span::micros(8 + 4 + 4),
        };
        Span::micros(20) + signals + training
    }
}

/// What all senders of a cell have in common, besides the modulation of each.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Channel {
    /// The generation.
    pub generation: Generation,
    /// Its width in MHz: 20 or 40, with VHT also 80 or 160.
    pub width: u8,
    /// Spatial streams, 1 to 4.
    pub streams: u8,
    /// 400 ns between symbols instead of 800.
    pub short_guard: bool,
}

/// Modulation and coding scheme of a channel: how its data are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mcs {
    channel: Channel,
    index: u8,
}

/// Coded bits of a symbol on one carrier and stream; numerator and denominator
/// of the code's rate (IEEE 802.11-2016 Tables 19-27 and 21-30); and the OFDM rate
/// that stands for the scheme where the rate of a reply is chosen: its non-HT
/// reference rate (section 10.7), that of the same modulation and code or, where
/// OFDM has none, the highest.
const SCHEMES: [(u64, u64, u64, DataRate); 10] = [
    (1, 1, 2, DataRate::mbits(6)),
    (2, 1, 2, DataRate::mbits(12)),
    (2, 3, 4, DataRate::mbits(18)),
    (4, 1, 2, DataRate::mbits(24)),
    (4, 3, 4, DataRate::mbits(36)),
    (6, 2, 3, DataRate::mbits(48)),
    (6, 3, 4, DataRate::mbits(54)),
    (6, 5, 6, DataRate::mbits(54)),
    (8, 3, 4, DataRate::mbits(54)),
    (8, 5, 6, DataRate::mbits(54)),
];

impl Channel {
    /// Scheme `index` of each stream: 0 to 7, with VHT to 9. `None` if the standard
    /// has none, and also where the coded bits of a symbol cannot be shared out
    /// among its encoders in whole blocks of the code (for example MCS 9 with one
    /// stream of 20 MHz; sections 19.5 and 21.5 leave those out).
    #[must_use]
    pub fn mcs(self, index: u8) -> Option<Mcs> {
        let of_vht = self.width > 40;
        let mcs = Mcs { channel: self, index };
        let known = matches!(self.width, 20 | 40 | 80 | 160)
            && !(of_vht && self.generation == Generation::Ht)
            && (1..=4).contains(&self.streams)
            && index <= self.generation.highest();
        (known && mcs.is_whole()).then_some(mcs)
    }

    /// The highest scheme.
    #[must_use]
    pub fn highest(self) -> Option<Mcs> {
        (0..SCHEMES.len() as u8).rev().find_map(|index| self.mcs(index))
    }
}

impl Mcs {
    /// Its number; what MCS 8 to 31 of 802.11n express about streams belongs to the
    /// channel.
    #[must_use]
    pub fn index(self) -> u8 {
        self.index
    }

    /// Data carriers: IEEE 802.11-2016 Tables 19-6 and 21-5.
    fn carriers(self) -> u64 {
        match self.channel.width {
            20 => 52,
            40 => 108,
            80 => 234,
            _ => 468,
        }
    }

    fn coded_bits(self) -> u64 {
        let (bits, ..) = SCHEMES[usize::from(self.index)];
        self.carriers() * bits * u64::from(self.channel.streams)
    }

    fn bits_per_symbol(self) -> u64 {
        let (_, numerator, denominator, _) = SCHEMES[usize::from(self.index)];
        self.coded_bits() * numerator / denominator
    }

    /// The number of encoders depends on the rate with the short guard interval,
    /// whichever is used.
    fn encoders(self) -> u64 {
        let rate = self.bits_per_symbol() * NANOS_PER_SECOND / SHORT_SYMBOL.0;
        rate.div_ceil(self.channel.generation.of_one_encoder())
    }

    /// Whether each encoder gets whole blocks.
    fn is_whole(self) -> bool {
        let (_, _, denominator, _) = SCHEMES[usize::from(self.index)];
        self.coded_bits().is_multiple_of(self.encoders() * denominator)
    }

    /// In bits per second.
    #[must_use]
    pub fn rate(self) -> Rate {
        let symbol = if self.channel.short_guard { SHORT_SYMBOL } else { SYMBOL };
        Rate(self.bits_per_symbol() * NANOS_PER_SECOND / symbol.0)
    }

    /// How long a frame with `size` bytes of MAC takes (sections 19.4.3 and
    /// 21.4.3): whole symbols, and with short symbols whole multiples of 4 us.
    fn air_time(self, size: Bytes) -> Span {
        let Channel { generation, streams, short_guard, .. } = self.channel;
        let bits = size.0 * 8 + 16 + 6 * self.encoders();
        let symbols = bits.div_ceil(self.bits_per_symbol());
        let symbols =
            if short_guard { (SHORT_SYMBOL * symbols).0.div_ceil(SYMBOL.0) } else { symbols };
        generation.preamble(streams) + SYMBOL * symbols
    }

    /// The OFDM rate of replies: the highest basic rate that is not above the one
    /// that stands for this scheme (section 10.7.6.5.2).
    fn reply(self) -> DataRate {
        let (.., reference) = SCHEMES[usize::from(self.index)];
        reference.of_acknowledgement()
    }

    /// How long the acknowledgement of one frame, or of several at once, takes.
    #[must_use]
    pub fn acknowledgement_time(self, frames: u32) -> Span {
        let size = if frames == 1 { phy::ACK } else { COMPRESSED_BLOCK_ACK };
        self.reply().air_time(size)
    }
}

impl fmt::Display for Mcs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MCS {}, ", self.index)?;
        // As in the tables: tenths of a Mbit/s.
        let tenths = (self.rate().0 + 50_000) / 100_000;
        write!(f, "{}", tenths / 10)?;
        if !tenths.is_multiple_of(10) {
            write!(f, ".{}", tenths % 10)?;
        }
        f.write_str(" Mbit/s")
    }
}

/// The length of an aggregate while it is put together.
#[derive(Clone, Copy, Debug)]
pub struct Length {
    mcs: Mcs,
    most: u32,
    frames: u32,
    /// Up to the end of the last frame, including delimiters but not its padding.
    bytes: Bytes,
}

impl Length {
    /// An empty aggregate; up to `most` frames will go in.
    #[must_use]
    pub fn new(mcs: Mcs, most: u32) -> Length {
        Length { mcs, most, frames: 0, bytes: Bytes::ZERO }
    }

    /// Adds a frame with an IP packet of `size`, if it fits: by number, length
    /// and time. The first one always does.
    pub fn add(&mut self, size: Bytes) -> bool {
        let begin = Bytes(self.bytes.0.next_multiple_of(ALIGNMENT));
        let longer = Length {
            frames: self.frames + 1,
            bytes: begin + DELIMITER + size + DATA_OVERHEAD,
            ..*self
        };
        let fits = longer.frames <= self.most
            && longer.bytes <= self.mcs.channel.generation.largest()
            && longer.air_time() <= LONGEST;
        if fits || self.frames == 0 {
            *self = longer;
        }
        fits || self.frames == 0
    }

    /// Frames so far.
    #[must_use]
    pub fn frames(&self) -> u32 {
        self.frames
    }

    /// Whether nothing more fits, however small.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.frames == self.most || !Length::add(&mut { *self }, Bytes(1))
    }

    /// How long it takes. In HT, a single frame is sent without a delimiter; VHT
    /// always has one, and fills the last word up.
    #[must_use]
    pub fn air_time(&self) -> Span {
        let bytes = match self.mcs.channel.generation {
            Generation::Ht if self.frames == 1 => self.bytes - DELIMITER,
            Generation::Ht => self.bytes,
            Generation::Vht => Bytes(self.bytes.0.next_multiple_of(ALIGNMENT)),
        };
        self.mcs.air_time(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(generation: Generation, width: u8, streams: u8, short_guard: bool) -> Channel {
        Channel { generation, width, streams, short_guard }
    }

    /// In tenths of a Mbit/s, as the tables round.
    fn rates(channel: Channel) -> Vec<Option<u64>> {
        let tenths = |mcs: Mcs| (mcs.rate().0 + 50_000) / 100_000;
        (0..=channel.generation.highest()).map(|index| channel.mcs(index).map(tenths)).collect()
    }

    #[test]
    fn rates_are_those_of_the_tables() {
        use Generation::{Ht, Vht};
        let all = |rates: &[u64]| rates.iter().map(|rate| Some(*rate)).collect::<Vec<_>>();
        // IEEE 802.11-2016 Tables 19-27, 19-31 and 19-34.
        let ht = [65, 130, 195, 260, 390, 520, 585, 650];
        assert_eq!(rates(channel(Ht, 20, 1, false)), all(&ht));
        let ht = [150, 300, 450, 600, 900, 1_200, 1_350, 1_500];
        assert_eq!(rates(channel(Ht, 40, 1, true)), all(&ht));
        let ht = [540, 1_080, 1_620, 2_160, 3_240, 4_320, 4_860, 5_400];
        assert_eq!(rates(channel(Ht, 40, 4, false)), all(&ht));
        // Tables 21-30, 21-46, 21-47 and 21-48; then 21-56 and 21-32.
        let mut vht = all(&[65, 130, 195, 260, 390, 520, 585, 650, 780, 0]);
        vht[9] = None;
        assert_eq!(rates(channel(Vht, 20, 1, false)), vht);
        let vht = [293, 585, 878, 1_170, 1_755, 2_340, 2_633, 2_925, 3_510, 3_900];
        assert_eq!(rates(channel(Vht, 80, 1, false)), all(&vht));
        let vht = [650, 1_300, 1_950, 2_600, 3_900, 5_200, 5_850, 6_500, 7_800, 8_667];
        assert_eq!(rates(channel(Vht, 80, 2, true)), all(&vht));
        let mut vht = all(&[878, 1_755, 2_633, 3_510, 5_265, 7_020, 0, 8_775, 10_530, 11_700]);
        vht[6] = None;
        assert_eq!(rates(channel(Vht, 80, 3, false)), vht);
        assert_eq!(channel(Vht, 160, 3, false).mcs(9), None);
        assert_eq!(channel(Vht, 20, 3, false).mcs(9).map(|mcs| mcs.rate().0), Some(260_000_000));
        assert_eq!(channel(Ht, 80, 1, false).mcs(0), None);
        assert_eq!(channel(Ht, 40, 1, false).mcs(8), None);
        assert_eq!(channel(Ht, 40, 2, true).highest().map(Mcs::index), Some(7));
    }

    #[test]
    fn frames_take_preamble_and_whole_symbols() {
        let micros = |channel: Channel, index, packets: &[u64]| {
            let mut length = Length::new(channel.mcs(index).expect("there is one"), 64);
            packets.iter().for_each(|size| assert!(length.add(Bytes(*size))));
            length.air_time().0 / 1_000
        };
        let ht = channel(Generation::Ht, 20, 1, false);
        // 1 538 bytes are 12 326 bits: 48 symbols of 260 (47.4).
        assert_eq!(micros(ht, 7, &[1_500]), 36 + 48 * 4);
        // Two: 4 + 1 538, filled up to 1 544, and 1 542: 3 086 bytes, 24 710 bits.
        assert_eq!(micros(ht, 7, &[1_500, 1_500]), 36 + 96 * 4);
        // 24 710 bits of 289 a 4 us: 96 short symbols of 260, which take 345.6 us.
        let short = channel(Generation::Ht, 20, 1, true);
        assert_eq!(micros(short, 7, &[1_500, 1_500]), 36 + 348);
        // 1 542 and 2 to fill: 12 374 bits, 8 symbols of 1 560 (7.9).
        let vht = channel(Generation::Vht, 80, 1, false);
        assert_eq!(micros(vht, 9, &[1_500]), 40 + 8 * 4);
        // Two streams, two encoders: 1 544 bytes, 12 380 bits, 4 symbols of 3 120.
        let vht = channel(Generation::Vht, 80, 2, false);
        assert_eq!(micros(vht, 9, &[1_500]), 44 + 4 * 4);
        // Three streams train as four.
        let vht = channel(Generation::Vht, 80, 3, false);
        assert_eq!(micros(vht, 9, &[40]), 52 + 4);
    }

    #[test]
    fn an_aggregate_ends_at_its_number_its_bytes_or_its_time() {
        let fill = |channel: Channel, index, most| {
            let mut length = Length::new(channel.mcs(index).expect("there is one"), most);
            while length.add(Bytes(1_500)) {}
            length.frames()
        };
        let ht = channel(Generation::Ht, 40, 2, false);
        // 42 frames of 1 544 bytes are 64 848.
        assert_eq!(fill(ht, 7, 64), 42);
        assert_eq!(fill(ht, 7, 10), 10);
        // 5 484 - 36 us at 6.5 Mbit/s are 35 412 bits: 4 426 bytes, two frames.
        assert_eq!(fill(channel(Generation::Ht, 20, 1, false), 0, 64), 2);
        // 5 484 - 40 us at 390 Mbit/s are 265 kB; at 29.25 they are 12 whole frames.
        assert_eq!(fill(channel(Generation::Vht, 80, 1, false), 9, 64), 64);
        assert_eq!(fill(channel(Generation::Vht, 80, 1, false), 0, 64), 12);
    }

    #[test]
    fn replies_are_sent_by_ofdm_at_a_basic_rate() {
        let ht = channel(Generation::Ht, 20, 1, false);
        let micros = |index, frames| {
            ht.mcs(index).expect("there is one").acknowledgement_time(frames).0 / 1_000
        };
        // 278 bits: 12 symbols of 24, 6 of 48, 3 of 96.
        assert_eq!([0, 1, 2, 3, 7].map(|index| micros(index, 2)), [68, 44, 44, 32, 32]);
        assert_eq!([0, 1, 2, 3, 7].map(|index| micros(index, 1)), [44, 32, 32, 28, 28]);
    }
}
