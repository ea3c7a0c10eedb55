//! What the files that people write for Tidegate have in common.
//!
//! A file is TOML and is read once. A [`Text`] is a quantity with its unit, a [`Count`] a
//! whole number within its range, and [`At`] gives any value its place. Whatever is wrong
//! is a [`Mistake`] at a place, and ends in a [`FileError`]: one line that says where,
//! which key, what was found and what was expected, and for a name the [`nearest`] one.

mod mistake;
mod nearest;
mod schema;
mod values;

pub use mistake::{FileError, Mistake};
pub use nearest::{expectation, nearest};
pub use schema::schema_of;
pub use values::{At, Count, InText, Quantity, Scalar, Text};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
