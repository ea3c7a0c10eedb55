//! TCP endpoints as state machines without sockets, clocks or payload bytes.
