//! The mean TTFT of a stage in parts that add up to it.

use serde::{Deserialize, Serialize};

use crate::contamination;
use crate::reconcile::{Ours, Reconcile};
use crate::server::View;

/// The mean TTFT of all requests of a stage that ended well, in parts. What is not known is null and lies in `rest`,
/// so that the parts always add up to the whole.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Decomposition {
    /// The whole, in milliseconds; null when no request has a TTFT.
    pub ttft_ms: Option<f64>,
    /// Requests behind it.
    pub requests: u64,
    /// Making a connection.
    pub connection: Part,
    /// The client itself, until the request's last byte was sent.
    pub client: Part,
    /// One round trip: the smallest that the kernel saw.
    pub network: Part,
    /// A gateway's own part.
    pub gateway: Part,
    /// Waiting in the engine until it was scheduled.
    pub queue: Part,
    /// From scheduled to the first token.
    pub prefill: Part,
    /// The rest of the engine's own TTFT, its front end with it, or all of it where the engine does not split it.
    pub engine: Part,
    /// What no other part explains.
    pub rest: Part,
}

/// One part.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Part {
    /// Milliseconds; null if unknown.
    pub ms: Option<f64>,
    /// What it rests on, or why it is unknown.
    pub rests_on: String,
}

impl Part {
    fn known(ms: f64, rests_on: impl Into<String>) -> Self {
        Self { ms: Some(ms), rests_on: rests_on.into() }
    }

    fn unknown(why: impl Into<String>) -> Self {
        Self { ms: None, rests_on: why.into() }
    }

    fn of(ms: Option<f64>, rests_on: &str, why_not: &str) -> Self {
        ms.map_or_else(|| Self::unknown(why_not), |ms| Self::known(ms, rests_on))
    }
}

/// Answers of this share of the requests that tell a time are enough to take it from them.
const ENOUGH: f64 = 0.9;

impl Decomposition {
    /// `sent` is how many requests the server got of us, whatever became of them.
    pub(crate) fn of(ours: &Ours, sent: u64, view: &View, both: &Reconcile) -> Self {
        let Some(whole) = ours.ttft.mean() else { return Self::default() };
        let (queue, prefill, engine) = inside(ours, sent, view);
        let gateway = both.gateway.as_ref();
        let mut parts = Self {
            ttft_ms: Some(whole),
            requests: ours.ttft.len(),
            connection: Part::of(
                both.connection_ms,
                "the client's instants; 0 for requests on a ready connection",
                "no request has a connection's instants",
            ),
            client: Part::of(
                both.client_ms,
                "the client's instants, from a ready connection to the last byte",
                "no request has the instant of its last byte",
            ),
            network: Part::of(
                both.rtt_ms,
                "TCP_INFO: the smallest round trip of each connection",
                "the kernel tells no round trip",
            ),
            gateway: Part::of(
                gateway.and_then(|gateway| gateway.ms),
                gateway.map_or("", |gateway| gateway.rests_on.as_str()),
                gateway.map_or("no gateway told its part", |gateway| gateway.rests_on.as_str()),
            ),
            queue,
            prefill,
            engine,
            rest: Part::default(),
        };
        let known: f64 = parts.parts().iter().filter_map(|(_, part)| part.ms).sum();
        let unknown: Vec<&str> =
            parts.parts().iter().filter(|(_, part)| part.ms.is_none()).map(|(name, _)| *name).collect();
        let mut holds = "the server's front end and what stands before it".to_owned();
        // Where the engine's own TTFT is known, how it splits moves nothing into the rest.
        let told = parts.engine.ms.is_some() || (parts.queue.ms.is_some() && parts.prefill.ms.is_some());
        let hidden: Vec<&str> = unknown
            .into_iter()
            .filter(|name| !(told && matches!(*name, "queue" | "prefill" | "engine")))
            .collect();
        if !hidden.is_empty() {
            holds = format!("{holds}; {} unknown, so in here", hidden.join(", "));
        }
        parts.rest = Part::known(whole - known, holds);
        parts
    }

    /// All parts but the rest, in the order of a request's way.
    fn parts(&self) -> [(&'static str, &Part); 7] {
        [
            ("connection", &self.connection),
            ("client", &self.client),
            ("network", &self.network),
            ("gateway", &self.gateway),
            ("queue", &self.queue),
            ("prefill", &self.prefill),
            ("engine", &self.engine),
        ]
    }

    /// All parts by name, the rest last.
    pub fn all(&self) -> impl Iterator<Item = (&'static str, &Part)> {
        self.parts().into_iter().chain([("rest", &self.rest)])
    }
}

/// What happens inside the engine: queue, prefill, and the rest of its own TTFT.
fn inside(ours: &Ours, sent: u64, view: &View) -> (Part, Part, Part) {
    let engine = view.engine().map_or_else(|| "the server".to_owned(), |engine| engine.title.clone());
    let metrics = format!("{engine}'s metrics over the stage");
    // Means over the requests of others, or over a part of ours, are not those of our requests.
    let (others, reset) = (contamination::others(view, sent), view.reset());
    let is_ours = others.is_none() && reset.is_none();
    let why_not = match (view.lost_edge(), view.engine()) {
        _ if others.is_some() => format!("{engine}'s metrics hold requests of others"),
        _ if reset.is_some() => format!("{engine}'s counters began anew during the stage"),
        (Some(source), _) => format!("{source} did not answer at an edge of the stage"),
        (None, Some(engine)) => format!("{} does not tell it", engine.title),
        (None, None) => "no engine told its times".to_owned(),
    };
    // Answers tell of just these requests; metrics tell more, since their TTFT begins where the server takes them.
    let told = &ours.told;
    let by_answers = told.prefill.len() as f64 >= ENOUGH * ours.ttft.len() as f64 && !told.prefill.is_empty();
    let (queue, prefill, by) = if by_answers {
        (told.queue.mean(), told.prefill.mean(), "the answers' own timings")
    } else {
        let mean = |name| view.mean(name).filter(|_| is_ours);
        (mean("queue_time"), mean("prefill_time"), metrics.as_str())
    };
    let split = queue.unwrap_or(0.0) + prefill.unwrap_or(0.0);
    let ttft = view.mean("ttft").filter(|_| is_ours);
    (
        Part::of(queue, by, &why_not),
        Part::of(prefill, by, &why_not),
        Part::of(
            ttft.map(|ttft| ttft - split),
            &format!("{metrics}: its TTFT less what it splits off"),
            &why_not,
        ),
    )
}
