//! A home link from a few numbers: `tidegate compare --down RATE --up RATE`.
//!
//! Somebody whose calls stutter knows two rates, and no language of scenarios. The numbers
//! become a scenario in that language all the same, with the traffic of the built-in
//! household: a call, pages, a download and a backup, so that both directions are full.
//! `--print` writes it, to be changed and run as any other; a manifest keeps it.

use tidegate_core::buffer::Limit;
use tidegate_core::{Rate, Span};

use crate::arguments::{LinkArguments, Preset};
use crate::failure::Failure;
use crate::inputs::Input;

/// From a home to servers nearby, there and back on an empty link.
const RTT: Span = Span::millis(20);
/// What modems and routers hold where nobody has set anything. `Kreibich 2010` found
/// mostly 100 ms to more than 1 s; upwards more, since the link is slower.
const BUFFERS: [Span; 2] = [Span::millis(150), Span::millis(400)];
/// From hosts to the router, and from the provider to the nearest server.
const AROUND: Span = Span::millis(2);

/// A link of a home, and what is in front of it.
struct Home {
    /// Down and up.
    rates: [Rate; 2],
    rtt: Span,
    /// Down and up.
    buffers: [Limit; 2],
}

impl Preset {
    /// What a link of this kind is like where nobody says more. Rates are plausible
    /// tariffs; delays and buffers are what decides, and are of the kind of link.
    fn home(self) -> Home {
        let home = |down: u64, up: u64, rtt, buffers: [u64; 2]| Home {
            rates: [Rate(down * 1_000_000), Rate(up * 1_000_000)],
            rtt: Span::millis(rtt),
            buffers: buffers.map(|it| Limit::Time(Span::millis(it))),
        };
        match self {
            // Interleaving costs some milliseconds each way; the uplink is slow and its
            // buffer counted in packets.
            Preset::Dsl => home(16, 1, 30, [150, 800]),
            // DOCSIS 3 with its buffer control, 250 ms.
            Preset::Cable => home(100, 10, 20, [100, 250]),
            Preset::Fibre => home(300, 100, 10, [50, 100]),
            // A steady rate, which a mobile link never has: scenario 'cellular' varies.
            Preset::Lte => home(30, 10, 50, [300, 500]),
            // To the geostationary orbit and back.
            Preset::Satellite => home(25, 3, 560, [500, 1_000]),
        }
    }
}

/// The scenario that `arguments` describe; `None` if they say nothing of a link.
pub(crate) fn input(arguments: &LinkArguments) -> Result<Option<Input>, Failure> {
    let Some(home) = home(arguments)? else { return Ok(None) };
    Ok(Some(Input::of_text("the link of the command line", "home", home.scenario())))
}

fn home(arguments: &LinkArguments) -> Result<Option<Home>, Failure> {
    let LinkArguments { down, up, rtt, buffer, preset, .. } = arguments;
    let mut home = match (preset, down, up) {
        (Some(preset), _, _) => preset.home(),
        (None, Some(down), Some(up)) => {
            Home { rates: [*down, *up], rtt: RTT, buffers: BUFFERS.map(Limit::Time) }
        }
        (None, None, None) => return Ok(None),
        (None, down, _) => {
            let (one, other) = if down.is_some() { ("down", "up") } else { ("up", "down") };
            return Err(Failure::Input(format!(
                "found --{one} alone, expected --{other} too: the rate the other way decides as \
                 much"
            )));
        }
    };
    for (rate, given) in home.rates.iter_mut().zip([down, up]) {
        *rate = given.unwrap_or(*rate);
    }
    home.rtt = rtt.unwrap_or(home.rtt);
    if let Some(buffer) = buffer {
        home.buffers = [*buffer; 2];
    }
    Ok(Some(home))
}

impl Home {
    /// The scenario as a file.
    fn scenario(&self) -> String {
        let Home { rates: [down, up], rtt, buffers: [down_buffer, up_buffer] } = self;
        let delay = Span((rtt.0 / 2).saturating_sub(AROUND.0));
        let [call, packet, what] = self.call();
        // A quarter of the link, up to what four people can read.
        let pages = Rate((down.0 / 4).min(8_000_000));
        let (duration, stop) = self.duration();
        format!(
            "# A home on a link of {down} down and {up} up, as 'tidegate compare' makes it of these
# numbers: somebody is in a call, others read the Web, a game is being downloaded, and
# a computer sends its backup. Both directions are full all the time.

title = \"Home, {down} down and {up} up\"
description = \"\"\"
{what}, Web browsing, a download and a backup share a home link. The download and the \\
backup take whatever is left.\"\"\"

duration = \"{duration:#}\"
warm_up = \"5 s\"
seeds = 6
disciplines = [\"fifo\", \"fq-codel\", \"cake\", \"pie\", \"efd\", \"lars\"]

[access]
hosts = 4
down = \"{down:#}\"
up = \"{up:#}\"
delay = \"{delay:#}\"
down_buffer = \"{down_buffer:#}\"
up_buffer = \"{up_buffer:#}\"
servers = [\"1 ms\", \"11 ms\", \"41 ms\"]

# Recorded page loads over HTTP/2; each of a page's hosts has CUBIC or BBR.
[[traffic.pages]]
name = \"web\"
from = \"servers\"
to = \"hosts\"
load = \"{pages:#}\"
stop = \"{stop:#}\"
recorded = [\"builtin:data/pages.har\"]
tcp = {{ profile = \"mix\" }}

[[traffic.cbr]]
name = \"call, down\"
from = \"server1\"
to = \"host1\"
rate = \"{call}\"
packet = \"{packet}\"

[[traffic.cbr]]
name = \"call, up\"
from = \"host1\"
to = \"server1\"
rate = \"{call}\"
packet = \"{packet}\"

[[traffic.transfers]]
name = \"download\"
from = \"server2\"
to = \"host3\"
count = 1
sizes = \"endless\"
request = \"400 B\"
follow = true

[[traffic.transfers]]
name = \"backup\"
from = \"host4\"
to = \"server3\"
count = 1
sizes = \"endless\"
follow = true
"
        )
    }

    /// The rate and packets of the call, and what it is: video where it takes less than
    /// half of either direction, otherwise a voice with G.711 every 20 ms.
    fn call(&self) -> [&'static str; 3] {
        const VIDEO: Rate = Rate(1_500_000);
        if self.rates.iter().all(|rate| rate.0 > 2 * VIDEO.0) {
            ["1.5 Mbit/s", "1100 B", "A video call"]
        } else {
            ["80 kbit/s", "200 B", "A telephone call"]
        }
    }

    /// The duration of a run, and when the last page begins. Fast links need less time to
    /// show as much, and more time to simulate.
    fn duration(&self) -> (Span, Span) {
        let rate = self.rates[0].0 + self.rates[1].0;
        let seconds = match rate {
            0..=200_000_000 => 60,
            200_000_001..=600_000_000 => 30,
            _ => 15,
        };
        // Where a round trip takes half a second, pages take their time too.
        let longest = 3 * seconds / 4;
        (Span::seconds(seconds), Span::seconds(longest))
    }
}

#[cfg(test)]
mod tests {
    use tidegate_sim::scenario::file;

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
    fn one_rate_alone_is_refused() {
        let alone = LinkArguments { up: Some(Rate(1)), ..LinkArguments::default() };
        let error = home(&alone).err().map(|it| format!("{it:?}"));
        assert!(error.is_some_and(|it| it.contains("expected --down")));
        assert!(input(&LinkArguments::default()).unwrap().is_none());
    }
}
