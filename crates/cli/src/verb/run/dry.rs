//! What a run will use, told before it: with a budget or prices, and instead of it by `--dry-run`.

use anyhow::anyhow;
use ttft_model::{Budget, Calibration, Plan};
use ttft_plan::Prompts;
use ttft_plan::estimate::{Bounds, Estimate, Use};
use ttft_show::{Align, Cell, Style, Table};
use ttft_store::redact;

use crate::exit::Exit;
use crate::{output, usage};

/// Columns of the table.
const COLUMNS: [&str; 5] = ["requests", "input tokens", "output tokens", "cost", "time"];

/// Estimates what a plan will use. Its prompts are loaded for that; nothing is sent.
fn estimate(plan: &Plan) -> anyhow::Result<Estimate> {
    let load = |workload| Prompts::load(workload, plan.seed);
    let prompts: Vec<Prompts> = plan.workloads.iter().map(load).collect::<Result<_, _>>().map_err(usage)?;
    let estimate = Estimate::of(plan, &prompts.iter().collect::<Vec<_>>());
    match estimate.allows_nothing(plan) {
        Some(why) => Err(usage(anyhow!(why))),
        None => Ok(estimate),
    }
}

/// Says what a run with a budget or prices will use, and refuses one that its budget would not let begin.
pub(super) fn announce(plan: &Plan) -> anyhow::Result<()> {
    if plan.budget == Budget::default() {
        return Ok(());
    }
    let Estimate { total, .. } = estimate(plan)?;
    let cost = total.cost.map_or(String::new(), |cost| format!(", cost {}", amount(cost, money)));
    output::note(&format!(
        "estimated: {} requests, {} input tokens, {} output tokens{cost}{}",
        amount(total.requests, whole),
        amount(total.input_tokens, whole),
        amount(total.output_tokens, whole),
        limits(&plan.budget)
    ));
    Ok(())
}

/// Prints what would be done, and sends nothing.
pub(super) fn run(plan: &Plan, json: bool) -> anyhow::Result<Exit> {
    let estimate = estimate(plan)?;
    let value = serde_json::json!({
        "schema": "ttft.estimate/1",
        "plan": redact::plan(plan),
        "estimate": estimate,
    });
    output::show(json, &value, |style| text(plan, &estimate, *style))?;
    Ok(Exit::Ok)
}

fn text(plan: &Plan, estimate: &Estimate, style: Style) -> String {
    let mut out = format!("{}: what would be done; nothing has been sent\n\n", ttft_show::escape(&plan.name));
    for endpoint in &plan.endpoints {
        let mut models: Vec<&str> = Vec::new();
        for stage in plan.stages.iter().filter(|stage| plan.endpoint_of(stage).name == endpoint.name) {
            let model = plan.model_of(stage).unwrap_or("the first that it lists");
            if !models.contains(&model) {
                models.push(model);
            }
        }
        let (url, models) = (redact::url(&endpoint.url), models.join(", "));
        let told = format!("{}  {url}  dialect {}, model {models}", endpoint.name, endpoint.dialect);
        out += &ttft_show::wrap("endpoint ", &ttft_show::escape(&told), style.width);
    }
    out.push('\n');
    out += &table(estimate, style);
    out += "\nranges: answers of one token up to the most asked for; + where the server's speed decides\n";
    if plan.workloads.iter().any(|workload| workload.calibration == Calibration::Measure) {
        out += "a word is taken for a token: how many the server counts is measured when the run begins\n";
    }
    let limits = limits(&plan.budget);
    if !limits.is_empty() {
        out += &ttft_show::wrap("budget", &limits, style.width);
    }
    out
}

/// A row for the warm-up, for each stage, and for all.
fn table(estimate: &Estimate, style: Style) -> String {
    let mut rows = vec![("warm-up", cells(&estimate.warmup, None))];
    let stages = estimate.stages.iter();
    rows.extend(stages.map(|stage| (stage.name.as_str(), cells(&stage.uses, Some(stage.seconds)))));
    rows.push(("all", cells(&estimate.total, Some(estimate.seconds))));
    let mut table = Table::default();
    let names = rows.iter().map(|(name, _)| Cell::new(ttft_show::escape(name)));
    table.column(("", "stage"), Align::Left, 0, names);
    for (at, head) in COLUMNS.iter().enumerate() {
        let column = rows.iter().map(|(_, cells)| Cell::new(cells[at].clone()));
        table.column(("", head), Align::Right, 0, column);
    }
    table.text(style)
}

fn limits(budget: &Budget) -> String {
    let tokens = budget.max_total_tokens.map(|most| format!("{} tokens", whole(most as f64)));
    let cost = budget.max_cost.map(|most| format!("a cost of {}", money(most)));
    let limits: Vec<String> = [tokens, cost].into_iter().flatten().collect();
    if limits.is_empty() { String::new() } else { format!("; it stops before {}", limits.join(" or ")) }
}

fn cells(uses: &Use, seconds: Option<Bounds>) -> [String; 5] {
    [
        amount(uses.requests, whole),
        amount(uses.input_tokens, whole),
        amount(uses.output_tokens, whole),
        uses.cost.map_or("–".to_owned(), |cost| amount(cost, money)),
        seconds.map_or(String::new(), |seconds| match seconds {
            // Nothing is known but that it takes some time.
            Bounds { least: 0.0, most: None } => "–".to_owned(),
            _ => amount(seconds, |seconds| format!("{seconds:.0} s")),
        }),
    ]
}

fn amount(bounds: Bounds, show: impl Fn(f64) -> String) -> String {
    let least = show(bounds.least);
    match bounds.most.map(show) {
        None => format!("{least}+"),
        Some(most) if most == least => most,
        Some(most) => format!("{least}–{most}"),
    }
}

/// `12,345`.
fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at) % 3 == 0 {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// Two decimals, or as many as a small amount needs.
fn money(value: f64) -> String {
    if value == 0.0 || value >= 0.1 { format!("{value:.2}") } else { format!("{value:.6}") }
}
