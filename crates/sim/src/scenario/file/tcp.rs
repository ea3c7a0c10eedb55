//! TCP settings: a profile, and what is different from it.

use std::ops::Range;

use tidegate_core::{Bytes, Span};

use super::syntax::{Departure, Ending, Tcp};
use super::values::Quantity;
use crate::tcp::congestion::SlowStart;
use crate::tcp::{DelayedAck, Ns3, TcpConfig};
use tidegate_files::Mistake;

/// The smallest segments that any host has to take (`RFC 879`: 576 less two
/// headers is the usual least, modems went lower), and what fits an IP packet.
const MSS: Range<u64> = 64..65_496;
/// The most that the window scale option can express (`RFC 7323 section 2.3`).
const MOST_WINDOW: Bytes = Bytes(1 << 30);
/// A delayed acknowledgement must not wait longer (`RFC 9293 section 3.8.6.3`).
const MOST_ACK_DELAY: Span = Span::millis(500);
/// When only the other half of the setting is given.
const DELAYED_ACK: DelayedAck = DelayedAck { segments: 2, timeout: Span::millis(200) };

impl Tcp {
    /// These settings on top of `surrounding`, or of the profile that is named.
    pub(super) fn over(&self, surrounding: &TcpConfig) -> Result<TcpConfig, Mistake> {
        let mut config = match self.profile {
            None => surrounding.clone(),
            Some(profile) => TcpConfig::profile(profile.0).expect("every listed profile exists"),
        };
        if let Some(mss) = &self.mss {
            let size = within(mss, Bytes(MSS.start), Bytes(MSS.end - 1))?;
            config.mss = u32::try_from(size.0).expect("it is within the range of an IP packet");
        }
        if let Some(window) = &self.receive_window {
            config.receive_window = within(window, Bytes(u64::from(config.mss)), MOST_WINDOW)?;
        }
        set(&mut config.initial_window, self.initial_window.map(|count| count.0));
        set(&mut config.slow_start_limit, self.slow_start_limit.map(|count| count.0));
        config.slow_start = self.slow_start.map(SlowStart::from).or(config.slow_start);
        set(&mut config.lost_syns, self.lost_syns.map(|count| count.0));
        set(&mut config.rttvar_per_round, self.rttvar_per_round);
        set(&mut config.timer_tick, self.timer_tick.map(|span| span.0));
        set(&mut config.quick_acks, self.quick_acks);
        set(&mut config.undo, self.undo);
        set(&mut config.separate_fin, self.separate_fin);
        set(&mut config.syn_retries, self.syn_retries.map(|count| count.0));
        set(&mut config.linear_syn_timeouts, self.linear_syn_timeouts.map(|count| count.0));
        set(&mut config.data_retries, self.data_retries.map(|count| count.0));
        set(&mut config.clock_granularity, self.clock_granularity.map(|span| span.0));
        set(&mut config.mss_option, self.mss_option);
        set(&mut config.ack_first_segment, self.ack_first_segment);
        set(&mut config.limited_transmit, self.limited_transmit);
        set(&mut config.time_resent_syn, self.time_resent_syn);
        set(&mut config.any_ack_ends_backoff, self.any_ack_ends_backoff);
        set(
            &mut config.ns3,
            self.ns3.as_ref().map(|departures| Ns3 {
                recovery_window: departures.contains(&Departure::RecoveryWindow),
                recovery_point: departures.contains(&Departure::RecoveryPoint),
                repair_end: departures.contains(&Departure::RepairEnd),
            }),
        );
        set(&mut config.sack, self.sack);
        set(&mut config.ecn, self.ecn);
        set(&mut config.timestamps_option, self.timestamps_option);
        config.initial_ssthresh =
            self.initial_ssthresh.map(|size| size.0).or(config.initial_ssthresh);
        set(&mut config.pacing, self.pacing);
        if let Some(congestion) = self.congestion {
            config.congestion = congestion.0;
            config.mix.clear();
        }
        if let Some(mix) = &self.mix {
            if self.congestion.is_some() {
                let expected = "either this or `congestion`";
                return Err(Mistake::at(&mix.place, "a mix beside `congestion`", expected));
            }
            config.mix = mix.value.iter().map(|(name, share)| (name.0, share.0)).collect();
        }
        self.timeouts(&mut config)?;
        self.acknowledgements(&mut config)?;
        // Without SACK there is nothing for RACK to look at: turning SACK off in a
        // profile that has both turns off both.
        match &self.rack_tlp {
            Some(rack) if rack.value && !config.sack => {
                return Err(Mistake::at(&rack.place, "true without SACK", "sack = true beside it"));
            }
            rack => {
                let asked = rack.as_ref().map_or(config.rack_tlp, |at| at.value);
                config.rack_tlp = asked && config.sack;
            }
        }
        Ok(config)
    }

    fn timeouts(&self, config: &mut TcpConfig) -> Result<(), Mistake> {
        let least = Span::millis(1);
        let day = Span::seconds(86_400);
        if let Some(max_rto) = &self.max_rto {
            config.max_rto = within(max_rto, least, day)?;
        }
        if let Some(min_rto) = &self.min_rto {
            config.min_rto = within(min_rto, least, config.max_rto)?;
        }
        if let Some(initial_rto) = &self.initial_rto {
            config.initial_rto = within(initial_rto, least, config.max_rto)?;
        }
        Ok(())
    }

    fn acknowledgements(&self, config: &mut TcpConfig) -> Result<(), Mistake> {
        let mut delayed = config.delayed_ack.unwrap_or(DELAYED_ACK);
        if let Some(timeout) = &self.delayed_ack_timeout {
            delayed.timeout = within(timeout, Span::millis(1), MOST_ACK_DELAY)?;
            config.delayed_ack = Some(delayed);
        }
        match self.delayed_ack_segments {
            Some(count) if count.0 == 1 => config.delayed_ack = None,
            Some(count) => {
                config.delayed_ack = Some(DelayedAck { segments: count.0, ..delayed });
            }
            None => {}
        }
        Ok(())
    }
}

impl From<Ending> for SlowStart {
    fn from(ending: Ending) -> SlowStart {
        match ending {
            Ending::Classic => SlowStart::Classic,
            Ending::HyStart => SlowStart::HyStart,
            Ending::HyStartPlusPlus => SlowStart::HyStartPlusPlus,
        }
    }
}

fn set<T>(setting: &mut T, written: Option<T>) {
    if let Some(value) = written {
        *setting = value;
    }
}

/// The quantity, when it is from `least` to `most`.
pub(super) fn within<T: PartialOrd + Copy + std::fmt::Display>(
    written: &Quantity<T>,
    least: T,
    most: T,
) -> Result<T, Mistake> {
    let value = written.value.0;
    if value < least || value > most {
        let expected = format!("from '{least}' to '{most}'");
        return Err(Mistake::at(&written.place, format!("'{value}'"), expected));
    }
    Ok(value)
}
