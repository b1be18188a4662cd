//! What else was going on during a run, so that its figures are not what they seem: each with its effect.

mod cache;
mod length;
mod server;

use serde_json::json;

use crate::knee::Evidence;
use crate::server::View;
use crate::{Cause, Confidence, Finding, Level, StageSummary, Verdict, drift};

pub(crate) use server::others;

/// Governors that let a core slow down between two requests.
const SLOW_GOVERNORS: [&str; 3] = ["powersave", "conservative", "ondemand"];

/// All that was found, stage by stage.
pub(crate) fn find(
    stages: &[StageSummary],
    evidence: &[Evidence],
    views: &[View],
    governor: Option<&str>,
) -> Vec<Finding> {
    let of_stage = |((stage, evidence), view): ((&StageSummary, &Evidence), &View)| {
        [
            server::restart(stage, &evidence.ours, view),
            server::foreign(stage, view),
            client(stage),
            cache::hits(stage, &evidence.ours, view),
            drift::find(stage, &evidence.points),
            length::drift(stage, &evidence.points),
        ]
    };
    let mut found: Vec<Finding> =
        stages.iter().zip(evidence).zip(views).flat_map(of_stage).flatten().collect();
    found.extend(length::between(stages));
    found.extend(governor.and_then(slow_governor));
    found
}

/// A client that was the limit. One that was merely not at its best is told with the stage's figures.
fn client(stage: &StageSummary) -> Option<Finding> {
    if stage.client.verdict != Verdict::Invalid {
        return None;
    }
    let what =
        format!("{}: the client could not keep up: its own delay may be inside the figures", stage.name);
    Some(
        Finding::new(Level::Bad, what)
            .blames(Cause::Client, Confidence::High)
            .because(stage.client.reasons.first().cloned().unwrap_or_default())
            .remedy(
                "give the client more cores or another machine, run it with --realtime, or offer less load",
            )
            .effect(json!({
                "stage": stage.name,
                "read_lag_p99_ms": stage.client.read_lag_ms.p99,
                "dispatch_lag_p50_ms": stage.client.dispatch_lag_ms.p50,
                "cpu_percent": stage.client.cpu_percent,
            })),
    )
}

fn slow_governor(governor: &str) -> Option<Finding> {
    governor.split(',').any(|name| SLOW_GOVERNORS.contains(&name)).then(|| {
        Finding::new(Level::Note, format!("this client's cores are governed by `{governor}`"))
            .blames(Cause::CpuGovernor, Confidence::Low)
            .because(
                "a core that has slowed down wakes later; kernel stamps keep reads exact, starts may be late",
            )
            .remedy("set the governor to performance for measurements of less than a millisecond")
            .effect(json!({ "governor": governor }))
    })
}

#[cfg(test)]
mod tests;
