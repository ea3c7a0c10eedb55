//! What an endpoint counts.

/// Counters of one endpoint, since its creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Segments of any kind that were sent.
    pub segments_sent: u64,
    /// Segments of any kind that came in.
    pub segments_received: u64,
    /// Segments with payload, retransmissions included.
    pub data_segments_sent: u64,
    /// Segments with payload or FIN that were sent again, for whatever reason.
    pub retransmissions: u64,
    /// Retransmission timeouts, those of the SYN included.
    pub timeouts: u32,
    /// Fast recoveries begun.
    pub fast_recoveries: u32,
    /// Recoveries and repairs after timeouts that proved to be needless.
    pub undone_recoveries: u32,
    /// Tail loss probes sent.
    pub tail_loss_probes: u32,
    /// Probes sent into a closed window.
    pub window_probes: u32,
    /// Window reductions in answer to congestion marks.
    pub ecn_reductions: u32,
}
