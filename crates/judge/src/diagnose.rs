//! Why TTFT is what it is: causes, ranked, each with its evidence, its effect, and what to try.
//!
//! Over a sweep the level with the highest TTFT is held against the lowest load: the part of TTFT that grew is the
//! cause. Where no server told its times the client's figures are read for what they hint at, with less confidence.
//! A run whose TTFT neither grows with load nor has a part that should not be there has no cause to name.

mod engine;
mod path;

use serde_json::json;
use ttft_model::Load;

use crate::knee::Evidence;
use crate::say::ms;
use crate::server::View;
use crate::{Cause, Confidence, Decomposition, Finding, Level, StageSummary};

/// TTFT has risen with load when it is more than so many times that of the lowest load,
const ROSE: f64 = 2.0;
/// and more by this: less is not felt.
const ROSE_MS: f64 = 20.0;

/// Parts of TTFT smaller than this are not worth a word.
const SMALL_MS: f64 = 5.0;

/// A cause explains at least this share of the rise, or of TTFT where there is no rise to explain.
const MATTERS: f64 = 0.2;

/// The client was late for many requests from this share on.
const MANY: f64 = 0.3;

/// One stage with all that is known of it.
#[derive(Clone, Copy)]
struct Seen<'a> {
    stage: &'a StageSummary,
    evidence: &'a Evidence,
    view: &'a View<'a>,
}

/// One cause and how many milliseconds of the mean TTFT it accounts for.
struct Claim {
    cause: Cause,
    confidence: Confidence,
    ms: f64,
    what: String,
    because: String,
    remedy: &'static str,
}

impl<'a> Seen<'a> {
    fn parts(&self) -> &'a Decomposition {
        &self.stage.decomposition
    }

    fn median(&self, metric: &str) -> Option<f64> {
        self.stage.latency_ms.get(metric)?.p50
    }

    /// Mean TTFT without the first request of each user: they all begin at once.
    fn settled(&self) -> Option<f64> {
        let users = match self.stage.load {
            Load::Closed { concurrency, .. } => concurrency as usize,
            Load::Open { .. } | Load::Trace { .. } => 0,
        };
        let points = &self.evidence.points;
        let rest = points.get(users..).filter(|rest| rest.len() >= users.max(5)).unwrap_or(points);
        (!rest.is_empty()).then(|| rest.iter().map(|p| p.ttft_ms).sum::<f64>() / rest.len() as f64)
    }

    /// What the server takes of the mean TTFT, as far as it tells.
    fn server(&self) -> Option<f64> {
        let parts = self.parts();
        let known = [parts.queue.ms, parts.prefill.ms, parts.engine.ms];
        let told = parts.engine.ms.is_some() || parts.prefill.ms.is_some();
        told.then(|| known.iter().flatten().sum())
    }

    /// What is not the way to the server: its own part and what is unexplained.
    fn beyond_the_way(&self) -> Option<f64> {
        let parts = self.parts();
        let way = [parts.connection.ms, parts.client.ms, parts.network.ms, parts.gateway.ms];
        Some(parts.ttft_ms? - way.iter().flatten().sum::<f64>())
    }
}

/// All causes, the likeliest and largest first. What contaminates the run stands before what load does to it, since it
/// bends everything else.
pub(crate) fn find(
    stages: &[StageSummary],
    evidence: &[Evidence],
    views: &[View],
    contamination: &[Finding],
) -> Vec<Finding> {
    let seen: Vec<Seen> = stages
        .iter()
        .zip(evidence)
        .zip(views)
        .map(|((stage, evidence), view)| Seen { stage, evidence, view })
        .collect();
    let of = |found: &Finding| {
        let named = found.effect.as_ref().map_or(&serde_json::Value::Null, |effect| &effect["stage"]);
        stages.iter().find(|stage| *named == stage.name.as_str())
    };
    let mut ranked: Vec<(u8, f64, Finding)> =
        contamination.iter().filter_map(|found| of_contamination(found, of(found))).collect();
    for group in groups(&seen) {
        let Some((base, worst)) = worst(&group) else { continue };
        let rise = base.and_then(|base| rise(base, worst));
        let mut claims: Vec<Claim> = path::claims(worst);
        match base {
            None => claims.extend(engine::alone(worst)),
            Some(base) if rise.is_some() => claims.extend(engine::risen(base, worst)),
            Some(_) => {}
        }
        claims.extend(engine::long_prompts(worst));
        claims.extend(path::ahead_of_server(base.filter(|_| rise.is_some()), worst));
        ranked.extend(claims.into_iter().map(|claim| (3, claim.ms, claim.finding(base, worst, rise))));
    }
    ranked.sort_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    // One finding a cause: the largest.
    let mut named = Vec::new();
    ranked.retain(|(_, _, finding)| {
        let new = !named.contains(&finding.cause);
        named.push(finding.cause);
        new
    });
    ranked.into_iter().map(|(_, _, finding)| finding).collect()
}

/// How much a contamination explains: what makes all other figures doubtful stands before everything.
fn of_contamination(finding: &Finding, stage: Option<&StageSummary>) -> Option<(u8, f64, Finding)> {
    let tier = match finding.cause.filter(|_| finding.level >= Level::Warn)? {
        Cause::Restart => 0,
        // A few requests that the client bent are not why TTFT is what it is.
        Cause::Client if stage.is_some_and(client_rules) => 0,
        Cause::ForeignTraffic => 1,
        Cause::CacheHits => 2,
        Cause::ColdStart => 3,
        _ => return None,
    };
    let mean = |of: &str| finding.effect.as_ref()?["ttft_ms"][of]["mean"].as_f64();
    let ms = mean("with").zip(mean("without")).map_or(0.0, |(with, without)| (with - without).abs());
    Some((tier, ms, finding.clone()))
}

/// Whether the client bends most figures of a stage, and not a few requests of it.
fn client_rules(stage: &StageSummary) -> bool {
    let client = &stage.client;
    let late = crate::stream::share(stage.stream.bundled_by_client, stage.stream.requests);
    let own = client.dispatch_lag_ms.p50.zip(stage.latency_ms.get("ttft").and_then(|ttft| ttft.p50));
    late.is_some_and(|share| share > MANY)
        || own.is_some_and(|(own, ttft)| own > 0.5 && own > 0.05 * ttft)
        || client.cpu_percent.is_some_and(|percent| percent > 97.0)
        || client.kernel_stamped_share.is_some_and(|share| share < 0.5)
        || client.send_lag_ms.p50.is_some_and(|lag| lag > 1.0)
}

/// Stages of one workload and kind of load, by load.
fn groups<'a, 'b>(seen: &'b [Seen<'a>]) -> Vec<Vec<&'b Seen<'a>>> {
    let key = |s: &Seen<'a>| {
        (&s.stage.workload, s.stage.model.as_deref(), matches!(s.stage.load, Load::Closed { .. }))
    };
    let mut groups: Vec<Vec<&Seen>> = Vec::new();
    for stage in seen {
        match groups.iter_mut().find(|group| key(group[0]) == key(stage)) {
            Some(group) => group.push(stage),
            None => groups.push(vec![stage]),
        }
    }
    for group in &mut groups {
        group.sort_by(|a, b| load(a.stage).total_cmp(&load(b.stage)));
    }
    groups
}

fn load(stage: &StageSummary) -> f64 {
    match stage.load {
        Load::Closed { concurrency, .. } => f64::from(concurrency),
        Load::Open { rate, .. } => rate,
        Load::Trace { .. } => 0.0,
    }
}

/// The stage with the highest TTFT, and the one with the lowest load if that is another of less load.
fn worst<'a, 'b>(group: &[&'b Seen<'a>]) -> Option<(Option<&'b Seen<'a>>, &'b Seen<'a>)> {
    let usable: Vec<&&Seen> = group.iter().filter(|s| s.settled().is_some()).collect();
    let ttft = |s: &Seen| s.settled().unwrap_or(f64::NEG_INFINITY);
    let worst = usable.iter().max_by(|a, b| ttft(a).total_cmp(&ttft(b)))?;
    let base = usable.first().filter(|base| load(base.stage) < load(worst.stage));
    Some((base.map(|base| **base), worst))
}

/// By how much the mean TTFT has risen, if it has.
fn rise(base: &Seen, worst: &Seen) -> Option<f64> {
    let rose = |from: Option<f64>, to: Option<f64>| {
        from.zip(to).is_some_and(|(from, to)| to > ROSE * from && to > from + ROSE_MS)
    };
    let rises = rose(base.median("ttft"), worst.median("ttft")) || rose(base.settled(), worst.settled());
    let by = worst.parts().ttft_ms? - base.parts().ttft_ms?;
    (rises && by > 0.0).then_some(by)
}

impl Claim {
    fn finding(self, base: Option<&Seen>, worst: &Seen, rise: Option<f64>) -> Finding {
        let ttft = worst.parts().ttft_ms;
        let share = ttft.filter(|ttft| *ttft > 0.0).map(|ttft| self.ms / ttft);
        let of = match (rise.filter(|rise| self.ms <= 1.1 * rise), share) {
            (Some(rise), _) => format!("{} of the rise of {} in the mean TTFT", ms(self.ms), ms(rise)),
            (None, Some(share)) => format!("{}, {:.0} % of the mean TTFT", ms(self.ms), share * 100.0),
            (None, None) => ms(self.ms),
        };
        Finding::new(Level::Warn, format!("{}: {}", worst.stage.name, self.what))
            .blames(self.cause, self.confidence)
            .because(format!("{of}; {}", self.because))
            .remedy(self.remedy)
            .effect(json!({
                "stage": worst.stage.name,
                "against": base.map(|base| base.stage.name.as_str()),
                "ms": self.ms,
                "ttft_ms": ttft,
                "share_of_ttft": share,
                "rise_ms": rise,
            }))
    }
}

#[cfg(test)]
mod tests;
