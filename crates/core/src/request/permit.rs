//! The right to have a response outstanding.
//!
//! A leaked place would shrink the window for ever, and a place that is given
//! back twice would widen it, so a place is an object with one owner: it can be
//! neither copied nor made elsewhere, and ceases to exist when its owner has
//! finished with it, for whatever reason: completion, an error, a client or
//! server that is gone, a time limit, or a panic that unwinds. There is no call
//! to forget.
//!
//! A dropped permit tells its scheduler through a queue that the scheduler
//! empties before it does anything else: an atomic count per response and a
//! message of eight bytes, for which the mover of the bytes needs no access to
//! the scheduler. Only `std::mem::forget` can still lose a place.
//!
//! What a server has sent cannot be called back: unless the owner says that a response
//! is complete or was never asked for, its end breaks it off, and more of it may be on
//! its way.

use std::sync::mpsc::{self, Receiver, Sender};

/// One response may be outstanding for as long as this lives.
#[derive(Debug)]
#[must_use = "a permit that is dropped ends its response"]
pub struct Permit {
    response: u32,
    end: End,
    returns: Sender<Returned>,
}

/// A permit that was dropped.
#[derive(Clone, Copy, Debug)]
pub(super) struct Returned {
    /// The response's number with its scheduler.
    pub(super) response: u32,
    pub(super) end: End,
}

/// How a response ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// All of it has come.
    Complete,
    /// Its server was never asked.
    Unasked,
    /// The rest may be on its way.
    Broken,
}

impl Permit {
    /// All of the response has come, or what else comes will be reported as unasked:
    /// nothing that was expected of it is on its way any more.
    pub fn complete(&mut self) {
        self.end = End::Complete;
    }

    /// The request was not sent: nothing comes.
    pub fn unasked(&mut self) {
        self.end = End::Unasked;
    }

    /// The response's number with its scheduler.
    pub(super) fn response(&self) -> u32 {
        self.response
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // It fails if the scheduler is gone, and the window with it.
        let _ = self.returns.send(Returned { response: self.response, end: self.end });
    }
}

/// The source of permits, to which they return.
#[derive(Debug)]
pub(super) struct Permits {
    returned: Receiver<Returned>,
    returns: Sender<Returned>,
}

impl Permits {
    pub(super) fn new() -> Permits {
        let (returns, returned) = mpsc::channel();
        Permits { returned, returns }
    }

    /// The permit of a response.
    pub(super) fn issue(&self, response: u32) -> Permit {
        Permit { response, end: End::Broken, returns: self.returns.clone() }
    }

    /// The responses whose permits were dropped, oldest first; each appears once.
    pub(super) fn take_returned(&self) -> Option<Returned> {
        self.returned.try_recv().ok()
    }
}
