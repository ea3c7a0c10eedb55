//! What happens to a connection while it carries an object.

use crate::connections::{Connection, Side};
use crate::quic::QuicConnection;
use crate::tcp::Statistics;

/// What a connection has lost and repeated.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Trouble {
    pub(super) lost: u32,
    pub(super) retransmissions: u64,
    pub(super) timeouts: u32,
}

impl Trouble {
    /// What a connection has lost so far, and what its server has sent again.
    pub(super) fn of(connection: &mut Connection) -> Trouble {
        let lost = connection.lost;
        let Statistics { retransmissions, timeouts, .. } =
            *connection.endpoint(Side::Acceptor).statistics();
        Trouble { lost, retransmissions, timeouts }
    }

    /// The same of a QUIC connection, whose timeouts are not told.
    pub(super) fn of_quic(connection: &mut QuicConnection) -> Trouble {
        let lost = connection.lost;
        let server = connection.quinn(Side::Acceptor);
        let retransmissions = server.map_or(0, |it| it.stats().path.lost_packets);
        Trouble { lost, retransmissions, timeouts: 0 }
    }

    /// What of it came after `before`.
    pub(super) fn since(self, before: Trouble) -> Trouble {
        Trouble {
            lost: self.lost - before.lost,
            retransmissions: self.retransmissions - before.retransmissions,
            timeouts: self.timeouts - before.timeouts,
        }
    }
}
