//! Every registered discipline, held to the rules all share, to a slow and
//! obvious twin, to exact laws, and to its page in the documentation.
//!
//! A new discipline is picked up from the registry; it needs a twin and a page.

mod acknowledgements;
mod cake;
mod conformance;
mod delay_control;
mod fairness;
mod floods;
mod laws;
mod pages;
mod recent_service;
mod reconfiguration;
mod tide;
mod tide_hosts;
