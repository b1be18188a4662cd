//! What the client's figures tell of a knee's cause.

use super::level::Level;
use crate::StageSummary;
use crate::say::ms;

/// A figure that grew by this factor has grown.
const GREW: f64 = 1.25;

/// This share of a rise explains it.
const MOST: f64 = 0.7;

/// More failures than this share matter.
const FAILING: f64 = 0.01;

/// Why p99 leaves at that level.
pub(super) fn of_tail(levels: &[&Level], at: usize) -> Option<String> {
    let (before, here) = (levels[at - 1].stage, levels[at].stage);
    failing(before, here).or_else(|| decode_slows(before, here)).or_else(|| place_of_rise(before, here))
}

/// Why there is no more throughput from that level on: seen between it and the last one.
pub(super) fn of_capacity(levels: &[&Level], at: usize) -> Option<String> {
    let (here, last) = (levels[at].stage, levels[levels.len() - 1].stage);
    if let Some(why) = failing(here, last).or_else(|| decode_slows(here, last)) {
        return Some(why);
    }
    let (from, to) = (get(here, "ttft", "p50")?, get(last, "ttft", "p50")?);
    (to > GREW * from).then(|| {
        format!(
            "beyond it requests wait for their first token (median TTFT {} to {}) while TPOT stays: a queue, so the \
             batch or the KV cache is full",
            ms(from),
            ms(to)
        )
    })
}

fn failing(before: &StageSummary, here: &StageSummary) -> Option<String> {
    let share = |s: &StageSummary| s.requests.failed as f64 / s.requests.sent.max(1) as f64;
    let (from, to) = (share(before), share(here));
    let most = here.requests.failures.first().map_or("failed", |group| group.class.name());
    (to > FAILING && to > 2.0 * from).then(|| {
        format!(
            "{:.1} % of requests fail at {}, most of them {most}: the server sheds load",
            to * 100.0,
            here.name
        )
    })
}

fn decode_slows(before: &StageSummary, here: &StageSummary) -> Option<String> {
    let (from, to) = (get(before, "tpot", "p50")?, get(here, "tpot", "p50")?);
    (to > GREW * from).then(|| {
        format!(
            "decoding slows with it (median TPOT {} to {}): prompts and decoding share the same compute",
            ms(from),
            ms(to)
        )
    })
}

/// Whether the tail grew before the response head or after it.
fn place_of_rise(before: &StageSummary, here: &StageSummary) -> Option<String> {
    let rise = |metric: &str| Some(get(here, metric, "p99")? - get(before, metric, "p99")?);
    let all = rise("ttft").filter(|ms| *ms > 0.0)?;
    if rise("headers_time").is_some_and(|ms| ms > MOST * all) {
        return Some(
            "the rise is before the response head: requests wait to be admitted, at a gateway or by the server"
                .to_owned(),
        );
    }
    rise("header_gap").is_some_and(|ms| ms > MOST * all).then(|| {
        "the rise is between the response head and the first token while TPOT stays: accepted requests wait in the \
         engine's queue, or behind long prompts"
            .to_owned()
    })
}

fn get(stage: &StageSummary, metric: &str, name: &str) -> Option<f64> {
    stage.latency_ms.get(metric)?.get(name)
}
