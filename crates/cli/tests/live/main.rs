//! The live gateway in a network of its own.
#![cfg(target_os = "linux")]

mod bed;
mod case;
mod classes;
mod intercept;
mod names;
mod quic;
mod rights;
