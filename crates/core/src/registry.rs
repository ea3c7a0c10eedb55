//! The one list of disciplines.
//!
//! Command line, scenario files, documentation, conformance tests and
//! benchmarks all read [`DISCIPLINES`]; there is no second list. A discipline
//! describes itself by an [`Entry`] in its own file and gets one line here.

use crate::discipline;
use crate::entry::Entry;

/// Every discipline, in the order in which they are shown.
pub const DISCIPLINES: &[Entry] = &[
    discipline::fifo::ENTRY,
    discipline::las::ENTRY,
    discipline::las_log::ENTRY,
    discipline::lars::ENTRY,
    discipline::las_ack::ENTRY,
    discipline::run2c::ENTRY,
    discipline::run2c_ack::ENTRY,
    discipline::x_protect::ENTRY,
    discipline::scfq::ENTRY,
    discipline::drr::ENTRY,
    discipline::efd::ENTRY,
    discipline::efd_ack::ENTRY,
    discipline::red::ENTRY,
    discipline::codel::ENTRY,
    discipline::fq::ENTRY,
    discipline::fq_codel::ENTRY,
    discipline::pie::ENTRY,
    discipline::fq_pie::ENTRY,
    discipline::dualpi2::ENTRY,
    discipline::sfq::ENTRY,
    discipline::cake::ENTRY,
    discipline::deadlines::ENTRY,
    discipline::tide::ENTRY,
];

/// The entry of the discipline with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static Entry> {
    DISCIPLINES.iter().find(|entry| entry.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_every_default_is_valid() {
        for (position, entry) in DISCIPLINES.iter().enumerate() {
            assert!(DISCIPLINES[..position].iter().all(|other| other.name != entry.name));
            entry.settings(&[]).unwrap_or_else(|error| panic!("{error}"));
        }
    }

    #[test]
    fn errors_name_what_was_found_and_what_was_expected() {
        let error = find("fifo").unwrap().settings(&[("threshold", "1 B")]).unwrap_err();
        assert_eq!(error.to_string(), "'fifo' has no parameter 'threshold'; it has none");
    }
}
