//! The rights that a gateway or a link keeps while it serves.
//!
//! Root may open its sockets, but nobody should read what strangers send with root's
//! rights. So once they are open, everything goes but what is needed later: of a gateway
//! `CAP_NET_ADMIN` for `--rules`, and `CAP_NET_BIND_SERVICE` as well for the relay of QUIC;
//! of a link nothing. What is left is ambient, so that `nft` and `ip` have it and nothing
//! else. No program that is started from then on can have more. An ordinary user has
//! nothing to lose, and loses nothing.
//!
//! The kernel gives rights to threads, and new threads have those of the one that starts
//! them: this has to happen while there is only one.

use nix::errno::Errno;
use nix::unistd::{self, User};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    configure_capability_in_ambient_set, set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use crate::failure::Failure;

/// The user that a gateway or a link is to become.
pub(crate) fn user(name: &str) -> Result<User, Failure> {
    let expected = "the name of a user of this machine, such as 'nobody'";
    let user = User::from_name(name)
        .map_err(|reason| Failure::Other(format!("--user '{name}': {reason}")))?
        .ok_or_else(|| Failure::Input(format!("--user: found '{name}', expected {expected}")))?;
    let now = unistd::geteuid();
    if now.is_root() || now == user.uid {
        return Ok(user);
    }
    let found = format!("--user: found '{name}', but only root can become somebody else");
    Err(Failure::Input(format!("{found}; start it as '{name}' without it, or with sudo")))
}

/// Becomes this user, if it is to be one, and gives up all rights but those that are
/// needed.
pub(crate) fn give_up(user: Option<&User>, needed: CapabilitySet) -> Result<(), Failure> {
    let failed = |reason: Errno| Failure::Other(format!("rights cannot be given up: {reason}"));
    let failed_too = |reason: rustix::io::Errno| failed(Errno::from_raw(reason.raw_os_error()));
    if let Some(user) = user.filter(|user| user.uid != unistd::geteuid()) {
        become_user(user).map_err(failed)?;
    }
    let now = capabilities(None).map_err(failed_too)?;
    let keep = needed & now.permitted;
    let kept = CapabilitySets { effective: keep, permitted: keep, inheritable: keep };
    // A service manager that gives no more than is needed may forbid the call.
    if kept != now {
        set_capabilities(None, kept).map_err(failed_too)?;
    }
    clear_ambient_capability_set().map_err(failed_too)?;
    for capability in keep.iter() {
        configure_capability_in_ambient_set(capability, true).map_err(failed_too)?;
    }
    set_no_new_privs(true).map_err(failed_too)
}

fn become_user(user: &User) -> Result<(), Errno> {
    // Otherwise they would be lost with the first step, rather than given up in the last.
    set_keep_capabilities(true).map_err(|reason| Errno::from_raw(reason.raw_os_error()))?;
    // Of the groups that root had, none stays.
    unistd::setgroups(&[user.gid])?;
    unistd::setresgid(user.gid, user.gid, user.gid)?;
    unistd::setresuid(user.uid, user.uid, user.uid)
}
