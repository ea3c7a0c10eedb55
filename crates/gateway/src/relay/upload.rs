//! The bodies of requests.

use std::cell::Cell;

use tidegate_core::Bytes;
use tokio::time::timeout;

use super::{Failure, Relay, bad, broken_off, refused};
use crate::client::Client;
use crate::message::{Body, Response, Scan};
use crate::servers::Server;
use crate::socket::AT_ONCE;

/// An upload, counted while it goes on.
struct Going<'a>(&'a Cell<u32>);

impl Going<'_> {
    fn new(count: &Cell<u32>) -> Going<'_> {
        count.set(count.get() + 1);
        Going(count)
    }
}

impl Drop for Going<'_> {
    fn drop(&mut self) {
        self.0.set(self.0.get() - 1);
    }
}

impl Relay<'_> {
    /// Reads a small body to its end.
    pub(super) async fn read_body(
        &mut self,
        body: &mut Body,
        out: &mut Vec<u8>,
    ) -> Result<(), Failure> {
        loop {
            let inbox = &mut self.client.inbox;
            let size = body.take_all(inbox.data()).map_err(refused)?;
            out.extend_from_slice(&inbox.data()[..size]);
            inbox.consume(size);
            if body.is_over() {
                return Ok(());
            }
            self.hear_client().await?;
        }
    }

    async fn hear_client(&mut self) -> Result<(), Failure> {
        let Client { stream, inbox, patience, .. } = &mut *self.client;
        match timeout(*patience, inbox.fill(stream, AT_ONCE as u64)).await {
            Ok(Ok(1..)) => Ok(()),
            Ok(_) => Err(Failure::Client),
            Err(_) => Err(Failure::Answer(408, "the body takes too long".into())),
        }
    }

    /// Sends the head in `out`, and then the body as it comes, but for its last bytes,
    /// which it returns. It ends before them if the server answers before.
    pub(super) async fn upload(
        &mut self,
        server: &mut Server,
        body: &mut Body,
        mut out: Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let house = self.house;
        let _going = Going::new(&house.uploads);
        let patience = self.client.patience;
        let mut scan = Scan::default();
        loop {
            let waits = out.is_empty();
            let Client { stream, inbox, connection, user, .. } = &mut *self.client;
            if waits && !inbox.data().is_empty() {
                let size = body.take_all(inbox.data()).map_err(refused)?;
                out.extend_from_slice(&inbox.data()[..size]);
                inbox.consume(size);
                if body.is_over() {
                    return Ok(out);
                }
                continue;
            }
            let step = async {
                tokio::select! {
                    ready = server.stream.writable(), if !waits => {
                        ready.map_err(|_| broken_off())?;
                        match server.stream.try_write(&out) {
                            Ok(written) => drop(out.drain(..written)),
                            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                            Err(_) => return Err(broken_off()),
                        }
                        Ok(false)
                    }
                    read = inbox.fill(stream, AT_ONCE as u64), if waits => match read {
                        Ok(1..) => Ok(false),
                        _ => Err(Failure::Client),
                    },
                    read = server.inbox.fill(&server.stream, AT_ONCE as u64) => match read {
                        Ok(size @ 1..) => {
                            let size = Bytes(size as u64);
                            house.gate.received_unasked(connection.class(), *user, size);
                            house.received(connection, *user, size);
                            self.record.received += size;
                            Ok(true)
                        }
                        _ => Err(broken_off()),
                    },
                }
            };
            let late = |_| Failure::Answer(408, "the body takes too long".into());
            let has_spoken = timeout(patience, step).await.map_err(late)??;
            // An interim response is part of the question; any other ends the upload.
            while has_spoken && let Some(size) = scan.end(server.inbox.data()).map_err(bad)? {
                let head = &server.inbox.data()[..size];
                let response = Response::read(head, &self.request.method).map_err(bad)?;
                if !response.is_interim() {
                    return Ok(Vec::new());
                }
                scan = Scan::default();
                server.inbox.consume(size);
                let head = response.head_for(self.request.version, true);
                self.send(&head).await?;
            }
        }
    }
}
