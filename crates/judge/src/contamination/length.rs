//! Answers that became longer or shorter: figures of stages and of halves of a stage are then of different work.

use serde_json::json;

use crate::series::{Point, moments};
use crate::{Cause, Confidence, Finding, Level, StageSummary};

/// Means that differ by less than this factor are no matter.
const MATTERS: f64 = 1.2;

/// Standard errors by which they must differ.
const SURE: f64 = 4.0;

/// Fewer requests in a half tell nothing.
const LEAST: usize = 15;

/// The second half of a stage against its first.
pub(super) fn drift(stage: &StageSummary, points: &[Point]) -> Option<Finding> {
    let lengths: Vec<f64> = points.iter().filter_map(|p| p.output).map(|n| n as f64).collect();
    let (first, second) = lengths.split_at(lengths.len() / 2);
    if first.len() < LEAST {
        return None;
    }
    let ((early, spread), (late, other)) =
        (moments(first.iter().copied())?, moments(second.iter().copied())?);
    let error = (spread / first.len() as f64 + other / second.len() as f64).sqrt();
    if early.max(late) < MATTERS * early.min(late) || (late - early).abs() < SURE * error {
        return None;
    }
    let word = if late > early { "longer" } else { "shorter" };
    let what = format!("{}: answers became {word} in the course of the stage", stage.name);
    Some(
        told(what, early, late, &stage.name)
            .remedy("fix the length: --max-tokens with ignore_eos where the server has it"),
    )
}

/// Each stage against the first of the same workload.
pub(super) fn between(stages: &[StageSummary]) -> Option<Finding> {
    let mean = |stage: &StageSummary| stage.tokens.output.per_request.mean;
    stages.iter().enumerate().find_map(|(i, stage)| {
        let first =
            stages[..i].iter().find(|s| s.workload == stage.workload && s.max_tokens == stage.max_tokens)?;
        let (before, here) = (&first.tokens.output.per_request, &stage.tokens.output.per_request);
        let (early, late) = (mean(first)?, mean(stage)?);
        let variance = |of: &crate::Distribution| Some(of.stddev?.powi(2) / of.n as f64);
        let error = (variance(before)? + variance(here)?).sqrt();
        let apart =
            early.max(late) >= MATTERS * early.min(late) && (late - early).abs() >= SURE * error.max(1e-9);
        apart.then(|| {
            let what = format!("answers are of another length at {} than at {}", stage.name, first.name);
            told(what, early, late, &stage.name)
                .remedy("fix the length, or the stages compare different work: --max-tokens with ignore_eos")
        })
    })
}

fn told(what: String, early: f64, late: f64, stage: &str) -> Finding {
    Finding::new(Level::Warn, what)
        .blames(Cause::OutputDrift, Confidence::High)
        .because(format!("{early:.1} output tokens on average before, {late:.1} after"))
        .effect(json!({ "stage": stage, "output_tokens": { "before": early, "after": late } }))
}
