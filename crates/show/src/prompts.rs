//! What prompts had in common with what the server had seen: the proof of the cache policy, and conversations by turn.

use ttft_judge::StageSummary;
use ttft_model::CachePolicy;

use crate::number::{count, figures, percent, plural, time};
use crate::style::{Style, wrap};
use crate::table::{Align, Cell, Table};

/// Turns that are shown; the others are in the summary.
const SHOWN: usize = 12;

/// The share of prompt tokens that came from the server's cache, by its usage; empty where it says nothing of it.
pub(crate) fn cache(stages: &[StageSummary], style: Style) -> String {
    let Some(policy) = stages.first().map(|stage| stage.cache) else { return String::new() };
    let sum = |of: fn(&StageSummary) -> Option<u64>| stages.iter().filter_map(of).reduce(|a, b| a + b);
    let told = |of: fn(&StageSummary) -> u64| stages.iter().map(of).sum::<u64>();
    let cached = sum(|stage| stage.tokens.cached.total);
    let all = sum(|stage| stage.tokens.input.total).filter(|all| *all > 0);
    let (Some(cached), Some(all)) = (cached, all) else { return String::new() };
    let policy = match policy {
        _ if stages.iter().any(|stage| stage.cache != policy) => "",
        CachePolicy::Cold => " cold",
        CachePolicy::Warm => " warm",
        CachePolicy::AsIs => " as it is",
    };
    let share = percent(cached as f64 / all as f64);
    // Some servers leave the field out where it is zero.
    let silent = told(|stage| stage.tokens.input.per_request.n)
        .saturating_sub(told(|stage| stage.tokens.cached.per_request.n));
    let silent = match silent {
        0 => String::new(),
        n => format!(
            "; it does not tell for {} {}, taken for none",
            count(n),
            plural(n, "request", "requests")
        ),
    };
    let text = format!(
        "prefix cache{policy}: {share} of prompt tokens came from the cache, by the server's usage{silent}"
    );
    wrap("", &text, style.width)
}

/// A row for each turn of conversations; empty where there were none.
pub(crate) fn turns(stage: &StageSummary, style: Style) -> String {
    let sessions = &stage.sessions;
    if sessions.is_empty() {
        return String::new();
    }
    let failed = if sessions.failed > 0 {
        format!(", {} ended by a turn that failed", count(sessions.failed))
    } else {
        String::new()
    };
    let conversations = plural(sessions.begun, "conversation", "conversations");
    let text = format!("{} {conversations}{failed}", count(sessions.begun));
    let shown = &sessions.turns[..sessions.turns.len().min(SHOWN)];
    let mut table = Table::default();
    let column = |of: &dyn Fn(&ttft_judge::Turn) -> String| -> Vec<Cell> {
        shown.iter().map(|turn| Cell::new(of(turn))).collect()
    };
    table.column(("", "turn"), Align::Right, 0, column(&|turn| turn.turn.to_string()));
    table.column(("", "ok"), Align::Right, 0, column(&|turn| count(turn.n)));
    if sessions.failed > 0 {
        table.column(("", "failed"), Align::Right, 1, column(&|turn| count(turn.failed)));
    }
    for (name, at) in [("p50", "TTFT p50"), ("p95", "p95")] {
        table.column(("", at), Align::Right, 0, column(&|turn| time(turn.ttft_ms.get(name))));
    }
    let known = |value: Option<String>| value.unwrap_or_else(|| "-".to_owned());
    table.column(
        ("", "prompt tokens"),
        Align::Right,
        1,
        column(&|turn| known(turn.input_tokens.map(figures))),
    );
    if shown.iter().any(|turn| turn.cached_share.is_some()) {
        table.column(
            ("", "from cache"),
            Align::Right,
            2,
            column(&|turn| known(turn.cached_share.map(percent))),
        );
    }
    let mut out = wrap("", &text, style.width) + &table.text(style);
    if let Some(more) = sessions.turns.len().checked_sub(SHOWN).filter(|more| *more > 0) {
        out.push_str(&wrap("", &format!("and {more} more turns"), style.width));
    }
    out
}
