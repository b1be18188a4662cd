//! A reading as text. Whatever a page said is escaped.

use std::collections::BTreeMap;
use std::fmt::Write;

use ttft_show::{Style, escape};
use ttft_sources::{Distribution, Measured, PROBABILITIES, Quantile, Reading, Shape, Window, names};

/// Values by name.
type Values = BTreeMap<&'static str, Measured>;

/// What one page says.
pub(super) fn reading(name: &str, reading: &Reading, style: Style) -> String {
    let mut out = String::new();
    one(&mut out, name, reading, style);
    for also in &reading.also {
        out.push('\n');
        one(&mut out, name, also, style);
    }
    out
}

fn one(out: &mut String, name: &str, reading: &Reading, style: Style) {
    say(out, format_args!("{}  {}\n", escape(&reading.title), escape(name)));
    if let Some(version) = &reading.version {
        say(out, format_args!("version  {}, from the names on the page\n", escape(version)));
    }
    let format = if reading.is_prometheus() { "" } else { ", not Prometheus text" };
    say(out, format_args!("page     {}{format}, {} series\n", reading.format.name(), reading.series));

    distributions(out, "since its start", &reading.values, style.width);
    if let Some(window) = &reading.window {
        distributions(out, &title(window), &window.values, style.width);
    }
    numbers(out, reading);
    if !reading.hosts.is_empty() || reading.devices.is_some() {
        let hosts: Vec<_> = reading.hosts.iter().map(|host| escape(host)).collect();
        let on = if hosts.is_empty() { String::new() } else { format!(" on {}", hosts.join(", ")) };
        say(out, format_args!("\ndevices  {}{on}\n", reading.devices.unwrap_or(0)));
    }
    let mut remarks: Vec<String> = reading.marks.iter().map(|mark| format!("! {}", escape(mark))).collect();
    remarks.extend(reading.notes.iter().map(|(name, note)| format!("  {name}: {}", escape(note))));
    if !remarks.is_empty() {
        out.push('\n');
    }
    for remark in remarks {
        out.push_str(&ttft_show::wrap("  ", &remark, style.width));
    }
}

fn title(window: &Window) -> String {
    match window.seconds {
        Some(seconds) => format!("in the last {seconds:.1} s"),
        None => "between the scrapes".to_owned(),
    }
}

fn say(out: &mut String, words: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(words);
}

/// Quantiles that are left out of a table that is too wide, one after another; JSON has all.
const LEFT_OUT: [&str; 3] = ["p90", "p99", "p95"];

/// The table of times, the count and the mean first: they are exact.
fn distributions(out: &mut String, title: &str, values: &Values, room: usize) {
    let listed: Vec<(&str, &Distribution)> =
        names().filter_map(|(name, _)| Some((name, values.get(name)?.distribution()?))).collect();
    if listed.is_empty() {
        return;
    }
    let listed: Vec<_> = listed.into_iter().filter(|(_, distribution)| distribution.count > 0.0).collect();
    if listed.is_empty() {
        say(out, format_args!("\n{title}: nothing was counted\n"));
        return;
    }
    let heads = PROBABILITIES.iter().map(|(_, name)| (*name).to_owned());
    let mut rows = vec![
        [title.to_owned(), String::new(), "count".to_owned(), "mean".to_owned()]
            .into_iter()
            .chain(heads)
            .collect::<Vec<_>>(),
    ];
    for (name, distribution) in listed {
        let unit = Unit::of(distribution);
        let mean = distribution.mean.map_or_else(|| "–".to_owned(), |mean| unit.show(mean));
        let mut row = vec![name.to_owned(), unit.sign.to_owned(), grouped(distribution.count), mean];
        row.extend(distribution.quantiles.iter().map(|quantile| unit.quantile(*quantile)));
        rows.push(row);
    }
    let is_wide =
        |rows: &[Vec<String>]| aligned(rows, &[0, 1]).lines().any(|line| line.chars().count() > room);
    for head in LEFT_OUT {
        if let (true, Some(at)) = (is_wide(&rows), rows[0].iter().position(|name| name == head)) {
            for row in &mut rows {
                row.remove(at);
            }
        }
    }
    out.push('\n');
    out.push_str(&aligned(&rows, &[0, 1]));
}

/// Levels and totals, with what was new in the window beside them.
fn numbers(out: &mut String, reading: &Reading) {
    let mut rows = Vec::new();
    for (name, shape) in names() {
        let Some(value) = reading.values.get(name).and_then(Measured::number) else { continue };
        let shown = if name.ends_with("_ratio") || name.contains("_ratio_") || name == "gr_engine_active" {
            format!("{value:.3}")
        } else if name.ends_with("_bytes") {
            format!("{} MiB", grouped(value / 1_048_576.0))
        } else {
            grouped(value)
        };
        let mut row = vec![name.to_owned(), shown, String::new(), String::new()];
        let window = reading.window.as_ref();
        if let Some(new) = window.and_then(|window| window.values.get(name)).and_then(Measured::number) {
            row[2] = match shape {
                Shape::Total => format!("+{}", grouped(new)),
                _ => format!("{} in the window", figures(new)),
            };
            let seconds = window.and_then(|window| window.seconds).filter(|seconds| *seconds > 0.0);
            if let (Shape::Total, Some(seconds)) = (shape, seconds) {
                row[3] = format!("{}/s", figures(new / seconds));
            }
        }
        rows.push(row);
    }
    if !rows.is_empty() {
        out.push('\n');
        out.push_str(&aligned(&rows, &[0]));
    }
}

/// Columns that line up: those named to the left, the others to the right.
fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let cells = row.iter().zip(&widths).enumerate().map(|(column, (cell, width))| {
            let blanks = " ".repeat(width - cell.chars().count());
            if left.contains(&column) { format!("{cell}{blanks}") } else { format!("{blanks}{cell}") }
        });
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}

/// The unit of a row.
struct Unit {
    sign: &'static str,
    scale: f64,
}

impl Unit {
    fn of(distribution: &Distribution) -> Self {
        let (sign, scale) = match distribution.mean.map(f64::abs) {
            _ if !distribution.seconds => ("", 1.0),
            Some(mean) if mean > 0.0 && mean < 1e-3 => ("µs", 1e6),
            Some(mean) if mean >= 10.0 => ("s", 1.0),
            _ => ("ms", 1e3),
        };
        Self { sign, scale }
    }

    fn show(&self, value: f64) -> String {
        figures(value * self.scale)
    }

    fn quantile(&self, quantile: Option<Quantile>) -> String {
        match quantile {
            None => "–".to_owned(),
            Some(Quantile::Told(value)) => self.show(value),
            Some(Quantile::At { value, lower, upper }) => {
                // Below the first bound there is no other to hold the estimate.
                let weak = if lower <= 0.0 && value < upper { "~" } else { "" };
                format!("{weak}{} [{}–{}]", self.show(value), self.show(lower), self.show(upper))
            }
            Some(Quantile::AtLeast(bound)) => format!("≥ {}", self.show(bound)),
            Some(Quantile::Between(lower, upper)) => format!("? {}–{}", self.show(lower), self.show(upper)),
        }
    }
}

/// Three figures or more, no zeros that say nothing.
fn figures(value: f64) -> String {
    let decimals = match value.abs() {
        size if size >= 100.0 || size == 0.0 => 0,
        size if size >= 10.0 => 1,
        size if size >= 1.0 => 2,
        _ => 3,
    };
    let text = format!("{value:.decimals$}");
    let text = if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    thousands(text)
}

/// A count: whole if it is whole.
fn grouped(value: f64) -> String {
    if value.fract() == 0.0 && value.abs() < 1e15 {
        thousands(&format!("{value:.0}"))
    } else {
        figures(value)
    }
}

fn thousands(text: &str) -> String {
    let (whole, rest) = text.split_once('.').map_or((text, None), |(whole, rest)| (whole, Some(rest)));
    let (sign, digits) = whole.strip_prefix('-').map_or(("", whole), |digits| ("-", digits));
    let mut out = sign.to_owned();
    for (i, digit) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    rest.map_or(out.clone(), |rest| format!("{out}.{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_as_people_read_them() {
        for (value, text) in [
            (0.0, "0"),
            (1_234_567.0, "1,234,567"),
            (0.25, "0.25"),
            (-1234.5, "-1,234"),
            (19.06, "19.1"),
            (2.0, "2"),
        ] {
            assert_eq!(figures(value), text);
        }
        assert_eq!(grouped(1234.0), "1,234");
    }
}
