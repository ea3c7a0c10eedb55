//! The disciplines of a scenario, and the places of their errors.

use std::ops::Range;

use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::setting::SettingError;

use super::data::DataFiles;
use super::values::{At, Named};
use crate::scenario::choice::{self, ChoiceError, FasterLink};
use crate::scenario::{Capacity, DisciplineChoice};
use tidegate_files::Mistake;
use tidegate_files::expectation;

/// The candidates of a comparison; each label once.
pub(super) fn list(
    written: &At<Vec<At<Named>>>,
    data: &dyn DataFiles,
) -> Result<Vec<DisciplineChoice>, Mistake> {
    let mut choices: Vec<DisciplineChoice> = Vec::new();
    for named in &written.value {
        let choice = choice(named, &named.place, &[], data)?;
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

/// One discipline; `place` is that of the whole value, which may also be one of `others`.
pub(super) fn choice(
    named: &Named,
    place: &Range<usize>,
    others: &[&'static str],
    data: &dyn DataFiles,
) -> Result<DisciplineChoice, Mistake> {
    let Some(name) = &named.name else {
        return Err(Mistake::missing(place, "name", "the name of a discipline"));
    };
    let label = named.label.as_ref();
    if let Some(label) = label.filter(|label| label.trim().is_empty()) {
        return Err(Mistake::at(&label.place, "an empty label", "a text"));
    }
    let entry = registry::find(name);
    let mut settings = Vec::new();
    for (parameter, value) in &named.settings {
        let contents = choice::contents(entry, parameter, &value.0, data).map_err(|error| {
            let found = format!("'{}' ({})", error.file, error.reason);
            Mistake::at(&value.place, found, "a file of flows")
        })?;
        settings.push((parameter.as_str(), contents));
    }
    let settings: Vec<_> =
        settings.iter().map(|(parameter, value)| (*parameter, value.as_ref())).collect();
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

/// Refuses promises on a link that sends less than they assume. A link whose
/// capacity varies counts with its mean: with less, the promises certainly
/// fail.
pub(super) fn check_promises(
    choice: &DisciplineChoice,
    place: &Range<usize>,
    link: &str,
    capacity: &Capacity,
) -> Result<(), Mistake> {
    let Some(rate) = capacity.rate() else { return Ok(()) };
    choice
        .promises_on(link, rate)
        .map_err(|FasterLink { found, expected }| Mistake::at(place, found, expected))
}

fn in_settings(error: SettingError, named: &Named, place: &Range<usize>) -> Mistake {
    let given = |name: &str| named.settings.iter().find(|(key, _)| key.as_str() == name);
    match error {
        SettingError::UnknownParameter { owner, found, .. } => {
            let parameters = registry::find(owner).map_or(&[][..], |entry| entry.parameters);
            let known = parameters.iter().map(|parameter| parameter.name).chain(["label"]);
            let place = given(&found).map_or(place, |(key, _)| &key.place);
            Mistake::at(place, format!("unknown '{found}'"), expectation(&found, known))
        }
        SettingError::WrongValue { parameter, found, expected, .. } => {
            let place = given(parameter).map_or(place, |(_, value)| &value.place);
            Mistake::at(place, format!("'{found}'"), expected)
        }
        SettingError::Fixed { .. } => unreachable!("nothing runs while a file is read"),
    }
}

#[cfg(test)]
mod tests {
    use tidegate_core::Rate;

    use super::*;
    use crate::scenario::choice::tests::PROMISING;

    #[test]
    fn flows_for_a_faster_link_are_refused_and_both_are_named() {
        let settings = PROMISING.settings(&[("flows", "link 10 Mbit/s")]).unwrap();
        let choice = DisciplineChoice { label: "calls".into(), entry: &PROMISING, settings };
        let check = |capacity: Capacity| {
            check_promises(&choice, &(0..0), "up", &capacity)
                .map_err(|mistake| mistake.in_file("s.toml", "").to_string())
        };
        assert_eq!(check(Capacity::Unlimited), Ok(()));
        assert_eq!(check(Capacity::Fixed(Rate(10_000_000))), Ok(()));
        assert_eq!(
            check(Capacity::Fixed(Rate(9_999_000))).unwrap_err(),
            "s.toml:1:1: found 'calls' with flows for 10 Mbit/s on the link 'up', \
             expected flows for at most the 9.999 Mbit/s of that link"
        );
        let none: DisciplineChoice = "efd".parse().unwrap();
        assert!(check_promises(&none, &(0..0), "up", &Capacity::Fixed(Rate(1))).is_ok());
    }
}
