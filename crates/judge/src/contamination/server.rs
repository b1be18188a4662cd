//! What happened to the server: it began anew, or others used it.

use serde_json::json;
use ttft_sources::Role;

use crate::reconcile::Ours;
use crate::server::View;
use crate::{Cause, Confidence, Finding, Level, StageSummary};

/// The server counts more requests than we sent, by at least so many
const FOREIGN: f64 = 3.0;
/// and this share of ours.
const FOREIGN_SHARE: f64 = 0.02;

/// Counters that began anew, or requests that found nobody between others that ended well.
pub(super) fn restart(stage: &StageSummary, ours: &Ours, view: &View) -> Option<Finding> {
    let gone = ours.gone_and_back();
    let (evidence, confidence) = match (view.reset(), gone) {
        (Some(source), Some(n)) => (
            format!(
                "counters of {source} began anew, and {n} requests found nobody or lost their connection"
            ),
            Confidence::High,
        ),
        (Some(source), None) => (format!("counters of {source} began anew"), Confidence::High),
        (None, Some(n)) => (
            format!("{n} requests found nobody or lost their connection, and later ones ended well"),
            Confidence::Medium,
        ),
        (None, None) => return None,
    };
    // A lost connection or two may be anything.
    if view.reset().is_none() && !stage.requests.errors.contains_key("connect_refused") {
        return None;
    }
    Some(
        Finding::new(Level::Bad, format!("{}: the server was restarted during the stage", stage.name))
            .blames(Cause::Restart, confidence)
            .because(evidence)
            .remedy("look at the server's log for why, and measure again: caches and compiled kernels began cold")
            .effect(json!({ "stage": stage.name, "requests_lost": gone.unwrap_or(0), "counters_reset": view.reset().is_some() })),
    )
}

/// Requests that the server counted over the stage.
fn counted(view: &View) -> Option<f64> {
    let times = view.times(Role::Engine, "ttft").map(|times| times.count);
    times.or_else(|| view.total("requests_finished_ok"))
}

/// How many more requests the server counted than were sent, if these are more than chance.
pub(crate) fn others(view: &View, sent: u64) -> Option<f64> {
    let more = counted(view)? - sent as f64;
    (more >= FOREIGN.max(FOREIGN_SHARE * sent as f64)).then_some(more)
}

/// Requests of others.
pub(super) fn foreign(stage: &StageSummary, view: &View) -> Option<Finding> {
    if view.reset().is_some() {
        return None;
    }
    let (counted, sent) = (counted(view)?, stage.requests.sent as f64);
    let more = others(view, stage.requests.sent)?;
    let share = more / counted;
    let level = if share > 0.05 { Level::Bad } else { Level::Warn };
    let busy = view.level("running").zip(view.level("waiting")).map(|(r, w)| r.mean + w.mean);
    let mut evidence = format!("it counted {counted:.0} requests where {sent:.0} were sent");
    if let (Some(busy), Some(own)) = (busy, stage.windows.whole.in_flight) {
        evidence = format!("{evidence}; {busy:.1} were in the engine on average, {own:.1} in flight here");
    }
    Some(
        Finding::new(level, format!("{}: others used the server", stage.name))
            .blames(Cause::ForeignTraffic, Confidence::High)
            .because(evidence)
            .remedy("measure when the server is yours alone, or read these figures as of a shared server")
            .effect(json!({ "stage": stage.name, "sent": sent, "counted": counted, "foreign": more, "share": share })),
    )
}
