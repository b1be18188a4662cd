//! What a person at the other end would notice, in a line or two.

use ttft_judge::StageSummary;
use ttft_judge::experience::Experience;

use crate::number::{count, percent, plural, time};
use crate::style::{Style, wrap};

/// One line; empty where no stream could be looked at.
pub(crate) fn line(stage: &StageSummary, style: Style) -> String {
    let Experience { stalls, reader, fluidity } = &stage.experience;
    let mut parts = Vec::new();
    if let Some(sentence) = stage.latency_ms.get("time_to_first_sentence").and_then(|of| of.p50) {
        parts.push(format!("first sentence after {} (median)", time(Some(sentence))));
    }
    if stalls.n > 0 {
        parts.push(match (stalls.requests, stalls.longest_ms) {
            (0, _) | (_, None) => "no stalls".to_owned(),
            (n, Some(longest)) => format!(
                "{} of {} answers stalled ({} {}, up to {})",
                count(n),
                count(stalls.n),
                count(stalls.stalls),
                plural(stalls.stalls, "stall", "stalls"),
                time(Some(longest))
            ),
        });
    }
    if let Some(waiting) = reader.waiting_share {
        parts.push(if reader.requests == 0 {
            "never slower than a reader".to_owned()
        } else {
            format!("a reader waits {} of the time", percent(waiting))
        });
    }
    if let Some(index) = fluidity.index.mean {
        parts.push(format!(
            "fluidity {index:.3} ({}, then {} a token)",
            time(Some(fluidity.first_token_ms)),
            time(Some(fluidity.token_ms)),
        ));
    }
    if parts.is_empty() { String::new() } else { wrap("", &parts.join(" · "), style.width) }
}

/// Of many stages: only those in which someone would notice something.
pub(crate) fn remark(stage: &StageSummary, style: Style) -> String {
    let Experience { stalls, reader, .. } = &stage.experience;
    let noticed = stalls.requests_share.is_some_and(|share| share > NOTICED)
        || reader.waiting_share.is_some_and(|share| share > NOTICED);
    if noticed { line(stage, style) } else { String::new() }
}

/// A share that is worth a line.
const NOTICED: f64 = 0.01;
