//! A discipline chosen by name and settings, as in files and on the command line.

use std::borrow::Cow;
use std::io::Read;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use tidegate_core::Rate;
use tidegate_core::contract::Contracts;
use tidegate_core::entry::Entry;
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::setting::{Kind, Parameter, SettingError};

use super::DisciplineChoice;
use super::file::{DataFiles, Folder, flows};
use tidegate_files::expectation;

/// A choice of a discipline that cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ChoiceError {
    /// There is no discipline of this name.
    #[error("found unknown discipline '{found}', expected {expected}")]
    Unknown {
        /// The name as it was found.
        found: String,
        /// The nearest name, or all of them.
        expected: String,
    },
    /// The discipline does not take these settings.
    #[error(transparent)]
    Setting(#[from] SettingError),
    /// A setting without a value.
    #[error("found '{found}', expected PARAMETER=VALUE as in 'efd:threshold=30 kB'")]
    NoValue {
        /// The text as it was found.
        found: String,
    },
    /// A file of flows that cannot be used.
    #[error(transparent)]
    Flows(#[from] FlowsError),
}

/// A file of flows that a setting names, and that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found '{file}' ({reason}), expected a file of flows")]
pub struct FlowsError {
    /// The name of the file, as it was found.
    pub file: String,
    /// Why it cannot be used.
    pub reason: String,
}

/// Promises for a faster link than the one at hand.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("found {found}, expected {expected}")]
pub struct FasterLink {
    /// Who promises, for what rate, and the link.
    pub found: String,
    /// What would have been right for that link.
    pub expected: String,
}

impl DisciplineChoice {
    /// The discipline called `name` with these settings; others have their default.
    ///
    /// # Errors
    /// When there is no such discipline, or it does not take the settings.
    pub fn new(
        name: &str,
        label: Option<&str>,
        settings: &[(&str, &str)],
    ) -> Result<DisciplineChoice, ChoiceError> {
        let entry = registry::find(name).ok_or_else(|| ChoiceError::Unknown {
            found: name.into(),
            expected: expectation(name, DISCIPLINES.iter().map(|entry| entry.name)),
        })?;
        let settings = entry.settings(settings)?;
        Ok(DisciplineChoice { label: label.unwrap_or(name).into(), entry, settings })
    }

    /// What it was set to promise, if it promises anything.
    #[must_use]
    pub fn contracts(&self) -> Option<Arc<Contracts>> {
        let promising = |parameter: &&Parameter| matches!(parameter.kind, Kind::Contracts);
        let parameter = self.entry.parameters.iter().find(promising)?;
        Some(self.settings.contracts(parameter.name))
    }

    /// Whether its promises, if it makes any, can be kept on a link of this `rate`.
    ///
    /// # Errors
    /// When the promises are for a faster link.
    pub fn promises_on(&self, link: &str, rate: Rate) -> Result<(), FasterLink> {
        match self.contracts() {
            Some(contracts) if contracts.link > rate => Err(FasterLink {
                found: format!(
                    "'{}' with flows for {} on the link '{link}'",
                    self.label, contracts.link
                ),
                expected: format!("flows for at most the {rate} of that link"),
            }),
            _ => Ok(()),
        }
    }

    /// All parameters with their values, as they would be written in a file:
    /// read again, they give the same settings to the last digit.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let names = self.entry.parameters.iter().map(|parameter| parameter.name);
        names.map(|name| (name, format!("{:#}", self.settings.value(name)))).collect()
    }
}

/// `value` as it can be given to the discipline of `entry`: where it names a
/// file of flows and the parameter takes such a list, the list.
pub(super) fn contents<'a>(
    entry: Option<&Entry>,
    parameter: &str,
    value: &'a str,
    data: &dyn DataFiles,
) -> Result<Cow<'a, str>, FlowsError> {
    let is_list = |entry: &Entry| {
        entry.parameters.iter().any(|p| p.name == parameter && matches!(p.kind, Kind::Contracts))
    };
    if !(value.ends_with(".toml") && entry.is_some_and(is_list)) {
        return Ok(value.into());
    }
    let refused = |reason: String| FlowsError { file: value.into(), reason };
    let mut text = String::new();
    data.open(value)
        .and_then(|mut file| file.read_to_string(&mut text))
        .map_err(|reason| refused(reason.to_string()))?;
    let contracts = flows::parse(value, &text).map_err(|error| refused(error.to_string()))?;
    Ok(contracts.to_string().into())
}

/// `NAME[:PARAMETER=VALUE]...`, as it is typed: files of flows are looked for in
/// the current folder. The label is the text itself, or that of a parameter
/// called `label`.
impl FromStr for DisciplineChoice {
    type Err = ChoiceError;

    fn from_str(text: &str) -> Result<DisciplineChoice, ChoiceError> {
        let mut parts = text.split(':').map(str::trim);
        let name = parts.next().unwrap_or_default();
        let mut settings = Vec::new();
        let mut label = text.trim();
        for part in parts {
            match part.split_once('=') {
                Some(("label", value)) => label = value,
                Some((parameter, value)) => {
                    let (parameter, value) = (parameter.trim(), value.trim());
                    let folder = Folder(PathBuf::new());
                    let entry = registry::find(name);
                    settings.push((parameter, contents(entry, parameter, value, &folder)?));
                }
                None => return Err(ChoiceError::NoValue { found: part.into() }),
            }
        }
        let settings: Vec<_> =
            settings.iter().map(|(parameter, value)| (*parameter, value.as_ref())).collect();
        DisciplineChoice::new(name, Some(label), &settings)
    }
}

#[cfg(test)]
pub(super) mod tests {
    use std::io;

    use tidegate_core::entry::Drops;

    use super::*;

    #[test]
    fn text_chooses_name_settings_and_label() {
        let choice: DisciplineChoice = "efd:threshold=30001 B:label=large".parse().unwrap();
        assert_eq!((choice.entry.name, choice.label.as_str()), ("efd", "large"));
        assert_eq!(choice.parameters()[0], ("threshold", "30.001 kB".to_string()));
        let choice: DisciplineChoice = "efd:threshold=30001234 B".parse().unwrap();
        assert_eq!(choice.parameters()[0], ("threshold", "30001234 B".to_string()));
    }

    /// A discipline that takes promises.
    pub(in crate::scenario) static PROMISING: Entry = Entry {
        name: "promising",
        summary: "for this test",
        source: "none",
        linux: None,
        drops: Drops::WhenFull,
        parameters: &[Parameter {
            name: "flows",
            help: "what flows were promised",
            kind: Kind::Contracts,
            default: "link 1 Mbit/s",
        }],
        fixed: &[],
        build: |_, _, _| unreachable!("nobody builds it"),
    };

    #[test]
    fn a_file_of_flows_becomes_part_of_the_settings() {
        struct Flows;

        impl DataFiles for Flows {
            fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
                match name {
                    "calls.toml" => Ok(Box::new(
                        &b"link = \"10 Mbit/s\"\n[[best_effort]]\nname = \"x\"\nport = 80\n\
                           weight = 2\n"[..],
                    )),
                    "wrong.toml" => Ok(Box::new(&b"lnik = 1"[..])),
                    _ => Err(io::ErrorKind::NotFound.into()),
                }
            }
        }

        let read = |parameter: &str, value| {
            contents(Some(&PROMISING), parameter, value, &Flows).map(Cow::into_owned)
        };
        let text = read("flows", "calls.toml").unwrap();
        assert_eq!(text, "link 10 Mbit/s; packets to 1.5 kB; x = port 80: weight 2");
        let settings = PROMISING.settings(&[("flows", &text)]).unwrap();
        let choice = DisciplineChoice { label: "x".into(), entry: &PROMISING, settings };
        assert_eq!(choice.contracts().map(|contracts| contracts.link.0), Some(10_000_000));
        // What a manifest has in it gives the same again, without the file.
        assert_eq!(choice.parameters(), [("flows", text)]);
        let error = read("flows", "wrong.toml").unwrap_err().to_string();
        assert_eq!(
            error,
            "found 'wrong.toml' (wrong.toml:1:1: lnik: found unknown 'lnik', expected 'link'), \
             expected a file of flows"
        );
        assert!(read("flows", "missing.toml").unwrap_err().to_string().contains("not found"));
        assert_eq!(read("flows", "link 1 Mbit/s"), Ok("link 1 Mbit/s".into()));
        // Other parameters may end as they like.
        assert_eq!(read("file", "calls.toml"), Ok("calls.toml".into()));
        let plain: DisciplineChoice = "efd".parse().unwrap();
        assert!(plain.contracts().is_none());
    }

    #[test]
    fn mistakes_are_told_with_what_was_expected() {
        let error = |text: &str| text.parse::<DisciplineChoice>().unwrap_err().to_string();
        assert_eq!(error("fifi"), "found unknown discipline 'fifi', expected 'fifo'");
        assert!(error("efd:threshold").contains("PARAMETER=VALUE"));
        assert!(error("efd:treshold=1 B").contains("no parameter 'treshold'"));
        assert!(error("efd:threshold=many").contains("'many' is not"));
    }
}
