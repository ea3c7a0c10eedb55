//! Where ns-3.37's recovery without SACK departs from the RFCs, to be imitated when its
//! results are compared with ours.
//!
//! Each departure was found in ns-3's sources, which are named with the line in version
//! 3.37 (`src/internet/model`), and can be imitated alone. All are of use with
//! NewReno only. They are no advice: each makes repairs slower or more frequent than
//! the RFC has them.

/// What to do as ns-3.37 does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ns3 {
    /// The window of fast recovery. Of the three duplicates that start it only one
    /// counts as delivered, and that one before the window is halved: the threshold is
    /// half a segment lower, and new data waits for two or three duplicates more than
    /// in RFC 6582 section 3.2. The end of the recovery leaves the threshold and adds
    /// one increase of congestion avoidance.
    ///
    /// `TcpSocketBase::EnterRecovery` (tcp-socket-base.cc:1658 and 1684), which counts
    /// with `TcpTxBuffer::AddRenoSack` (tcp-tx-buffer.cc:1387);
    /// `TcpClassicRecovery::EnterRecovery` (tcp-recovery-ops.cc:103);
    /// `TcpSocketBase::ProcessAck` (tcp-socket-base.cc:2203 to 2213).
    pub recovery_window: bool,
    /// Three duplicates of an acknowledgement that covers exactly what was sent before
    /// the last repair start another one. RFC 6582 section 3.2, step 2, asks that it
    /// cover more, since they may come from segments sent again without need.
    ///
    /// `TcpSocketBase::DupAck` (tcp-socket-base.cc:1778).
    pub recovery_point: bool,
    /// The acknowledgement that ends the repair after a timeout lets the window grow by
    /// what it covers of the data sent since the timeout, so not at all when it covers
    /// the repair exactly. RFC 5681 section 3.1 counts all that it covers.
    ///
    /// `TcpSocketBase::ProcessAck` (tcp-socket-base.cc:2185).
    pub repair_end: bool,
}
