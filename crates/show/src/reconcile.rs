//! The client's TTFT against the server's, and where the mean TTFT goes.

use std::fmt::Write;

use ttft_judge::{Agreement, Pair, StageSummary};

use crate::escape::{escape, escape_to};
use crate::number::Unit;
use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Cell, Table};

/// Both tables and what is to be said of them; empty where no server told anything.
pub(crate) fn text(stages: &[StageSummary], style: Style) -> String {
    let told = |s: &&StageSummary| s.reconcile.source.is_some() || s.reconcile.gateway.is_some();
    let stages: Vec<&StageSummary> = stages.iter().filter(told).collect();
    if stages.is_empty() {
        return String::new();
    }
    let mut out = style.paint(Ink::Strong, "client against server");
    if let Some(source) = stages.iter().find_map(|s| s.reconcile.source.as_ref()) {
        let from = stages.iter().find_map(|s| s.reconcile.server_ttft_from.as_deref()).unwrap_or("unknown");
        let _ = write!(out, "  server TTFT from {}, by {}", escape(from), escape(source));
    }
    out.push('\n');
    out.push_str(&sides(&stages, style));
    for stage in &stages {
        let both = &stage.reconcile;
        if both.verdict != Some(Agreement::Clean) && !both.why.is_empty() {
            out.push_str(&wrap("  - ", &escape(&format!("{}: {}", stage.name, both.why)), style.width));
        }
    }
    out.push_str(&per_request(&stages, style));
    out.push('\n');
    out.push_str(&style.paint(Ink::Strong, "where the mean TTFT goes"));
    out.push('\n');
    out.push_str(&parts(&stages, style));
    if let Some(holds) = stages.first().map(|s| s.decomposition.rest.rests_on.as_str()) {
        let is_bucket = stages.iter().any(|s| s.reconcile.p50.server_between_ms.is_some());
        let bucket = if is_bucket { " · a–b: the bucket of the server's histogram" } else { "" };
        let text = wrap("", &format!("– unknown{bucket} · rest: {}", escape(holds)), style.width);
        out.push_str(&style.paint(Ink::Faint, text.trim_end()));
        out.push('\n');
    }
    out
}

fn name(stage: &StageSummary) -> Cell {
    const LONGEST: usize = 24;
    Cell::new(escape_to(&stage.name, LONGEST))
}

fn time(unit: Unit, ms: Option<f64>) -> Cell {
    ms.map_or_else(|| Cell::new("–").ink(Ink::Faint), |ms| Cell::new(unit.show(ms)))
}

/// The server's side of a pair: the bucket where it is a histogram's, for within it nothing is known; else a bound or a
/// value.
fn server(unit: Unit, pair: &Pair) -> Cell {
    match (pair.server_between_ms, pair.server_at_least_ms, pair.server_ms) {
        (Some([low, high]), _, _) => Cell::new(format!("{}–{}", unit.show(low), unit.show(high))),
        (None, Some(bound), _) => Cell::new(format!("≥{}", unit.show(bound))),
        (None, None, ms) => time(unit, ms),
    }
}

fn sides(stages: &[&StageSummary], style: Style) -> String {
    let mut table = Table::default();
    table.column(("", "stage"), Align::Left, 0, stages.iter().map(|s| name(s)));
    let pairs = |of: fn(&StageSummary) -> Pair| stages.iter().map(|s| of(s)).collect::<Vec<Pair>>();
    for (word, pairs, drop) in [
        ("mean", pairs(|s| s.reconcile.mean), 0),
        ("p50", pairs(|s| s.reconcile.p50), 3),
        ("p95", pairs(|s| s.reconcile.p95), 4),
    ] {
        let unit = Unit::of(pairs.iter().filter_map(|pair| pair.client_ms).reduce(f64::max));
        let group = format!("TTFT {word} {}", unit.sign());
        table.column(
            (&group, "client"),
            Align::Right,
            drop,
            pairs.iter().map(|pair| time(unit, pair.client_ms)),
        );
        table.column((&group, "server"), Align::Right, drop, pairs.iter().map(|pair| server(unit, pair)));
        if drop == 0 {
            let differences = pairs.iter().map(|pair| time(unit, pair.difference_ms).ink(Ink::Strong));
            table.column((&group, "difference"), Align::Right, drop, differences);
        }
    }
    let ms = |of: fn(&StageSummary) -> Option<f64>| stages.iter().map(move |s| time(Unit::Millis, of(s)));
    table.column(("RTT", "ms"), Align::Right, 1, ms(|s| s.reconcile.rtt_ms));
    table.column(("left", "ms"), Align::Right, 2, ms(|s| s.reconcile.residual_ms));
    let verdicts = stages.iter().map(|s| match s.reconcile.verdict {
        Some(Agreement::Clean) => Cell::new("clean").ink(Ink::Good),
        Some(Agreement::Inconsistent | Agreement::ClientLimited) => {
            Cell::new(s.reconcile.verdict.map_or("", Agreement::name)).ink(Ink::Bad)
        }
        Some(other) => Cell::new(other.name()).ink(Ink::Doubtful),
        None => Cell::new("unknown").ink(Ink::Faint),
    });
    table.column(("", "verdict"), Align::Left, 0, verdicts);
    table.text(style)
}

/// One line a stage whose answers told their own times.
fn per_request(stages: &[&StageSummary], style: Style) -> String {
    let line = |stage: &&StageSummary| {
        let told = stage.reconcile.per_request.as_ref()?;
        let difference = &told.difference_ms;
        let text = format!(
            "{}: {} answers told their TTFT{}; client less server {} p50, {} p95",
            stage.name,
            crate::number::count(told.n),
            begun(&told.from),
            crate::number::time(difference.p50),
            crate::number::time(difference.p95),
        );
        Some(wrap("  - ", &escape(&text), style.width))
    };
    stages.iter().filter_map(line).collect()
}

/// Where the server's TTFT of one request begins, in words.
fn begun(from: &str) -> &'static str {
    match from {
        "queued" => ", from the engine's queue on",
        "scheduled" => ", from scheduled on, its queue left out",
        _ => "",
    }
}

fn parts(stages: &[&StageSummary], style: Style) -> String {
    let mut table = Table::default();
    table.column(("", "stage"), Align::Left, 0, stages.iter().map(|s| name(s)));
    let unit = Unit::of(stages.iter().filter_map(|s| s.decomposition.ttft_ms).reduce(f64::max));
    let whole = stages.iter().map(|s| time(unit, s.decomposition.ttft_ms).ink(Ink::Strong));
    table.column((unit.sign(), "TTFT"), Align::Right, 0, whole);
    let names: Vec<&str> =
        stages.first().into_iter().flat_map(|s| s.decomposition.all().map(|(name, _)| name)).collect();
    for (i, part) in names.into_iter().enumerate() {
        let of = |s: &&&StageSummary| s.decomposition.all().nth(i).and_then(|(_, part)| part.ms);
        if stages.iter().all(|s| of(&s).is_none()) && part != "queue" && part != "prefill" {
            continue;
        }
        let cells = stages.iter().map(|s| time(unit, of(&s)));
        let drop = u8::from(part == "connection");
        table.column(("", part), Align::Right, drop, cells);
    }
    table.text(style)
}
