//! From arguments to a checked plan.

use anyhow::Context;
use ttft_model::Plan;
use ttft_plan::file::Draft;
use ttft_store::redact;

use super::args::Args;
use super::sources;
use crate::endpoint::dialect_of_url;
use crate::{output, usage};

/// The plan of a run: what its file says, the flags over that, and single values over all.
pub(super) fn plan(args: &Args) -> anyhow::Result<Plan> {
    let mut draft = match &args.plan {
        Some(path) => {
            let text = std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the plan {}", path.display()))
                .map_err(usage)?;
            Draft::read(&text, &path.display().to_string()).map_err(usage)?
        }
        None => Draft::new(),
    };
    draft.lay(&args.overlay()?).map_err(usage)?;
    for set in &args.set {
        draft.set(set).map_err(usage)?;
    }
    let mut plan = draft.plan(&dialect_of_url).map_err(usage)?;
    ask_for_redacted(&mut plan);
    ttft_judge::objectives(&plan.slo).map_err(usage)?;
    sources::check(&plan.sources)?;
    Ok(plan)
}

/// What was redacted when the plan was written has to be given again.
fn ask_for_redacted(plan: &mut Plan) {
    for endpoint in &mut plan.endpoints {
        endpoint.headers.retain(|header| {
            let is_there = header.value != redact::REDACTED;
            if !is_there {
                let name = ttft_show::escape(&header.name).into_owned();
                output::note(&format!(
                    "header `{name}` was secret and is not in the plan: give it by --header '{name}: …'"
                ));
            }
            is_there
        });
    }
}
