//! Whether prompts fit into the model's context, found out before the run and not by its failures.

use std::collections::BTreeMap;

use anyhow::anyhow;
use serde_json::Value;
use ttft_drive::{Ask, RequestMaker, get};
use ttft_model::{Endpoint, Plan, Prompt, Workload};
use ttft_plan::{Longest, root_url};
use ttft_wire::Target;

use crate::endpoint::Reached;
use crate::{model, output, usage};

/// What such a page has at most.
const LIMIT: usize = 1 << 20;

/// Names under which servers tell a model's context: vLLM and SGLang, gateways, vendors.
const NAMES: [&str; 5] =
    ["max_model_len", "context_length", "context_window", "max_context_length", "max_input_tokens"];

/// The tokens that the model takes, prompt and answer together, if the server says so.
fn context(reached: &Reached, endpoint: &Endpoint) -> Option<u64> {
    let page = model::page(reached, endpoint).ok()?;
    let wanted = endpoint.model.as_deref();
    let listed = page["data"].as_array()?;
    let own = listed.iter().find(|own| own["id"].as_str() == wanted).or(listed.first())?;
    if let Some(told) = NAMES.iter().find_map(|name| own[*name].as_u64()) {
        return Some(told);
    }
    // llama.cpp: what the model was trained for, and what the server has made room for.
    let trained = own["meta"]["n_ctx_train"].as_u64();
    trained.map(|trained| room(reached, endpoint).unwrap_or(trained))
}

/// The context of one of llama.cpp's slots.
fn room(reached: &Reached, endpoint: &Endpoint) -> Option<u64> {
    let path = reached.dialect.path(endpoint.model.as_deref().unwrap_or_default());
    let target = Target::parse(&root_url(&reached.url, &path, "props").ok()?).ok()?;
    let mut headers = model::headers(reached, endpoint);
    headers.remove(http::header::CONTENT_TYPE);
    let (status, body) = get(&target, &reached.connect, &endpoint.resolve, headers, LIMIT).ok()?;
    let props: Value = serde_json::from_slice(&body).ok()?;
    (status == 200).then(|| props["default_generation_settings"]["n_ctx"].as_u64())?
}

/// Prompt and answer together that every model takes: a server is not asked for less.
const ANY_MODEL: u64 = 2_048;

/// Says which workloads do not fit into the context of the model they are asked of, where the server tells that.
pub(super) fn check(plan: &Plan, asks: &[Ask], reached: &[Reached]) -> anyhow::Result<()> {
    let mut known: BTreeMap<(u32, Option<&str>), Option<u64>> = BTreeMap::new();
    for ask in asks {
        let answer = ask.maker.max_tokens();
        if ask.maker.prompts().longest(answer).tokens + u64::from(answer) <= ANY_MODEL {
            continue;
        }
        let at = ask.endpoint as usize;
        let context = known.entry((ask.endpoint, ask.model.as_deref())).or_insert_with(|| {
            let endpoint = Endpoint { model: ask.model.clone(), ..plan.endpoints[at].clone() };
            context(&reached[at], &endpoint)
        });
        if let Some(context) = *context {
            fits(&plan.workloads[ask.workload as usize], &ask.maker, context)?;
        }
    }
    Ok(())
}

/// Says what does not fit; an error where no prompt does.
fn fits(workload: &Workload, maker: &RequestMaker, context: u64) -> anyhow::Result<()> {
    let answer = maker.max_tokens();
    let Longest { tokens, is_certain } = maker.prompts().longest(answer);
    let all_the_same = matches!(workload.prompt, Prompt::Text(_) | Prompt::Tokens(_));
    let of = |what: &str| match is_certain {
        true if all_the_same => format!("prompts have {tokens} tokens{what}"),
        true => format!("prompts have up to {tokens} tokens{what}"),
        false => format!("the longest prompt has {tokens} words, which are more tokens than that{what}"),
    };
    let history = if workload.session.is_some() { " with their history" } else { "" };
    if tokens > context {
        let text = format!("{}, but the model's context is {context} tokens", of(history));
        if all_the_same && workload.session.is_none() {
            return Err(usage(anyhow!(
                "{text}: ask for shorter ones, or serve the model with a longer context"
            )));
        }
        output::note(&format!("warning: {text}: those that do not fit will be refused"));
    } else if tokens + u64::from(answer) > context {
        output::note(&format!(
            "warning: {}, and answers may have {answer}: together more than the model's context of {context} \
             tokens; answers will be cut, or requests refused",
            of(history)
        ));
    }
    Ok(())
}
