//! A change in the course of a stage: first requests that are slower (a cold start, or the burst of all users that
//! begin at once), and drift later on.
//!
//! The test is a maximum of standardised sums of normal scores over all places where the series could be cut, against
//! its distribution under random order (permutations; Antoch and Hušková, *Permutation tests in change point analysis*,
//! Statistics & Probability Letters 53, 2001). It holds for any distribution of TTFT; requests that depend on their
//! neighbours count for fewer.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;
use serde_json::json;
use statrs::distribution::{ContinuousCDF, Normal};
use ttft_model::{Load, Nanos};

use crate::samples::Samples;
use crate::say::ms;
use crate::series::{Point, ranks};
use crate::{Cause, Confidence, Finding, Level, StageSummary, quantile};

/// Fewer requests show no change.
const LEAST: usize = 30;

/// Of more requests the first so many are looked at for a slow start, and as many evenly thinned ones for drift.
const MOST: usize = 4096;

/// Permutations, and how many may reach what is observed: a false alarm in a hundred.
const PERMUTATIONS: usize = 499;
const MAY_REACH: usize = 4;

/// Below this no permutation test ever finds anything.
const NEVER: f64 = 2.6;

/// A change of the median by less than this factor is of no consequence.
const MATTERS: f64 = 1.2;

/// Bends the median or p95 by more than this share: a warning.
const BENDS: f64 = 0.05;

/// Seed of the permutations: the same records give the same finding.
const SEED: u64 = 0x6472_6966;

/// Where a series changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Change {
    /// Requests before it.
    at: usize,
}

/// What changed in the course of a stage, if anything did.
pub(crate) fn find(stage: &StageSummary, points: &[Point]) -> Option<Finding> {
    let values: Vec<f64> = points.iter().map(|p| p.ttft_ms).collect();
    let head = &values[..values.len().min(MOST)];
    if let Some(Change { at }) = change(head).filter(|change| change.at <= head.len() / 2)
        && median(&head[..at]) >= MATTERS * median(&head[at..])
    {
        return Some(start(stage, &values[..at], &values[at..]));
    }
    if let Some(Change { at }) = change(head).filter(|change| change.at <= 3 * users(stage) / 2)
        && median(&head[at..]) >= MATTERS * median(&head[..at])
    {
        let (n, name) = (at, &stage.name);
        let what =
            format!("{name}: the first {n} requests are faster: the queue of all users was still filling");
        return Some(told(stage, "filling", what, BEGIN_APART, &values[..at], &values[at..]));
    }
    let stride = points.len().div_ceil(MOST).max(1);
    let points: Vec<Point> = points.iter().step_by(stride).copied().collect();
    drift(stage, &points)
}

/// The first requests are slower.
fn start(stage: &StageSummary, first: &[f64], rest: &[f64]) -> Finding {
    let (n, of, users) = (first.len(), first.len() + rest.len(), users(stage));
    let name = &stage.name;
    let (kind, what, remedy) = if users > 1 && n >= users / 2 && n <= users + users / 2 {
        (
            "start_burst",
            format!("{name}: the first {n} of {of} requests, with which all users begin at once, are slower"),
            BEGIN_APART,
        )
    } else if users > 1 {
        (
            "slow_start",
            format!(
                "{name}: the first {n} of {of} requests are slower: a cold start, or users still in step"
            ),
            "spread the users' start with --ramp-up, send more --warmup requests, or run longer",
        )
    } else {
        (
            "cold_start",
            format!(
                "{name}: the first {n} of {of} requests are slower than the others, as after a cold start"
            ),
            "send more --warmup requests of the same shape, or run longer",
        )
    };
    told(stage, kind, what, remedy, first, rest)
}

/// What to do about users that begin together.
const BEGIN_APART: &str = "spread the users' start with --ramp-up, or run longer";

/// Users of a closed loop that all begin together, since no ramp spreads them; 0 of any other load.
fn users(stage: &StageSummary) -> usize {
    match &stage.load {
        Load::Closed { concurrency, ramp_up, .. } if ramp_up.0 == Nanos::ZERO => *concurrency as usize,
        _ => 0,
    }
}

/// A finding on first requests, with the figures with them and without.
fn told(
    stage: &StageSummary,
    kind: &str,
    what: String,
    remedy: &str,
    first: &[f64],
    rest: &[f64],
) -> Finding {
    let all = [first, rest].concat();
    let (with, without) = (figures(&all), figures(rest));
    let evidence = format!(
        "median TTFT {} of these, {} of the others; p95 {} with them and {} without, mean {} and {}",
        ms(median(first)),
        ms(without.p50),
        ms(with.p95),
        ms(without.p95),
        ms(with.mean),
        ms(without.mean),
    );
    let bent = [with.p50 / without.p50, with.p95 / without.p95].map(|ratio| (ratio - 1.0).abs());
    let level = if bent[0].max(bent[1]) > BENDS { Level::Warn } else { Level::Note };
    let (cause, confidence) = match kind {
        // A cold engine warms with its first requests, not over half of them.
        "cold_start" | "slow_start" if 4 * first.len() > all.len() => (Cause::Drift, Confidence::Medium),
        "cold_start" => (Cause::ColdStart, Confidence::High),
        "slow_start" => (Cause::ColdStart, Confidence::Medium),
        _ => (Cause::StartBurst, Confidence::Medium),
    };
    let finding = Finding::new(level, what).blames(cause, confidence);
    finding.because(evidence).remedy(remedy).effect(json!({
        "kind": kind,
        "stage": stage.name,
        "requests": first.len(),
        "ttft_ms": { "with": with.json(), "without": without.json() },
    }))
}

/// TTFT changed later on.
fn drift(stage: &StageSummary, points: &[Point]) -> Option<Finding> {
    let values: Vec<f64> = points.iter().map(|p| p.ttft_ms).collect();
    let change = change(&values)?;
    let (before, after) = values.split_at(change.at);
    let (early, late) = (median(before), median(after));
    if early.max(late) < MATTERS * early.min(late) {
        return None;
    }
    let when = (points[change.at].started - points[0].started).as_secs_f64();
    let word = if late > early { "rose" } else { "fell" };
    let what = format!(
        "{}: TTFT {word} in the course of the stage, {when:.1} s after its first request",
        stage.name
    );
    let evidence = format!(
        "median {} of {} requests before, {} of {} after; all together {}",
        ms(early),
        before.len(),
        ms(late),
        after.len(),
        ms(median(&values)),
    );
    let finding = Finding::new(Level::Warn, what)
        .blames(Cause::Drift, Confidence::High)
        .because(evidence)
        .remedy("the figures mix two states: look at what changed on the server, or measure again")
        .effect(json!({
            "kind": "drift",
            "stage": stage.name,
            "after_s": when,
            "ttft_ms": { "with": figures(&values).json(), "before": figures(before).json(), "after": figures(after).json() },
        }));
    Some(finding)
}

/// The most significant change, if one is.
fn change(values: &[f64]) -> Option<Change> {
    let n = values.len();
    if n < LEAST {
        return None;
    }
    let mut scores = scores(values)?;
    let (at, height) = largest(&scores);
    let height = height / dependence(&scores, at).sqrt();
    if height < NEVER {
        return None;
    }
    let mut random = StdRng::seed_from_u64(SEED);
    let mut reached = 0;
    for _ in 0..PERMUTATIONS {
        scores.shuffle(&mut random);
        reached += usize::from(largest(&scores).1 >= height);
        if reached > MAY_REACH {
            return None;
        }
    }
    Some(Change { at })
}

/// The normal scores of the values' ranks, of variance 1; `None` when all values are the same.
fn scores(values: &[f64]) -> Option<Vec<f64>> {
    let normal = Normal::standard();
    let scores: Vec<f64> = ranks(values).into_iter().map(|rank| normal.inverse_cdf(rank)).collect();
    let deviation = (scores.iter().map(|s| s * s).sum::<f64>() / values.len() as f64).sqrt();
    (deviation > 0.0).then(|| scores.into_iter().map(|score| score / deviation).collect())
}

/// The cut with the largest standardised sum, of the first k over √(k·(n − k)/n), and that sum.
fn largest(scores: &[f64]) -> (usize, f64) {
    let n = scores.len() as f64;
    let (mut sum, mut best) = (0.0, (1, 0.0));
    for (i, score) in scores[..scores.len() - 1].iter().enumerate() {
        sum += score;
        let k = (i + 1) as f64;
        let height = sum.abs() / (k * (n - k) / n).sqrt();
        if height > best.1 {
            best = (i + 1, height);
        }
    }
    best
}

/// How many times larger the variance of a sum is for the dependence between neighbours, (1 + ρ)/(1 − ρ) with ρ the
/// first autocorrelation once the change itself is taken out.
fn dependence(scores: &[f64], at: usize) -> f64 {
    let (before, after) = scores.split_at(at);
    let centred = [before, after].into_iter().flat_map(|part| {
        let mean = part.iter().sum::<f64>() / part.len() as f64;
        part.iter().map(move |score| score - mean)
    });
    let centred: Vec<f64> = centred.collect();
    let variance: f64 = centred.iter().map(|s| s * s).sum();
    let covariance: f64 = centred.windows(2).map(|pair| pair[0] * pair[1]).sum();
    if variance <= 0.0 {
        return 1.0;
    }
    // The estimate is too low in short series (Kendall 1954).
    let rho = covariance / variance;
    let rho = (rho + (1.0 + 4.0 * rho) / scores.len() as f64).clamp(0.0, 0.95);
    (1.0 + rho) / (1.0 - rho)
}

/// TTFT in a few figures.
#[derive(Debug, Clone, Copy)]
struct Few {
    n: usize,
    mean: f64,
    p50: f64,
    p95: f64,
    p99: f64,
}

impl Few {
    fn json(&self) -> serde_json::Value {
        json!({ "n": self.n, "mean": self.mean, "p50": self.p50, "p95": self.p95, "p99": self.p99 })
    }
}

fn figures(values: &[f64]) -> Few {
    let samples: Samples = values.iter().copied().collect();
    let sorted = samples.sorted();
    let at = |p| quantile::of_nth(samples.len(), p, |k| sorted.nth(k)).unwrap_or(f64::NAN);
    Few {
        n: values.len(),
        mean: samples.mean().unwrap_or(f64::NAN),
        p50: at(0.5),
        p95: at(0.95),
        p99: at(0.99),
    }
}

fn median(values: &[f64]) -> f64 {
    figures(values).p50
}

#[cfg(test)]
mod tests;
