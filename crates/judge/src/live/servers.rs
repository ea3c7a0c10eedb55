//! The servers of a case: they answer with as many bytes as the path of a request says.
//!
//! One program is all of them, since they differ by their addresses only.

use std::io;
use std::net::Ipv4Addr;

use tokio::net::{TcpListener, TcpSocket, TcpStream};

use super::talk::{self, Line};

const BACKLOG: u32 = 1_024;

/// Listens for requests on a port of every address of this host.
pub(crate) fn listen(port: u16) -> io::Result<TcpListener> {
    let socket = TcpSocket::new_v4()?;
    socket.set_reuseaddr(true)?;
    socket.bind((Ipv4Addr::UNSPECIFIED, port).into())?;
    socket.listen(BACKLOG)
}

/// Serves for ever.
pub(crate) async fn serve(listener: TcpListener, in_records: bool) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            // Whatever ends a connection, clients see and count it.
            tokio::task::spawn_local(async move { answer(stream, in_records).await });
        }
    }
}

async fn answer(stream: TcpStream, in_records: bool) -> io::Result<()> {
    let mut line = Line::new(stream);
    if in_records {
        line.answer_hands().await?;
        line = line.in_records();
    }
    while let Some(head) = line.head(talk::request_head).await? {
        let wanted = head.name.parse().map_err(|_| io::ErrorKind::InvalidData)?;
        let (response, body) = talk::response(wanted);
        line.write(&response, body).await?;
        if head.is_last {
            break;
        }
    }
    Ok(())
}
