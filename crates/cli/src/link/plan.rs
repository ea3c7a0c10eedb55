//! `tidegate link plan`: what `link run` would do on this machine, and for whom, before it
//! does it.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::Bytes;
use tidegate_core::units::Amount;
use tidegate_gateway::machine::Finding;
use tidegate_link::{Config, Queue};

use super::bypass::Bridge;
use super::{machine, run};
use crate::arguments::{Fail, LinkRunArguments};
use crate::failure::Failure;
use crate::findings;
use crate::output::{print, print_json, wrapped};

/// A full IP packet.
const PACKET: Bytes = Bytes(1_500);

#[derive(Serialize)]
struct Plan {
    name: String,
    inside: String,
    outside: String,
    fail: Fail,
    down: Way,
    up: Way,
    /// What is done, and what is not.
    sentences: Vec<String>,
    findings: Vec<Finding>,
}

/// The queue of a direction.
#[derive(Serialize)]
struct Way {
    discipline: &'static str,
    parameters: Vec<(&'static str, String)>,
    rate_bps: u64,
    buffer: String,
    framing: String,
    /// What a packet of 1500 bytes takes of the link.
    full_packet_bytes: u64,
}

impl Way {
    fn of(queue: &Queue) -> Way {
        let names = queue.entry.parameters.iter().map(|parameter| parameter.name);
        Way {
            discipline: queue.entry.name,
            parameters: names.map(|name| (name, queue.settings.value(name).to_string())).collect(),
            rate_bps: queue.rate.0,
            buffer: queue.limit.to_string(),
            framing: queue.framing.to_string(),
            full_packet_bytes: queue.framing.charge(PACKET).0,
        }
    }
}

impl Plan {
    fn of(arguments: &LinkRunArguments) -> Result<Plan, Failure> {
        let config = run::config(arguments)?;
        let name = run::name(arguments);
        Ok(Plan {
            inside: config.inside.clone(),
            outside: config.outside.clone(),
            fail: arguments.fail,
            down: Way::of(&config.down),
            up: Way::of(&config.up),
            sentences: sentences(arguments, &name, &config),
            findings: machine::findings(arguments, &name, &config),
            name,
        })
    }

    fn text(&self) -> String {
        let mut text = format!("The link '{}':\n\n", self.name);
        for sentence in &self.sentences {
            let _ = write!(text, "{}", wrapped(sentence, ""));
        }
        text + &findings::text(&self.findings)
    }
}

fn sentences(arguments: &LinkRunArguments, name: &str, config: &Config) -> Vec<String> {
    let Config { inside, outside, .. } = config;
    let mut all = Vec::new();
    for (queue, from, to) in [(&config.down, outside, inside), (&config.up, inside, outside)] {
        let Queue { entry, limit, rate, framing, .. } = queue;
        let buffer = match queue.buffer().amount() {
            Amount::Bytes(bytes) if bytes.to_string() != limit.to_string() => {
                format!("{limit} ({bytes})")
            }
            _ => limit.to_string(),
        };
        all.push(format!(
            "Whatever comes from {from} goes to {to} at {rate} at most, through {} with a buffer of \
             {buffer}. A packet of {} B takes {} B of the link ({framing}).",
            entry.name,
            PACKET.0,
            framing.charge(PACKET).0,
        ));
    }
    all.push(format!(
        "This is for everybody whose traffic crosses {inside} and {outside}. What this machine \
         itself sends there passes the queues by."
    ));
    all.push(
        "Both interfaces take all frames (promiscuous mode) while the link runs. Addresses, routes, \
         queues, bridges and offloads stay as they are, during and after it."
            .into(),
    );
    all.push(match arguments.fail {
        Fail::Closed => format!(
            "If the link dies, nothing passes between {inside} and {outside} until it runs again."
        ),
        Fail::Open => format!(
            "If the link dies, the bridge {} joins {inside} and {outside}, and frames pass without \
             these queues until it runs again or 'tidegate link stop' takes the bridge away.",
            Bridge::of(name).name
        ),
    });
    if let Some(address) = arguments.page {
        all.push(format!(
            "Whoever reaches http://{address}/ may see what the link does, and change nothing."
        ));
    }
    all
}

pub(crate) fn plan(arguments: &LinkRunArguments) -> Result<(), Failure> {
    let plan = Plan::of(arguments)?;
    if arguments.json {
        print_json(&plan)?;
    } else {
        print(&plan.text())?;
    }
    findings::verdict(&plan.findings, "the link")
}
