//! Congestion avoidance of RFC 5681: about one segment per round trip, and
//! half of what was in flight after a loss.

/// Window after one more acknowledgement, whatever it covers: RFC 5681
/// equation 3, which ns-2 and ns-3 use too. With delayed acknowledgements
/// it adds half a segment per round trip, as the square-root law with
/// `b` = 2 assumes; counting bytes would add a whole one.
pub(super) fn avoid(window: u64, mss: u64) -> u64 {
    window + (mss * mss / window).max(1)
}

/// RFC 5681 equation 4, before its lower limit.
pub(super) fn reduced(flight: u64) -> u64 {
    flight / 2
}
