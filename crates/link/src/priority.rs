//! The priority of the threads that send.
//!
//! A packet is due at a moment, and a busy machine wakes an ordinary thread some tenths of a
//! millisecond later, sometimes more. A thread of `SCHED_FIFO` (sched(7)) goes before all
//! ordinary ones; of the real-time priorities the least is enough for that. The kernel leaves
//! the others a twentieth of the processor whatever happens (`sched_rt_runtime_us`).

#![expect(unsafe_code, reason = "there is no safe interface to the scheduler")]

use std::io;

/// Puts the calling thread, and those that it starts from then on, before all ordinary ones.
///
/// # Errors
/// The machine does not permit it: that takes `CAP_SYS_NICE`, or a limit `RLIMIT_RTPRIO`
/// above zero.
pub fn raise() -> io::Result<()> {
    set(libc::SCHED_FIFO, 1)
}

/// Makes the calling thread an ordinary one again; those that it started stay as they are.
///
/// # Errors
/// None that is known: nobody is kept from giving a priority back.
pub fn lower() -> io::Result<()> {
    set(libc::SCHED_OTHER, 0)
}

fn set(policy: libc::c_int, priority: libc::c_int) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority };
    // SAFETY: the calling thread, which 0 names, exists, and the kernel only reads the
    // parameters, which outlive the call.
    let done = unsafe { libc::sched_setscheduler(0, policy, &raw const parameters) };
    if done == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}
