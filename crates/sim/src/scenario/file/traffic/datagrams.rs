//! Sources that send datagrams: streams of one size, and recorded packets.

use std::net::IpAddr;
use std::sync::Arc;

use tidegate_core::Bytes;

use super::super::data::load;
use super::super::error::Mistake;
use super::super::syntax::{CbrSource, PacketSource};
use super::super::tcp::within;
use super::{MOST_DATAGRAM, Reader};
use crate::scenario::{TrafficKind, TrafficSpec};
use crate::trace::capture::Capture;
use crate::trace::hosts::Hosts;

/// IPv4 and UDP headers, without which there is no datagram.
const LEAST_DATAGRAM: Bytes = Bytes(28);

impl Reader<'_> {
    pub(super) fn cbr(&self, source: &CbrSource) -> Result<TrafficSpec, Mistake> {
        let (from, to) = (self.single(&source.from)?, self.single(&source.to)?);
        self.check_ways(&[from], &source.to, &[to], false)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let packet = within(&source.packet, LEAST_DATAGRAM, MOST_DATAGRAM)?;
        let rate = source.rate.0;
        let per_second = rate.0 as f64 / (8.0 * packet.0 as f64);
        self.check_arrivals(per_second, &source.packet.place)?;
        let kind = TrafficKind::Cbr { from, to, rate, packet };
        let (name, class) = (source.name.value.clone(), source.class);
        Ok(TrafficSpec { name, start, stop, class, kind })
    }

    pub(super) fn packets(&self, source: &PacketSource) -> Result<TrafficSpec, Mistake> {
        let (inside, outside) = (self.single(&source.inside)?, self.single(&source.outside)?);
        self.check_ways(&[inside], &source.outside, &[outside], true)?;
        let (start, stop) = self.times(source.start.as_ref(), source.stop.as_ref())?;
        let capture = load(self.data, &source.capture, "a pcap or pcapng file", |name, file| {
            Capture::stream(name, file)
        })?;
        let mut addresses = Vec::new();
        for address in &source.local {
            let parsed: Result<IpAddr, _> = address.parse();
            addresses.push(parsed.map_err(|_| {
                Mistake::at(&address.place, format!("'{}'", address.value), "an IP address")
            })?);
        }
        let hosts =
            if addresses.is_empty() { capture.local_hosts() } else { Hosts::new(addresses) };
        let place = source.local.first().map_or(&source.capture.place, |local| &local.place);
        if !capture.packets.iter().any(|packet| hosts.direction(packet.flow).is_some()) {
            let expected = "packets between the user's addresses (local = [...]) and others";
            return Err(Mistake::at(place, "no packet that crosses the link", expected));
        }
        let capture = Arc::new(capture);
        let kind = TrafficKind::Packets { inside, outside, capture, hosts };
        let (name, class) = (source.name.value.clone(), source.class);
        Ok(TrafficSpec { name, start, stop, class, kind })
    }
}
