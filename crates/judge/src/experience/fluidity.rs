//! The fluidity index of Etalon (Agrawal et al., *Etalon: Holistic Performance Evaluation Framework for LLM Inference
//! Systems*, 2024, arXiv 2407.07000, algorithm 1; `get_request_level_deadline_miss_rate` in project-etalon/etalon,
//! `etalon/metrics/metric_utils.py` at c238821).

use ttft_model::Nanos;

use super::Arrival;
use crate::{Comparison, Slo, Subject};

/// First-token deadline without an objective, and that of each later token: the limits of `MLPerf` Inference for
/// llama3.1-8b (2,000 ms and 100 ms).
const DEFAULT_MS: (f64, f64) = (2000.0, 100.0);

/// When tokens are due.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Deadlines {
    pub(super) first_token_ms: f64,
    pub(super) token_ms: f64,
    pub(super) from_slo: bool,
}

impl Deadlines {
    /// The tightest upper limits that the objectives set on `ttft` and on `tpot`, by whatever statistic.
    pub(crate) fn of(slos: &[Slo]) -> Self {
        let limit = |name: &str| {
            let limits = slos.iter().filter(|slo| {
                matches!(slo.subject, Subject::Metric(metric, _) if metric.name == name)
                    && matches!(slo.comparison, Comparison::Below | Comparison::AtMost)
                    && slo.threshold > 0.0
            });
            limits.map(|slo| slo.threshold).min_by(f64::total_cmp)
        };
        let (first, token) = (limit("ttft"), limit("tpot"));
        Self {
            first_token_ms: first.unwrap_or(DEFAULT_MS.0),
            token_ms: token.unwrap_or(DEFAULT_MS.1),
            from_slo: first.is_some() || token.is_some(),
        }
    }
}

/// Share of deadlines met; `None` where the tokens are not known.
///
/// Each token is due a token's time after the one before, the first one after its own; being early is saved up as
/// slack. A token that is late misses its deadline and those that would have passed while it was awaited, and
/// deadlines then start anew from it. Tokens of one event come together.
pub(super) fn index(started: Nanos, arrivals: &[Arrival], deadlines: &Deadlines) -> Option<f64> {
    let (mut met, mut missed, mut slack, mut tokens) = (0u64, 0u64, 0.0f64, 0u64);
    let mut before = started;
    for arrival in arrivals {
        let upto = arrival.tokens_so_far.round() as u64;
        let waited = (arrival.at - before).as_millis_f64().max(0.0);
        let new = upto.saturating_sub(tokens);
        if new == 0 {
            continue;
        }
        before = arrival.at;
        let due = if tokens == 0 { deadlines.first_token_ms } else { deadlines.token_ms };
        if waited <= due + slack {
            met += 1;
            slack += due - waited;
        } else {
            let late = waited - slack - due;
            missed += 1 + (late / deadlines.token_ms) as u64;
            slack = 0.0;
        }
        // The others of the event come with it: early by a whole deadline each.
        met += new - 1;
        slack += (new - 1) as f64 * deadlines.token_ms;
        tokens = upto;
    }
    (met + missed > 0).then(|| met as f64 / (met + missed) as f64)
}
