//! A home link from a few numbers: `tidegate compare --down RATE --up RATE`.
//!
//! Somebody whose calls stutter knows two rates, and no language of scenarios. The numbers
//! become a scenario in that language all the same, with the traffic of the built-in
//! household: a call, pages, a download and a backup, so that both directions are full.
//! `--print` writes it, to be changed and run as any other; a manifest keeps it.
//!
//! `--wifi` puts a cell behind that link: two hops in series, each of which may be the slower
//! one, as at home. Without the rates of a link, the cell is the bottleneck.

use tidegate_core::buffer::Limit;
use tidegate_core::{Rate, Span};

use crate::arguments::{LinkArguments, Preset, Wifi};
use crate::failure::Failure;
use crate::inputs::Input;

/// From a home to servers nearby, there and back on an empty link.
const RTT: Span = Span::millis(20);
/// What modems and routers hold where nobody has set anything. `Kreibich 2010` found
/// mostly 100 ms to more than 1 s; upwards more, since the link is slower.
const BUFFERS: [Span; 2] = [Span::millis(150), Span::millis(400)];
/// From hosts to the router, and from the provider to the nearest server.
const AROUND: Span = Span(LAN.0 + SERVER.0);
/// Of these, from hosts to the router.
const LAN: Span = Span::millis(1);
/// And from the provider to the nearest server.
const SERVER: Span = Span::millis(1);

/// What Linux's interfaces hold (`txqueuelen`), and access points with them.
const CELL: &str = "1000 packets";
/// Stations where nobody says: as many as there are people with something to do.
const STATIONS: u32 = 4;

/// A link of a home, and what is in front of it.
struct Home {
    /// The way to the provider; `None` where the Wi-Fi is the bottleneck.
    access: Option<Access>,
    rtt: Span,
    cell: Option<Cell>,
}

/// The way to the provider.
struct Access {
    /// Down and up.
    rates: [Rate; 2],
    /// Down and up.
    buffers: [Limit; 2],
}

/// The way to the access point.
struct Cell {
    wifi: Wifi,
    stations: u32,
    /// Of the access point, and of each station.
    buffer: String,
}

impl Preset {
    /// What a link of this kind is like where nobody says more. Rates are plausible
    /// tariffs; delays and buffers are what decides, and are of the kind of link.
    fn access(self) -> (Access, Span) {
        let link = |down: u64, up: u64, rtt, buffers: [u64; 2]| {
            let rates = [Rate(down * 1_000_000), Rate(up * 1_000_000)];
            let buffers = buffers.map(|it| Limit::Time(Span::millis(it)));
            (Access { rates, buffers }, Span::millis(rtt))
        };
        match self {
            // Interleaving costs some milliseconds each way; the uplink is slow and its
            // buffer counted in packets.
            Preset::Dsl => link(16, 1, 30, [150, 800]),
            // DOCSIS 3 with its buffer control, 250 ms.
            Preset::Cable => link(100, 10, 20, [100, 250]),
            Preset::Fibre => link(300, 100, 10, [50, 100]),
            // A steady rate, which a mobile link never has: scenario 'cellular' varies.
            Preset::Lte => link(30, 10, 50, [300, 500]),
            // To the geostationary orbit and back.
            Preset::Satellite => link(25, 3, 560, [500, 1_000]),
        }
    }
}

/// The scenario that `arguments` describe; `None` if they say nothing of a link.
pub(crate) fn input(arguments: &LinkArguments) -> Result<Option<Input>, Failure> {
    let Some(home) = home(arguments)? else { return Ok(None) };
    Ok(Some(Input::of_text("the link of the command line", "home", home.scenario())))
}

fn home(arguments: &LinkArguments) -> Result<Option<Home>, Failure> {
    let LinkArguments { down, up, rtt, buffer, preset, wifi, stations, .. } = arguments;
    let (mut access, usual) = match (preset, down, up) {
        (Some(preset), _, _) => {
            let (access, rtt) = preset.access();
            (Some(access), rtt)
        }
        (None, Some(down), Some(up)) => {
            (Some(Access { rates: [*down, *up], buffers: BUFFERS.map(Limit::Time) }), RTT)
        }
        (None, None, None) if wifi.is_some() => (None, RTT),
        (None, None, None) => return Ok(None),
        (None, down, _) => {
            let (one, other) = if down.is_some() { ("down", "up") } else { ("up", "down") };
            return Err(Failure::Input(format!(
                "found --{one} alone, expected --{other} too: the rate the other way decides as \
                 much"
            )));
        }
    };
    let alone = access.is_none();
    if let Some(access) = &mut access {
        for (rate, given) in access.rates.iter_mut().zip([down, up]) {
            *rate = given.unwrap_or(*rate);
        }
        if let Some(buffer) = buffer {
            access.buffers = [*buffer; 2];
        }
    }
    let held = buffer.filter(|_| alone).map_or(CELL.into(), |it| format!("{it:#}"));
    let cell = wifi.clone().map(|wifi| Cell {
        wifi,
        stations: stations.unwrap_or(STATIONS),
        buffer: held,
    });
    Ok(Some(Home { access, rtt: rtt.unwrap_or(usual), cell }))
}

impl Home {
    /// The scenario as a file.
    fn scenario(&self) -> String {
        let [call, packet, what] = self.call();
        let where_ = match (&self.access, &self.cell) {
            (None, Some(cell)) => format!("on {}", cell.name()),
            (Some(Access { rates: [down, up], .. }), None) => format!("{down} down and {up} up"),
            (Some(Access { rates: [down, up], .. }), Some(cell)) => {
                format!("{down} down and {up} up, behind {}", cell.name())
            }
            (None, None) => unreachable!("a home without a link is none"),
        };
        // A quarter of the link, up to what four people can read.
        let pages = Rate((self.rates()[0].0 / 4).min(8_000_000));
        let (duration, stop) = self.duration();
        // The home's own: by the names that the network gives them.
        let (group, host) = match self.cell {
            Some(_) => ("stations", "station"),
            None => ("hosts", "host"),
        };
        // With fewer stations than people, some have two things to do.
        let count = self.cell.as_ref().map_or(STATIONS, |cell| cell.stations);
        let [caller, gamer, archivist] = [1, 3, 4].map(|it| format!("{host}{}", count.min(it)));
        let network = self.network();
        format!(
            "# A home, {where_}.
# 'tidegate compare' makes it of these numbers: somebody is in a call, others read the
# Web, a game is being downloaded, and a computer sends its backup. Both directions are
# full all the time.

title = \"Home, {where_}\"
description = \"\"\"
{what}, Web browsing, a download and a backup share a home link. The download and the \\
backup take whatever is left.\"\"\"

duration = \"{duration:#}\"
warm_up = \"5 s\"
seeds = 6
disciplines = [\"fifo\", \"fq-codel\", \"cake\", \"pie\", \"efd\", \"lars\"]

{network}
# Recorded page loads over HTTP/2; each of a page's hosts has CUBIC or BBR.
[[traffic.pages]]
name = \"web\"
from = \"servers\"
to = \"{group}\"
load = \"{pages:#}\"
stop = \"{stop:#}\"
recorded = [\"builtin:data/pages.har\"]
tcp = {{ profile = \"mix\" }}

[[traffic.cbr]]
name = \"call, down\"
from = \"server1\"
to = \"{caller}\"
rate = \"{call}\"
packet = \"{packet}\"

[[traffic.cbr]]
name = \"call, up\"
from = \"{caller}\"
to = \"server1\"
rate = \"{call}\"
packet = \"{packet}\"

[[traffic.transfers]]
name = \"download\"
from = \"server2\"
to = \"{gamer}\"
count = 1
sizes = \"endless\"
request = \"400 B\"
follow = true

[[traffic.transfers]]
name = \"backup\"
from = \"{archivist}\"
to = \"server3\"
count = 1
sizes = \"endless\"
follow = true
"
        )
    }

    /// Its tables of nodes and links.
    fn network(&self) -> String {
        let half = self.rtt.0 / 2;
        let Some(cell) = &self.cell else {
            let Some(Access { rates: [down, up], buffers: [down_buffer, up_buffer] }) =
                &self.access
            else {
                return String::new();
            };
            let delay = Span(half.saturating_sub(AROUND.0));
            return format!(
                "[access]
hosts = 4
down = \"{down:#}\"
up = \"{up:#}\"
delay = \"{delay:#}\"
down_buffer = \"{down_buffer:#}\"
up_buffer = \"{up_buffer:#}\"
servers = [\"1 ms\", \"11 ms\", \"41 ms\"]
"
            );
        };
        // No cable lies between the stations and the router.
        let delay = Span(half.saturating_sub(SERVER.0));
        let link = match &self.access {
            None => format!("delay = \"{delay:#}\"\n"),
            Some(Access { rates: [down, up], buffers: [down_buffer, up_buffer] }) => format!(
                "name = \"down\"
rate = \"{down:#}\"
delay = \"{delay:#}\"
queue = \"tested\"
buffer = \"{down_buffer:#}\"
back = {{ name = \"up\", rate = \"{up:#}\", queue = \"tested\", buffer = \"{up_buffer:#}\" }}
"
            ),
        };
        let Cell { wifi: Wifi { standard, rate, .. }, stations, buffer } = cell;
        let servers: String = [1, 11, 41]
            .iter()
            .zip(1..)
            .map(|(delay, number)| {
                format!(
                    "\n[[link]]\nfrom = \"isp\"\nto = \"server{number}\"\ndelay = \"{delay} ms\"\n"
                )
            })
            .collect();
        format!(
            "# The cell has a computer on the wire, which is idle.
[wifi]
stations = {stations}
standard = \"{standard}\"
rates = [\"{rate}\"]
buffer = \"{buffer}\"
station_buffer = \"{buffer}\"
hosts = 1

[groups]
servers = [\"server1\", \"server2\", \"server3\"]

[[link]]
from = \"isp\"
to = \"router\"
{link}{servers}"
        )
    }

    /// What the slowest hop carries, down and up: of a cell half of its data rate, for
    /// both directions together, since headers, acknowledgements and waiting take the rest.
    fn rates(&self) -> [Rate; 2] {
        let [mut down, mut up] = self.access.as_ref().map_or([Rate(u64::MAX); 2], |it| it.rates);
        if let Some(cell) = &self.cell {
            let each = Rate(cell.wifi.bits.0 / 4);
            (down, up) = (down.min(each), up.min(each));
        }
        [down, up]
    }

    /// The rate and packets of the call, and what it is: video where it takes less than
    /// half of either direction, otherwise a voice with G.711 every 20 ms.
    fn call(&self) -> [&'static str; 3] {
        const VIDEO: Rate = Rate(1_500_000);
        if self.rates().iter().all(|rate| rate.0 > 2 * VIDEO.0) {
            ["1.5 Mbit/s", "1100 B", "A video call"]
        } else {
            ["80 kbit/s", "200 B", "A telephone call"]
        }
    }

    /// The duration of a run, and when the last page begins. Fast links need less time to
    /// show as much, and more time to simulate.
    fn duration(&self) -> (Span, Span) {
        let [down, up] = self.rates();
        let seconds = match down.0 + up.0 {
            0..=200_000_000 => 60,
            200_000_001..=600_000_000 => 30,
            _ => 15,
        };
        // Where a round trip takes half a second, pages take their time too.
        let longest = 3 * seconds / 4;
        (Span::seconds(seconds), Span::seconds(longest))
    }
}

impl Cell {
    /// For a title.
    fn name(&self) -> String {
        let Cell { wifi: Wifi { standard, rate, .. }, stations, .. } = self;
        let noun = if *stations == 1 { "station" } else { "stations" };
        format!("Wi-Fi, {standard} at {rate}, {stations} {noun}")
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::{QueueSpec, file};

    use super::*;

    fn scenario(arguments: &LinkArguments) -> tidegate_sim::scenario::Scenario {
        let input = input(arguments).unwrap().unwrap();
        input.read(|data| file::parse(&input.name, &input.text, data)).unwrap().0
    }

    fn rates(down: u64, up: u64) -> LinkArguments {
        LinkArguments { down: Some(Rate(down)), up: Some(Rate(up)), ..LinkArguments::default() }
    }

    #[test]
    fn every_preset_and_any_rates_are_scenarios() {
        for preset in [Preset::Dsl, Preset::Cable, Preset::Fibre, Preset::Lte, Preset::Satellite] {
            scenario(&LinkArguments { preset: Some(preset), ..LinkArguments::default() });
        }
        for (down, up) in [(64_000, 16_000), (1_000_001, 999_999), (10_000_000_000, 1)] {
            scenario(&rates(down, up));
        }
    }

    #[test]
    fn what_is_given_is_in_the_scenario() {
        let given = LinkArguments {
            rtt: Some(Span::millis(100)),
            buffer: Some("50 ms".parse().unwrap()),
            preset: Some(Preset::Cable),
            ..rates(50_000_000, 5_000_000)
        };
        let scenario = scenario(&given);
        let links: Vec<_> =
            scenario.links.iter().filter(|it| ["down", "up"].contains(&&*it.name)).collect();
        assert_eq!(links.len(), 2);
        for (link, rate) in links.iter().zip([50_000_000, 5_000_000]) {
            assert_eq!(link.capacity.rate(), Some(Rate(rate)));
            // Half the round trip, less the way in the home and to the nearest server.
            assert_eq!(link.delay, Span::millis(48));
        }
        assert!(format!("{:?}", links[1].queue).contains("31250"), "{:?}", links[1].queue);
    }

    #[test]
    fn a_cell_is_behind_the_link_or_the_bottleneck_itself() {
        let wifi = |text: &str, link: LinkArguments| LinkArguments {
            wifi: Some(text.parse().unwrap()),
            ..link
        };
        let tested = |arguments: &LinkArguments| -> Vec<String> {
            let links = scenario(arguments).links.into_iter();
            let tested = links.filter(|it| matches!(it.queue, QueueSpec::Tested(_)));
            tested.map(|it| format!("{} {:?}", it.name, it.capacity.rate())).collect()
        };
        let behind = wifi("802.11n MCS 3", rates(50_000_000, 5_000_000));
        let names = tested(&behind);
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(names[0].starts_with("downlink "), "{names:?}");
        assert_eq!(names[1..], ["down Some(Rate(50000000))", "up Some(Rate(5000000))"]);
        for stations in [1, 2, 5, 200] {
            let stations = Some(stations);
            let alone = LinkArguments { stations, ..wifi("54 Mbit/s", LinkArguments::default()) };
            assert_eq!(tested(&alone).len(), 1);
            assert!(scenario(&alone).title.contains("802.11a at 54 Mbit/s"));
        }
        let slow = wifi("6 Mbit/s", LinkArguments::default());
        assert!(scenario(&slow).description.starts_with("A telephone call"));
        let held = LinkArguments { buffer: Some("50 packets".parse().unwrap()), ..slow };
        let downlink = scenario(&held).links.into_iter().find(|it| it.name == "downlink").unwrap();
        assert!(format!("{:?}", downlink.queue).contains("50"), "{:?}", downlink.queue);
    }

    #[test]
    fn one_rate_alone_is_refused() {
        let alone = LinkArguments { up: Some(Rate(1)), ..LinkArguments::default() };
        let error = home(&alone).err().map(|it| format!("{it:?}"));
        assert!(error.is_some_and(|it| it.contains("expected --down")));
        assert!(input(&LinkArguments::default()).unwrap().is_none());
    }
}
