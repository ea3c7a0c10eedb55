//! What quinn takes for secret or random, made from the seed of the connection.
//!
//! Left to itself, quinn would draw connection IDs, reset keys and the time of tokens from
//! the operating system and the clock, and no run would be the same twice.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use quinn_proto::crypto::{AeadKey, CryptoError, HandshakeTokenKey, HmacKey};
use quinn_proto::{ConnectionId, ConnectionIdGenerator, TimeSource};

use crate::lot::mix;

/// The length of a connection ID: that of quinn by default.
const ID: usize = 8;

/// The connection IDs of an end, one after the other.
pub(super) struct Ids {
    seed: u64,
    made: u64,
}

impl Ids {
    pub(super) fn new(seed: u64) -> Ids {
        Ids { seed, made: 0 }
    }
}

impl ConnectionIdGenerator for Ids {
    fn generate_cid(&mut self) -> ConnectionId {
        self.made += 1;
        ConnectionId::new(&mix(self.seed ^ mix(self.made)).to_be_bytes())
    }

    fn cid_len(&self) -> usize {
        ID
    }

    fn cid_lifetime(&self) -> Option<Duration> {
        None
    }
}

/// Signs reset tokens so that no packet ends with one by chance: not against forgery.
pub(super) struct ResetKey(pub(super) u64);

impl HmacKey for ResetKey {
    fn sign(&self, data: &[u8], signature_out: &mut [u8]) {
        let mut state = self.0;
        for byte in data {
            state = mix(state ^ u64::from(*byte));
        }
        for part in signature_out.chunks_mut(size_of::<u64>()) {
            state = mix(state);
            part.copy_from_slice(&state.to_be_bytes()[..part.len()]);
        }
    }

    fn signature_len(&self) -> usize {
        32
    }

    fn verify(&self, data: &[u8], signature: &[u8]) -> Result<(), CryptoError> {
        let mut made = vec![0; signature.len()];
        self.sign(data, &mut made);
        if made == signature { Ok(()) } else { Err(CryptoError) }
    }
}

/// Address tokens are never sent here, so their key opens none.
pub(super) struct NoTokens;

impl HandshakeTokenKey for NoTokens {
    fn aead_from_hkdf(&self, _random_bytes: &[u8]) -> Box<dyn AeadKey> {
        Box::new(NoTokens)
    }
}

impl AeadKey for NoTokens {
    fn seal(&self, _data: &mut Vec<u8>, _additional_data: &[u8]) -> Result<(), CryptoError> {
        Ok(())
    }

    fn open<'a>(&self, _: &'a mut [u8], _: &[u8]) -> Result<&'a mut [u8], CryptoError> {
        Err(CryptoError)
    }
}

/// The calendar stands still: only tokens would read it.
pub(super) struct NoCalendar;

impl TimeSource for NoCalendar {
    fn now(&self) -> SystemTime {
        UNIX_EPOCH
    }
}
