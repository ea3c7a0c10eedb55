//! What a packet costs on the link behind: its size with what the link adds.
//!
//! A shaper is of use only while it is slower than the link, and so it has to count
//! as the link does: with the headers that the link adds to each packet, with the
//! padding of small ones, and in cells where it sends cells. The presets and their
//! figures are those of `tc-cake(8)`, which counts from the IP header as well.

use std::fmt;
use std::str::FromStr;

use crate::units::{Bytes, UnitError};

/// The size of packets on the link.
///
/// In text it is a preset, words of its own, or a preset and words that change it:
///
/// ```
/// use tidegate_core::{Bytes, framing::Framing};
///
/// let docsis: Framing = "docsis".parse()?;
/// assert_eq!(docsis.charge(Bytes(1_500)), Bytes(1_518));
/// assert_eq!(docsis.charge(Bytes(40)), Bytes(64));
/// // A VLAN tag is added to what stands before it.
/// assert_eq!("pppoe-ptm vlan".parse(), "overhead 34 ptm".parse::<Framing>());
/// let error = "dsl".parse::<Framing>().unwrap_err();
/// assert!(error.to_string().starts_with("'dsl' is not "));
/// # Ok::<(), tidegate_core::units::UnitError>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Framing {
    /// What is added to each IP packet.
    pub overhead: Bytes,
    /// The least that a packet takes, with that.
    pub least: Bytes,
    /// What then carries the bytes.
    pub carrier: Carrier,
}

/// How a link carries the bytes of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carrier {
    /// As they are.
    Bytes,
    /// In cells of 53 bytes for 48 of a packet, the last one padded: ADSL.
    Atm,
    /// With a byte for every 64 or part of them: VDSL, to be on the safe side of its
    /// 65 for 64.
    Ptm,
}

/// A link that is so common that it has a name.
#[derive(Debug)]
pub struct Preset {
    /// Its name.
    pub name: &'static str,
    /// The links that are so.
    pub help: &'static str,
    /// What they add.
    pub framing: Framing,
}

const fn preset(
    name: &'static str,
    help: &'static str,
    (overhead, least): (u64, u64),
    carrier: Carrier,
) -> Preset {
    let framing = Framing { overhead: Bytes(overhead), least: Bytes(least), carrier };
    Preset { name, help, framing }
}

/// All presets, in the order in which they are shown.
pub const PRESETS: &[Preset] = &[
    preset("raw", "IP packets and nothing else", (0, 0), Carrier::Bytes),
    preset("ethernet", "Ethernet and fibre, with preamble and gap", (38, 84), Carrier::Bytes),
    preset("docsis", "cable, as its provider counts", (18, 64), Carrier::Bytes),
    preset("bridged-ptm", "VDSL without PPPoE", (22, 0), Carrier::Ptm),
    preset("pppoe-ptm", "VDSL with PPPoE", (30, 0), Carrier::Ptm),
    preset("ipoa-vcmux", "ADSL with IP over ATM", (8, 0), Carrier::Atm),
    preset("ipoa-llcsnap", "the same with LLC", (16, 0), Carrier::Atm),
    preset("pppoa-vcmux", "ADSL with PPP over ATM", (10, 0), Carrier::Atm),
    preset("pppoa-llc", "the same with LLC", (14, 0), Carrier::Atm),
    preset("bridged-vcmux", "ADSL with bridged Ethernet", (24, 0), Carrier::Atm),
    preset("bridged-llcsnap", "the same with LLC", (32, 0), Carrier::Atm),
    preset("pppoe-vcmux", "ADSL with PPPoE", (32, 0), Carrier::Atm),
    preset("pppoe-llcsnap", "the same with LLC", (40, 0), Carrier::Atm),
    preset("conservative", "more than any ADSL adds", (48, 0), Carrier::Atm),
];

const EXPECTED: &str = "a link such as 'ethernet', 'docsis', 'pppoe-ptm' or 'raw', or words \
                        such as 'overhead 34 mpu 64 ptm'";
/// A tag of IEEE 802.1Q.
const VLAN: Bytes = Bytes(4);
/// More than any link adds.
const MOST: u64 = 256;

impl Framing {
    /// IP packets and nothing else.
    pub const RAW: Framing =
        Framing { overhead: Bytes::ZERO, least: Bytes::ZERO, carrier: Carrier::Bytes };

    /// What a packet of `size` takes of the link.
    #[must_use]
    pub fn charge(&self, size: Bytes) -> Bytes {
        let framed = (size + self.overhead).max(self.least);
        match self.carrier {
            Carrier::Bytes => framed,
            Carrier::Atm => Bytes(framed.0.div_ceil(48).saturating_mul(53)),
            Carrier::Ptm => framed + Bytes(framed.0.div_ceil(64)),
        }
    }
}

impl FromStr for Framing {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Framing, UnitError> {
        let wrong = || UnitError { found: text.into(), expected: EXPECTED };
        let mut framing = Framing::RAW;
        let mut words = text.split_whitespace().peekable();
        words.peek().ok_or_else(wrong)?;
        while let Some(word) = words.next() {
            let mut number = || {
                let number = words.next().and_then(|number| number.parse().ok());
                number.filter(|number| *number <= MOST).map(Bytes).ok_or_else(wrong)
            };
            match word {
                "overhead" => framing.overhead = number()?,
                "mpu" => framing.least = number()?,
                "vlan" => framing.overhead += VLAN,
                "atm" => framing.carrier = Carrier::Atm,
                "ptm" => framing.carrier = Carrier::Ptm,
                "noatm" => framing.carrier = Carrier::Bytes,
                name => {
                    let preset = PRESETS.iter().find(|preset| preset.name == name);
                    framing = preset.ok_or_else(wrong)?.framing;
                }
            }
        }
        Ok(framing)
    }
}

/// The name of the preset, or words that give the same again.
impl fmt::Display for Framing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(preset) = PRESETS.iter().find(|preset| preset.framing == *self) {
            return f.write_str(preset.name);
        }
        write!(f, "overhead {}", self.overhead.0)?;
        if self.least > Bytes::ZERO {
            write!(f, " mpu {}", self.least.0)?;
        }
        match self.carrier {
            Carrier::Bytes => Ok(()),
            Carrier::Atm => f.write_str(" atm"),
            Carrier::Ptm => f.write_str(" ptm"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_takes_its_headers_its_padding_and_its_cells() {
        let charges = |text: &str| {
            let framing: Framing = text.parse().unwrap();
            [0, 40, 1_500, u64::MAX].map(|size| framing.charge(Bytes(size)).0)
        };
        assert_eq!(charges("raw"), [0, 40, 1_500, u64::MAX]);
        assert_eq!(charges("docsis"), [64, 64, 1_518, u64::MAX]);
        // 1, 2 and 33 cells.
        assert_eq!(charges("pppoe-llcsnap"), [53, 106, 33 * 53, u64::MAX]);
        // 1, 2 and 24 more bytes.
        assert_eq!(charges("pppoe-ptm"), [31, 72, 1_554, u64::MAX]);
    }

    #[test]
    fn every_framing_is_read_as_it_is_written() {
        let own = ["overhead 34 ptm", "overhead 18 mpu 68", "overhead 1 atm", "docsis vlan"];
        for text in PRESETS.iter().map(|preset| preset.name).chain(own) {
            let framing: Framing = text.parse().unwrap();
            assert_eq!(framing.to_string().parse(), Ok(framing), "{text}");
        }
    }

    #[test]
    fn words_that_mean_nothing_are_refused() {
        for text in ["", " ", "dsl", "overhead", "overhead x", "mpu 257", "overhead -4", "38"] {
            let error = text.parse::<Framing>().unwrap_err();
            assert_eq!(error.found, text);
        }
    }
}
