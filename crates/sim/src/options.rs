//! Everything that a simulated engine is told when it starts.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use crate::{Faults, Profile};

/// How to run a simulated engine. It has no `Debug`, so that the key cannot be printed by accident.
#[derive(Clone)]
pub struct SimOptions {
    /// Where to listen; port 0 takes any free one.
    pub listen: SocketAddr,
    /// How fast the engine is.
    pub profile: Profile,
    /// What it does wrong.
    pub faults: Faults,
    /// Where to write what really happened, one JSON line a request.
    pub truth: Option<PathBuf>,
    /// The key that `/v1` paths ask for.
    pub api_key: Option<String>,
    /// Models that it serves; with none, every name is served.
    pub models: Vec<String>,
    /// Seed of answer lengths, texts, jitter and of which requests a fault hits.
    pub seed: u64,
    /// The core to run on.
    pub cpu: Option<usize>,
    /// Tell each request's own times in the usage chunk.
    pub per_request_metrics: bool,
    /// Hold the response head back until the first token, instead of sending it on arrival.
    pub headers_with_first_token: bool,
}

impl SimOptions {
    /// An engine with that profile on a free port of this machine, without faults.
    pub fn new(profile: Profile) -> Self {
        Self {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            profile,
            faults: Faults::default(),
            truth: None,
            api_key: None,
            models: Vec::new(),
            seed: 0,
            cpu: None,
            per_request_metrics: false,
            headers_with_first_token: false,
        }
    }
}
