//! A run in the words of other tools: a table a stage, and a line for each tool on why it differs.

use std::collections::BTreeSet;

use ttft_judge::rosetta::{Figures, Rosetta, RosettaRow, RosettaStage, TokenFigure};

use crate::number::{Unit, count, figures, plural};
use crate::style::{Ink, Style, wrap};
use crate::table::{Align, Cell, Table};
use crate::{escape, escape::escape_to};

/// Every stage by every tool, then why they differ.
pub fn rosetta_text(rosetta: &Rosetta, style: &Style) -> String {
    let style = *style;
    let mut parts: Vec<String> = rosetta.stages.iter().map(|stage| stage_text(stage, style)).collect();
    if parts.is_empty() {
        return "no stage was begun\n".to_owned();
    }
    let mut told = BTreeSet::new();
    let rows = rosetta.stages.iter().flat_map(|stage| &stage.rows);
    let whys: String = rows
        .filter(|row| row.tool != "ttft" && told.insert((&row.tool, &row.variant)))
        .map(|row| why(row, style))
        .collect();
    if !whys.is_empty() {
        parts.push(format!("{}\n{whys}", style.paint(Ink::Strong, "why they differ")));
    }
    let note = "All are of the same instants: what another client would add or lose itself is not imitated. All ok \
                requests of a stage count, ramp and tail included. ≈ approximate, see --json for what and the sources.";
    parts.push(style.paint(Ink::Faint, wrap("", note, style.width).trim_end()) + "\n");
    parts.join("\n")
}

fn stage_text(stage: &RosettaStage, style: Style) -> String {
    let requests = format!("{} ok {}", count(stage.requests), plural(stage.requests, "request", "requests"));
    let head = format!("{}  {requests}\n", style.paint(Ink::Strong, &escape(&stage.name)));
    // A line a figure about tokens; the tool and its TTFT stand on the first of them.
    let lines: Vec<(&RosettaRow, usize)> = stage
        .rows
        .iter()
        .flat_map(|row| (0..row.tokens_ms.len().max(1)).map(move |figure| (row, figure)))
        .collect();
    let first = |of: fn(&RosettaRow) -> Cell| {
        lines.iter().map(move |(row, figure)| if *figure == 0 { of(row) } else { Cell::default() })
    };
    let mut table = Table::default();
    table.column(("", "tool"), Align::Left, 0, first(tool));
    table.column(("", "percentiles"), Align::Left, 3, first(|row| Cell::new(row.percentiles.name())));
    let ours = stage.rows.first().and_then(|row| row.ttft_ms.p50);
    let unit = Unit::of(ours);
    let ttft = format!("TTFT {}", unit.sign());
    for (name, drop, of) in PICKS {
        let cells = lines.iter().map(|(row, figure)| {
            let cell = value(of(&row.ttft_ms).filter(|_| *figure == 0), unit);
            if row.tool == "ttft" { cell.ink(Ink::Strong) } else { cell }
        });
        table.column((&ttft, name), Align::Right, drop, cells);
    }
    let names = lines.iter().map(|l| of_tokens(l).map_or_else(Cell::default, |t| Cell::new(t.name.as_str())));
    table.column(("", "tokens"), Align::Left, 0, names);
    for (name, drop, of) in PICKS {
        let cells = lines.iter().map(|l| value(of_tokens(l).and_then(|t| of(&t.ms)), Unit::Millis));
        table.column(("ms", name), Align::Right, drop, cells);
    }
    head + &table.text(style)
}

fn of_tokens<'a>((row, figure): &(&'a RosettaRow, usize)) -> Option<&'a TokenFigure> {
    row.tokens_ms.get(*figure)
}

type Pick = (&'static str, u8, fn(&Figures) -> Option<f64>);

/// The figures shown, and how soon each is left out of a short line.
const PICKS: [Pick; 4] =
    [("mean", 0, |f| f.mean), ("p50", 0, |f| f.p50), ("p95", 2, |f| f.p95), ("p99", 1, |f| f.p99)];

fn value(ms: Option<f64>, unit: Unit) -> Cell {
    ms.map_or_else(Cell::default, |ms| Cell::new(unit.show(ms)))
}

fn tool(row: &RosettaRow) -> Cell {
    let about = if row.approximate.is_empty() { "" } else { " ≈" };
    match &row.variant {
        Some(variant) => Cell::new(escape_to(&format!("  {variant}{about}"), 32)),
        None => Cell::new(escape_to(&format!("{}{about}", row.tool), 32)),
    }
}

/// One line: the difference of the median, and what makes it.
fn why(row: &RosettaRow, style: Style) -> String {
    let name = match &row.variant {
        Some(variant) => format!("{}, {variant}", row.tool),
        None => row.tool.clone(),
    };
    let difference = match row.ttft_p50_less_ours_ms {
        _ if row.ttft_same => "same TTFT here".to_owned(),
        Some(ms) if ms < 0.0 => format!("median TTFT {} ms less", figures(-ms)),
        Some(ms) => format!("median TTFT {} ms more", figures(ms)),
        None => "no TTFT here".to_owned(),
    };
    wrap("  ", &format!("{}: {difference}; {}", escape(&name), escape(&row.why)), style.width)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttft_judge::rosetta::{Convention, ROSETTA_SCHEMA};

    fn row(tool: &str, ms: f64) -> RosettaRow {
        let of = |ms| Figures { n: 9, mean: Some(ms), p50: Some(ms), p99: Some(ms), ..Figures::default() };
        RosettaRow {
            tool: tool.to_owned(),
            title: tool.to_owned(),
            version: "1".to_owned(),
            variant: None,
            percentiles: Convention::Floor,
            ttft_ms: of(ms),
            ttft_p50_less_ours_ms: Some(ms - 200.0),
            tokens_ms: vec![TokenFigure { name: "TPOT".to_owned(), formula: String::new(), ms: of(20.0) }],
            ttft_same: tool == "ttft",
            why: "counts the \u{1b}role".to_owned(),
            approximate: vec!["a".to_owned()],
            source: "s".to_owned(),
        }
    }

    #[test]
    fn rows_and_reasons() {
        let stage = RosettaStage {
            name: "c8".to_owned(),
            requests: 9,
            rows: vec![row("ttft", 200.0), row("early", 12.1)],
        };
        let told = Rosetta { schema: ROSETTA_SCHEMA.to_owned(), run: "r".to_owned(), stages: vec![stage] };
        let text = rosetta_text(&told, &Style { color: false, width: 80 });
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        for part in ["c8  9 ok requests", "early ≈", "12.1", "median TTFT 188 ms less; counts the \\x1brole"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
    }
}
