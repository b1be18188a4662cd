//! How many tokens the server counts for a prompt, asked before the run, so that made-up prompts have the length that
//! was asked for.
//!
//! A server that has `/tokenize` is asked there, which costs no generation; any other by the usage of two short
//! requests. With a tokenizer of our own only what stands around a prompt is taken from the answer.

use ttft_drive::single;
use ttft_model::{Calibration, Nanos, Plan, Prompt, Span, Timeouts, Workload};
use ttft_plan::Prompts;

use super::tokenize::Tokenize;
use crate::endpoint::Reached;
use crate::output;

/// Words of the two prompts. Their difference shows what a word costs, and the rest is the chat template and the salt.
const SHORT: u32 = 32;
const LONG: u32 = 512;

/// Tokens of a word that can be believed.
const BELIEVABLE: std::ops::Range<f64> = 0.2..20.0;

/// A tokenizer that is the server's counts as it does, to this share.
const SAME: f64 = 0.01;

/// A server that takes longer for one token is asked no further.
const PATIENCE: Span = Span(Nanos::from_millis(30_000));

/// Measures what the plan wants measured. A server that cannot be asked, or does not tell, is no error: the run says
/// more about it.
pub(super) fn calibrate(plan: &mut Plan, reached: &Reached, is_simulated: bool) -> anyhow::Result<()> {
    for at in 0..plan.workloads.len() {
        let workload = &plan.workloads[at];
        if workload.calibration != Calibration::Measure {
            continue;
        }
        let is_made_up =
            matches!(workload.prompt, Prompt::Tokens(_) | Prompt::Lengths(_) | Prompt::Trace { .. });
        // For the simulated engine a word is a token.
        let calibration =
            if is_simulated || !is_made_up { Calibration::None } else { measure(plan, at, reached)? };
        plan.workloads[at].calibration = calibration;
    }
    Ok(())
}

fn measure(plan: &Plan, workload: usize, reached: &Reached) -> anyhow::Result<Calibration> {
    let (short, long, by) = match by_tokenize(plan, workload, reached)? {
        Some((short, long)) => (short, long, "the server's /tokenize"),
        None => match by_usage(plan, workload, reached)? {
            Ok((short, long)) => (short, long, "the server's usage"),
            Err(why) => return Ok(not_calibrated(plan, workload, &why)),
        },
    };
    let tokens_per_word = (long - short) / f64::from(LONG - SHORT);
    if !BELIEVABLE.contains(&tokens_per_word) {
        let why = format!("it counts {short} tokens for {SHORT} words, {long} for {LONG}");
        return Ok(not_calibrated(plan, workload, &why));
    }
    let overhead = short - tokens_per_word * f64::from(SHORT);
    if plan.workloads[workload].tokenizer.is_none() {
        output::note(&format!(
            "calibrated: {tokens_per_word:.2} tokens a word, and {overhead:.0} around the prompt, by {by}"
        ));
    } else if (tokens_per_word - 1.0).abs() > SAME {
        output::note(&format!(
            "warning: the tokenizer is not the server's: where it counts {} tokens, {by} counts {:.0}; prompts have \
             the lengths that the tokenizer counts",
            LONG - SHORT,
            long - short
        ));
        return Ok(Calibration::None);
    } else {
        output::note(&format!("the tokenizer counts as {by} does; {overhead:.0} tokens around the prompt"));
    }
    Ok(Calibration::Measured { tokens_per_word, overhead })
}

fn not_calibrated(plan: &Plan, workload: usize, why: &str) -> Calibration {
    let what = match plan.workloads[workload].tokenizer {
        None => "not calibrated, a word is taken for a token",
        Some(_) => "what stands around a prompt is not known and comes on top of its tokens",
    };
    output::note(&format!("{what}: {}", ttft_show::escape(why)));
    Calibration::None
}

/// A workload of prompts of so many words, or tokens if there is a tokenizer, in other words than the run's.
fn asked(plan: &Plan, workload: usize, length: u32) -> Workload {
    Workload {
        prompt: Prompt::Tokens(length),
        max_tokens: 1,
        output: None,
        calibration: Calibration::None,
        prefix: None,
        session: None,
        images: None,
        ..plan.workloads[workload].clone()
    }
}

/// What `/tokenize` counts for the short and the long prompt, if the server has it.
fn by_tokenize(plan: &Plan, workload: usize, reached: &Reached) -> anyhow::Result<Option<(f64, f64)>> {
    let Some(server) = Tokenize::of(reached, plan.endpoint()) else { return Ok(None) };
    let salted = plan.workloads[workload].cache == ttft_model::CachePolicy::Cold;
    // It counts as the ids of requests do.
    let salt = "0199c0de-7a5b-7e91-8f3d-26c4b7d0a5f1";
    let count = |length: u32| {
        let prompts = Prompts::load(&asked(plan, workload, length), !plan.seed).map_err(crate::usage)?;
        let mut text = String::new();
        prompts.write(u64::from(length), salted.then_some(salt), &mut text);
        anyhow::Ok(server.count(&text))
    };
    let Some(short) = count(SHORT)? else { return Ok(None) };
    Ok(count(LONG)?.map(|long| (short as f64, long as f64)))
}

/// What usage counts for them, or why it does not.
fn by_usage(plan: &Plan, workload: usize, reached: &Reached) -> anyhow::Result<Result<(f64, f64), String>> {
    let short = match input_tokens(plan, workload, SHORT, reached)? {
        Ok(short) => short,
        Err(why) => return Ok(Err(why)),
    };
    Ok(input_tokens(plan, workload, LONG, reached)?.map(|long| (short, long)))
}

/// The tokens that the server counts for a prompt of such a length, or why there are none.
fn input_tokens(
    plan: &Plan,
    workload: usize,
    length: u32,
    reached: &Reached,
) -> anyhow::Result<Result<f64, String>> {
    let asked = asked(plan, workload, length);
    let maker = reached.maker(plan.endpoint(), &asked, !plan.seed, 1)?;
    let resolve = &plan.endpoint().resolve;
    let first_token = Span(plan.timeouts.first_token.0.min(PATIENCE.0));
    let timeouts = Timeouts { first_token, total: PATIENCE, ..plan.timeouts };
    let singles = single(&reached.target, &reached.dialect, &reached.connect, resolve, timeouts, &maker, 1)?;
    let record = singles.first().map(|single| &single.record);
    let told = record.and_then(|record| record.answer.usage.input);
    // The server's own words may hold the key; the run says more, cleaned of it.
    let failure = record.and_then(|record| record.failure());
    let failure = failure.map(|failure| format!("the request that asks failed with {}", failure.class));
    Ok(match told {
        Some(tokens) => Ok(tokens as f64),
        None => {
            Err(failure.unwrap_or_else(|| "the server does not say how many tokens a prompt has".to_owned()))
        }
    })
}
