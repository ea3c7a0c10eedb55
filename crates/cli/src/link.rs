//! `tidegate link`: the live link between two network interfaces.
//!
//! `run` starts one and answers for it; the other commands ask it by its [`socket`].

mod bridge;
mod bypass;
pub(crate) mod changes;
mod client;
mod control;
mod machine;
mod metrics;
mod plan;
mod rules;
mod run;
mod socket;
mod state;
mod text;
mod top;

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::{Map, Value, json};

use self::bridge::Bridge;
use self::client::Client;
use crate::arguments::{
    ChangeArguments, LinkDirection, LinkSetArguments, LinkStatusArguments, LinkStopArguments,
};
use crate::failure::Failure;
use crate::output::{print, print_json};

pub(crate) use bridge::hashed;
pub(crate) use bypass::bypass;
pub(crate) use plan::plan;
pub(crate) use run::run;
pub(crate) use text::{delay, kilobytes};
pub(crate) use top::top;

/// How long a link may take to end.
const PATIENCE: Duration = Duration::from_secs(10);

pub(crate) fn status(arguments: &LinkStatusArguments) -> Result<(), Failure> {
    let state = Client::of(arguments.name.as_deref())?.state()?;
    if arguments.json { print_json(&state) } else { print(&text::text(&state)) }
}

pub(crate) fn set(arguments: &LinkSetArguments) -> Result<(), Failure> {
    let settings = settings(arguments)?;
    let answer = Client::of(arguments.name.as_deref())?.set(&settings)?;
    if arguments.json {
        return print_json(&answer);
    }
    let mut text = String::new();
    for change in answer["changes"].as_array().into_iter().flatten() {
        let word = |key: &str| change[key].as_str().unwrap_or_default();
        let _ = writeln!(text, "{}: {}, before {}", word("key"), word("after"), word("before"));
    }
    print(if text.is_empty() { "nothing differs\n" } else { &text })
}

/// The arguments as the JSON that a link takes.
fn settings(arguments: &LinkSetArguments) -> Result<Value, Failure> {
    if let Some(mistake) = arguments.changes.mistake() {
        return Err(Failure::Input(mistake));
    }
    let ChangeArguments { down, up, buffer, framing, parameters, direction } = &arguments.changes;
    let mut common = Map::new();
    common.extend(buffer.map(|it| ("buffer".into(), it.to_string().into())));
    common.extend(framing.map(|it| ("framing".into(), it.to_string().into())));
    if !parameters.is_empty() {
        let all = parameters.iter().map(|(name, value)| (name.clone(), value.as_str().into()));
        common.insert("parameters".into(), Value::Object(all.collect()));
    }
    let mut settings = Map::new();
    for (of_it, rate) in [(LinkDirection::Down, down), (LinkDirection::Up, up)] {
        let mut table = match direction {
            Some(only) if *only != of_it => Map::new(),
            _ => common.clone(),
        };
        table.extend(rate.map(|rate| ("rate".into(), rate.to_string().into())));
        if !table.is_empty() {
            let name = if of_it == LinkDirection::Down { "down" } else { "up" };
            settings.insert(name.into(), Value::Object(table));
        }
    }
    Ok(json!(settings))
}

pub(crate) fn stop(arguments: &LinkStopArguments) -> Result<(), Failure> {
    let named = arguments.name.as_deref();
    let client = Client::of(named);
    let running = client.as_ref().is_ok_and(Client::runs);
    // Without a link, what a dead one has left.
    if !running {
        return match clear(named)? {
            true => Ok(()),
            false => client?.stop(),
        };
    }
    let client = client?;
    client.stop()?;
    let since = Instant::now();
    while client.runs() {
        if since.elapsed() > PATIENCE {
            return Err(Failure::Other(format!("the link '{}' does not end", client.name)));
        }
        sleep(Duration::from_millis(20));
    }
    client.forget();
    print(&format!("the link '{}' has ended\n", client.name))?;
    // If somebody has killed the process beside it, nobody else does that.
    clear(Some(&client.name)).map(drop)
}

/// Takes away what links that are no more have left, of this name or of any; returns whether
/// there was something.
fn clear(named: Option<&str>) -> Result<bool, Failure> {
    let running = socket::running(&socket::folder());
    let is_meant = |name: &str| {
        named.is_none_or(|it| it == name) && !running.iter().any(|running| running == name)
    };
    // A process beside a link that has just died may be at it.
    let dead = Bridge::all().into_iter().map(|bridge| bridge.link().to_owned());
    let dead: BTreeSet<_> = dead.chain(rules::left()).filter(|name| is_meant(name)).collect();
    let _turns: Vec<_> = dead.iter().map(|name| bypass::Turn::of(name)).collect();
    let mut bridges = Bridge::all();
    bridges.retain(|bridge| is_meant(bridge.link()));
    let mut links = rules::left();
    links.retain(|link| is_meant(link));
    for bridge in &bridges {
        let failed = |reason| Failure::Other(format!("the bridge {}: {reason}", bridge.name));
        bridge.remove().map_err(failed)?;
        print(&format!("took the bridge {} of '{}' away\n", bridge.name, bridge.link()))?;
        socket::forget(&socket::folder(), bridge.link());
    }
    for link in &links {
        let failed = |reason| Failure::Other(format!("the rules of '{link}': {reason}"));
        rules::remove(link).map_err(failed)?;
        print(&format!("took the rules of '{link}' away\n"))?;
        socket::forget(&socket::folder(), link);
    }
    Ok(!bridges.is_empty() || !links.is_empty())
}
