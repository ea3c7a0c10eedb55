//! Parameters, and the values they are set to.
//!
//! A [`Parameter`] declares a name, a [`Kind`] with its range, and a default,
//! all in the form of files. [`Settings`] are the values of all parameters of
//! one owner (a discipline, a request scheduler or a shaper), read and checked
//! once: nothing built from them can be wrong.

use std::fmt;
use std::sync::Arc;

use crate::contract::{ContractError, Contracts};
use crate::residual::Residual;
use crate::units::{Amount, Bytes, Rate, Span};

/// A setting of its owner: a discipline, a request scheduler or a shaper.
#[derive(Debug)]
pub struct Parameter {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// Its meaning, in one line.
    pub help: &'static str,
    /// The values that it takes.
    pub kind: Kind,
    /// The default, in the form of a file.
    pub default: &'static str,
}

/// The type and range of a [`Parameter`]; limits are inclusive.
#[derive(Debug)]
pub enum Kind {
    /// A length of time.
    Span {
        /// Shortest.
        least: Span,
        /// Longest.
        most: Span,
    },
    /// A size in bytes.
    Bytes {
        /// Smallest.
        least: Bytes,
        /// Largest.
        most: Bytes,
    },
    /// A number of packets or a size.
    Amount,
    /// A rate, or the word `unlimited`.
    Bandwidth {
        /// Smallest.
        least: Rate,
    },
    /// A whole number.
    Count {
        /// Smallest.
        least: u32,
        /// Largest.
        most: u32,
    },
    /// A plain number.
    Number {
        /// Smallest.
        least: f64,
        /// Largest.
        most: f64,
    },
    /// On or off.
    Switch,
    /// One of a few words.
    Choice(&'static [&'static str]),
    /// The promises to flows, in the text form of [`Contracts`]: deadlines that can all be met.
    Contracts,
}

/// No limit, as the value of a [`Kind::Bandwidth`].
const UNLIMITED: &str = "unlimited";

/// A value of a [`Parameter`].
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Of [`Kind::Span`].
    Span(Span),
    /// Of [`Kind::Bytes`].
    Bytes(Bytes),
    /// Of [`Kind::Amount`].
    Amount(Amount),
    /// Of [`Kind::Bandwidth`]; nothing is no limit.
    Bandwidth(Option<Rate>),
    /// Of [`Kind::Count`].
    Count(u32),
    /// Of [`Kind::Number`].
    Number(f64),
    /// Of [`Kind::Switch`].
    Switch(bool),
    /// Of [`Kind::Choice`].
    Choice(&'static str),
    /// Of [`Kind::Contracts`].
    Contracts(Arc<Contracts>),
}

/// A setting that its owner does not take.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// The owner has no parameter of this name.
    #[error("'{owner}' has no parameter '{found}'; it has {known}")]
    UnknownParameter {
        /// The owner, by its name in files.
        owner: &'static str,
        /// The name in the input.
        found: String,
        /// The names of the owner's parameters.
        known: String,
    },
    /// The value is not of the parameter's type or outside its range.
    #[error("{parameter} of '{owner}': '{found}' is not {expected}")]
    WrongValue {
        /// The owner, by its name in files.
        owner: &'static str,
        /// The parameter.
        parameter: &'static str,
        /// The value in the input.
        found: String,
        /// What would have been right.
        expected: String,
    },
    /// The parameter keeps its value as long as its owner runs.
    #[error("{parameter} of '{owner}' cannot be set while it runs")]
    Fixed {
        /// The owner, by its name in files.
        owner: &'static str,
        /// The parameter.
        parameter: &'static str,
    },
}

/// Values for all parameters of one owner, defaults filled in and checked.
#[derive(Clone, Debug, PartialEq)]
pub struct Settings(Vec<(&'static str, Value)>);

impl Parameter {
    /// Reads a value for `owner`.
    fn read(&self, owner: &'static str, text: &str) -> Result<Value, SettingError> {
        let wrong = |expected| SettingError::WrongValue {
            owner,
            parameter: self.name,
            found: text.into(),
            expected,
        };
        self.kind.parse(text).map_err(wrong)
    }
}

impl Kind {
    /// Reads a value; the error describes a correct one.
    fn parse(&self, text: &str) -> Result<Value, String> {
        let value = match self {
            // An error in a longer text needs an explanation, not only what would be right.
            Kind::Contracts => {
                let wrong = |error: &dyn fmt::Display| {
                    format!("a list of flows whose deadlines can all be met: {error}")
                };
                let contracts: Contracts =
                    text.parse().map_err(|error: ContractError| wrong(&error))?;
                Residual::new(&contracts).map_err(|error| wrong(&error))?;
                return Ok(Value::Contracts(Arc::new(contracts)));
            }
            Kind::Span { least, most } => {
                text.parse().ok().filter(|span| (least..=most).contains(&span)).map(Value::Span)
            }
            Kind::Bytes { least, most } => {
                text.parse().ok().filter(|size| (least..=most).contains(&size)).map(Value::Bytes)
            }
            Kind::Amount => text.parse().ok().map(Value::Amount),
            Kind::Bandwidth { .. } if text == UNLIMITED => Some(Value::Bandwidth(None)),
            Kind::Bandwidth { least } => {
                let rate = text.parse().ok().filter(|rate| rate >= least);
                rate.map(|rate| Value::Bandwidth(Some(rate)))
            }
            Kind::Count { least, most } => {
                text.parse().ok().filter(|count| (least..=most).contains(&count)).map(Value::Count)
            }
            Kind::Number { least, most } => text
                .parse()
                .ok()
                .filter(|number| (least..=most).contains(&number))
                .map(Value::Number),
            // In TOML, a switch may also be a boolean.
            Kind::Switch => match text {
                "on" | "true" => Some(Value::Switch(true)),
                "off" | "false" => Some(Value::Switch(false)),
                _ => None,
            },
            Kind::Choice(words) => {
                words.iter().find(|word| **word == text).map(|word| Value::Choice(word))
            }
        };
        value.ok_or_else(|| self.expected())
    }

    /// The correct values, in words.
    #[must_use]
    pub fn expected(&self) -> String {
        match self {
            Kind::Span { least, most } => format!("a time from '{least}' to '{most}'"),
            Kind::Bytes { least, most } => format!("a size from '{least}' to '{most}'"),
            Kind::Amount => "a number of packets or a size, for example '20 packets' or '30 \
                             kB'"
            .into(),
            Kind::Bandwidth { least } => {
                format!("a rate of at least '{least}', for example '18 Mbit/s', or '{UNLIMITED}'")
            }
            Kind::Count { least, most } => format!("a whole number from {least} to {most}"),
            Kind::Number { least, most } => format!("a number from {least} to {most}"),
            Kind::Switch => "on or off".into(),
            Kind::Choice(words) => format!("one of {}", words.join(", ")),
            Kind::Contracts => "a file of flows, or its list of flows in one line".into(),
        }
    }
}

/// The value in the form of a file; in the alternate form, `{:#}`, exact to the
/// last digit, so that reading it gives the same value.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Span(span) => fmt::Display::fmt(span, f),
            Value::Bytes(size) => fmt::Display::fmt(size, f),
            Value::Amount(amount) => fmt::Display::fmt(amount, f),
            Value::Bandwidth(Some(rate)) => fmt::Display::fmt(rate, f),
            Value::Bandwidth(None) => f.write_str(UNLIMITED),
            Value::Count(count) => write!(f, "{count}"),
            Value::Number(number) => write!(f, "{number}"),
            Value::Switch(is_on) => f.write_str(if *is_on { "on" } else { "off" }),
            Value::Choice(word) => f.write_str(word),
            Value::Contracts(contracts) => write!(f, "{contracts}"),
        }
    }
}

impl Settings {
    /// Reads `(parameter, value)` pairs in the form of a file, for the `owner` of these parameters.
    ///
    /// # Errors
    /// A name that is not among the parameters, or a value of the wrong type or out of range.
    pub fn read(
        owner: &'static str,
        parameters: &'static [Parameter],
        given: &[(&str, &str)],
    ) -> Result<Settings, SettingError> {
        let default = |parameter: &'static Parameter| {
            parameter.read(owner, parameter.default).map(|value| (parameter.name, value))
        };
        let defaults = parameters.iter().map(default).collect::<Result<_, _>>().map(Settings)?;
        defaults.with(owner, parameters, given)
    }

    /// These settings of `owner` with other values for the parameters in `given`.
    ///
    /// # Errors
    /// As [`Settings::read`].
    pub(crate) fn with(
        &self,
        owner: &'static str,
        parameters: &'static [Parameter],
        given: &[(&str, &str)],
    ) -> Result<Settings, SettingError> {
        let mut settings = self.clone();
        for (name, text) in given {
            let Some(at) = parameters.iter().position(|parameter| parameter.name == *name) else {
                let names: Vec<_> = parameters.iter().map(|p| p.name).collect();
                return Err(SettingError::UnknownParameter {
                    owner,
                    found: (*name).into(),
                    known: if names.is_empty() { "none".into() } else { names.join(", ") },
                });
            };
            settings.0[at].1 = parameters[at].read(owner, text)?;
        }
        Ok(settings)
    }

    /// Every parameter's default.
    ///
    /// # Panics
    /// If a default is not a value of its parameter, which a test of each list excludes.
    #[must_use]
    pub fn defaults(parameters: &'static [Parameter]) -> Settings {
        Settings::read("defaults", parameters, &[]).expect("defaults are valid")
    }

    /// The value of the parameter called `name`, of any kind.
    ///
    /// # Panics
    /// When there is no such parameter.
    #[must_use]
    pub fn value(&self, name: &str) -> &Value {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.expect("an owner asks for its own parameters only").1
    }

    /// The value of a [`Kind::Span`] parameter. Like its siblings, it is for
    /// `build` functions, which ask only for the parameters of their own entry.
    ///
    /// # Panics
    /// When the entry has no such parameter of this kind.
    #[must_use]
    pub fn span(&self, name: &str) -> Span {
        match self.value(name) {
            Value::Span(span) => *span,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Bytes`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn bytes(&self, name: &str) -> Bytes {
        match self.value(name) {
            Value::Bytes(size) => *size,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Amount`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn amount(&self, name: &str) -> Amount {
        match self.value(name) {
            Value::Amount(amount) => *amount,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Bandwidth`] parameter, or nothing for no limit; panics
    /// as [`Settings::span`].
    #[must_use]
    pub fn bandwidth(&self, name: &str) -> Option<Rate> {
        match self.value(name) {
            Value::Bandwidth(rate) => *rate,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Count`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn count(&self, name: &str) -> u32 {
        match self.value(name) {
            Value::Count(count) => *count,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Number`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn number(&self, name: &str) -> f64 {
        match self.value(name) {
            Value::Number(number) => *number,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Switch`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn switch(&self, name: &str) -> bool {
        match self.value(name) {
            Value::Switch(is_on) => *is_on,
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Contracts`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn contracts(&self, name: &str) -> Arc<Contracts> {
        match self.value(name) {
            Value::Contracts(contracts) => contracts.clone(),
            other => unreachable!("{name} is {other:?}"),
        }
    }

    /// The value of a [`Kind::Choice`] parameter; panics as [`Settings::span`].
    #[must_use]
    pub fn choice(&self, name: &str) -> &'static str {
        match self.value(name) {
            Value::Choice(word) => word,
            other => unreachable!("{name} is {other:?}"),
        }
    }
}
