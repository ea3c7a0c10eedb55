//! `tidegate measure` on networks of namespaces whose queues are known.
//!
//! A client, a provider's router and a server stand in a row. The router holds traffic back
//! to a rate each way, and its queue is what there is `now`; whatever the client puts in
//! front of a lower rate takes its place. This takes root's rights, `ip`, `tc`, and the
//! kernel's `tbf` and `ifb`; elsewhere tests print `SKIP` and the reason.

#![cfg(target_os = "linux")]
#![expect(clippy::unwrap_used, reason = "a test may panic")]

mod bed;
mod known;
mod others;
mod protocol;
mod undone;
