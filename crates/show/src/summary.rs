//! A run's summary as a person reads it: what `ttft run` prints at its end, and `ttft report`.

use std::fmt::Write;

use ttft_judge::{Goodput, Slo, SloResult, StageSummary, Subject, Summary};
use ttft_model::Load;

use crate::number::{count, figures, percent, time};
use crate::stage::{self, Marks};
use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Cell, Table};
use crate::{escape, findings_text, knee, prompts, reconcile, repeats};

/// The whole summary: head, figures, objectives, what is wrong with them, footnotes.
pub fn summary_text(summary: &Summary, style: &Style) -> String {
    let style = *style;
    let mut marks = Marks::default();
    let mut parts = vec![head(summary, style)];
    match summary.stages.as_slice() {
        [] => parts.push("no stage was begun\n".to_owned()),
        [only] => parts.push(stage::alone(only, style, &mut marks)),
        many => {
            parts.push(sweep(many, style, &mut marks));
            parts.extend(many.iter().map(|s| stage::remarks(s, style)).filter(|text| !text.is_empty()));
            parts.push(prompts::cache(many, style));
            parts.push(clients(many, style));
        }
    }
    match summary.stages.as_slice() {
        [only] => parts.push(objectives(only, style)),
        many => parts.push(objectives_of_all(many, style)),
    }
    parts.push(repeats::text(&summary.repeats, style));
    parts.push(knee::text(&summary.knee, style));
    parts.push(reconcile::text(&summary.stages, style));
    // What contaminates a run and explains its TTFT is told once.
    let others: Vec<_> =
        summary.contamination.iter().filter(|found| !summary.diagnosis.contains(found)).cloned().collect();
    for (title, findings) in [("why TTFT is what it is", &summary.diagnosis), ("contamination", &others)] {
        if !findings.is_empty() {
            parts.push(format!("{}\n{}", style.paint(Ink::Strong, title), findings_text(findings, &style)));
        }
    }
    parts.push(marks.footnotes(style));
    parts.retain(|part| !part.is_empty());
    parts.join("\n")
}

fn head(summary: &Summary, style: Style) -> String {
    let run = &summary.run;
    let mut facts = Vec::new();
    if run.endpoints.is_empty() {
        facts.push(format!("dialect {}", escape(&run.dialect)));
    }
    if run.models.is_empty() {
        facts.extend(run.model.as_ref().map(|model| format!("model {}", escape(model))));
    } else {
        facts.push(format!("models {}", escape(&run.models.join(", "))));
    }
    facts.extend(run.engine.as_ref().map(|engine| format!("engine {}", escape(engine))));
    facts.extend(run.server.as_ref().map(|server| format!("server {}", escape(server))));
    let mut when = vec![escape(&run.started).into_owned()];
    when.extend(run.duration_s.map(|s| format!("{} s", figures(s))));
    if !run.clock_note.is_empty() {
        when.push(format!("clock: {}", escape(&run.clock_note)));
    }
    let mut out = style.paint(Ink::Strong, &format!("ttft {}", escape(&run.name)));
    if run.endpoints.is_empty() {
        out.push_str("  ");
        out.push_str(&escape(&run.url));
    }
    out.push('\n');
    for endpoint in &run.endpoints {
        let told = format!("{}  {} · dialect {}", endpoint.name, endpoint.url, endpoint.dialect);
        out.push_str(&wrap("  ", &escape(&told), style.width));
    }
    out.push_str(&wrap("", &facts.join(" · "), style.width));
    out.push_str(&wrap("", &when.join(" · "), style.width));
    if run.interrupted {
        let why = run.stopped_by.as_ref().map(|why| format!(": {}", escape(why))).unwrap_or_default();
        let told = wrap("", &format!("stopped before its end{why}"), style.width);
        out.push_str(&style.paint(Ink::Doubtful, told.trim_end()));
        out.push('\n');
    }
    out
}

/// Two tables with a row for each stage: the first token, then everything else.
fn sweep(stages: &[StageSummary], style: Style, marks: &mut Marks) -> String {
    let mut first = Table::default();
    labels(&mut first, stages);
    let counts = |of: fn(&StageSummary) -> u64| stages.iter().map(move |s| Cell::new(count(of(s))));
    first.column(("", "ok"), Align::Right, 0, counts(|s| s.requests.ok));
    if stages.iter().any(|s| s.requests.failed > 0) {
        let failed = stages.iter().map(|s| {
            let ink = if s.requests.failed > 0 { Ink::Bad } else { Ink::Faint };
            Cell::new(count(s.requests.failed)).ink(ink)
        });
        first.column(("", "failed"), Align::Right, 0, failed);
    }
    let unit = stage::unit_of(stages, "ttft");
    for name in ["p50", "p95", "p99"] {
        let cells: Vec<_> =
            stages.iter().map(|s| stage::claim(s, "ttft", name, unit, marks).ink(Ink::Strong)).collect();
        first.column((&format!("TTFT {}", unit.sign()), name), Align::Right, 0, cells);
    }
    let mut rest = Table::default();
    labels(&mut rest, stages);
    let rates = |of: fn(&StageSummary) -> Option<f64>| {
        stages.iter().map(move |s| of(s).map_or_else(Cell::default, |v| Cell::new(figures(v))))
    };
    rest.column(("requests", "/s"), Align::Right, 2, rates(|s| s.throughput.requests_per_s));
    rest.column(("out tokens", "/s"), Align::Right, 2, rates(|s| s.throughput.output_tokens_per_s));
    for (metric, title, names, drop) in [
        ("tpot", "TPOT", &["p50"][..], 2),
        ("itl", "ITL", &["p50", "p99"], 3),
        ("e2e", "e2e", &["p50", "p99"], 2),
        ("header_gap", "head gap", &["p50"], 5),
    ] {
        let unit = stage::unit_of(stages, metric);
        for name in names {
            let cells: Vec<_> = stages.iter().map(|s| stage::figure(s, metric, name, unit, marks)).collect();
            rest.column((&format!("{title} {}", unit.sign()), name), Align::Right, drop, cells);
        }
    }
    let in_flight = |s: &StageSummary| stage::figures_of(s).in_flight;
    rest.column(("in flight", "mean"), Align::Right, 4, rates(in_flight));
    format!("{}\n{}", first.text(style), rest.text(style))
}

/// The columns that say which stage a row is.
fn labels(table: &mut Table, stages: &[StageSummary]) {
    const LONGEST: usize = 24;
    let name = |text: &str| Cell::new(crate::escape::escape_to(text, LONGEST));
    table.column(("", "stage"), Align::Left, 0, stages.iter().map(|s| name(&s.name)));
    let told = stages.iter().all(|s| s.name.contains(&stage::level(&s.load)));
    if !told {
        table.column(("", "load"), Align::Left, 0, stages.iter().map(|s| name(&stage::load(&s.load))));
    }
    for (title, of) in
        [("endpoint", endpoint as fn(&StageSummary) -> Option<&str>), ("model", |s| s.model.as_deref())]
    {
        let first = of(&stages[0]);
        if stages.iter().any(|s| of(s) != first && !of(s).is_some_and(|told| s.name.contains(told))) {
            table.column(("", title), Align::Left, 0, stages.iter().map(|s| name(of(s).unwrap_or("-"))));
        }
    }
    if stages.iter().any(|s| s.workload != stages[0].workload && !s.name.contains(&s.workload)) {
        table.column(("", "workload"), Align::Left, 6, stages.iter().map(|s| name(&s.workload)));
    }
}

fn endpoint(stage: &StageSummary) -> Option<&str> {
    stage.endpoint.as_deref()
}

/// One line on all clients that were at their best, and on Little's law.
fn clients(stages: &[StageSummary], style: Style) -> String {
    let ok = stages.iter().filter(|s| s.client.verdict == ttft_judge::Verdict::Ok).count();
    let mut out = if ok == stages.len() {
        format!("client {} on every stage\n", style.paint(Ink::Good, "ok"))
    } else {
        String::new()
    };
    let ratios: Vec<f64> =
        stages.iter().filter_map(|s| stage::figures_of(s).littles_law).map(|little| little.ratio).collect();
    let low = ratios.iter().copied().fold(f64::INFINITY, f64::min);
    let high = ratios.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    if low <= high {
        let _ = writeln!(out, "Little's law: in flight is {low:.2} to {high:.2} times rate × mean total");
    }
    out
}

/// A row for each stage, a column for each objective.
fn objectives_of_all(stages: &[StageSummary], style: Style) -> String {
    let Some(first) = stages.iter().find(|s| !s.goodput.slo.is_empty()) else { return String::new() };
    let mut table = Table::default();
    labels(&mut table, stages);
    for (i, slo) in first.goodput.slo.iter().enumerate() {
        let cells = stages.iter().map(|s| {
            let Some(result) = s.goodput.slo.get(i) else { return Cell::default() };
            let (word, ink) = word(result);
            let cell = Cell::new(word.trim_end()).ink(ink);
            match result.pessimistic.map(|bound| bound.0).or(result.value) {
                Some(value) => cell.aside(value_of(result, value)),
                None => cell,
            }
        });
        let name = crate::escape::escape_to(&slo.slo, 32);
        table.column(("", &name), Align::Left, 0, cells);
    }
    let attained = stages.iter().map(|s| match (s.goodput.attainment, s.goodput.ci95) {
        (Some(share), Some([low, high])) => {
            Cell::new(percent(share)).aside(format!("[{:.1}–{:.1}]", low * 100.0, high * 100.0))
        }
        _ => Cell::default(),
    });
    table.column(("", "met all"), Align::Right, 2, attained);
    let good =
        stages.iter().map(|s| s.goodput.requests_per_s.map_or_else(Cell::default, |v| Cell::new(figures(v))));
    table.column(("", "goodput/s"), Align::Right, 1, good);
    format!("{}\n{}", style.paint(Ink::Strong, "objectives"), table.text(style))
}

fn objectives(stage: &StageSummary, style: Style) -> String {
    let goodput = &stage.goodput;
    if goodput.slo.is_empty() {
        return String::new();
    }
    let mut out = style.paint(Ink::Strong, "objectives");
    out.push('\n');
    for result in &goodput.slo {
        out.push_str(&objective(result, goodput.of, style));
    }
    out.push_str(&attainment(goodput));
    out
}

fn objective(result: &SloResult, of: u64, style: Style) -> String {
    let (word, ink) = word(result);
    let value = |value: f64| value_of(result, value);
    let mut said = Vec::new();
    said.extend(result.value.map(value));
    if let (Some(bound), Some(plain)) = (result.pessimistic, result.value)
        && bound.0 > plain
    {
        said.push(format!("{} with failures as ∞", value(bound.0)));
    }
    said.extend(result.requests_met.map(|met| format!("kept by {} of {} requests", count(met), count(of))));
    format!("  {} {}  {}\n", style.paint(ink, word), escape(&result.slo), said.join(", "))
}

fn word(result: &SloResult) -> (&'static str, Ink) {
    match result.met {
        Some(true) => ("met    ", Ink::Good),
        Some(false) => ("MISSED ", Ink::Bad),
        None => ("unknown", Ink::Doubtful),
    }
}

/// A value in the unit of its objective.
fn value_of(result: &SloResult, value: f64) -> String {
    match result.slo.parse::<Slo>().map(|slo| slo.subject) {
        _ if value.is_infinite() => "∞".to_owned(),
        Ok(Subject::ErrorRate | Subject::Goodput) => percent(value),
        Ok(Subject::RequestRate | Subject::OutputRate) => format!("{}/s", figures(value)),
        _ => time(Some(value)),
    }
}

fn attainment(goodput: &Goodput) -> String {
    let (Some(attained), Some([low, high])) = (goodput.attainment, goodput.ci95) else {
        return String::new();
    };
    let rate =
        goodput.requests_per_s.map(|rate| format!("{} requests/s, ", figures(rate))).unwrap_or_default();
    format!(
        "  goodput {rate}{} of requests met all [{:.1}–{:.1} %]\n",
        percent(attained),
        low * 100.0,
        high * 100.0
    )
}

/// Whether a load starts requests by a schedule of its own.
pub(crate) const fn is_open(load: &Load) -> bool {
    matches!(load, Load::Open { .. } | Load::Trace { .. })
}
