//! The disciplines of a scenario, with the places of their mistakes.

use std::ops::Range;

use tidegate_core::registry::{self, DISCIPLINES, SettingError};

use super::error::Mistake;
use super::values::{At, Named};
use crate::scenario::DisciplineChoice;
use crate::scenario::choice::ChoiceError;
use crate::scenario::nearest::expectation;

/// The candidates of a comparison; each label once.
pub(super) fn list(written: &At<Vec<At<Named>>>) -> Result<Vec<DisciplineChoice>, Mistake> {
    let mut choices: Vec<DisciplineChoice> = Vec::new();
    for named in &written.value {
        let choice = choice(named, &named.place, &[])?;
        if choices.iter().any(|other| other.label == choice.label) {
            let found = format!("a second discipline labelled '{}'", choice.label);
            return Err(Mistake::at(&named.place, found, "another label = \"...\""));
        }
        choices.push(choice);
    }
    if choices.is_empty() {
        return Err(Mistake::at(&written.place, "an empty list", "at least one discipline"));
    }
    Ok(choices)
}

/// One discipline; `place` is that of the whole value, which might also have
/// been one of `others`.
pub(super) fn choice(
    named: &Named,
    place: &Range<usize>,
    others: &[&'static str],
) -> Result<DisciplineChoice, Mistake> {
    let Some(name) = &named.name else {
        return Err(Mistake::missing(place, "name", "the name of a discipline"));
    };
    let label = named.label.as_ref();
    if let Some(label) = label.filter(|label| label.trim().is_empty()) {
        return Err(Mistake::at(&label.place, "an empty label", "a text"));
    }
    let settings: Vec<_> = named
        .settings
        .iter()
        .map(|(parameter, value)| (parameter.as_str(), value.0.as_str()))
        .collect();
    let label = label.map(|label| label.as_str());
    DisciplineChoice::new(name, label, &settings).map_err(|error| match error {
        ChoiceError::Setting(error) => in_settings(error, named, place),
        _ => {
            // A name that stands alone has the place of the whole value.
            let place = if name.place.is_empty() { place } else { &name.place };
            let known = others.iter().copied().chain(DISCIPLINES.iter().map(|entry| entry.name));
            let expected = expectation(name, known);
            Mistake::at(place, format!("unknown discipline '{}'", name.value), expected)
        }
    })
}

fn in_settings(error: SettingError, named: &Named, place: &Range<usize>) -> Mistake {
    let given = |name: &str| named.settings.iter().find(|(key, _)| key.as_str() == name);
    match error {
        SettingError::UnknownParameter { discipline, found, .. } => {
            let parameters = registry::find(discipline).map_or(&[][..], |entry| entry.parameters);
            let known = parameters.iter().map(|parameter| parameter.name).chain(["label"]);
            let place = given(&found).map_or(place, |(key, _)| &key.place);
            Mistake::at(place, format!("unknown '{found}'"), expectation(&found, known))
        }
        SettingError::WrongValue { parameter, found, expected, .. } => {
            let place = given(parameter).map_or(place, |(_, value)| &value.place);
            Mistake::at(place, format!("'{found}'"), expected)
        }
    }
}
