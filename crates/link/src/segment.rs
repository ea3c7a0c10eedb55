//! Super-packets, cut into packets of the link.
