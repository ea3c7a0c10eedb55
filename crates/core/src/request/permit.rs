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
//! message of four bytes, for which the mover of the bytes needs no access to
//! the scheduler. Only `std::mem::forget` can still lose a place.

use std::sync::mpsc::{self, Receiver, Sender};

/// One response may be outstanding for as long as this lives.
#[derive(Debug)]
#[must_use = "a permit that is dropped ends its response"]
pub struct Permit {
    response: u32,
    returns: Sender<u32>,
}

impl Permit {
    /// The response's number with its scheduler.
    pub(super) fn response(&self) -> u32 {
        self.response
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        // It fails if the scheduler is gone, and the window with it.
        let _ = self.returns.send(self.response);
    }
}

/// The source of permits, to which they return.
#[derive(Debug)]
pub(super) struct Permits {
    returned: Receiver<u32>,
    returns: Sender<u32>,
}

impl Permits {
    pub(super) fn new() -> Permits {
        let (returns, returned) = mpsc::channel();
        Permits { returned, returns }
    }

    /// The permit of a response.
    pub(super) fn issue(&self, response: u32) -> Permit {
        Permit { response, returns: self.returns.clone() }
    }

    /// The responses whose permits were dropped, oldest first; each appears once.
    pub(super) fn take_returned(&self) -> Option<u32> {
        self.returned.try_recv().ok()
    }
}
