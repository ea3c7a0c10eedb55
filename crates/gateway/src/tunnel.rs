//! Tunnels: bytes of both directions whose content the gateway does not know, after
//! CONNECT or a change of protocol.
//!
//! A burst of uplink data after quiet is taken for a request, and held until the
//! scheduler releases it; the downlink is read as it says, and goes through pipes while it
//! brings much. The state machine is [`tidegate_core::request`]'s.

use std::io;
use std::time::Duration;

use tidegate_core::request::REPORT_EVERY;
use tidegate_core::{Bytes, Span};
use tokio::net::TcpStream;
use tokio::time::{sleep, timeout};

use crate::books::Stage;
use crate::client::Client;
use crate::gate::{Tunnel, duration};
use crate::pipe::{self, Pipes};
use crate::records::{Records, is_ssh};
use crate::relay::Next;
use crate::servers::Server;
use crate::socket::{self, AT_ONCE, Inbox};

/// What of a held request is taken from the client before its turn.
const MOST_HELD: usize = 65_536;

/// How a direction ended.
enum Over {
    /// The end from which it comes has finished.
    Finished,
    /// Something is missing.
    Broken,
}

/// Carries bytes between a client and a server until both have finished. Tells `received`
/// what came from the server, and `took` how long a stage of a request took.
pub(crate) async fn carry(
    tunnel: &Tunnel,
    client: &mut Client,
    mut server: Server,
    pipes: &Pipes,
    received: impl FnMut(Bytes),
    took: impl Fn(Stage, Span),
) -> Next {
    tunnel.path(server.round_trip);
    let Client { stream, inbox, patience, .. } = client;
    let (client, patience) = (&*stream, *patience);
    let came = std::mem::take(&mut server.inbox);
    let over = {
        let up = up(tunnel, client, inbox, &server.stream, patience, &took);
        let down = Down { tunnel, client, server: &server, pipes, patience, received, took: &took };
        let down = down.run(came);
        tokio::pin!(up, down);
        tokio::select! {
            () = tunnel.over() => Over::Broken,
            over = &mut up => match over {
                // Nothing is read of a client that has finished, so it has to be asked
                // whether it still takes what comes.
                Over::Finished => tokio::select! {
                    over = down => over,
                    () = socket::broken(client) => Over::Broken,
                },
                Over::Broken => over,
            },
            over = &mut down => match over {
                // Nobody answers what the client still says, but it may have to say it.
                Over::Finished => timeout(patience, up).await.unwrap_or(Over::Finished),
                Over::Broken => over,
            },
        }
    };
    match over {
        Over::Finished => Next::Close,
        Over::Broken => {
            socket::abort(server.stream);
            Next::Abort
        }
    }
}

/// From the client to the server.
async fn up(
    tunnel: &Tunnel,
    client: &TcpStream,
    inbox: &mut Inbox,
    server: &TcpStream,
    patience: Duration,
    took: &impl Fn(Stage, Span),
) -> Over {
    let mut records = Records::default();
    let mut is_first = true;
    // Of the inbox: what the state machine knows of, and what may go.
    let (mut seen, mut passing) = (0, 0);
    loop {
        if is_first && !inbox.data().is_empty() {
            is_first = false;
            if is_ssh(inbox.data()) {
                tunnel.exempt();
            }
        }
        while let Some((piece, size)) = records.next(&inbox.data()[seen..]) {
            seen += size;
            match tunnel.send(piece) {
                Ok(true) => passing = seen,
                Ok(false) => {}
                Err(_) => return Over::Broken,
            }
        }
        if passing > 0 {
            if let Some(waited) = tunnel.released() {
                took(Stage::Waited, waited);
            }
            if socket::write_all(server, &inbox.data()[..passing], patience).await.is_err() {
                return Over::Broken;
            }
            inbox.consume(passing);
            (seen, passing) = (seen - passing, 0);
            continue;
        }
        let is_held = seen > 0;
        let has_room = inbox.data().len() < MOST_HELD;
        if !is_held && inbox.data().is_empty() {
            inbox.rest();
        }
        tokio::select! {
            () = tunnel.passes(), if is_held => passing = seen,
            read = inbox.fill(client, AT_ONCE as u64), if has_room => match read {
                Ok(1..) => {}
                // Nobody waits for the answer to what is held.
                Ok(0) if !is_held => break,
                _ => return Over::Broken,
            },
        }
    }
    // Less than a header of a record is left, if anything is.
    let rest = socket::write_all(server, inbox.data(), patience).await;
    match rest.and_then(|()| shut(server)) {
        Ok(()) => Over::Finished,
        Err(_) => Over::Broken,
    }
}

/// What goes from the server to the client.
struct Down<'a, R, T> {
    tunnel: &'a Tunnel,
    client: &'a TcpStream,
    server: &'a Server,
    pipes: &'a Pipes,
    patience: Duration,
    received: R,
    took: &'a T,
}

impl<R: FnMut(Bytes), T: Fn(Stage, Span)> Down<'_, R, T> {
    /// Carries all of it, first what came before the tunnel was one.
    async fn run(mut self, mut inbox: Inbox) -> Over {
        let mut is_first = true;
        loop {
            if socket::write_all(self.client, inbox.data(), self.patience).await.is_err() {
                return Over::Broken;
            }
            inbox.consume(inbox.data().len());
            inbox.rest();
            let may = self.may_read().await;
            let passed = match inbox.is_busy() {
                true => self.pass(may).await,
                false => Ok(None),
            };
            let size = match passed {
                Ok(Some(size)) => {
                    inbox.found(size);
                    size
                }
                Ok(None) => {
                    self.server.shrink(inbox.at_most(may));
                    let Ok(size) = inbox.fill(&self.server.stream, may).await else {
                        return Over::Broken;
                    };
                    if std::mem::take(&mut is_first) && is_ssh(inbox.data()) {
                        self.tunnel.exempt();
                    }
                    self.account(size);
                    size
                }
                Err(_) => return Over::Broken,
            };
            if size == 0 {
                break;
            }
        }
        if shut(self.client).is_ok() { Over::Finished } else { Over::Broken }
    }

    /// Waits until something may be read; returns how much.
    async fn may_read(&self) -> u64 {
        loop {
            match self.tunnel.may_read() {
                0 => self.tunnel.came(socket::unread(&self.server.stream)),
                may => return may,
            }
            tokio::select! {
                may = self.tunnel.readable() => return may,
                // More may have come.
                () = sleep(duration(REPORT_EVERY)) => {}
            }
        }
    }

    /// Waits for bytes and sends at most so many on unseen; returns how many there were, or
    /// `None` if they have to be read.
    async fn pass(&mut self, may: u64) -> io::Result<Option<usize>> {
        let most = usize::try_from(may).map_or(pipe::AT_ONCE, |may| may.min(pipe::AT_ONCE));
        self.server.shrink(most);
        let Some(pipe) = self.pipes.fill(&self.server.stream, most).await? else {
            return Ok(None);
        };
        let size = pipe.size();
        self.account(size);
        self.pipes.drain(pipe, self.client, self.patience).await?;
        Ok(Some(size))
    }

    /// So much has come from the server.
    fn account(&mut self, size: usize) {
        if size == 0 {
            return;
        }
        (self.received)(Bytes(size as u64));
        if let Some(first_byte) = self.tunnel.answered() {
            (self.took)(Stage::FirstByte, first_byte);
        }
        self.tunnel.read(size);
        if let Some(size) = self.tunnel.buffer() {
            self.server.resize(size);
        }
    }
}

/// Nothing more comes in this direction.
fn shut(stream: &TcpStream) -> io::Result<()> {
    socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write)
}
