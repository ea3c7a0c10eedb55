//! How quinn is set up: by its defaults, but for what a simulated path settles.
//!
//! All packets are sent one by one, as they are on a wire; batches for the segmentation
//! offload of a network card would arrive as bursts that no card sends. The size of packets
//! is set to what an Ethernet link takes, and not searched for: 1 472 bytes of payload, with
//! the headers of IPv4 and UDP 1 500. The initial window is that of RFC 9002 section 7.2 for
//! such packets, 14 720 bytes; quinn would take 12 000, which it computes for packets of
//! 1 200. That makes nine packets in the first flight: quinn leaves a window alone that the
//! next packet would just fill.
//!
//! Each of quinn's BBR controllers draws the phase in which its probing begins from a generator
//! that the operating system has seeded. What it draws sets a pacing rate that quinn only logs:
//! it paces every controller by its window, which no draw reaches. So a run is the same every
//! time, and a test would see a version of quinn that uses the rate.

use std::sync::Arc;

use quinn_proto::congestion::{BbrConfig, ControllerFactory, CubicConfig, NewRenoConfig};
use quinn_proto::{
    ClientConfig, ConnectionId, Endpoint, EndpointConfig, NoneTokenStore, ServerConfig,
    TransportConfig, ValidationTokenConfig,
};
use tidegate_core::Stream;

use super::secrets::{Ids, NoCalendar, NoTokens, ResetKey};
use super::session::Open;
use crate::connections::Side;
use crate::lot::mix;
use crate::scenario::{QuicControl, QuicProfile};

/// The largest payload of UDP in a packet of 1 500 bytes.
const MOST_PAYLOAD: u16 = 1_472;
/// RFC 9002 section 7.2: ten packets of the largest size, but 14 720 bytes at most.
const INITIAL_WINDOW: u64 = 14_720;

/// What all connections of a source have in common.
#[derive(Debug)]
pub(crate) struct Settings {
    pub(crate) control: QuicControl,
    transport: Arc<TransportConfig>,
    server: ServerConfig,
}

impl Settings {
    /// With `fair`, streams of a connection take turns; otherwise the one that has waited
    /// longest goes first.
    pub(crate) fn new(profile: &QuicProfile, fair: bool) -> Settings {
        let control: Arc<dyn ControllerFactory + Send + Sync> = match profile.congestion {
            QuicControl::Reno => {
                let mut config = NewRenoConfig::default();
                config.initial_window(INITIAL_WINDOW);
                Arc::new(config)
            }
            QuicControl::Cubic => {
                let mut config = CubicConfig::default();
                config.initial_window(INITIAL_WINDOW);
                Arc::new(config)
            }
            QuicControl::Bbr => {
                let mut config = BbrConfig::default();
                config.initial_window(INITIAL_WINDOW);
                Arc::new(config)
            }
        };
        let mut transport = TransportConfig::default();
        transport
            .congestion_controller_factory(control)
            .initial_mtu(MOST_PAYLOAD)
            .mtu_discovery_config(None)
            .enable_segmentation_offload(false)
            .send_fairness(fair);
        let transport = Arc::new(transport);
        let mut server = ServerConfig::new(Arc::new(Open), Arc::new(NoTokens));
        let mut tokens = ValidationTokenConfig::default();
        tokens.sent(0);
        server
            .transport_config(transport.clone())
            .validation_token_config(tokens)
            .time_source(Arc::new(NoCalendar));
        Settings { control: profile.congestion, transport, server }
    }

    /// The endpoint of one side of the connection that `identity` stands for.
    pub(super) fn endpoint(&self, identity: u64, side: Side) -> Endpoint {
        let own = mix(identity ^ mix(side as u64));
        let mut config = EndpointConfig::new(Arc::new(ResetKey(own)));
        let mut seed = [0; 32];
        let mut stream = Stream::new(own, "quic");
        for part in seed.chunks_mut(size_of::<u64>()) {
            part.copy_from_slice(&stream.bits().to_be_bytes());
        }
        config.rng_seed(Some(seed));
        config.cid_generator(move || Box::new(Ids::new(own)));
        let server = (side == Side::Acceptor).then(|| Arc::new(self.server.clone()));
        Endpoint::new(Arc::new(config), server, false, None)
    }

    /// How the opener asks for the connection that `identity` stands for.
    pub(super) fn client(&self, identity: u64) -> ClientConfig {
        let mut config = ClientConfig::new(Arc::new(Open));
        let first = ConnectionId::new(&mix(identity).to_be_bytes());
        config
            .transport_config(self.transport.clone())
            .token_store(Arc::new(NoneTokenStore))
            .initial_dst_cid_provider(Arc::new(move || first));
        config
    }
}
