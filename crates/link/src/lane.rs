//! One direction of a link.
