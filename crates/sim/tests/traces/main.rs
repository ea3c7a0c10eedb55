//! Readers of files: captures, logs, page loads, traces of links, and results of Flent.

mod arbitrary;
mod capture;
mod flent;
mod shipped;
mod sizes;
mod text;
