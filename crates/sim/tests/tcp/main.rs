//! TCP's endpoints: what they send and when, how their controllers behave, and what holds
//! whatever happens on the way.

mod bbr;
mod bbr3;
mod controllers;
mod cost;
mod delivery;
mod pacing;
mod pair;
mod random;
mod reading;
mod throughput;
mod traces;
mod undo;
