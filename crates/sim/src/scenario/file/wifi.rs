//! The radio settings of a `[wifi]` cell: the standard, the channel and the
//! rates, checked against each other.

use std::ops::Range;

use tidegate_core::{Rate, Span};

use super::syntax::{Standard, Wifi};
use super::values::WifiRate;
use crate::wlan::Modulation;
use crate::wlan::aggregation::{Aggregation, WINDOW};
use crate::wlan::high_throughput::{Channel, Generation, Mcs};
use crate::wlan::phy::DataRate;
use tidegate_files::Mistake;

/// The packets that a sender keeps for forming aggregates, for all its
/// receivers together: one aggregate. This is our choice; real devices keep one
/// in the air and one or more ready, and those before mac80211's queues kept
/// hundreds of packets.
const STAGING: u32 = WINDOW;

/// The radio settings of a cell.
pub(super) struct Sending {
    /// At least one; stations take them in turn.
    pub(super) modulations: Vec<Modulation>,
    pub(super) aggregation: Option<Aggregation>,
}

impl Wifi {
    /// The settings that the whole cell shares.
    pub(super) fn sending(&self) -> Result<Sending, Mistake> {
        if let Some(rates) = self.rates.as_ref().filter(|rates| rates.is_empty()) {
            let expected = "at least one data rate";
            return Err(Mistake::at(&rates.place, "an empty list", expected));
        }
        let generation = match self.standard {
            None | Some(Standard::A) => return self.without_aggregates(),
            Some(Standard::N) => Generation::Ht,
            Some(Standard::Ac) => Generation::Vht,
        };
        let channel = self.channel(generation)?;
        let modulations = match &self.rates {
            None => {
                let highest = channel.highest().expect("every channel has its MCS 0");
                vec![Modulation::Aggregated(highest)]
            }
            Some(rates) => {
                let read = rates.iter().map(|rate| {
                    let mcs = mcs(channel, rate.value.0).ok_or_else(|| {
                        let known = (0..10).filter_map(|index| channel.mcs(index));
                        let known: Vec<_> = known.map(|mcs| mcs.to_string()).collect();
                        let expected = format!("a rate of this channel: {}", known.join("; "));
                        Mistake::at(&rate.place, format!("'{}'", rate.value.0), expected)
                    });
                    mcs.map(Modulation::Aggregated)
                });
                read.collect::<Result<_, _>>()?
            }
        };
        let aggregation = Aggregation {
            frames: self.aggregate.as_ref().map_or(WINDOW, |most| most.value.0),
            staging: self.staging.as_ref().map_or(STAGING, |most| most.value.0),
        };
        Ok(Sending { modulations, aggregation: Some(aggregation) })
    }

    fn without_aggregates(&self) -> Result<Sending, Mistake> {
        fn place<T>(at: Option<&super::values::At<T>>) -> Option<&Range<usize>> {
            at.map(|at| &at.place)
        }
        for (name, place) in [
            ("width", place(self.width.as_ref())),
            ("streams", place(self.streams.as_ref())),
            ("guard_interval", place(self.guard_interval.as_ref())),
            ("aggregate", place(self.aggregate.as_ref())),
            ("staging", place(self.staging.as_ref())),
        ] {
            if let Some(place) = place {
                let found = format!("'{name}' with 802.11a");
                let expected = "it with standard = '802.11n' or '802.11ac' only";
                return Err(Mistake::at(place, found, expected));
            }
        }
        let modulations = match &self.rates {
            None => vec![Modulation::Ofdm(DataRate::FASTEST)],
            Some(rates) => {
                let read = rates.iter().map(|rate| {
                    let known = match rate.value.0 {
                        WifiRate::Rate(rate) => DataRate::new(rate),
                        WifiRate::Mcs(_) => None,
                    };
                    known.map(Modulation::Ofdm).ok_or_else(|| {
                        let expected =
                            "a data rate of 802.11a: '6 Mbit/s', 9, 12, 18, 24, 36, 48 or 54";
                        Mistake::at(&rate.place, format!("'{}'", rate.value.0), expected)
                    })
                });
                read.collect::<Result<_, _>>()?
            }
        };
        Ok(Sending { modulations, aggregation: None })
    }

    fn channel(&self, generation: Generation) -> Result<Channel, Mistake> {
        let (widths, usual) = match generation {
            Generation::Ht => (&[20, 40][..], 20),
            // Every VHT station has 80 MHz (IEEE 802.11-2016 section 21.1.1).
            Generation::Vht => (&[20, 40, 80, 160][..], 80),
        };
        let width = match &self.width {
            None => usual,
            Some(width) if widths.contains(&width.value.0.0) => width.value.0.0,
            Some(width) => {
                let found = format!("'{}'", width.value.0);
                return Err(Mistake::at(&width.place, found, "'20 MHz' or '40 MHz' with 802.11n"));
            }
        };
        let short_guard = match &self.guard_interval {
            None => false,
            Some(guard) if [Span(400), Span(800)].contains(&guard.value.0) => {
                guard.value.0 == Span(400)
            }
            Some(guard) => {
                let found = format!("'{}'", guard.value.0);
                return Err(Mistake::at(&guard.place, found, "'800 ns' or '400 ns'"));
            }
        };
        let streams = self.streams.as_ref().map_or(1, |streams| streams.value.0 as u8);
        Ok(Channel { generation, width, streams, short_guard })
    }
}

/// A scheme by its number, or by its rate as in the tables: to a tenth of a Mbit/s.
fn mcs(channel: Channel, written: WifiRate) -> Option<Mcs> {
    let tenths = |rate: Rate| (rate.0 + 50_000) / 100_000;
    match written {
        WifiRate::Mcs(index) => channel.mcs(index),
        WifiRate::Rate(rate) => {
            let mut known = (0..10).filter_map(|index| channel.mcs(index));
            known.find(|mcs| tenths(mcs.rate()) == tenths(rate))
        }
    }
}
