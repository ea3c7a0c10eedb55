//! A scenario with some of its keys set to other values, as a sweep asks for.
//!
//! A setting changes the text of the file and nothing else, and the text is then read as
//! any other: a value means what it means in a file, and whatever is wrong with it is
//! found by the same code. A key is the path that TOML writes, for example `access.down`
//! or `traffic.pages.web.load`; an entry of a list goes by its `name`, or by its number,
//! counted from 1.
//!
//! Four [`SHORT`] names stand for what most scenarios have, under whatever key. They act
//! on the file before the network is built of it, so that a buffer in time follows the
//! rate of its link.
//!
//! ```
//! use tidegate_sim::scenario::file::{Folder, Overrides, vary::{Setting, parse}};
//!
//! let text = r#"
//!     title = "Two transfers"
//!     duration = "10 s"
//!     disciplines = ["fifo"]
//!     dumbbell = { rate = "5 Mbit/s" }
//!     [[traffic.transfers]]
//!     name = "long"
//!     from = "senders"
//!     to = "receivers"
//!     count = 2
//!     sizes = "1 MB"
//! "#;
//! let with = |key: &str, value: &str| {
//!     let settings = [Setting { key: key.into(), value: value.into() }];
//!     parse("two.toml", text, &Folder(".".into()), &Overrides::default(), &settings)
//! };
//! assert_eq!(with("dumbbell.pairs", "3")?.nodes.len(), 8);
//! assert_eq!(with("traffic.transfers.long.sizes", "2 MB")?.traffic.len(), 1);
//! let error = with("dumbbell.rte", "1 Mbit/s").unwrap_err();
//! assert_eq!(error.to_string(), "dumbbell.rte: found unknown 'rte', expected 'rate'");
//! # Ok::<(), tidegate_sim::scenario::file::vary::SettingError>(())
//! ```

use tidegate_core::buffer::Limit;
use tidegate_core::{Rate, Span};
use tidegate_files::{At, InText, Mistake, Text, expectation, nearest};
use toml_edit::{DocumentMut, InlineTable, Item, Key, TableLike, Value};

use super::builders::{BOTTLENECK, LAN_DELAY, SERVER_DELAY};
use super::data::DataFiles;
use super::syntax::{Capacity, Document, Queue};
use super::{Overrides, ScenarioError, parse_changed};
use crate::scenario::Scenario;

/// A key of a scenario and the value to give it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// The path of the key, or one of the [`SHORT`] names.
    pub key: String,
    /// The value as in the file; a text needs no quotation marks.
    pub value: String,
}

/// A setting that makes no sense.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{key}: found {found}, expected {expected}")]
pub struct SettingError {
    /// The key, with the settings that lead to the error where it is another one.
    pub key: String,
    /// What was found.
    pub found: String,
    /// What was expected.
    pub expected: String,
}

/// A name for something that most scenarios have.
#[derive(Debug)]
pub struct Short {
    /// The name, for example `rate`.
    pub name: &'static str,
    /// What it does, for help and documentation.
    pub help: &'static str,
    apply: fn(&mut Document, &str) -> Result<(), Wrong>,
}

/// All short names.
pub const SHORT: &[Short] = &[
    Short {
        name: "rate",
        help: "rate of the first tested link; other tested links keep their proportion to it",
        apply: set_rate,
    },
    Short {
        name: "rtt",
        help: "round trip to the nearest server while the network is empty; others stay farther",
        apply: set_rtt,
    },
    Short {
        name: "load",
        help: "factor on how often transfers and pages begin that begin at random",
        apply: scale_load,
    },
    Short {
        name: "buffer",
        help: "buffer in front of each tested link: packets, a size or a time",
        apply: set_buffer,
    },
];

/// What comparisons need and a sweep must not change.
const FIXED: [(&str, &str); 2] = [
    ("disciplines", "another key: every point has the same ones, which --disciplines names"),
    ("seeds", "another key: every point has the same ones, which --seeds names"),
];

/// What was found, and what was expected.
struct Wrong(String, String);

/// Reads the scenario in `text` with these `settings`; `overrides` are stronger.
///
/// # Errors
/// When a setting makes no sense in this scenario. The text itself should have been read
/// before, so that its own errors have their place in it.
pub fn parse(
    name: &str,
    text: &str,
    data: &dyn DataFiles,
    overrides: &Overrides,
    settings: &[Setting],
) -> Result<Scenario, SettingError> {
    let failed =
        |key: &str, Wrong(found, expected)| SettingError { key: key.into(), found, expected };
    let is_short = |setting: &&Setting| SHORT.iter().any(|short| short.name == setting.key);
    let (short, keys): (Vec<_>, Vec<_>) = settings.iter().partition(is_short);
    let mut edited: DocumentMut = text
        .parse()
        .map_err(|_| failed(name, Wrong("no TOML".into(), "a scenario that can be read".into())))?;
    for Setting { key, value } in &keys {
        // An override would make all its values one.
        if key == "duration" && overrides.duration.is_some() {
            let expected = "another key, since the duration is given for all points";
            return Err(failed(key, Wrong(format!("'{value}'"), expected.into())));
        }
        set(&mut edited, key, value).map_err(|wrong| failed(key, wrong))?;
    }
    let mut refused = None;
    let apply = |document: &mut Document| {
        for Setting { key, value } in &short {
            let known = SHORT.iter().find(|it| it.name == *key).expect("it is a short name");
            (known.apply)(document, value).map_err(|wrong| {
                refused = Some(failed(key, wrong));
                Mistake::at(&(0..0), "", "")
            })?;
        }
        Ok(())
    };
    let read = parse_changed(name, &edited.to_string(), data, overrides, apply);
    read.map_err(|error| refused.unwrap_or_else(|| in_words(error, settings)))
}

/// The error of the changed file, without its lines, which nobody has seen.
fn in_words(error: ScenarioError, settings: &[Setting]) -> SettingError {
    let all: Vec<_> = settings.iter().map(|it| format!("{} = {}", it.key, it.value)).collect();
    let (key, found, mut expected) = match error {
        ScenarioError::Wrong { key, found, expected, .. } => (key, found, expected),
        ScenarioError::Unreadable { file, reason } => {
            (String::new(), format!("'{file}' ({reason})"), "a file that can be read".into())
        }
    };
    // A word alone that is no key of a scenario may be meant for a short name.
    if settings.iter().any(|it| it.key == key) && found == format!("unknown '{key}'") {
        let names = SHORT.iter().map(|short| short.name);
        expected = match nearest(&key, names.clone()) {
            Some(name) => format!("'{name}'"),
            None if key.contains('.') || !expected.contains(',') => expected,
            None => format!("{expected}; or {}", names.collect::<Vec<_>>().join(", ")),
        };
    }
    let named = settings.iter().any(|it| it.key == key);
    let key = match (named, key.is_empty()) {
        (true, _) => key,
        (false, true) => format!("with {}", all.join(" and ")),
        (false, false) => format!("with {}: {key}", all.join(" and ")),
    };
    SettingError { key, found, expected }
}

/// Puts `value` at the path `key` of a file.
fn set(document: &mut DocumentMut, key: &str, value: &str) -> Result<(), Wrong> {
    let form = "a key with those around it, for example access.down, or a short name";
    let path = Key::parse(key).map_err(|_| Wrong(format!("'{key}'"), form.into()))?;
    if let Some((_, expected)) = FIXED.iter().find(|(name, _)| path[0].get() == *name) {
        return Err(Wrong(format!("'{key}'"), (*expected).into()));
    }
    // What TOML does not read is a text without its quotation marks.
    let value = value.trim().parse().unwrap_or_else(|_| Value::from(value.trim()));
    put(document.as_table_mut(), &path, value)
}

/// Puts `value` at `path` in `table`; tables that are not there yet are made.
fn put(table: &mut dyn TableLike, path: &[Key], value: Value) -> Result<(), Wrong> {
    let [step, rest @ ..] = path else { return Ok(()) };
    let step = step.get();
    if rest.is_empty() {
        table.insert(step, Item::Value(value));
        return Ok(());
    }
    let empty = || Item::Value(Value::InlineTable(InlineTable::new()));
    match table.entry(step).or_insert_with(empty) {
        Item::ArrayOfTables(list) => {
            let place = place(step, &rest[0], list.iter().map(|it| it as &dyn TableLike))?;
            let entry = list.get_mut(place).expect("it is one of them");
            put(entry, below(step, &rest[1..])?, value)
        }
        Item::Value(Value::Array(list)) => {
            let none = InlineTable::new();
            let entries = list.iter().map(|it| it.as_inline_table().unwrap_or(&none));
            let place = place(step, &rest[0], entries.map(|it| it as &dyn TableLike))?;
            match list.get_mut(place).expect("it is one of them") {
                Value::InlineTable(entry) => put(entry, below(step, &rest[1..])?, value),
                entry if rest.len() == 1 => {
                    *entry = value;
                    Ok(())
                }
                _ => Err(no_table(&rest[0])),
            }
        }
        item => put(item.as_table_like_mut().ok_or_else(|| no_table(step))?, rest, value),
    }
}

fn no_table(step: &str) -> Wrong {
    Wrong(format!("a key below the value of '{step}'"), "the key of a value".into())
}

/// The path below an entry of the list `list`.
fn below<'a>(list: &str, path: &'a [Key]) -> Result<&'a [Key], Wrong> {
    if path.is_empty() {
        let expected = format!("a key of it, for example {list}.1.name");
        return Err(Wrong("a whole entry of a list".into(), expected));
    }
    Ok(path)
}

/// The place in a list of the entry that `step` means: its name, or its number from 1.
fn place<'a>(
    list: &str,
    step: &Key,
    entries: impl Iterator<Item = &'a dyn TableLike>,
) -> Result<usize, Wrong> {
    let names: Vec<_> = entries
        .enumerate()
        .map(|(index, entry)| match entry.get("name").and_then(Item::as_str) {
            Some(name) => name.to_string(),
            None => (index + 1).to_string(),
        })
        .collect();
    let step = step.get();
    let numbered = || step.parse().ok().filter(|number| (1..=names.len()).contains(number));
    let named = names.iter().position(|name| name == step);
    named.or_else(|| numbered().map(|number| number - 1)).ok_or_else(|| {
        let known = names.iter().map(String::as_str);
        Wrong(format!("unknown '{step}' in '{list}'"), expectation(step, known))
    })
}

/// Whether a link has the discipline under test.
fn is_tested(queue: Option<&At<Queue>>) -> bool {
    queue.is_some_and(|queue| matches!(queue.value, Queue::Tested))
}

/// The value of a text, or what was expected in its place.
fn read<T: InText>(text: &str) -> Result<T, Wrong> {
    T::read(text).ok_or_else(|| Wrong(format!("'{text}'"), T::EXPECTED.into()))
}

fn set_rate(document: &mut Document, value: &str) -> Result<(), Wrong> {
    let rate: Rate = read(value)?;
    let mut tested: Vec<&mut Capacity> = Vec::new();
    if let Some(dumbbell) = &mut document.dumbbell {
        tested.push(dumbbell.rate.get_or_insert(Capacity::Rate(BOTTLENECK)));
    }
    if let Some(access) = &mut document.access {
        tested.extend([&mut access.down, &mut access.up]);
    }
    for link in document.link.iter_mut().map(|link| &mut link.value) {
        let forth = is_tested(link.queue.as_ref());
        if let Some(back) = &mut link.back
            && (is_tested(back.value.queue.as_ref()) || forth)
            && let Some(rate) = link.rate.clone()
        {
            back.value.rate.get_or_insert(rate);
        }
        tested.extend(link.rate.as_mut().filter(|_| forth));
        let back = link.back.as_mut().filter(|it| is_tested(it.value.queue.as_ref()));
        tested.extend(back.and_then(|it| it.value.rate.as_mut()));
    }
    let mut first = None;
    for capacity in tested {
        let Capacity::Rate(it) = capacity else {
            let found = "a tested link whose rate is recorded";
            return Err(Wrong(found.into(), "tested links of fixed rates".into()));
        };
        let first = *first.get_or_insert(*it);
        let scaled = u128::from(it.0) * u128::from(rate.0) / u128::from(first.0.max(1));
        *it = Rate(u64::try_from(scaled).unwrap_or(u64::MAX).max(1));
    }
    first.map(drop).ok_or_else(|| {
        let expected = "one, or another key: in a cell 'wifi.rates' has the data rates";
        Wrong("no tested link of a fixed rate".into(), expected.into())
    })
}

fn set_rtt(document: &mut Document, value: &str) -> Result<(), Wrong> {
    let rtt: Span = read(value)?;
    let half = Span(rtt.0 / 2);
    let mut set = false;
    if let Some(access) = &mut document.access {
        let servers = access.servers.iter().flat_map(|it| it.value.iter().map(|it| it.0));
        let around =
            access.lan_delay.map_or(LAN_DELAY, |it| it.0) + servers.min().unwrap_or(SERVER_DELAY);
        let Some(rest) = half.0.checked_sub(around.0) else {
            let expected = format!("at least the {} that other links take", around * 2);
            return Err(Wrong(format!("'{value}'"), expected));
        };
        access.delay = Some(Text(Span(rest)));
        set = true;
    }
    if let Some(dumbbell) = &mut document.dumbbell {
        // Sender, bottleneck and receiver: three links of the same delay, each way.
        dumbbell.delay = Some(Text(Span(half.0 / 3)));
        set = true;
    }
    if let Some(wifi) = document.wifi.as_mut().filter(|_| document.link.is_empty()) {
        wifi.value.wired_delay = Some(Text(half));
        set = true;
    }
    if set {
        return Ok(());
    }
    let expected = "[access], [dumbbell] or [wifi] alone, or another key: the delay of a link";
    Err(Wrong("a network of its own links".into(), expected.into()))
}

fn scale_load(document: &mut Document, value: &str) -> Result<(), Wrong> {
    /// Beyond it no link carries anything.
    const MOST: f64 = 1_000.0;
    let factor = value.trim().parse::<f64>().ok().filter(|it| *it > 0.0 && *it <= MOST);
    let factor = factor.ok_or_else(|| {
        let expected = format!("a factor above 0 and up to {MOST}, for example 0.5 or 2");
        Wrong(format!("'{value}'"), expected)
    })?;
    let scaled = |value: u64, factor: f64| ((value as f64 * factor).round() as u64).max(1);
    let (mut rates, mut gaps, mut counts) = (Vec::new(), Vec::new(), Vec::new());
    for source in &mut document.traffic.value.transfers {
        rates.extend(&mut source.value.load);
        counts.extend(&mut source.value.per_second);
    }
    for source in &mut document.traffic.value.web {
        rates.extend(&mut source.value.load);
        gaps.extend(&mut source.value.between_sessions);
    }
    for source in &mut document.traffic.value.pages {
        rates.extend(&mut source.value.load);
        gaps.extend(&mut source.value.every);
    }
    if rates.len() + gaps.len() + counts.len() == 0 {
        let expected = "transfers with 'load' or 'per_second', or pages with 'load' or 'every'";
        return Err(Wrong("no source that begins at random".into(), expected.into()));
    }
    rates.into_iter().for_each(|it| it.value.0.0 = scaled(it.value.0.0, factor));
    gaps.into_iter().for_each(|it| it.value.0.0 = scaled(it.value.0.0, 1.0 / factor));
    counts.into_iter().for_each(|it| it.value.0 *= factor);
    Ok(())
}

fn set_buffer(document: &mut Document, value: &str) -> Result<(), Wrong> {
    let limit: Limit = read(value)?;
    let mut set = false;
    if let Some(dumbbell) = &mut document.dumbbell {
        dumbbell.buffer = Some(Text(limit));
        set = true;
    }
    if let Some(access) = &mut document.access {
        access.buffer = Some(Text(limit));
        (access.down_buffer, access.up_buffer) = (None, None);
        set = true;
    }
    if let Some(wifi) = &mut document.wifi {
        wifi.value.buffer = Some(Text(limit));
        set = true;
    }
    for link in &mut document.link {
        let of =
            |place: &std::ops::Range<usize>| Some(At { value: Text(limit), place: place.clone() });
        let place = link.place.clone();
        let link = &mut link.value;
        if is_tested(link.queue.as_ref()) {
            (link.buffer, set) = (of(&place), true);
        }
        if let Some(back) = link.back.as_mut().filter(|it| is_tested(it.value.queue.as_ref())) {
            (back.value.buffer, set) = (of(&place), true);
        }
    }
    if set { Ok(()) } else { Err(Wrong("no tested link".into(), "one with a buffer".into())) }
}

#[cfg(test)]
mod tests;
