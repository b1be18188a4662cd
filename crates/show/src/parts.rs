//! The workloads of a stage that mixes several, one row each.

use ttft_judge::{Distribution, PartSummary, StageSummary};

use crate::escape::escape_to;
use crate::number::{Unit, count, figures, percent};
use crate::style::{Ink, Style};
use crate::table::{Align, Cell, Table};

/// Letters of a workload's name.
const LONGEST: usize = 24;

/// The table; empty where nothing is mixed.
pub(crate) fn table(stage: &StageSummary, style: Style) -> String {
    let parts = &stage.parts;
    if parts.is_empty() {
        return String::new();
    }
    let cells = |of: &dyn Fn(&PartSummary) -> Cell| parts.iter().map(of).collect::<Vec<_>>();
    let mut table = Table::default();
    table.column(("", "workload"), Align::Left, 0, cells(&|p| Cell::new(escape_to(&p.workload, LONGEST))));
    let share = |p: &PartSummary| {
        let sent = p.share_sent.map_or_else(|| "-".to_owned(), percent);
        Cell::new(sent).aside(format!("[of {} asked]", percent(p.share)))
    };
    table.column(("", "share"), Align::Right, 3, cells(&share));
    table.column(("", "ok"), Align::Right, 0, cells(&|p| Cell::new(count(p.requests.ok))));
    if parts.iter().any(|p| p.requests.failed > 0) {
        let failed = |p: &PartSummary| {
            let ink = if p.requests.failed > 0 { Ink::Bad } else { Ink::Faint };
            Cell::new(count(p.requests.failed)).ink(ink)
        };
        table.column(("", "failed"), Align::Right, 0, cells(&failed));
    }
    for (metric, title, names, drop) in [
        ("ttft", "TTFT", &["p50", "p95", "p99"][..], 0),
        ("tpot", "TPOT", &["p50"], 1),
        ("e2e", "e2e", &["p50", "p99"], 4),
    ] {
        let of = |p: &PartSummary, name: &str| p.latency_ms.get(metric).and_then(|d| d.get(name));
        let unit = Unit::of(parts.iter().filter_map(|p| of(p, "p50")).min_by(f64::total_cmp));
        for name in names {
            let cell = |p: &PartSummary| {
                let weak = p.latency_ms.get(metric).is_some_and(|d: &Distribution| d.is_weak(name));
                let mark = if weak { "~" } else { "" };
                of(p, name).map_or_else(Cell::default, |v| Cell::new(format!("{mark}{}", unit.show(v))))
            };
            table.column((&format!("{title} {}", unit.sign()), name), Align::Right, drop, cells(&cell));
        }
    }
    let rate = |of: fn(&PartSummary) -> Option<f64>| {
        move |p: &PartSummary| of(p).map_or_else(Cell::default, |v| Cell::new(figures(v)))
    };
    table.column(("requests", "/s"), Align::Right, 5, cells(&rate(|p| p.throughput.requests_per_s)));
    table.column(("out tokens", "/s"), Align::Right, 2, cells(&rate(|p| p.throughput.output_tokens_per_s)));
    if parts.iter().any(|p| p.goodput.attainment.is_some()) {
        let met =
            |p: &PartSummary| p.goodput.attainment.map_or_else(Cell::default, |v| Cell::new(percent(v)));
        table.column(("", "met all"), Align::Right, 1, cells(&met));
    }
    table.text(style)
}
