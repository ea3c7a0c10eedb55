//! A Wi-Fi cell on the command line: a standard and a data rate, checked as they are read.

use std::str::FromStr;

use tidegate_core::Rate;
use tidegate_sim::wlan::high_throughput::{Channel, Generation};
use tidegate_sim::wlan::phy::DataRate;

/// How the stations of a home send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Wifi {
    /// As a scenario calls it.
    pub(crate) standard: &'static str,
    /// The data rate, as a scenario has it.
    pub(crate) rate: String,
    /// The same as a number.
    pub(crate) bits: Rate,
}

const EXPECTED: &str = "expected a standard and one of its data rates: '54 Mbit/s' (802.11a and g: \
    6, 9, 12, 18, 24, 36, 48, 54), '802.11n' or '802.11n MCS 4' (0 to 7), '802.11ac' or \
    '802.11ac MCS 4' (0 to 9)";

impl FromStr for Wifi {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Wifi, &'static str> {
        let text = text.trim();
        let (standard, rate) = match text.split_once(char::is_whitespace) {
            Some((standard, rate)) if standard.starts_with("802.11") => (standard, rate.trim()),
            None if text.starts_with("802.11") => (text, ""),
            _ if text.is_empty() => return Err(EXPECTED),
            _ => ("802.11a", text),
        };
        // The channels that a scenario of these standards has when it says no more.
        let channel =
            |generation, width| Channel { generation, width, streams: 1, short_guard: false };
        let aggregated = |standard, channel: Channel| {
            let mcs = match rate.strip_prefix("MCS ") {
                Some(index) => index.parse().ok().and_then(|index| channel.mcs(index)),
                None if rate.is_empty() => channel.highest(),
                None => None,
            };
            let mcs = mcs.ok_or(EXPECTED)?;
            Ok(Wifi { standard, rate: format!("MCS {}", mcs.index()), bits: mcs.rate() })
        };
        match standard {
            "802.11a" | "802.11g" => {
                let given = || DataRate::new(rate.parse().ok()?);
                let fastest = rate.is_empty().then_some(DataRate::FASTEST);
                let rate = fastest.or_else(given).ok_or(EXPECTED)?.rate();
                Ok(Wifi { standard: "802.11a", rate: rate.to_string(), bits: rate })
            }
            "802.11n" => aggregated("802.11n", channel(Generation::Ht, 20)),
            "802.11ac" => aggregated("802.11ac", channel(Generation::Vht, 80)),
            _ => Err(EXPECTED),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standard_and_a_rate_of_it_are_read_and_nothing_else() {
        let read = |text: &str| text.parse::<Wifi>().map(|it| (it.standard, it.rate, it.bits.0));
        for (text, standard, rate, bits) in [
            ("54 Mbit/s", "802.11a", "54 Mbit/s", 54_000_000),
            ("802.11g 6Mbps", "802.11a", "6 Mbit/s", 6_000_000),
            ("802.11a", "802.11a", "54 Mbit/s", 54_000_000),
            ("802.11n", "802.11n", "MCS 7", 65_000_000),
            ("802.11n MCS 3", "802.11n", "MCS 3", 26_000_000),
            ("802.11ac", "802.11ac", "MCS 9", 390_000_000),
        ] {
            assert_eq!(read(text), Ok((standard, rate.into(), bits)), "{text}");
        }
        for text in ["", "55 Mbit/s", "802.11b", "802.11n MCS 8", "802.11n 54 Mbit/s", "802.11ax"] {
            assert_eq!(read(text), Err(EXPECTED), "{text}");
        }
    }
}
