//! Prompts that the server had read before.

use serde_json::json;
use ttft_model::CachePolicy;

use crate::reconcile::Ours;
use crate::say::ms;
use crate::server::View;
use crate::{Cause, Confidence, Distribution, Finding, Level, StageSummary};

/// A share of cached prompt tokens below this is no matter.
const HITS: f64 = 0.05;

/// So few a request are a template's or a system prompt's, unless they are half of the prompt.
const TEMPLATE: f64 = 32.0;

/// Prefix-cache hits, by the server's counters or the answers' usage.
pub(super) fn hits(stage: &StageSummary, ours: &Ours, view: &View) -> Option<Finding> {
    let by_answers = ours.cached_share();
    let counted = view.total("cached_prompt_tokens").zip(view.total("prompt_tokens"));
    let by_server = counted
        .filter(|(_, all)| *all > 0.0)
        .map(|(cached, all)| cached / all)
        .or_else(|| view.ratio("prefix_cache_hit_ratio_tokens"))
        .or_else(|| view.ratio("prefix_cache_hit_ratio_blocks"));
    // Answers are of our requests alone.
    let share = by_answers.or(by_server).filter(|share| *share >= HITS)?;
    let prompt = stage.tokens.input.per_request.mean;
    if share < 0.5 && prompt.is_some_and(|tokens| tokens * share < TEMPLATE) {
        return None;
    }
    let (level, asked) = match stage.cache {
        CachePolicy::Cold => (Level::Bad, "although a cold cache was asked for"),
        CachePolicy::AsIs => (Level::Warn, "with the cache as it is"),
        CachePolicy::Warm => (Level::Note, "as a warm cache was asked for"),
    };
    let percent = share * 100.0;
    let what = format!("{}: {percent:.0} % of prompt tokens came from the prefix cache, {asked}", stage.name);
    let [with, without] = [&ours.cached[0], &ours.cached[1]].map(Distribution::of);
    let mut evidence = match by_answers {
        Some(_) => "by the answers' usage".to_owned(),
        None => "by the server's counters".to_owned(),
    };
    if let (Some(hit), Some(miss)) = (with.p50, without.p50) {
        evidence = format!(
            "{evidence}; median TTFT {} of {} requests with hits, {} of {} without",
            ms(hit),
            with.n,
            ms(miss),
            without.n
        );
    }
    Some(
        Finding::new(level, what)
            .blames(Cause::CacheHits, Confidence::High)
            .because(evidence)
            .remedy("use --cache cold and prompts that differ from their first token on, or call the figures those of a warm cache")
            .effect(json!({
                "stage": stage.name,
                "share": share,
                "by_answers": by_answers,
                "by_server": by_server,
                "ttft_ms": { "with": with.p50, "without": without.p50 },
            })),
    )
}
