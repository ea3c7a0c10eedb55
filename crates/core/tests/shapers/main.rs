//! Disciplines that hold packets back, and the way out to a link: held to the rules
//! that all disciplines share, to slow twins, and to exact laws.

mod conformance;
mod laws;
