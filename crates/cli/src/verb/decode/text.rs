//! Decoded answers as text. Whatever a server said is escaped: it may be hostile.

use std::fmt::Write;

use ttft_dialect::{Decoded, DecodedEvent, DecodedSet};
use ttft_model::Channel;
use ttft_show::escape;

/// The longest piece of text that is shown of one event, in characters.
const LONGEST: usize = 100;

/// One answer: its events, if they are to be listed, and what they come to.
pub(super) fn answer(answer: &Decoded, list: bool) -> String {
    let mut out = format!("{}  dialect {}\n\n", escape(&answer.file), answer.dialect);
    if list && !answer.output.is_empty() {
        events(&mut out, &answer.output);
        out.push('\n');
    }
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            line(&mut out, name, text);
        }
    };
    line("outcome", &outcome(answer));
    line("times", &times(answer));
    line("gaps", &gaps(answer));
    line("tokens", &tokens(answer));
    line("events", &counts(answer));
    line("choices", &choices(answer));
    line("server", &server(answer));
    line("finish", &escape(answer.finish_reason.as_deref().unwrap_or_default()));
    line("flags", &answer.flags.join(", "));
    out
}

/// Several answers: their statistics, and one line for each.
pub(super) fn set(set: &DecodedSet) -> String {
    let mut out = String::new();
    let mut failed: Vec<String> = set.failed_class.iter().map(|(class, n)| format!("{n} {class}")).collect();
    if failed.is_empty() {
        failed.push("none".to_owned());
    }
    line(&mut out, "requests", &format!("{}, {} ok", set.requests, set.ok));
    line(&mut out, "failed", &failed.join(", "));
    let ttft = &set.ttft_ms;
    let named = [("median", ttft.median), ("mean", ttft.mean), ("min", ttft.min), ("max", ttft.max)];
    line(&mut out, "ttft", &format!("{} (of {} that are ok and have one)", millis(&named), ttft.n));

    out.push_str("\n  ttft ms    last ms  tokens  events  outcome                file\n");
    for answer in &set.streams {
        let outcome = answer.error_class.unwrap_or(answer.outcome);
        push(
            &mut out,
            format_args!(
                "{:>9}  {:>9}  {:>6}  {:>6}  {outcome:<21}  {}\n",
                number(answer.ttft_ms),
                number(answer.last_token_ms),
                answer.output_tokens.map_or("-".to_owned(), |tokens| tokens.to_string()),
                answer.content_events,
                escape(&answer.file),
            ),
        );
    }
    out
}

fn events(out: &mut String, events: &[DecodedEvent]) {
    out.push_str("       ms  channel    tokens  text\n");
    for event in events {
        let channel = match event.channel {
            Channel::Text => "text",
            Channel::Reasoning => "reasoning",
            Channel::Tool => "tool",
            Channel::Refusal => "refusal",
            Channel::Audio => "audio",
        };
        // An event in the read of the one before has no time of its own.
        let at = if event.coalesced { "\"".to_owned() } else { number(event.at_ms) };
        let tokens = event.tokens.map_or("-".to_owned(), |tokens| tokens.to_string());
        push(out, format_args!("{at:>9}  {channel:<9}  {tokens:>6}  {}\n", shown(&event.text)));
    }
}

/// The beginning of a text, in quotes.
fn shown(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("\"{}\"… {} bytes", escape(&text[..end]), text.len()),
        None => format!("\"{}\"", escape(text)),
    }
}

fn outcome(answer: &Decoded) -> String {
    let mut text = answer.outcome.to_owned();
    if let Some(class) = answer.error_class {
        push(&mut text, format_args!(", {class}"));
    }
    if let Some(code) = &answer.error_code {
        push(&mut text, format_args!(", code {}", escape(code)));
    }
    if let Some(message) = &answer.error_message {
        push(&mut text, format_args!(": {}", escape(message)));
    }
    if let Some(status) = answer.http_status.filter(|status| *status != 200) {
        push(&mut text, format_args!(" (HTTP {status})"));
    }
    text
}

fn times(answer: &Decoded) -> String {
    let all = [
        ("headers", answer.headers_ms),
        ("first byte", answer.ttfb_ms),
        ("first event", answer.first_event_ms),
        ("ttft", answer.ttft_ms),
        ("answer", answer.ttft_answer_ms),
        ("last token", answer.last_token_ms),
        ("usage", answer.usage_ms),
        ("end", answer.end_ms),
    ];
    millis(&all)
}

fn gaps(answer: &Decoded) -> String {
    if !answer.inter_token_measurable && answer.content_events > 1 {
        return "not measurable: the output did not come apart, or has no instants".to_owned();
    }
    let all = [
        ("tpot", answer.tpot_ms),
        ("itl a token", answer.itl_per_token_mean_ms),
        ("between events", answer.event_gap_mean_ms),
    ];
    millis(&all)
}

fn tokens(answer: &Decoded) -> String {
    let all = [
        ("input", answer.input_tokens),
        ("cached", answer.cached_tokens),
        ("output", answer.output_tokens),
        ("reasoning", answer.reasoning_tokens),
    ];
    let known: Vec<String> =
        all.iter().filter_map(|(name, count)| Some(format!("{name} {}", (*count)?))).collect();
    if known.is_empty() { "the server did not say".to_owned() } else { known.join("   ") }
}

fn counts(answer: &Decoded) -> String {
    let mut text = format!("{} with output of {}", answer.content_events, answer.events);
    for (name, count) in [
        ("comments", answer.comments),
        ("not understood", answer.malformed_events),
        ("behind the end", answer.events_after_end),
    ] {
        if count > 0 {
            push(&mut text, format_args!(", {count} {name}"));
        }
    }
    text
}

fn choices(answer: &Decoded) -> String {
    let firsts: Vec<String> = answer.choice_ttft_ms.iter().map(|first| number(*first)).collect();
    if firsts.is_empty() { String::new() } else { format!("first tokens at {} ms", firsts.join(", ")) }
}

fn server(answer: &Decoded) -> String {
    let timings = &answer.server_timings_ms;
    let all = [
        ("queue", timings.queue),
        ("load", timings.load),
        ("prefill", timings.prefill),
        ("ttft", timings.ttft),
        ("decode", timings.decode),
        ("total", timings.total),
    ];
    millis(&all)
}

/// Those of some times that are known.
fn millis(all: &[(&str, Option<f64>)]) -> String {
    let known = all.iter().filter_map(|(name, value)| Some(format!("{name} {} ms", number(Some((*value)?)))));
    known.collect::<Vec<_>>().join("   ")
}

fn number(value: Option<f64>) -> String {
    value.map_or("-".to_owned(), |value| format!("{value:.1}"))
}

fn line(out: &mut String, name: &str, text: &str) {
    push(out, format_args!("{name:<9} {text}\n"));
}

fn push(out: &mut String, text: std::fmt::Arguments<'_>) {
    // Writing to a string cannot fail.
    let _ = out.write_fmt(text);
}
