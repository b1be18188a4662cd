//! One request as a waterfall: a bar for each phase, then what was found.

use std::fmt::Write;

use ttft_judge::{Finding, Phase, metrics, phases};
use ttft_model::{Record, StampSource};

use crate::number::{count, time};
use crate::style::{Ink, Style, wrap};
use crate::{escape, findings_text};

/// What `ttft check` prints: the figures, the phases of the request as bars, and the findings.
pub fn waterfall_text(record: &Record, findings: &[Finding], style: &Style) -> String {
    let mut out = head(record, *style);
    out.push('\n');
    out.push_str(&bars(&phases(record), *style));
    if !findings.is_empty() {
        out.push('\n');
        out.push_str(&findings_text(findings, style));
    }
    out
}

fn head(r: &Record, style: Style) -> String {
    let ttft = metrics::ttft(r);
    let mut out = match ttft {
        Some(_) => style.paint(Ink::Strong, &format!("TTFT {}", time(ttft))),
        None => style.paint(Ink::Bad, "no first token"),
    };
    let mut beside = Vec::new();
    let sent = metrics::ttft_sent(r).filter(|_| !r.connection.reused);
    beside.extend(sent.map(|ms| format!("{} without connecting", time(Some(ms)))));
    beside.extend(metrics::e2e(r).map(|ms| format!("last token {}", time(Some(ms)))));
    beside.extend(metrics::tpot(r).map(|ms| format!("TPOT {}", time(Some(ms)))));
    beside.extend(r.answer.output_tokens().map(|n| format!("{} tokens", count(n))));
    beside.extend(metrics::rtt(r).map(|ms| format!("round trip {}", time(Some(ms)))));
    beside.extend(r.status.map(|status| format!("HTTP {status}")));
    beside.extend(r.answer.model.as_ref().map(|model| escape(model).into_owned()));
    let beside = wrap("", &beside.join(" · "), style.width);
    out.push('\n');
    out + beside.trim_start_matches('\n')
}

/// Columns left and right of the bars.
const NAME: usize = 24;
const FIGURES: usize = 20;

fn bars(phases: &[Phase], style: Style) -> String {
    let end = phases.last().map_or(0.0, |phase| phase.to_ms);
    let room = style.width.saturating_sub(NAME + FIGURES + 2).clamp(10, 100);
    let mut out = String::new();
    for phase in phases {
        let ink = if phase.to_first_token { Ink::Strong } else { Ink::Plain };
        let stamped = if phase.stamped == StampSource::Kernel { "kernel" } else { "" };
        let _ = writeln!(
            out,
            "{}",
            format!(
                "{} {} {:>10}  {}",
                style.paint(ink, &format!("{:<NAME$}", phase.name)),
                style.paint(ink, &bar(phase, end, room)),
                time(Some(phase.to_ms - phase.from_ms)),
                style.paint(Ink::Faint, stamped)
            )
            .trim_end()
        );
    }
    if phases.iter().any(|phase| phase.stamped == StampSource::Kernel) {
        let text = "kernel: the phase's end was stamped by the kernel; the others by this process";
        let _ = writeln!(out, "{}", style.paint(Ink::Faint, text));
    }
    out
}

/// The phase on a line of `room` characters that is `end` long; however short it is, it leaves a mark.
fn bar(phase: &Phase, end: f64, room: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let scale = if end > 0.0 { room as f64 * 8.0 / end } else { 0.0 };
    let from = (phase.from_ms * scale).round() as usize / 8;
    let to = (phase.to_ms * scale).round() as usize;
    let from = from.min(room - 1);
    let own = ((phase.to_ms - phase.from_ms) * scale).round() as usize;
    // A phase shorter than a character shows its own length; a longer one ends where it ended.
    let length = if own < 8 { own.max(1) } else { to.saturating_sub(from * 8) };
    let mut line = " ".repeat(from);
    line.push_str(&"█".repeat(length / 8));
    if !length.is_multiple_of(8) {
        line.push(EIGHTHS[length % 8]);
    }
    format!("{line:<room$}")
}
