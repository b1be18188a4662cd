//! Levels that were played several times, one row each: median, and smallest to largest.

use ttft_judge::{Between, Repeats};

use crate::escape::escape_to;
use crate::number::{Unit, count, figures};
use crate::style::{Ink, Style};
use crate::table::{Align, Cell, Table};

/// Letters of a level's name.
const LONGEST: usize = 32;

/// One figure of a level.
type Of = fn(&Repeats) -> Option<Between>;

/// The table; empty where nothing was repeated.
pub(crate) fn text(levels: &[Repeats], style: Style) -> String {
    if levels.is_empty() {
        return String::new();
    }
    let mut table = Table::default();
    let cells = |of: &dyn Fn(&Repeats) -> Cell| levels.iter().map(of).collect::<Vec<_>>();
    table.column(("", "level"), Align::Left, 0, cells(&|level| Cell::new(escape_to(&level.name, LONGEST))));
    table.column(("", "times"), Align::Right, 0, cells(&|level| Cell::new(count(level.n as u64))));
    let times: [(&str, &str, Of); 3] = [
        ("TTFT", "p50", |level| level.ttft_p50_ms),
        ("TTFT", "p95", |level| level.ttft_p95_ms),
        ("TPOT", "p50", |level| level.tpot_p50_ms),
    ];
    for (metric, name, of) in times {
        let unit = Unit::of(levels.iter().filter_map(of).map(|b| b.median).min_by(f64::total_cmp));
        let group = format!("{metric} {}", unit.sign());
        table.column((&group, name), Align::Right, 0, levels.iter().map(|l| cell(of(l), |v| unit.show(v))));
    }
    let rates: [(&str, Of); 2] =
        [("requests", |level| level.requests_per_s), ("out tokens", |level| level.output_tokens_per_s)];
    for (group, of) in rates {
        table.column((group, "/s"), Align::Right, 1, levels.iter().map(|level| cell(of(level), figures)));
    }
    let title = style.paint(Ink::Strong, "repetitions");
    format!("{title}  median [smallest–largest]\n{}", table.text(style))
}

fn cell(figure: Option<Between>, show: impl Fn(f64) -> String) -> Cell {
    figure.map_or_else(Cell::default, |Between { min, median, max }| {
        Cell::new(show(median)).aside(format!("[{}–{}]", show(min), show(max)))
    })
}
