//! The gateway's part of TTFT, from its own metrics or the headers it adds.

use serde::{Deserialize, Serialize};
use ttft_sources::Role;

use super::Ours;
use crate::server::View;

/// A gateway's part, in milliseconds.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Gateway {
    /// Who told it.
    pub source: String,
    /// Its own part; null when only the upstream's is known.
    pub ms: Option<f64>,
    /// The first token as it saw it come from the engine.
    pub upstream_ttft_ms: Option<f64>,
    /// How its part is known.
    pub rests_on: String,
}

impl Gateway {
    pub(super) fn of(view: &View, ours: &Ours, server_ttft: Option<f64>) -> Option<Self> {
        let Some(gateway) = view.gateway() else { return Self::by_headers(ours) };
        let mean = |name: &str| view.times(Role::Gateway, name).and_then(|times| times.mean_ms);
        let upstream_ttft_ms = mean("ttft");
        // Told by itself, or the difference of its view of the first token from the engine's.
        let engine = view.engine().and(server_ttft);
        let (ms, rests_on) = match (mean("gateway_overhead"), upstream_ttft_ms.zip(engine)) {
            (Some(ms), _) => (Some(ms), "its own metric of its overhead"),
            (None, Some((seen, engine))) if seen > engine => {
                (Some(seen - engine), "the first token as it saw it less the engine's own TTFT")
            }
            _ => (None, "it does not tell its own part"),
        };
        Some(Self { source: gateway.title.clone(), ms, upstream_ttft_ms, rests_on: rests_on.to_owned() })
    }

    /// Beyond the upstream's response head lie the proxy and the round trip to it.
    fn by_headers(ours: &Ours) -> Option<Self> {
        let beyond = ours.told.beyond_proxy.mean()?;
        Some(Self {
            source: "response headers".to_owned(),
            ms: Some((beyond - ours.rtt_min.mean().unwrap_or(0.0)).max(0.0)),
            upstream_ttft_ms: None,
            rests_on: "the time to the response head less what the proxy's header says of its upstream"
                .to_owned(),
        })
    }
}
