//! A survey as text. What a file says is escaped: it may be hostile.

use std::fmt::Write;

use ttft_plan::Spread;
use ttft_plan::dataset::{Arrivals, Problem, Survey, TimeUnit};
use ttft_show::escape;

/// All of it.
pub(super) fn survey(survey: &Survey) -> String {
    let mut out = format!("{}\n\n", escape(&survey.file));
    line(&mut out, "format", &format!("{} ({}), {}", survey.format, survey.container, survey.kind));
    line(&mut out, "requests", &requests(survey));
    if let Some(arrivals) = &survey.arrivals {
        line(&mut out, "arrivals", &pattern(arrivals, survey));
        line(&mut out, "", &bursts(arrivals));
    }
    if let Some(sessions) = survey.turns.sessions {
        let largest = survey.turns.requests_per_session.map_or(0.0, |spread| spread.max);
        line(&mut out, "sessions", &format!("{sessions}, at most {largest} requests in one"));
    }
    if let Some(prefixes) = &survey.prefixes {
        let size = prefixes.block_size.map_or("unknown size".to_owned(), |size| format!("{size} tokens"));
        let text = format!(
            "{} blocks of {size}, {} different; an endless cache would hold {:.1} % of them already ({} requests)",
            prefixes.blocks,
            prefixes.distinct_blocks,
            prefixes.hit_share * 100.0,
            prefixes.requests_with_a_hit
        );
        line(&mut out, "prefixes", &text);
    }
    lengths(&mut out, survey);
    if !survey.problems.is_empty() {
        out.push_str("\nproblems\n");
        for problem in &survey.problems {
            push(&mut out, format_args!("  {}\n", told(problem)));
        }
    }
    out
}

fn requests(survey: &Survey) -> String {
    let mut text = survey.requests.to_string();
    if survey.unreadable > 0 {
        push(&mut text, format_args!(", and {} records that cannot be read", survey.unreadable));
    }
    if let Some(failed) = survey.failed.filter(|failed| *failed > 0) {
        push(&mut text, format_args!(", {failed} of which failed when they were recorded"));
    }
    text
}

fn pattern(arrivals: &Arrivals, survey: &Survey) -> String {
    let unit = match survey.timestamp_unit {
        Some(TimeUnit::Millis) => "milliseconds",
        Some(TimeUnit::Seconds) => "seconds",
        _ => "dates",
    };
    format!(
        "over {}, {} requests/s, gaps vary by {} (Poisson 1); timestamps are {unit}",
        seconds(arrivals.span_ms),
        arrivals.mean_rate_per_s.map_or("-".to_owned(), figures),
        arrivals.gap_cv.map_or("-".to_owned(), figures),
    )
}

fn bursts(arrivals: &Arrivals) -> String {
    format!(
        "{} different instants, {:.1} % of requests share one, at most {} at once; largest gap {}",
        arrivals.distinct_timestamps,
        arrivals.equal_timestamps_share * 100.0,
        arrivals.max_burst,
        seconds(arrivals.largest_gap_ms),
    )
}

fn lengths(out: &mut String, survey: &Survey) {
    let all: [(&str, Option<&Spread>); 5] = [
        ("input tokens", survey.lengths.input_tokens.as_ref()),
        ("output tokens", survey.lengths.output_tokens.as_ref()),
        ("prompt words", survey.lengths.prompt_words.as_ref()),
        ("prompt characters", survey.lengths.prompt_chars.as_ref()),
        ("turns", survey.turns.turns.as_ref().filter(|turns| turns.max > 1.0)),
    ];
    if all.iter().all(|(_, spread)| spread.is_none()) {
        return;
    }
    out.push_str("\nlength                    n      mean    min    p50    p90    p99     max\n");
    for (name, spread) in all {
        let Some(s) = spread else { continue };
        push(
            out,
            format_args!(
                "{name:<17}  {:>8}  {:>8}  {:>5}  {:>5}  {:>5}  {:>5}  {:>6}\n",
                s.n,
                figures(s.mean),
                figures(s.min),
                figures(s.p50),
                figures(s.p90),
                figures(s.p99),
                figures(s.max)
            ),
        );
    }
}

fn told(problem: &Problem) -> String {
    let lines: Vec<String> = problem.lines.iter().map(u64::to_string).collect();
    let more = if (lines.len() as u64) < problem.count { ", …" } else { "" };
    let at = match lines.len() {
        0 => String::new(),
        1 if problem.count == 1 => format!("line {}: ", lines[0]),
        _ => format!("{} times, lines {}{more}: ", problem.count, lines.join(", ")),
    };
    format!("{at}{}", escape(&problem.text))
}

fn seconds(ms: f64) -> String {
    match ms / 1e3 {
        s if s >= 7_200.0 => format!("{} h", figures(s / 3_600.0)),
        s => format!("{} s", figures(s)),
    }
}

/// A count as it is, else three figures.
fn figures(value: f64) -> String {
    match value {
        v if v.fract() == 0.0 || v >= 1_000.0 => format!("{v:.0}"),
        v if v >= 100.0 => format!("{v:.1}"),
        v if v >= 1.0 => format!("{v:.2}"),
        v => format!("{v:.4}"),
    }
}

fn line(out: &mut String, name: &str, text: &str) {
    push(out, format_args!("{name:<9} {text}\n"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}
