//! Grades of latency under load, on the scale of the tests that people know.

use std::fmt;

use serde::de::{Deserialize, Deserializer, Error, Unexpected};
use serde::{Serialize, Serializer};

/// What load adds to the delay, as a grade.
///
/// The scale is that of the DSLReports test (`DSLReports 2015`), which Waveform's and
/// others have taken over: the increase of the round trip while the link is full, averaged
/// over a download and an upload. What load adds to the one-way delays of both
/// directions, averaged, is the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grade {
    /// Less than 5 ms.
    APlus,
    /// Less than 30 ms.
    A,
    /// Less than 60 ms.
    B,
    /// Less than 200 ms.
    C,
    /// Less than 400 ms.
    D,
    /// 400 ms or more.
    F,
}

impl Grade {
    /// All of them with what each stays below, in seconds.
    pub const SCALE: [(Grade, f64); 6] = [
        (Grade::APlus, 0.005),
        (Grade::A, 0.030),
        (Grade::B, 0.060),
        (Grade::C, 0.200),
        (Grade::D, 0.400),
        (Grade::F, f64::INFINITY),
    ];

    /// The grade of an added delay in seconds.
    ///
    /// ```
    /// use tidegate_study::verdict::Grade;
    /// assert_eq!([0.0, 0.0049, 0.005, 0.2, 7.0].map(|it| Grade::of(it).name()), ["A+", "A+", "A", "D", "F"]);
    /// ```
    #[must_use]
    pub fn of(added_s: f64) -> Grade {
        let found = Grade::SCALE.into_iter().find(|(_, below)| added_s < *below);
        found.map_or(Grade::F, |(grade, _)| grade)
    }

    /// As it is written: `A+`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Grade::APlus => "A+",
            Grade::A => "A",
            Grade::B => "B",
            Grade::C => "C",
            Grade::D => "D",
            Grade::F => "F",
        }
    }
}

impl fmt::Display for Grade {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Grade {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Grade {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Grade, D::Error> {
        let name = String::deserialize(deserializer)?;
        let found = Grade::SCALE.iter().find(|(grade, _)| grade.name() == name);
        found
            .map(|(grade, _)| *grade)
            .ok_or_else(|| D::Error::invalid_value(Unexpected::Str(&name), &"a grade"))
    }
}
