//! The papers' claims, as things to measure.
//!
//! A [`Claim`] says in our words what a paper claims, where, and which settings
//! the paper leaves open. Measuring it runs scenarios through a [`Lab`] and
//! gives a [`Finding`]: checks, each with the paper's figure beside ours, and
//! figures drawn as in the paper. The verdict is computed from the checks; there
//! is no place where it could be written by hand. What a check asks for stands
//! in its words, and comes from the paper's text before anything is measured:
//! a claim that does not hold is reported so.
//!
//! All checks are of differences or ratios between runs of one seed, which have
//! the same arrivals; their intervals are over seeds. Maxima, quantiles and what else
//! may have heavy tails are judged by their medians ([`tidegate_study::Centre`]).

mod be;
mod check;
mod efd;
mod figure;
mod lab;
mod las;
mod msf;
mod runs;
mod table;
mod wlan;

use serde::Serialize;

pub use check::{Check, Outcome};
pub use figure::{Figure, Line, Measure, Scale};
pub use lab::{Effort, Lab, Observer, Stopped};
pub use table::{Row, Table};

/// Every claim, paper by paper.
pub const CLAIMS: &[&[Claim]] = &[efd::CLAIMS, las::CLAIMS, be::CLAIMS, msf::CLAIMS, wlan::CLAIMS];

/// A paper whose claims are measured.
#[derive(Debug)]
pub struct Paper {
    /// Its short name in this project.
    pub key: &'static str,
    /// Authors, title, place and year.
    pub reference: &'static str,
    /// What its experiments have in common, and what of it is ours.
    pub setting: &'static str,
}

/// Something that a paper says, and how it is measured.
#[derive(Debug)]
pub struct Claim {
    /// `EFD-5`: the paper's key and a name within it, after the figure where
    /// there is one.
    pub id: &'static str,
    /// The paper.
    pub paper: &'static Paper,
    /// Section and figure.
    pub source: &'static str,
    /// What it says, in our words.
    pub text: &'static str,
    /// How it is measured here, and what the paper leaves open.
    pub method: &'static str,
    /// What is known of the reasons where it does not come out as in the paper.
    pub discussion: &'static str,
    pub(crate) measure: fn(&Lab<'_>) -> Result<Finding, Stopped>,
}

impl Claim {
    /// Runs what is needed and computes what came out.
    ///
    /// # Errors
    /// When the lab was stopped before the runs were done.
    pub fn measure(&self, lab: &Lab<'_>) -> Result<Finding, Stopped> {
        (self.measure)(lab)
    }
}

/// The claims whose ids or papers are `names`, in the order of the list; all
/// without names.
///
/// # Errors
/// The first name that is neither.
pub fn select(names: &[String]) -> Result<Vec<&'static Claim>, String> {
    let all = || CLAIMS.iter().flat_map(|claims| claims.iter());
    let is = |claim: &Claim, name: &str| {
        claim.id.eq_ignore_ascii_case(name) || claim.paper.key.eq_ignore_ascii_case(name)
    };
    if let Some(unknown) = names.iter().find(|name| !all().any(|claim| is(claim, name))) {
        return Err(unknown.clone());
    }
    let wanted = |claim: &&Claim| names.is_empty() || names.iter().any(|name| is(claim, name));
    Ok(all().filter(wanted).collect())
}

/// What measuring a claim has given.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// The claim.
    pub id: &'static str,
    /// The verdict, from the checks.
    pub verdict: Verdict,
    /// What was asked and what came out.
    pub checks: Vec<Check>,
    /// Drawn as in the paper.
    pub figures: Vec<Figure>,
    /// Numbers behind the figures, where the claim is about many.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub tables: Vec<Table>,
    /// The scenarios that were run, as they are called among the shipped ones.
    pub scenarios: Vec<&'static str>,
    /// The seeds.
    pub seeds: Vec<u64>,
}

impl Finding {
    /// A finding whose verdict follows from `checks`.
    #[must_use]
    pub(crate) fn new(
        id: &'static str,
        lab: &Lab<'_>,
        scenarios: &[&'static str],
        checks: Vec<Check>,
        figures: Vec<Figure>,
    ) -> Finding {
        let verdict = Verdict::of(&checks);
        let (scenarios, seeds) = (scenarios.to_vec(), lab.seeds());
        Finding { id, verdict, checks, figures, tables: Vec::new(), scenarios, seeds }
    }

    /// The same with tables.
    #[must_use]
    pub(crate) fn with_tables(self, tables: Vec<Table>) -> Finding {
        Finding { tables, ..self }
    }

    /// The same, of runs with other seeds than the lab's.
    #[must_use]
    pub(crate) fn over(self, seeds: Vec<u64>) -> Finding {
        Finding { seeds, ..self }
    }
}

/// What came of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Every check holds.
    Holds,
    /// Some checks hold, others do not or cannot be told with these seeds.
    HoldsInPart,
    /// No check holds.
    DoesNotHold,
    /// No check can be told with these seeds.
    Undecided,
}

impl Verdict {
    fn of(checks: &[Check]) -> Verdict {
        let holding = checks.iter().filter(|check| check.outcome == Outcome::Holds).count();
        let failing = checks.iter().filter(|check| check.outcome == Outcome::Fails).count();
        match (holding, failing) {
            (0, 0) => Verdict::Undecided,
            (0, _) => Verdict::DoesNotHold,
            (holding, _) if holding == checks.len() => Verdict::Holds,
            _ => Verdict::HoldsInPart,
        }
    }

    /// In words, for tables.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self {
            Verdict::Holds => "holds",
            Verdict::HoldsInPart => "holds in part",
            Verdict::DoesNotHold => "does not hold here",
            Verdict::Undecided => "undecided",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_are_unique_and_begin_with_their_papers_key() {
        let claims = select(&[]).unwrap();
        for (index, claim) in claims.iter().enumerate() {
            assert!(claim.id.starts_with(&format!("{}-", claim.paper.key)), "{}", claim.id);
            assert!(claims[..index].iter().all(|other| other.id != claim.id), "{}", claim.id);
        }
    }

    #[test]
    fn claims_are_found_by_id_and_by_paper() {
        assert_eq!(select(&["efd-5".into()]).unwrap()[0].id, "EFD-5");
        assert!(select(&["EFD".into()]).unwrap().len() > 5);
        assert_eq!(select(&["EFD-5".into(), "EFD-99".into()]).unwrap_err(), "EFD-99");
    }
}
