//! A traced request as text.

use std::fmt::Write;

use serde_json::Value;
use ttft_model::Nanos;
use ttft_show::{Style, escape, wrap};

use super::clocks::Clock;
use super::log::Log;
use super::{Traced, id_header, stage_name};

/// Levels that are worth a place, in this order, with the names that they have here.
const LEVELS: [(&str, &str); 8] = [
    ("running", "running"),
    ("waiting", "waiting"),
    ("kv_cache_usage_ratio", "kv cache"),
    ("preemptions", "preemptions"),
    ("requests_finished_ok", "finished"),
    ("gpu_util_percent", "gpu %"),
    ("power_watts", "watts"),
    ("temperature_celsius", "°C"),
];

/// Characters of a line that are shown.
const LONGEST: usize = 400;

/// Scrapes of a source that are shown; more are left out from the middle.
const MOST_SCRAPES: usize = 12;

pub(super) fn trace(traced: &Traced, style: Style) -> String {
    let r = &traced.record;
    let mut out = String::new();
    let mut facts = vec![
        format!("request {}", r.id),
        format!("stage {}", escape(stage_name(&traced.run, r).as_deref().unwrap_or("-"))),
        format!("number {}", r.seq),
        r.outcome().name().to_owned(),
        format!("{:.3} s into the run", r.phases.started.as_secs_f64()),
    ];
    if r.warmup {
        facts.push("warm-up".to_owned());
    }
    facts.extend(r.answer.response_id.as_ref().map(|id| format!("answer {}", escape(id))));
    if r.status.is_some() {
        let header = id_header(&traced.run, r);
        facts.push(format!("{} {}", escape(header), if r.id_echoed { "echoed" } else { "not echoed" }));
    }
    out += &wrap("", &facts.join(" · "), style.width);
    if let Some(failure) = r.failure() {
        out += &wrap("", &format!("{}: {}", failure.class, escape(&failure.message)), style.width);
    }
    out.push('\n');
    out += &ttft_show::waterfall_text(r, &[], &style);
    out += &timings(traced, style);
    out += &levels(traced);
    for log in &traced.logs {
        out += &of_log(traced, log, style);
    }
    out
}

/// What the server itself said of its times.
fn timings(traced: &Traced, style: Style) -> String {
    let timings = &traced.record.answer.timings;
    let told = [
        ("queue", timings.queue_ms),
        ("load", timings.load_ms),
        ("prefill", timings.prefill_ms),
        ("ttft", timings.ttft_ms),
        ("decode", timings.decode_ms),
        ("total", timings.total_ms),
    ];
    let told: Vec<String> =
        told.iter().filter_map(|(name, ms)| ms.map(|ms| format!("{name} {ms:.3} ms"))).collect();
    if told.is_empty() {
        return String::new();
    }
    format!("\nserver, in this answer\n{}", wrap("  ", &told.join(" · "), style.width))
}

/// The levels around the request, by source.
fn levels(traced: &Traced) -> String {
    let mut out = String::new();
    let end = traced.since_start(traced.record.finished);
    for scrapes in traced.around.chunk_by(|a, b| a.source == b.source) {
        let _ = writeln!(out, "\n{}", escape(&scrapes[0].source));
        let names: Vec<(&str, &str)> = LEVELS
            .into_iter()
            .filter(|(name, _)| scrapes.iter().any(|scrape| scrape.values.contains_key(*name)))
            .collect();
        let heads = columns(names.iter().map(|(_, head)| (*head).to_owned()));
        let _ = writeln!(out, "  {:>12}{heads}", "at");
        let left_out = scrapes.len().saturating_sub(MOST_SCRAPES);
        for (i, scrape) in scrapes.iter().enumerate() {
            if left_out > 0 && (MOST_SCRAPES / 2..MOST_SCRAPES / 2 + left_out).contains(&i) {
                if i == MOST_SCRAPES / 2 {
                    let _ = writeln!(out, "  … {left_out} more …");
                }
                continue;
            }
            let at = traced.since_start(scrape.at_ns);
            let values = names.iter().map(|(name, _)| scrape.values.get(*name));
            let cells = columns(values.map(|value| value.map_or("–".to_owned(), |value| level(*value))));
            let missed = scrape.error.as_ref().map(|missed| format!("  no page: {}", escape(&missed.class)));
            let beside = if (0.0..=end).contains(&at) {
                ""
            } else if at < 0.0 {
                "  before"
            } else {
                "  after"
            };
            let line = format!("  {:>12}{cells}{beside}{}", offset(at), missed.unwrap_or_default());
            let _ = writeln!(out, "{}", line.trim_end());
        }
    }
    out
}

/// Right under their headings.
fn columns(cells: impl Iterator<Item = String>) -> String {
    cells.fold(String::new(), |line, cell| format!("{line}{cell:>12}"))
}

fn level(value: f64) -> String {
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.3}") }
}

/// Milliseconds from the request's start.
fn offset(ms: f64) -> String {
    format!("{ms:+.1} ms")
}

fn of_log(traced: &Traced, log: &Log, style: Style) -> String {
    let name = log.path.display().to_string();
    let mut out = format!("\n{}\n", escape(&name));
    out += &wrap("  ", &format!("clock: {}", clock(log.clock)), style.width);
    if log.lines.is_empty() {
        out += &wrap(
            "  ",
            &format!(
                "no line of this request: does the log hold {}? docs/request-ids.md says how to make it",
                escape(id_header(&traced.run, &traced.record))
            ),
            style.width,
        );
    }
    for line in &log.lines {
        let at = line.told.map_or("no time".to_owned(), |told| {
            let coarse = if told.step_ns >= 1_000_000_000 { "~" } else { "" };
            format!("{coarse}{}", offset(traced.of_log(log, told.unix_ns)))
        });
        let told: String = if line.fields.is_empty() {
            line.text.clone()
        } else {
            let fields: Vec<String> =
                line.fields.iter().map(|(name, value)| format!("{name} {value}")).collect();
            fields.join(" · ")
        };
        let mut shown: String = told.chars().take(LONGEST).collect();
        if shown.len() < told.len() {
            shown.push('…');
        }
        out += &wrap(&format!("  {at:>14}  "), &escape(&shown), style.width);
    }
    if log.left_out > 0 {
        let _ = writeln!(out, "  … {} more lines", log.left_out);
    }
    out
}

/// How a log's clock stands to ours, in words.
fn clock(clock: Option<Clock>) -> String {
    let Some(clock) = clock else {
        return "no line of a request of this run has a time that is understood".to_owned();
    };
    let of = format!("{} of {} lines of this run's requests", clock.fits, clock.of);
    let beside = if clock.within_ns > 0 {
        format!(" (± {:.1} ms)", Nanos(clock.within_ns).as_millis_f64())
    } else {
        String::new()
    };
    match clock.ahead_ns {
        0 => format!("agrees with ours ({of})"),
        ahead if ahead > 0 => format!("{}{beside} ahead of ours, taken out below ({of})", span(ahead)),
        ahead => format!("{}{beside} behind ours, taken out below ({of})", span(-ahead)),
    }
}

fn span(ns: i64) -> String {
    let seconds = ns / 1_000_000_000;
    match (seconds / 3600, seconds / 60 % 60) {
        (0, 0) => format!("{:.3} s", Nanos(ns).as_secs_f64()),
        (hours, minutes) => {
            format!("{hours} h {minutes} min {:.3} s", Nanos(ns % 60_000_000_000).as_secs_f64())
        }
    }
}

/// The slowest requests, a line each.
pub(super) fn slowest(rows: &[Value]) -> String {
    let mut out = format!("{:<36}  {:>10}  {:>10}  {:>10}  stage\n", "request", "ttft ms", "e2e ms", "at s");
    for row in rows {
        let number = |name: &str| row[name].as_f64().map_or("–".to_owned(), |value| format!("{value:.1}"));
        let _ = writeln!(
            out,
            "{:<36}  {:>10}  {:>10}  {:>10}  {}",
            row["request_id"].as_str().unwrap_or_default(),
            number("ttft_ms"),
            number("e2e_ms"),
            number("started_s"),
            escape(row["stage"].as_str().unwrap_or("-")),
        );
    }
    out
}
