//! How many tokens the server counts for a word, asked before the run, so that made-up prompts have the length that
//! was asked for.

use ttft_drive::single;
use ttft_model::{Calibration, Nanos, Plan, Prompt, Span, Timeouts, Workload};

use crate::endpoint::Reached;
use crate::output;

/// Words of the two prompts. Their difference shows what a word costs, and the rest is the chat template and the salt.
const SHORT: u32 = 32;
const LONG: u32 = 512;

/// Tokens of a word that can be believed.
const BELIEVABLE: std::ops::Range<f64> = 0.2..20.0;

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
    let (short, long) = match (input_tokens(plan, workload, SHORT, reached)?, LONG) {
        (Ok(short), words) => match input_tokens(plan, workload, words, reached)? {
            Ok(long) => (short, long),
            Err(why) => return Ok(not_calibrated(&why)),
        },
        (Err(why), _) => return Ok(not_calibrated(&why)),
    };
    let tokens_per_word = (long - short) / f64::from(LONG - SHORT);
    if !BELIEVABLE.contains(&tokens_per_word) {
        return Ok(not_calibrated(&format!("it counts {short} tokens for {SHORT} words, {long} for {LONG}")));
    }
    let overhead = short - tokens_per_word * f64::from(SHORT);
    output::note(&format!(
        "calibrated: {tokens_per_word:.2} tokens a word, and {overhead:.0} around the prompt"
    ));
    Ok(Calibration::Measured { tokens_per_word, overhead })
}

fn not_calibrated(why: &str) -> Calibration {
    output::note(&format!("not calibrated, a word is taken for a token: {}", ttft_show::escape(why)));
    Calibration::None
}

/// The tokens that the server counts for a prompt of so many words, or why there are none.
fn input_tokens(
    plan: &Plan,
    workload: usize,
    words: u32,
    reached: &Reached,
) -> anyhow::Result<Result<f64, String>> {
    let asked = Workload {
        prompt: Prompt::Tokens(words),
        max_tokens: 1,
        output: None,
        calibration: Calibration::None,
        prefix: None,
        session: None,
        images: None,
        ..plan.workloads[workload].clone()
    };
    // In other words than the run's.
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
