//! What a running link is told to do otherwise: JSON with keys as on the command line.
//!
//! All of it holds, or nothing: every value is read and tried on the queues before the first
//! of them is told. A mistake is told with its key, what was found and what was expected.

use serde::Serialize;
use serde_json::{Map, Value};
use tidegate_core::Rate;
use tidegate_core::units::UnitError;
use tidegate_link::{Change, Direction, Queue};
use tidegate_sim::scenario::DisciplineChoice;

/// What is to change in each direction.
pub(super) type Changes = Vec<(Direction, Change)>;

/// A setting that has another value now.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Difference {
    key: String,
    before: String,
    after: String,
}

/// Reads a document such as `{"down": {"rate": "18 Mbit/s"}}`.
pub(super) fn read(text: &[u8]) -> Result<Changes, String> {
    let value: Value = serde_json::from_slice(text).map_err(|reason| {
        format!(
            "found no JSON ({reason}), expected such as {{\"down\": {{\"rate\": \"18 Mbit/s\"}}}}"
        )
    })?;
    let directions = table("the settings", &value)?;
    directions
        .iter()
        .map(|(key, value)| {
            let direction = Direction::BOTH.into_iter().find(|direction| direction.name() == key);
            let direction = direction.ok_or(format!("found '{key}', expected 'down' or 'up'"))?;
            Ok((direction, change(key, table(key, value)?)?))
        })
        .collect()
}

fn table<'a>(key: &str, value: &'a Value) -> Result<&'a Map<String, Value>, String> {
    value.as_object().ok_or_else(|| format!("{key}: found {value}, expected a table: {{...}}"))
}

fn change(direction: &str, table_of_it: &Map<String, Value>) -> Result<Change, String> {
    let mut change = Change::default();
    for (name, value) in table_of_it {
        let key = format!("{direction}.{name}");
        match name.as_str() {
            "rate" => change.rate = Some(rate(&key, value)?),
            "buffer" => change.limit = Some(quantity(&key, value)?),
            "framing" => change.framing = Some(quantity(&key, value)?),
            "parameters" => {
                for (parameter, value) in table(&key, value)? {
                    let value = words(&format!("{key}.{parameter}"), value)?;
                    change.parameters.push((parameter.clone(), value));
                }
            }
            _ => {
                return Err(format!(
                    "{direction}: found '{name}', expected 'rate', 'buffer', 'framing' or \
                     'parameters'"
                ));
            }
        }
    }
    Ok(change)
}

fn rate(key: &str, value: &Value) -> Result<Rate, String> {
    match quantity(key, value)? {
        Rate(0) => Err(format!("{key}: found {value}, expected a rate above zero")),
        rate => Ok(rate),
    }
}

fn quantity<T: std::str::FromStr<Err = UnitError>>(key: &str, value: &Value) -> Result<T, String> {
    words(key, value)?.parse().map_err(|UnitError { found, expected }| {
        format!("{key}: found '{found}', expected {expected}")
    })
}

/// The text of a value: programs write numbers and switches as they are.
fn words(key: &str, value: &Value) -> Result<String, String> {
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => Ok(number.to_string()),
        Value::Bool(switch) => Ok(switch.to_string()),
        other => Err(format!("{key}: found {other}, expected a text, such as \"18 Mbit/s\"")),
    }
}

/// The queue as it is after a change.
pub(super) fn changed(
    direction: Direction,
    queue: &Queue,
    change: &Change,
) -> Result<Queue, String> {
    let queue = queue.with(change).map_err(|reason| format!("{direction}.parameters: {reason}"))?;
    keeps_promises(direction, &queue)?;
    Ok(queue)
}

/// Whether what the discipline promises to flows, if it promises anything, fits the rate.
pub(crate) fn keeps_promises(direction: Direction, queue: &Queue) -> Result<(), String> {
    let Queue { entry, settings, rate, .. } = queue;
    let choice = DisciplineChoice { label: entry.name.into(), entry, settings: settings.clone() };
    choice.promises_on(direction.name(), *rate).map_err(|reason| reason.to_string())
}

/// What differs between two states of a queue.
pub(super) fn differences(direction: Direction, before: &Queue, after: &Queue) -> Vec<Difference> {
    let rows = |queue: &Queue| {
        let Queue { entry, settings, limit, rate, framing } = queue;
        let own = [
            ("rate".to_string(), rate.to_string()),
            ("buffer".into(), limit.to_string()),
            ("framing".into(), framing.to_string()),
        ];
        let parameters = entry.parameters.iter().map(|parameter| parameter.name);
        let parameters =
            parameters.map(|name| (format!("parameters.{name}"), settings.value(name).to_string()));
        own.into_iter().chain(parameters).collect::<Vec<_>>()
    };
    let pairs = rows(before).into_iter().zip(rows(after));
    pairs
        .filter(|((_, before), (_, after))| before != after)
        .map(|((key, before), (_, after))| Difference {
            key: format!("{direction}.{key}"),
            before,
            after,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use tidegate_core::framing::Framing;
    use tidegate_core::registry;

    use super::*;

    fn queue() -> Queue {
        let entry = registry::find("efd").unwrap();
        let settings = entry.settings(&[]).unwrap();
        let limit = "100 ms".parse().unwrap();
        Queue { entry, settings, limit, rate: Rate(10_000_000), framing: Framing::RAW }
    }

    #[test]
    fn what_is_given_changes_and_the_rest_stays() {
        let text = br#"{"down": {"rate": "18mbit", "parameters": {"threshold": "30 kB"}}}"#;
        let [(direction, change)] = &read(text).unwrap()[..] else { panic!("one direction") };
        let after = changed(*direction, &queue(), change).unwrap();
        assert_eq!((after.rate, after.limit), (Rate(18_000_000), queue().limit));
        let differences = differences(*direction, &queue(), &after);
        let keys: Vec<_> = differences.iter().map(|it| it.key.as_str()).collect();
        assert_eq!(keys, ["down.rate", "down.parameters.threshold"]);
        assert_eq!((&*differences[1].after, &*differences[0].before), ("30 kB", "10 Mbit/s"));
    }

    #[test]
    fn a_mistake_is_told_with_its_key() {
        for (text, expected) in [
            ("", "found no JSON"),
            ("[]", "the settings: found [], expected a table"),
            (r#"{"sideways": {}}"#, "found 'sideways', expected 'down' or 'up'"),
            (r#"{"down": 3}"#, "down: found 3, expected a table"),
            (r#"{"up": {"rat": "1 Mbit/s"}}"#, "up: found 'rat', expected 'rate', 'buffer'"),
            (r#"{"up": {"rate": 18}}"#, "up.rate: found '18', expected a rate"),
            (r#"{"up": {"rate": null}}"#, "up.rate: found null, expected a text"),
            (r#"{"up": {"rate": "0 Mbit/s"}}"#, "expected a rate above zero"),
            (r#"{"up": {"buffer": "0 ms"}}"#, "up.buffer: found '0 ms', expected a buffer"),
            (r#"{"up": {"framing": "dsl"}}"#, "up.framing: found 'dsl', expected a link such"),
        ] {
            let error = read(text.as_bytes()).unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
        let wrong = read(br#"{"up": {"parameters": {"treshold": "1 B"}}}"#).unwrap();
        let error = changed(Direction::Up, &queue(), &wrong[0].1).unwrap_err();
        assert!(error.starts_with("up.parameters: 'efd' has no parameter 'treshold'"), "{error}");
    }
}
