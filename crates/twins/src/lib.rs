//! Slow and obvious twins of what `tidegate-core` decides, and the audits that hold
//! both to the rules that all of them share.
//!
//! A twin derives every answer from the whole history, with none of the data
//! structures of its counterpart. Where the two differ, one of them is wrong, and
//! the twin is the one that a reader can check against the paper. Only tests and
//! fuzzing need these twins, so this crate is not published.
//!
//! | module | holds |
//! | --- | --- |
//! | [`audit`] | a discipline whose every answer is checked against the rules of all disciplines |
//! | [`disciplines`] | the twin of every registered discipline |
//! | [`shapers`] | the twins of the disciplines that hold packets back |
//! | [`egress`] | the twin of the egress to a link |
//! | [`requests`] | the twins of the request schedulers and of the proxy, and drivers that keep their books |
//! | [`pages`] | pages of the documentation that repeat what the code says, held against it |

pub mod audit;
pub mod disciplines;
pub mod egress;
pub mod pages;
pub mod requests;
pub mod shapers;
