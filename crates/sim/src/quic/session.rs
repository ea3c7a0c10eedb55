//! The handshake of QUIC without cryptography.
//!
//! What a handshake costs on a link is round trips and bytes, and both are kept: the
//! messages of TLS 1.3 (RFC 8446) go in the packets in which RFC 9001 puts them, each as
//! large as one of today's is, the transport parameters in them are read by the peer, and
//! every packet has the 16 bytes of an authentication tag. What they say is not secret and
//! proves nothing: messages are a type, a length and zeros, keys change no byte, and a tag
//! is 16 zeros that nobody looks at. In a simulation there is no one to deceive, and
//! computing secrets that nobody reads would take most of its time.

use std::any::Any;
use std::sync::Arc;

use bytes::{Buf, BytesMut};
use quinn_proto::crypto::{
    ClientConfig, CryptoError, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey,
    ServerConfig, Session, UnsupportedVersion,
};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectError, ConnectionId, Side, TransportError, TransportErrorCode};

/// The authentication tag of AES-128-GCM and ChaCha20-Poly1305.
const TAG: usize = 16;
/// What header protection looks at.
const SAMPLE: usize = 16;
/// Type and length before each message.
const MESSAGE_HEADER: usize = 4;
/// A longer message than any of these is not from here.
const MOST_MESSAGE: usize = 16_000;

// Sizes of messages with their headers.
/// With one key share of X25519, a server name and the usual extensions; the transport
/// parameters are within it.
const CLIENT_HELLO: usize = 320;
const SERVER_HELLO: usize = 122;
/// The transport parameters, and the protocol of the application.
const ENCRYPTED_EXTENSIONS: usize = 160;
/// Two certificates, the server's and one above it.
const CERTIFICATE: usize = 3_000;
/// A signature of RSA with 2048 bits.
const CERTIFICATE_VERIFY: usize = 264;
/// A hash of 32 bytes.
const FINISHED: usize = 36;

// Types of messages (RFC 8446 section 4).
const TYPE_CLIENT_HELLO: u8 = 1;
const TYPE_SERVER_HELLO: u8 = 2;
const TYPE_ENCRYPTED_EXTENSIONS: u8 = 8;
const TYPE_CERTIFICATE: u8 = 11;
const TYPE_CERTIFICATE_VERIFY: u8 = 15;
const TYPE_FINISHED: u8 = 20;

// Alerts (RFC 8446 section 6).
const UNEXPECTED_MESSAGE: u8 = 10;
const DECODE_ERROR: u8 = 50;

fn alert(code: u8) -> TransportError {
    TransportErrorCode::crypto(code).into()
}

/// Makes the sessions of both sides.
pub(super) struct Open;

impl ClientConfig for Open {
    fn start_session(
        self: Arc<Self>,
        _version: u32,
        _server_name: &str,
        params: &TransportParameters,
    ) -> Result<Box<dyn Session>, ConnectError> {
        Ok(Box::new(OpenSession::new(Side::Client, params)))
    }
}

impl ServerConfig for Open {
    fn initial_keys(&self, _: u32, _: &ConnectionId) -> Result<Keys, UnsupportedVersion> {
        Ok(keys())
    }

    fn retry_tag(&self, _version: u32, _orig_dst_cid: &ConnectionId, _packet: &[u8]) -> [u8; 16] {
        [0; 16]
    }

    fn start_session(
        self: Arc<Self>,
        _version: u32,
        params: &TransportParameters,
    ) -> Box<dyn Session> {
        Box::new(OpenSession::new(Side::Server, params))
    }
}

/// How far one side is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client has its hello to say.
    SayHello,
    /// The client waits for the server's hello, the server for the client's.
    AwaitHello,
    /// A hello has come: what answers it, and the keys of the handshake, come next.
    Greeted,
    /// The server has its certificate to show.
    ShowCertificate,
    /// Waits for the peer's end of the handshake.
    AwaitFinished,
    /// The client has its own end to say.
    SayFinished,
    /// Over.
    Done,
}

struct OpenSession {
    side: Side,
    step: Step,
    /// Its own transport parameters, as they are written.
    own: Vec<u8>,
    peer: Option<TransportParameters>,
    /// What has come of a message that is not yet whole.
    read: Vec<u8>,
}

impl OpenSession {
    fn new(side: Side, params: &TransportParameters) -> OpenSession {
        let step = if side.is_client() { Step::SayHello } else { Step::AwaitHello };
        let mut own = Vec::new();
        params.write(&mut own);
        OpenSession { side, step, own, peer: None, read: Vec::new() }
    }

    fn on_message(&mut self, kind: u8, body: &[u8]) -> Result<(), TransportError> {
        self.step = match (self.side, self.step, kind) {
            (Side::Server, Step::AwaitHello, TYPE_CLIENT_HELLO) => {
                self.peer = Some(self.parameters_in(body)?);
                Step::Greeted
            }
            (Side::Client, Step::AwaitHello, TYPE_SERVER_HELLO) => Step::Greeted,
            (Side::Client, Step::AwaitFinished, TYPE_ENCRYPTED_EXTENSIONS) => {
                self.peer = Some(self.parameters_in(body)?);
                Step::AwaitFinished
            }
            (Side::Client, Step::AwaitFinished, TYPE_CERTIFICATE | TYPE_CERTIFICATE_VERIFY) => {
                Step::AwaitFinished
            }
            (Side::Client, Step::AwaitFinished, TYPE_FINISHED) => Step::SayFinished,
            (Side::Server, Step::AwaitFinished, TYPE_FINISHED) => Step::Done,
            _ => return Err(alert(UNEXPECTED_MESSAGE)),
        };
        Ok(())
    }

    fn parameters_in(&self, mut body: &[u8]) -> Result<TransportParameters, TransportError> {
        let length = body.try_get_u16().map_err(|_| alert(DECODE_ERROR))?;
        let mut written = body.get(..usize::from(length)).ok_or_else(|| alert(DECODE_ERROR))?;
        TransportParameters::read(self.side, &mut written).map_err(Into::into)
    }

    /// The transport parameters as a message carries them.
    fn parameters(&self) -> Vec<u8> {
        let length = u16::try_from(self.own.len()).unwrap_or(u16::MAX);
        [&length.to_be_bytes()[..], &self.own].concat()
    }
}

impl Session for OpenSession {
    fn initial_keys(&self, _dst_cid: &ConnectionId, _side: Side) -> Keys {
        keys()
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Done
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.read.extend_from_slice(buf);
        while let [kind, a, b, c, ..] = self.read[..] {
            let length = MESSAGE_HEADER + u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MOST_MESSAGE {
                return Err(alert(DECODE_ERROR));
            }
            if self.read.len() < length {
                break;
            }
            let rest = self.read.split_off(length);
            let message = std::mem::replace(&mut self.read, rest);
            self.on_message(kind, &message[MESSAGE_HEADER..])?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        match (self.side, self.step) {
            (Side::Client, Step::SayHello) => {
                message(buf, TYPE_CLIENT_HELLO, &self.parameters(), CLIENT_HELLO);
                self.step = Step::AwaitHello;
                None
            }
            (Side::Server, Step::Greeted) => {
                message(buf, TYPE_SERVER_HELLO, &[], SERVER_HELLO);
                self.step = Step::ShowCertificate;
                Some(keys())
            }
            (Side::Server, Step::ShowCertificate) => {
                let parameters = self.parameters();
                message(buf, TYPE_ENCRYPTED_EXTENSIONS, &parameters, ENCRYPTED_EXTENSIONS);
                message(buf, TYPE_CERTIFICATE, &[], CERTIFICATE);
                message(buf, TYPE_CERTIFICATE_VERIFY, &[], CERTIFICATE_VERIFY);
                message(buf, TYPE_FINISHED, &[], FINISHED);
                self.step = Step::AwaitFinished;
                Some(keys())
            }
            (Side::Client, Step::Greeted) => {
                self.step = Step::AwaitFinished;
                Some(keys())
            }
            (Side::Client, Step::SayFinished) => {
                message(buf, TYPE_FINISHED, &[], FINISHED);
                self.step = Step::Done;
                Some(keys())
            }
            _ => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) })
    }

    fn is_valid_retry(&self, _: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        // Servers here send none.
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}

/// Writes a message that begins with `content` and is `size` bytes long, or as long as it
/// must be.
fn message(buf: &mut Vec<u8>, kind: u8, content: &[u8], size: usize) {
    let length = content.len().max(size - MESSAGE_HEADER);
    let [_, a, b, c] = u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes();
    buf.extend_from_slice(&[kind, a, b, c]);
    buf.extend_from_slice(content);
    buf.resize(buf.len() + length - content.len(), 0);
}

/// Protects nothing.
struct NoKey;

fn keys() -> Keys {
    Keys {
        header: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
        packet: KeyPair { local: Box::new(NoKey), remote: Box::new(NoKey) },
    }
}

impl HeaderKey for NoKey {
    fn decrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn encrypt(&self, _pn_offset: usize, _packet: &mut [u8]) {}

    fn sample_size(&self) -> usize {
        SAMPLE
    }
}

impl PacketKey for NoKey {
    fn encrypt(&self, _packet: u64, buf: &mut [u8], _header_len: usize) {
        let tag = buf.len().saturating_sub(TAG);
        buf[tag..].fill(0);
    }

    fn decrypt(&self, _: u64, _header: &[u8], payload: &mut BytesMut) -> Result<(), CryptoError> {
        let length = payload.len().checked_sub(TAG).ok_or(CryptoError)?;
        payload.truncate(length);
        Ok(())
    }

    fn tag_len(&self) -> usize {
        TAG
    }

    fn confidentiality_limit(&self) -> u64 {
        u64::MAX
    }

    fn integrity_limit(&self) -> u64 {
        u64::MAX
    }
}
