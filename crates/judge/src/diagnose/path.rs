//! What lies between this client and the engine: network, connections, gateways.

use super::{Claim, MATTERS, SMALL_MS, Seen};
use crate::reconcile::{held_back, little};
use crate::say::ms;
use crate::{Agreement, Cause, Confidence, Verdict};

/// Retransmissions matter from this share of requests on.
const RESENT: f64 = 0.02;

/// Parts of TTFT that should not be there, whatever the load.
pub(super) fn claims(worst: &Seen) -> Vec<Claim> {
    let Some(whole) = worst.parts().ttft_ms else { return Vec::new() };
    [network(worst, whole), gateway(worst, whole), buffering(worst, whole)].into_iter().flatten().collect()
}

fn network(worst: &Seen, whole: f64) -> Option<Claim> {
    let parts = worst.parts();
    let (trip, connection) = (parts.network.ms.unwrap_or(0.0), parts.connection.ms.unwrap_or(0.0));
    let share = worst.stage.reconcile.retransmitted_share.unwrap_or(0.0);
    let by = trip + connection;
    let resent = share > RESENT;
    if !resent && (by < SMALL_MS || by < MATTERS * whole) {
        return None;
    }
    let mut because = vec![format!("a round trip of {}", ms(trip))];
    if connection > trip {
        because.push(format!("{} for making connections", ms(connection)));
    }
    if resent {
        because.push(format!("segments sent again during {:.1} % of requests", share * 100.0));
    }
    Some(Claim {
        cause: Cause::Network,
        confidence: Confidence::High,
        ms: by,
        what: "the network takes a large part of TTFT".to_owned(),
        because: because.join(", "),
        remedy: "measure from nearer, keep connections open (--connections reuse), and look for loss on the path",
    })
}

/// A gateway that tells its own part.
fn gateway(worst: &Seen, whole: f64) -> Option<Claim> {
    let told = worst.stage.reconcile.gateway.as_ref()?;
    let by = told.ms.filter(|ms| *ms > SMALL_MS && *ms > MATTERS * whole)?;
    Some(Claim {
        cause: Cause::Gateway,
        confidence: Confidence::High,
        ms: by,
        what: "the gateway takes a large part of TTFT".to_owned(),
        because: format!("by {}", told.rests_on),
        remedy: "give the gateway more workers, and look at its authentication, logging and guard steps",
    })
}

/// Streams that were held back on their way.
fn buffering(worst: &Seen, whole: f64) -> Option<Claim> {
    let ours = &worst.evidence.ours;
    let (share, how) = held_back(worst.stage, ours, worst.view)?;
    let told = worst.stage.reconcile.mean.difference_ms;
    // What decoding takes was waited for; without a server's figures all that is known is the whole.
    let by = told.filter(|ms| *ms > 0.0).unwrap_or(whole);
    Some(Claim {
        cause: Cause::Gateway,
        confidence: if told.is_some() { Confidence::High } else { Confidence::Medium },
        ms: by,
        what: "the stream is held back between the server and this client".to_owned(),
        because: format!("{how}, in {:.0} % of answers", share * 100.0),
        remedy: "switch off response buffering and compression of text/event-stream in the proxy (nginx: proxy_buffering off)",
    })
}

/// Time ahead of the server's clock that nobody accounts for: it grew with load, or is large by itself. Known only
/// where the server's own TTFT is.
pub(super) fn ahead_of_server(base: Option<&Seen>, worst: &Seen) -> Option<Claim> {
    if worst.stage.client.verdict == Verdict::Invalid
        || worst.stage.reconcile.verdict == Some(Agreement::GatewayBuffering)
    {
        return None;
    }
    let parts = worst.parts();
    worst.server()?;
    worst.stage.reconcile.residual_ms?;
    let (whole, rest) = (parts.ttft_ms?, parts.rest.ms?);
    let grew = base.and_then(|base| base.parts().rest.ms).map_or(0.0, |before| rest - before);
    let rise = base.and_then(|base| base.parts().ttft_ms).map(|before| whole - before);
    let least = little(whole).max(SMALL_MS);
    let by = if rise.is_some_and(|rise| grew > MATTERS * rise) && grew > least {
        grew
    } else if rest > MATTERS * whole && rest > least {
        rest
    } else {
        return None;
    };
    if worst.stage.reconcile.server_ttft_from.as_deref() == Some("scheduled") {
        return Some(Claim {
            cause: Cause::Queue,
            confidence: Confidence::Medium,
            ms: by,
            what: "requests wait before the engine begins with them".to_owned(),
            because: format!(
                "{} of TTFT are before the server's own times, which begin when it is scheduled",
                ms(rest)
            ),
            remedy: "allow more requests at once (--parallel, --max-num-seqs), add replicas, or offer less load",
        });
    }
    Some(Claim {
        cause: Cause::Gateway,
        confidence: Confidence::Medium,
        ms: by,
        what: "requests spend time before the server's clock starts or after it stops".to_owned(),
        because: format!("{} of TTFT are outside the server's own {}", ms(rest), ms(worst.server()?)),
        remedy: "look at what stands before the engine: gateway, load balancer, accept queue, the server's HTTP front end",
    })
}
