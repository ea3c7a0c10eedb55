//! Queue disciplines of Tidegate as qdiscs of the Linux kernel.
//!
//! A discipline here is a BPF program (`bpf/` in the repository) that the kernel runs in
//! place of a qdisc of its own: Linux 6.16 and later, with `CONFIG_NET_SCH_BPF`. The compiled
//! programs are part of this library, so that nobody needs a compiler for BPF; they find
//! their way around the running kernel by themselves.
//!
//! A qdisc once [loaded](Qdisc::load) needs no process: it stays, with its parameters and
//! statistics, under `/sys/fs/bpf/tidegate` until somebody [removes](Qdisc::remove) it or the
//! machine restarts. Which device has it is for `tc` to say, where it goes by its
//! [name](Qdisc::name), for example `efd_1`. One qdisc is for one device: the kernel refuses
//! it a second one.
//!
//! - [`layout`] is what the programs are told and what they tell, word by word;
//! - [`programs`] are the compiled programs;
//! - [`Qdisc`] is one that the kernel has.

mod contracts;
pub mod layout;
pub mod programs;
mod qdisc;

pub use qdisc::{FOLDER, Qdisc, QdiscError, missing};
