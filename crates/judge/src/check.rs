//! What is odd about an endpoint, from one streamed request: each oddity with what to do about it.

use ttft_model::{Outcome, Record};

use crate::metrics;
use crate::{Finding, Level};

/// What is known of the endpoint beside the record.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CheckContext {
    /// The `server` header.
    pub server: Option<String>,
    /// The `content-type` header.
    pub content_type: Option<String>,
    /// The `keep-alive` header, or `connection: close`, as the server said it.
    pub keep_alive: Option<String>,
    /// Whether a second request went over the first one's connection; `None` if there was no second one.
    pub second_reused: Option<bool>,
    /// A key was sent.
    pub key_sent: bool,
    /// The model asked for.
    pub model: Option<String>,
    /// The models that the endpoint lists; `None` if it lists none.
    pub models: Option<Vec<String>>,
    /// The dialect that the answer was read as.
    pub dialect: String,
    /// The dialect that it looks like, if it looks like one.
    pub looks_like: Option<String>,
    /// Usage was asked for, as far as the dialect has a way to ask.
    pub usage_asked: bool,
}

/// From this gap between the head or an empty first event and the first token on, mistaking one for the other
/// matters.
const GAP_MS: f64 = 5.0;

/// A client this late to read is not at its best.
const READ_LAG_MS: f64 = 1.0;

/// What may hold a stream back.
const BUFFERING_REMEDY: &str = "look for a proxy or gateway that buffers (nginx: `proxy_buffering off`, or the header \
    `x-accel-buffering: no`), compression, or an engine's stream interval";

/// Everything to say of that request, in the order in which it ran.
pub fn findings(record: &Record, context: &CheckContext) -> Vec<Finding> {
    let mut all = vec![outcome(record)];
    all.extend(other_dialect(record, context));
    let answered = record.status.is_some();
    if answered {
        all.extend([key(record, context), Some(version(record)), server(context)].into_iter().flatten());
    }
    // A whole answer in one document has no first token.
    if record.answer.first_token.is_some() || record.outcome() == Outcome::Ok {
        let of_stream = [
            Some(streamed(record, context)),
            first_event(record),
            header_gap(record),
            buffering(record),
            compressed(record),
            malformed(record),
            ending(record),
            Some(usage(record, context)),
            reasoning(record),
        ];
        all.extend(of_stream.into_iter().flatten());
    }
    if answered {
        all.extend([keep_alive(record, context), Some(echo(record))].into_iter().flatten());
    }
    all.extend(model(record, context));
    all.extend(clock(record));
    all
}

fn outcome(r: &Record) -> Finding {
    match (r.outcome(), r.failure()) {
        (Outcome::Ok, _) => Finding::new(Level::Ok, "answered as it should"),
        (_, Some(failure)) => {
            let status = r.status.map(|status| format!("HTTP {status}: ")).unwrap_or_default();
            let finding = Finding::new(Level::Bad, format!("failed: {}", failure.class.meaning()))
                .remedy(failure.class.remedy());
            if failure.message.is_empty() { finding } else { finding.because(status + &failure.message) }
        }
        (outcome, None) => Finding::new(Level::Bad, format!("ended as `{}`", outcome.name())),
    }
}

fn key(r: &Record, context: &CheckContext) -> Option<Finding> {
    let refused = matches!(r.status, Some(401 | 403));
    match (context.key_sent, refused) {
        (true, false) => Some(Finding::new(Level::Ok, "the key was not refused")),
        (true, true) => Some(
            Finding::new(Level::Bad, "the key was refused")
                .remedy("check that it belongs to this endpoint and may use this model"),
        ),
        (false, true) => None, // The outcome says it already, with its remedy.
        (false, false) => Some(Finding::new(Level::Note, "no key was sent, and none was asked for")),
    }
}

fn version(r: &Record) -> Finding {
    let tls = if r.connection.tls { "over TLS" } else { "without TLS" };
    let version = if r.connection.http == 2 { "HTTP/2" } else { "HTTP/1.1" };
    Finding::new(Level::Ok, format!("{version} {tls}"))
}

fn server(context: &CheckContext) -> Option<Finding> {
    let server = context.server.as_ref()?;
    Some(Finding::new(Level::Ok, format!("the server calls itself {server}")))
}

fn streamed(r: &Record, context: &CheckContext) -> Finding {
    if r.answer.facts.streamed {
        let (events, n) = (r.answer.events.len(), r.answer.output_tokens());
        let tokens = n.map(|n| format!(", {n} tokens by the server's count")).unwrap_or_default();
        return Finding::new(Level::Ok, "the answer is a stream")
            .because(format!("{events} events with output{tokens}"));
    }
    let finding =
        Finding::new(Level::Bad, "the answer is one document, not a stream: it has no time to first token")
            .remedy("check that no proxy collects the answer, and that this path and model can stream");
    match &context.content_type {
        Some(kind) => finding.because(format!("content-type {kind}")),
        None => finding,
    }
}

fn first_event(r: &Record) -> Option<Finding> {
    let gap = metrics::event_to_token(r)?;
    if gap <= 0.0 {
        return None;
    }
    let level = if gap > GAP_MS { Level::Warn } else { Level::Note };
    let finding = Finding::new(level, "the first event holds no output: it is no token")
        .because(format!("the first token came {gap:.1} ms after it"));
    Some(if level == Level::Warn {
        finding.remedy(format!(
            "distrust tools that stop at the first event: they would report {gap:.0} ms less here"
        ))
    } else {
        finding
    })
}

fn header_gap(r: &Record) -> Option<Finding> {
    let (gap, ttft) = (metrics::header_gap(r)?, metrics::ttft(r)?);
    if gap > GAP_MS {
        let share = 100.0 * gap / ttft.max(f64::MIN_POSITIVE);
        return Some(
            Finding::new(Level::Warn, "the response head comes well before the first token")
                .because(format!("{gap:.1} ms, {share:.0} % of TTFT"))
                .remedy("do not read time to first byte or a proxy's upstream header time as TTFT"),
        );
    }
    Some(
        Finding::new(Level::Note, "the response head comes together with the first token")
            .because(format!("{gap:.1} ms between them"))
            .remedy("the server or a proxy holds the head back until there is output: no harm to TTFT"),
    )
}

fn buffering(r: &Record) -> Option<Finding> {
    let (events, facts) = (&r.answer.events, &r.answer.facts);
    if !facts.streamed || events.len() < 2 {
        return None;
    }
    // The kernel merges what waits: a client that reads late sees bundles that nobody sent.
    let client_late = r.read_lag_max.is_some_and(|lag| lag.as_millis_f64() > READ_LAG_MS);
    if metrics::one_arrival(r) {
        let evidence = format!("{} events in one read; nothing between tokens can be measured", events.len());
        return Some(if client_late {
            late_reader("the whole answer was read at once", evidence)
        } else {
            Finding::new(Level::Bad, "the whole answer came at once: something collects the stream")
                .because(evidence)
                .remedy(BUFFERING_REMEDY)
        });
    }
    let coalesced = (1..events.len()).filter(|i| events.is_coalesced(*i)).count();
    let share = coalesced as f64 / (events.len() - 1) as f64;
    let evidence = format!("{coalesced} of {} gaps between events cannot be measured", events.len() - 1);
    if share > 0.5 {
        return Some(if client_late {
            late_reader("events were read in bundles", evidence)
        } else {
            Finding::new(Level::Warn, "events come in bundles: something between collects some of them")
                .because(evidence)
                .remedy(BUFFERING_REMEDY)
        });
    }
    if facts.first_token_coalesced {
        return Some(
            Finding::new(Level::Note, "the first token came together with later output")
                .because("TTFT is an upper bound for when the server had it"),
        );
    }
    (coalesced > 0).then(|| Finding::new(Level::Note, "some events came together").because(evidence))
}

fn late_reader(what: &str, evidence: String) -> Finding {
    Finding::new(
        Level::Warn,
        format!("{what}, but this client was late to read: it says nothing of the server"),
    )
    .because(evidence)
    .remedy("give this client a core of its own, or check again when this machine is idle")
}

fn compressed(r: &Record) -> Option<Finding> {
    r.answer.facts.compressed.then(|| {
        Finding::new(Level::Warn, "the answer came compressed although `identity` was asked for")
            .remedy("switch compression off for streams: it holds tokens back until a block is full")
    })
}

fn malformed(r: &Record) -> Option<Finding> {
    let n = r.answer.facts.malformed_events;
    (n > 0).then(|| {
        Finding::new(Level::Warn, format!("{n} events are not valid for this dialect and were skipped"))
            .remedy("check --dialect; `ttft decode` shows the stream event by event")
    })
}

/// A dialect that extends another is often told as that one: only an answer that was not understood says something.
fn other_dialect(r: &Record, context: &CheckContext) -> Option<Finding> {
    let like = context.looks_like.as_ref().filter(|like| **like != context.dialect)?;
    r.answer.first_token.is_none().then(|| {
        Finding::new(Level::Bad, format!("the answer looks like the dialect {like}, not {}", context.dialect))
            .remedy(format!("try --dialect {like}"))
    })
}

fn ending(r: &Record) -> Option<Finding> {
    let facts = &r.answer.facts;
    if !facts.streamed {
        return None;
    }
    let finding = match (facts.terminator, facts.finish) {
        (true, true) => Finding::new(Level::Ok, "the stream ends with a finish reason and its terminator"),
        (true, false) => Finding::new(Level::Warn, "the stream ends without a finish reason")
            .remedy("an answer cut short cannot be told from a full one by its reason"),
        (false, true) => Finding::new(Level::Note, "a finish reason came, but no terminator"),
        (false, false) => Finding::new(Level::Bad, "the stream ends without finish reason or terminator")
            .remedy("look for a proxy's or the server's own time limit that cuts streams"),
    };
    let reason = r.answer.finish_reason.as_ref();
    let finding = match reason {
        Some(reason) => finding.because(format!("finish reason `{reason}`")),
        None => finding,
    };
    if facts.after_end > 0 {
        let what = format!("{}; {} events came after the end", finding.what, facts.after_end);
        return Some(Finding { what, level: finding.level.max(Level::Note), ..finding });
    }
    Some(finding)
}

fn usage(r: &Record, context: &CheckContext) -> Finding {
    let usage = &r.answer.usage;
    if let Some(output) = usage.output {
        let input = usage.input.map(|n| format!("{n} in, ")).unwrap_or_default();
        let cached = usage.cached.filter(|n| *n > 0).map(|n| format!(", {n} of the input from a cache"));
        return Finding::new(Level::Ok, "the server counts tokens")
            .because(format!("{input}{output} out{}", cached.unwrap_or_default()));
    }
    Finding::new(
        Level::Warn,
        "the server does not count tokens: tpot, itl and tokens per second will be unknown",
    )
    .remedy(if context.usage_asked {
        "usage was asked for and did not come: look for a proxy that drops it"
    } else {
        "if the server can, ask it by --body-json, as in '{\"stream_options\":{\"include_usage\":true}}'"
    })
}

fn reasoning(r: &Record) -> Option<Finding> {
    let answer = r.answer.first_answer.map(ttft_model::Stamp::at);
    let first = r.answer.first_token?.at();
    match answer {
        Some(answer) if answer > first => Some(
            Finding::new(Level::Note, "the model reasons before it answers")
                .because(format!(
                    "first answer token {:.1} ms after the first token",
                    (answer - first).as_millis_f64()
                ))
                .remedy("read ttft_answer for when the user sees an answer"),
        ),
        Some(_) => None,
        None => Some(
            Finding::new(Level::Note, "all output was reasoning: no answer began")
                .remedy("raise --max-tokens to see one"),
        ),
    }
}

fn keep_alive(r: &Record, context: &CheckContext) -> Option<Finding> {
    let reused = context.second_reused?;
    let said = context.keep_alive.as_ref().map(|said| format!("the server says `{said}`"));
    let mut finding = if reused {
        Finding::new(Level::Ok, "connections are kept: a second request reused this one")
    } else {
        let cost = metrics::connect_time(r).map(|ms| format!(", {ms:.1} ms here")).unwrap_or_default();
        Finding::new(Level::Warn, format!("connections are not kept: every request pays for a new one{cost}"))
            .remedy("switch keep-alive on, or read ttft_sent, which leaves connecting out")
    };
    finding.evidence = said;
    Some(finding)
}

fn echo(r: &Record) -> Finding {
    if r.id_echoed {
        Finding::new(Level::Ok, "x-request-id comes back: requests can be found in the server's log")
    } else {
        Finding::new(Level::Note, "x-request-id does not come back")
            .remedy("log it at the gateway or the server if requests are to be joined with their logs")
    }
}

fn model(r: &Record, context: &CheckContext) -> Option<Finding> {
    if let (Some(asked), Some(models)) = (&context.model, &context.models)
        && !models.contains(asked)
    {
        let some: Vec<&str> = models.iter().take(8).map(String::as_str).collect();
        let more = if models.len() > some.len() {
            format!(" and {} more", models.len() - some.len())
        } else {
            String::new()
        };
        let level = if r.outcome() == Outcome::Ok { Level::Note } else { Level::Bad };
        return Some(
            Finding::new(level, format!("the endpoint does not list the model `{asked}`"))
                .because(format!("it lists {}{more}", some.join(", "))),
        );
    }
    let (asked, got) = (context.model.as_ref()?, r.answer.model.as_ref()?);
    (asked != got).then(|| Finding::new(Level::Note, format!("asked for `{asked}`, answered by `{got}`")))
}

fn clock(r: &Record) -> Option<Finding> {
    let first = r.answer.first_token?;
    let Some(lag) = first.lag() else {
        return Some(
            Finding::new(
                Level::Warn,
                "no kernel stamp on the first token: TTFT holds this client's own delay",
            )
            .remedy("on Linux kernel stamps come by themselves; elsewhere keep the client's machine idle"),
        );
    };
    let lag = lag.as_millis_f64();
    let finding = Finding::new(
        if lag > READ_LAG_MS { Level::Warn } else { Level::Ok },
        format!("stamped by the kernel; this client read the first token {:.0} µs later", lag * 1e3),
    );
    Some(if lag > READ_LAG_MS {
        finding.remedy("this client's machine is busy; the stamp keeps that out of TTFT")
    } else {
        finding
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use ttft_model::{Answer, Channel, ErrorClass, Failure, Nanos, Stamp, TcpFacts};

    fn stamp(ms: i64) -> Stamp {
        Stamp { kernel: Some(Nanos::from_millis(ms)), user: Nanos(ms * 1_000_000 + 40_000) }
    }

    /// A healthy streamed answer, 20 tokens from 300 ms on.
    fn healthy() -> Record {
        let mut r = Record { status: Some(200), id_echoed: true, ..Record::default() };
        r.connection.http = 1;
        r.tcp_first = Some(TcpFacts::default());
        r.phases.headers = Some(stamp(20));
        r.answer.first_byte = Some(stamp(20));
        r.answer.first_event = Some(stamp(300));
        r.answer.first_token = Some(stamp(300));
        r.answer.first_answer = Some(stamp(300));
        r.answer.last_token = Some(stamp(490));
        for i in 0..20 {
            r.answer.events.push(Nanos::from_millis(300 + 10 * i), 1, Channel::Text, false);
        }
        r.answer.usage.output = Some(20);
        r.answer.usage.input = Some(9);
        r.answer.outcome = Some(Outcome::Ok);
        r.answer.finish_reason = Some("stop".to_owned());
        let facts = &mut r.answer.facts;
        (facts.streamed, facts.terminator, facts.finish) = (true, true, true);
        r
    }

    #[track_caller]
    fn check(r: &Record, context: &CheckContext, level: Level, part: &str) {
        let all = findings(r, context);
        let found = all.iter().find(|f| f.what.contains(part));
        assert_eq!(found.map(|f| f.level), Some(level), "{part:?} in {all:#?}");
        assert!(
            all.iter().all(|f| f.level < Level::Warn || f.remedy.is_some() || f.evidence.is_some()),
            "{all:#?}"
        );
    }

    #[test]
    fn a_healthy_endpoint_has_one_warning() {
        let context = CheckContext { second_reused: Some(true), key_sent: true, ..CheckContext::default() };
        let all = findings(&healthy(), &context);
        let warned: Vec<_> = all.iter().filter(|f| f.level >= Level::Warn).map(|f| &f.what).collect();
        assert_eq!(warned, ["the response head comes well before the first token"]);
        check(&healthy(), &context, Level::Ok, "a second request reused");
        check(&healthy(), &context, Level::Ok, "40 µs later");
        check(&healthy(), &context, Level::Ok, "key was not refused");
    }

    #[test]
    fn oddities_are_found() {
        let context =
            CheckContext { usage_asked: true, second_reused: Some(false), ..CheckContext::default() };
        let with = |change: fn(&mut Record), level, part| {
            let mut r = healthy();
            change(&mut r);
            check(&r, &context, level, part);
        };
        with(|r| r.answer.first_event = Some(stamp(25)), Level::Warn, "first event holds no output");
        with(|r| r.phases.headers = Some(stamp(299)), Level::Note, "together with the first token");
        with(|r| r.answer.facts.all_in_one_read = true, Level::Bad, "came at once");
        with(|r| r.answer.events.class[5..].fill(0x80), Level::Warn, "in bundles");
        with(|r| r.answer.events.class[1] = 0x80, Level::Note, "some events came together");
        with(|r| r.answer.facts.compressed = true, Level::Warn, "compressed");
        with(|r| r.answer.facts.malformed_events = 2, Level::Warn, "2 events are not valid");
        with(|r| r.answer.facts.terminator = false, Level::Note, "no terminator");
        with(|r| r.answer.facts.finish = false, Level::Warn, "without a finish reason");
        with(|r| r.answer.facts.streamed = false, Level::Bad, "not a stream");
        let one_document = |r: &mut Record| {
            r.answer = Answer { outcome: r.answer.outcome, usage: r.answer.usage, ..Answer::default() };
        };
        with(one_document, Level::Bad, "not a stream");
        with(|r| r.answer.facts.after_end = 1, Level::Note, "1 events came after the end");
        with(|r| r.answer.usage.output = None, Level::Warn, "does not count tokens");
        with(|r| r.answer.first_answer = None, Level::Note, "all output was reasoning");
        with(|r| r.answer.first_answer = Some(stamp(400)), Level::Note, "reasons before");
        with(|r| r.id_echoed = false, Level::Note, "does not come back");
        with(
            |r| r.answer.first_token = Some(Stamp::user(Nanos::from_millis(300))),
            Level::Warn,
            "no kernel stamp",
        );
        check(&healthy(), &context, Level::Warn, "not kept");
    }

    #[test]
    fn a_refused_key_and_an_unknown_model() {
        let mut r = Record { status: Some(401), ..Record::default() };
        r.answer.outcome = Some(Outcome::Error);
        r.answer.failure = Some(Failure::new(ErrorClass::HttpAuth, "no"));
        let context = CheckContext {
            key_sent: true,
            model: Some("a".to_owned()),
            models: Some(vec!["b".to_owned(); 10]),
            ..CheckContext::default()
        };
        check(&r, &context, Level::Bad, "the key was refused");
        check(&r, &context, Level::Bad, "does not list the model `a`");
        check(&r, &context, Level::Bad, "refused the key (401, 403)");
    }

    #[test]
    fn nothing_came_at_all() {
        let mut r = Record::default();
        r.answer.outcome = Some(Outcome::Error);
        r.answer.failure = Some(Failure::new(ErrorClass::ConnectRefused, "connection refused"));
        let all = findings(&r, &CheckContext::default());
        assert_eq!(all.len(), 1);
        assert_eq!(all[0].remedy.as_deref(), Some(ErrorClass::ConnectRefused.remedy()));
    }
}
