//! `ttft check`: one streamed request, every phase of it, and what is odd about the endpoint.

use std::path::PathBuf;

use anyhow::Context;
use ttft_drive::{Single, single};
use ttft_judge::Finding;
use ttft_judge::check::{CheckContext, findings};
use ttft_kernel::{Anchor, raise_open_files};
use ttft_model::{Outcome, Plan};
use ttft_plan::file::{Draft, Overlay};
use ttft_store::redact::{REDACTED, Secrets};

use crate::endpoint::{EndpointArgs, PromptArgs, TimeoutArgs, dialect_of_url, reach};
use crate::exit::Exit;
use crate::{model, output, recording, simulator, usage};

/// Look at an endpoint: one streamed request, every phase as a waterfall, and what is odd about it
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft check http://localhost:8000
  ttft check https://gateway.example/v1 --model big --api-key-env GATEWAY_KEY
  ttft check http://localhost:8000 --json
  ttft check http://localhost:8000 --save stream.jsonl

Exit code 0 if the stream is fine, 3 if there was none.")]
pub(crate) struct Args {
    /// Print JSON on standard output, and text on standard error
    #[arg(long)]
    json: bool,
    /// Save the answer as it came, with the instant of each read, for `ttft decode`
    #[arg(long, value_name = "FILE")]
    save: Option<PathBuf>,
    #[command(flatten)]
    endpoint: EndpointArgs,
    #[command(flatten)]
    prompt: PromptArgs,
    #[command(flatten)]
    timeouts: TimeoutArgs,
}

/// Checks one endpoint.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    let plan = plan(args)?;
    let (mut endpoint, workload, timeouts) = (plan.endpoint().clone(), &plan.workloads[0], plan.timeouts);
    let sim = simulator::start(&endpoint.url, 0)?;
    let base = sim.as_ref().map(|sim| format!("http://{}", sim.addr()));
    let reached = reach(&endpoint, &timeouts, base.as_deref())?;
    let models = model::list(&reached, &endpoint);
    if endpoint.model.is_none() {
        // Without a list the request goes out without a name: some servers do not mind.
        endpoint.model = models.as_ref().ok().and_then(|models| models.first().cloned());
    }
    raise_open_files();
    let _anchor = Anchor::establish();

    // The second request shows whether the first one's connection can be used again.
    let maker = reached.maker(&endpoint, workload, 1, 1)?;
    let mut singles =
        single(&reached.target, &reached.dialect, &reached.connect, &endpoint.resolve, timeouts, &maker, 2)
            .context("cannot start an event loop")?
            .into_iter();
    let mut first = singles.next().context("no request was sent")?;
    let second = singles.next();
    let mut secrets = Secrets::of_requests(&endpoint, std::slice::from_ref(workload));
    secrets.add(reached.key.as_deref().unwrap_or_default());
    keep_out(&secrets, &mut first);
    let context = context(&first, second.as_ref(), &endpoint, models.ok(), reached.key.is_some());
    let found = findings(&first.record, &context);

    output::show(args.json, &report(&first, &found), |style| {
        let url = ttft_store::redact::url(&reached.url).into_owned();
        let model = endpoint.model.as_deref().unwrap_or("-");
        format!(
            "{}  model {}\n{}",
            ttft_show::escape(&url),
            ttft_show::escape(model),
            ttft_show::waterfall_text(&first.record, &found, style)
        )
    })?;
    if let Some(path) = &args.save {
        recording::save(path, &first, &secrets)?;
        output::note(&format!("saved; `ttft decode {}` shows it again", path.display()));
    }
    let measured = first.record.outcome() == Outcome::Ok && first.record.answer.first_token.is_some();
    Ok(if measured { Exit::Ok } else { Exit::NotMeasured })
}

/// The plan of one request: its endpoint, its workload and its times.
fn plan(args: &Args) -> anyhow::Result<Plan> {
    if args.endpoint.model.len() > 1 {
        return Err(usage(anyhow::anyhow!("--model: one request asks for one model")));
    }
    let mut flags = Overlay::default();
    args.endpoint.lay(&mut flags)?;
    args.prompt.lay(&mut flags)?;
    args.timeouts.lay(&mut flags)?;
    let mut draft = Draft::new();
    draft.lay(&flags).map_err(usage)?;
    draft.plan(&dialect_of_url).map_err(usage)
}

/// A server may repeat the key in what it says.
fn keep_out(secrets: &Secrets, single: &mut Single) {
    let scrub = |text: &mut String| *text = secrets.scrub(text).into_owned();
    scrub(&mut single.text);
    let answer = &mut single.record.answer;
    for said in [&mut answer.model, &mut answer.finish_reason, &mut answer.response_id] {
        said.as_mut().map(scrub);
    }
    if let Some(failure) = &mut single.record.answer.failure {
        scrub(&mut failure.message);
        failure.code.as_mut().map(scrub);
    }
    for value in single.headers.iter_mut().flat_map(http::HeaderMap::values_mut) {
        let clean = value.to_str().ok().and_then(|text| secrets.scrub(text).parse().ok());
        *value = clean.unwrap_or(http::HeaderValue::from_static(REDACTED));
    }
}

fn context(
    first: &Single,
    second: Option<&Single>,
    endpoint: &ttft_model::Endpoint,
    models: Option<Vec<String>>,
    key_sent: bool,
) -> CheckContext {
    let header = |name: &str| {
        let value = first.headers.as_ref()?.get(name)?.to_str().ok()?;
        Some(value.to_owned())
    };
    let closes = header("connection").filter(|value| value.eq_ignore_ascii_case("close"));
    CheckContext {
        server: header("server"),
        content_type: header("content-type"),
        keep_alive: closes.or_else(|| header("keep-alive")),
        second_reused: second
            .map(|single| single.record.connection.reused && !single.record.connection.resent),
        key_sent,
        model: endpoint.model.clone(),
        models,
        usage_asked: true,
        dialect: endpoint.dialect.clone(),
        looks_like: first.looks_like.as_ref().map(|dialect| dialect.name().to_owned()),
    }
}

/// The JSON form: the phases in milliseconds from the start, and the findings.
fn report(first: &Single, found: &[Finding]) -> serde_json::Value {
    let record = &first.record;
    let phases: Vec<_> = ttft_judge::phases(record)
        .into_iter()
        .map(
            |phase| serde_json::json!({ "name": phase.name, "from_ms": phase.from_ms, "to_ms": phase.to_ms }),
        )
        .collect();
    serde_json::json!({
        "outcome": record.outcome().name(),
        "error_class": record.failure().map(|failure| failure.class.name()),
        "error_message": record.failure().map(|failure| failure.message.as_str()),
        "http_status": record.status,
        "request_id": record.id.to_string(),
        "ttft_ms": ttft_judge::metrics::ttft(record),
        "ttft_sent_ms": ttft_judge::metrics::ttft_sent(record),
        "header_gap_ms": ttft_judge::metrics::header_gap(record),
        "e2e_ms": ttft_judge::metrics::e2e(record),
        "tpot_ms": ttft_judge::metrics::tpot(record),
        "output_tokens": record.answer.usage.output,
        "input_tokens": record.answer.usage.input,
        "phases": phases,
        "findings": found,
        "text": first.text,
    })
}
