//! The opinion on a difference between client and server.

use serde::{Deserialize, Serialize};
use ttft_model::Load;

use super::{Ours, Reconcile};
use crate::knee::Evidence;
use crate::say::ms;
use crate::server::View;
use crate::{StageSummary, Verdict};

/// What a difference between client and server says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Agreement {
    /// The round trip and a little explain it.
    Clean,
    /// The network explains it, and it is a large part of TTFT.
    Network,
    /// It grows with load: requests wait before the server's clock starts.
    UpstreamQueue,
    /// Something in between holds the stream back.
    GatewayBuffering,
    /// The client is below the server: the two do not mean the same thing.
    Inconsistent,
    /// The client made it.
    ClientLimited,
}

impl Agreement {
    /// The name used in every file and report.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Clean => "clean",
            Self::Network => "network",
            Self::UpstreamQueue => "upstream_queue",
            Self::GatewayBuffering => "gateway_buffering",
            Self::Inconsistent => "inconsistent",
            Self::ClientLimited => "client_limited",
        }
    }
}

/// "A little": what a server's HTTP front end takes outside its own TTFT. At least so much,
const LITTLE_MS: f64 = 5.0;
/// or this share of the client's mean TTFT.
const LITTLE_SHARE: f64 = 0.05;

/// The client may be below the server by so much of the server's mean, or half a millisecond: rounding.
const BELOW_SHARE: f64 = 0.01;
const BELOW_MS: f64 = 0.5;

/// The network's part is large from this share of TTFT on.
const LARGE: f64 = 0.2;

/// Requests whose segments were sent again matter from this share on.
const RESENT: f64 = 0.02;

/// The server's figures are of other requests too when it counts this share more than we sent.
const FOREIGN: f64 = 0.05;

/// A residual has grown with load when it is so many times the one of the lowest load.
const GREW: f64 = 2.0;

/// A stream is held back when it comes to the client in less than this share of the time in which the server made it.
const HELD: f64 = 0.5;

/// How much of a difference needs no explanation.
pub(crate) fn little(client_mean_ms: f64) -> f64 {
    LITTLE_MS.max(LITTLE_SHARE * client_mean_ms)
}

/// Sets the opinion of each stage.
pub(crate) fn judge(stages: &mut [StageSummary], evidence: &[Evidence], views: &[View]) {
    let opinions: Vec<_> =
        (0..stages.len()).map(|i| opinion(stages, i, &evidence[i].ours, &views[i])).collect();
    for (stage, (verdict, why)) in stages.iter_mut().zip(opinions) {
        stage.reconcile.residual = residual(&stage.reconcile, verdict).map(str::to_owned);
        (stage.reconcile.verdict, stage.reconcile.why) = (verdict, why);
    }
}

type Opinion = (Option<Agreement>, String);

fn opinion(stages: &[StageSummary], at: usize, ours: &Ours, view: &View) -> Opinion {
    let stage = &stages[at];
    let both = &stage.reconcile;
    if stage.client.verdict == Verdict::Invalid {
        let why = stage.client.reasons.first().map_or("the client is the limit", String::as_str);
        return (Some(Agreement::ClientLimited), why.to_owned());
    }
    if let Some((share, what)) = held_back(stage, ours, view) {
        let why = format!("{what} ({:.0} % of answers)", share * 100.0);
        return (Some(Agreement::GatewayBuffering), why);
    }
    let (Some(client), Some(server), Some(difference), Some(residual)) =
        (both.mean.client_ms, both.mean.server_ms, both.mean.difference_ms, both.residual_ms)
    else {
        return (None, no_server(both, view));
    };
    if let Some(source) = view.reset() {
        return (None, format!("counters of {source} began anew inside the stage"));
    }
    let sent = stage.requests.sent as f64;
    if let Some(counted) = both.server_requests.filter(|n| *n > sent * (1.0 + FOREIGN) + 1.0) {
        return (
            None,
            format!(
                "the server counted {counted:.0} requests where {sent:.0} were sent: its figures are of others too"
            ),
        );
    }
    let little = little(client);
    if difference < -(BELOW_SHARE * server).max(BELOW_MS) {
        let why = format!(
            "the client's mean is {} below the server's: it took something earlier for a token, or the server counts \
             other requests or a later event",
            ms(-difference)
        );
        return (Some(Agreement::Inconsistent), why);
    }
    let own = both.client_ms.unwrap_or(0.0);
    if own > little && own > difference / 2.0 {
        let why =
            format!("{} of the difference are the client's own, before its last byte was sent", ms(own));
        return (Some(Agreement::ClientLimited), why);
    }
    let network = both.rtt_ms.unwrap_or(0.0) + both.connection_ms.unwrap_or(0.0);
    if residual <= little {
        if network >= LARGE * client && network > LITTLE_MS {
            let why = format!(
                "the network's {} explain it, {:.0} % of TTFT",
                ms(network),
                100.0 * network / client
            );
            return (Some(Agreement::Network), why);
        }
        let why = format!("{} are left once the round trip is taken out", ms(residual));
        return (Some(Agreement::Clean), why);
    }
    if let Some(share) = both.retransmitted_share.filter(|share| *share > RESENT) {
        let why = format!("segments were sent again during {:.1} % of requests", share * 100.0);
        return (Some(Agreement::Network), why);
    }
    let left = ms(residual);
    let place = if both.server_ttft_from.as_deref() == Some("scheduled") {
        "the server's own queue, which it does not tell, is in here"
    } else {
        "in a gateway, an accept queue or the server's HTTP front end"
    };
    match lowest(stages, at) {
        Some((name, base)) if residual >= GREW * base.max(0.0) + little => {
            let why = format!(
                "{left} are not explained, where {} were at {name}: requests wait before the server's clock starts: \
                 {place}",
                ms(base)
            );
            (Some(Agreement::UpstreamQueue), why)
        }
        Some((name, base)) => {
            let why = format!(
                "{left} are not explained, and {} at {name}: no queue, which would have grown with load",
                ms(base)
            );
            (None, why)
        }
        None => (
            None,
            format!(
                "{left} are not explained; a lower load beside it would tell whether they grow with load"
            ),
        ),
    }
}

fn no_server(both: &Reconcile, view: &View) -> String {
    match (view.lost_edge(), &both.per_request) {
        (Some(source), _) => format!("{source} did not answer at an edge of the stage"),
        (None, Some(told)) => {
            format!("only {} of {} answers tell the server's TTFT", told.n, both.client_requests)
        }
        (None, None) => {
            "the server's TTFT is not known: neither its metrics nor its answers tell it".to_owned()
        }
    }
}

/// The share of streams that something between the server and this client held back, and how it is known.
pub(crate) fn held_back(stage: &StageSummary, ours: &Ours, view: &View) -> Option<(f64, &'static str)> {
    let stream = &stage.stream;
    let share = |n: u64| crate::stream::share(n, stream.requests).unwrap_or(0.0);
    let by_path = share(stream.bundled_by_path.saturating_sub(stream.bundled_by_client));
    let seen = ours.decode.mean()?;
    let made = ours.told.decode.mean().or_else(|| view.mean("decode_time"));
    match made {
        Some(made) if made > LITTLE_MS && seen < HELD * made && by_path > HELD => {
            Some((by_path, "tokens arrive in clumps, faster than the server made them"))
        }
        Some(_) => None,
        None => {
            let events = stream.output_events as f64 / stream.requests.max(1) as f64;
            let share = share(stream.all_in_one_read);
            (share > HELD && events >= 5.0 && stage.client.read_lag_ms.p99.is_none_or(|lag| lag < LITTLE_MS))
                .then_some((share, "whole answers arrive at once"))
        }
    }
}

/// Name and residual of the stage of the same workload with the lowest load, if that is lower than this one's.
fn lowest(stages: &[StageSummary], at: usize) -> Option<(&str, f64)> {
    let here = &stages[at];
    let level = |stage: &StageSummary| match stage.load {
        Load::Closed { concurrency, .. } => Some((0, f64::from(concurrency))),
        Load::Open { rate, .. } => Some((1, rate)),
        Load::Trace { .. } => None,
    };
    let (kind, load) = level(here)?;
    let same = stages.iter().filter(|s| s.workload == here.workload && s.model == here.model);
    let lower = same.filter_map(|s| Some((s, level(s)?))).filter(|(_, (k, l))| *k == kind && *l < load);
    let (stage, _) = lower.min_by(|(_, a), (_, b)| a.1.total_cmp(&b.1))?;
    Some((&stage.name, stage.reconcile.residual_ms?))
}

fn residual(both: &Reconcile, verdict: Option<Agreement>) -> Option<&'static str> {
    let left = both.residual_ms?;
    Some(match verdict {
        Some(Agreement::GatewayBuffering) => "holding the stream back, between the server and this client",
        Some(Agreement::Inconsistent) => "a difference of definitions: nothing took negative time",
        Some(Agreement::UpstreamQueue) => "waiting before the server's clock starts",
        Some(Agreement::ClientLimited) => "the client's own delay, which cannot be told apart",
        _ if left < 0.0 => {
            "the server's clock starts before the request is whole, or stops after the first token"
        }
        _ => "the server's HTTP front end and whatever stands before it: outside the server's own TTFT",
    })
}
