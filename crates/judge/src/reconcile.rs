//! The client's TTFT against the server's over the same stage: how far apart they are, and what lies in between.
//!
//! Means decide, since a server's sum and count give its mean exactly while its quantiles are as coarse as its
//! buckets. `docs/reconciliation.md` says how to read it.

mod gateway;
mod ours;
mod verdict;

use serde::{Deserialize, Serialize};
use ttft_sources::{Quantile, Role};

pub use gateway::Gateway;
pub(crate) use ours::Ours;
pub use verdict::Agreement;
pub(crate) use verdict::{held_back, judge, little};

use crate::Distribution;
use crate::server::{Times, View};

/// One stage, reconciled, as `summary.json` holds it. All times are means in milliseconds unless they say otherwise.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Reconcile {
    /// The opinion; null when it cannot be told.
    pub verdict: Option<Agreement>,
    /// Why that, or why none.
    pub why: String,
    /// Where the server's TTFT comes from: its metrics page, or the answers themselves.
    pub source: Option<String>,
    /// Where the server's TTFT begins: `arrival`, `queued` (in the engine), `scheduled`, or `unknown`.
    pub server_ttft_from: Option<String>,
    /// What the engine's TTFT is and is not, as the catalogue has it.
    pub server_ttft_note: Option<String>,
    /// Requests behind the client's figures: all that ended well in the stage.
    pub client_requests: u64,
    /// Requests behind the server's.
    pub server_requests: Option<f64>,
    /// Mean TTFT.
    pub mean: Pair,
    /// Median TTFT.
    pub p50: Pair,
    /// Its 95th percentile.
    pub p95: Pair,
    /// Smallest round trip of the connections.
    pub rtt_ms: Option<f64>,
    /// Smoothed round trip.
    pub rtt_smoothed_ms: Option<f64>,
    /// Share of requests during which segments were sent again.
    pub retransmitted_share: Option<f64>,
    /// Making connections.
    pub connection_ms: Option<f64>,
    /// The client's own time from a ready connection to the request's last byte.
    pub client_ms: Option<f64>,
    /// The gateway's part, where a gateway or a header of one told it.
    pub gateway: Option<Gateway>,
    /// What is left of the difference of the means once connection, client, round trip and gateway are taken out.
    pub residual_ms: Option<f64>,
    /// What that is.
    pub residual: Option<String>,
    /// Client less server, request by request, where answers tell the server's times.
    pub per_request: Option<PerRequest>,
}

/// One statistic of both sides, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Pair {
    /// The client's.
    pub client_ms: Option<f64>,
    /// The server's.
    pub server_ms: Option<f64>,
    /// Client less server.
    pub difference_ms: Option<f64>,
    /// The bucket in which the server's lies.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_between_ms: Option<[f64; 2]>,
    /// The server's lies above its last finite bucket, which ends here.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub server_at_least_ms: Option<f64>,
}

/// What answers told of their own times, beside the client's of the same requests.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PerRequest {
    /// Requests that told.
    pub n: u64,
    /// Where their TTFT begins: `queued` in the engine, which is after its front end has taken the request;
    /// `scheduled` if they do not tell their queue; `unknown` if all they tell is a TTFT.
    pub from: String,
    /// The server's TTFT.
    pub server_ms: Distribution,
    /// The client's less the server's.
    pub difference_ms: Distribution,
    /// Waiting before they were scheduled.
    pub queue_ms: Distribution,
    /// From scheduled to the first token.
    pub prefill_ms: Distribution,
}

impl Pair {
    fn new(client_ms: Option<f64>, server_ms: Option<f64>) -> Self {
        let difference_ms = client_ms.zip(server_ms).map(|(client, server)| client - server);
        Self { client_ms, server_ms, difference_ms, ..Self::default() }
    }

    /// With what buckets say of the server's, which is in seconds.
    fn bucketed(client_ms: Option<f64>, server: Option<Quantile>) -> Self {
        match server {
            Some(Quantile::At { value, lower, upper }) => Self {
                server_between_ms: Some([lower * 1e3, upper * 1e3]),
                ..Self::new(client_ms, Some(value * 1e3))
            },
            Some(Quantile::Told(value)) => Self::new(client_ms, Some(value * 1e3)),
            Some(Quantile::AtLeast(bound)) => {
                Self { server_at_least_ms: Some(bound * 1e3), ..Self::new(client_ms, None) }
            }
            Some(Quantile::Between(lower, upper)) => {
                Self { server_between_ms: Some([lower * 1e3, upper * 1e3]), ..Self::new(client_ms, None) }
            }
            None => Self::new(client_ms, None),
        }
    }
}

/// Puts both sides of one stage together. The opinion comes later, from a look at all stages ([`judge`]).
pub(crate) fn put_together(ours: &Ours, view: &View) -> Reconcile {
    let client = Distribution::of(&ours.ttft);
    let mut both = Reconcile {
        client_requests: client.n,
        mean: Pair::new(client.mean, None),
        p50: Pair::new(client.p50, None),
        p95: Pair::new(client.p95, None),
        rtt_ms: ours.rtt_min.mean(),
        rtt_smoothed_ms: ours.rtt.mean(),
        retransmitted_share: crate::stream::share(ours.retransmitted, client.n),
        connection_ms: ours.connection.mean(),
        client_ms: ours.client.mean(),
        per_request: PerRequest::of(ours),
        ..Reconcile::default()
    };
    if let Some(times) = view.times(Role::Engine, "ttft").filter(|times| times.count > 0.0) {
        let engine = view.engine();
        both.source = Some(engine.map_or_else(String::new, |engine| format!("{}'s metrics", engine.title)));
        both.server_ttft_note = engine.and_then(|engine| engine.notes.get("ttft").cloned());
        // What metrics pages call time to first token begins when a request arrives, unless a note says otherwise.
        both.server_ttft_from = Some("arrival".to_owned());
        both.against(&client, &times);
    } else if let Some(told) = &both.per_request {
        let (server, from) = (told.server_ms.clone(), told.from.clone());
        both.source = Some("the answers' own timings".to_owned());
        both.server_ttft_from = Some(from);
        both.server_requests = Some(told.n as f64);
        // Of the same requests, so that the difference is theirs too.
        let all = told.n == client.n;
        both.mean = Pair::new(client.mean, server.mean.filter(|_| all));
        both.p50 = Pair::new(client.p50, server.p50.filter(|_| all));
        both.p95 = Pair::new(client.p95, server.p95.filter(|_| all));
    } else if let Some(times) = view.times(Role::Gateway, "ttft").filter(|times| times.count > 0.0) {
        let gateway = view.gateway();
        both.source = gateway.map(|gateway| format!("{}'s metrics: as the gateway sees it", gateway.title));
        both.server_ttft_note = gateway.and_then(|gateway| gateway.notes.get("ttft").cloned());
        both.server_ttft_from = Some("arrival".to_owned());
        both.against(&client, &times);
    }
    both.gateway = Gateway::of(view, ours, both.mean.server_ms);
    let known = [both.connection_ms, both.client_ms, both.rtt_ms, both.gateway.as_ref().and_then(|g| g.ms)];
    both.residual_ms =
        both.mean.difference_ms.map(|difference| difference - known.iter().flatten().sum::<f64>());
    both
}

impl Reconcile {
    fn against(&mut self, client: &Distribution, server: &Times) {
        self.server_requests = Some(server.count);
        self.mean = Pair::new(client.mean, server.mean_ms);
        self.p50 = Pair::bucketed(client.p50, server.quantile("p50"));
        self.p95 = Pair::bucketed(client.p95, server.quantile("p95"));
    }
}

impl PerRequest {
    fn of(ours: &Ours) -> Option<Self> {
        let told = &ours.told;
        let from = match (told.from_scheduled, told.queue.is_empty()) {
            (0, false) => "queued",
            (0, true) => "unknown",
            _ => "scheduled",
        };
        (!told.ttft.is_empty()).then(|| Self {
            n: told.ttft.len(),
            from: from.to_owned(),
            server_ms: Distribution::of(&told.ttft),
            difference_ms: Distribution::of(&told.difference),
            queue_ms: Distribution::of(&told.queue),
            prefill_ms: Distribution::of(&told.prefill),
        })
    }
}

#[cfg(test)]
mod tests;
