//! One stage: its figures in full, and what is to be said about them.

use ttft_judge::{Client, Distribution, Requests, StageSummary, Verdict, WindowChoice, WindowFigures};
use ttft_model::{Arrival, CachePolicy, Load};

use crate::escape::{escape, escape_to};
use crate::number::{Unit, count, figures, percent, plural, time};
use crate::prompts;
use crate::style::{Ink, Style, wrap};
use crate::summary::is_open;
use crate::table::{Align, Cell, Table};
use crate::{experience, parts};

/// Signs used in a table that need a footnote.
#[derive(Debug, Default)]
pub(crate) struct Marks {
    weak: bool,
    interval: bool,
    open: bool,
}

impl Marks {
    pub(crate) fn footnotes(&self, style: Style) -> String {
        let mut notes = Vec::new();
        if self.interval {
            notes.push("[a–b] 95 % interval");
        }
        if self.open {
            notes.push("–∞] too few samples to bound it");
        }
        if self.weak {
            notes.push("~ too few samples for this percentile");
        }
        if notes.is_empty() {
            return String::new();
        }
        let text = wrap("", &notes.join(" · "), style.width);
        style.paint(Ink::Faint, text.trim_end()) + "\n"
    }
}

/// The stage in full, when it is the only one.
pub(crate) fn alone(stage: &StageSummary, style: Style, marks: &mut Marks) -> String {
    let mut out = head(stage, style);
    for part in [
        table(stage, style, marks),
        parts::table(stage, style),
        rates(stage, style)
            + &experience::line(stage, style)
            + &prompts::cache(std::slice::from_ref(stage), style),
        prompts::turns(stage, style),
        failures(&stage.requests, style),
        client(&stage.client, style),
        notes(stage, style),
    ] {
        if !part.is_empty() {
            out.push('\n');
            out.push_str(&part);
        }
    }
    out
}

/// What there is to say of one stage among several; empty if nothing.
pub(crate) fn remarks(stage: &StageSummary, style: Style) -> String {
    let mut parts = Vec::new();
    parts.push(indent(&parts::table(stage, narrower(style))));
    parts.extend(window_note(stage).map(|note| wrap("  - ", &note, style.width)));
    parts.extend(early_note(stage).map(|note| wrap("  - ", &note, style.width)));
    parts.push(indent(&failures(&stage.requests, narrower(style))));
    if stage.client.verdict != Verdict::Ok {
        parts.push(indent(&client(&stage.client, narrower(style))));
    }
    parts.push(indent(&experience::remark(stage, narrower(style))));
    parts.push(indent(&prompts::turns(stage, narrower(style))));
    parts.push(indent(&notes(stage, narrower(style))));
    let text: String = parts.concat();
    if text.is_empty() { text } else { format!("{}\n{text}", style.paint(Ink::Strong, &escape(&stage.name))) }
}

fn narrower(style: Style) -> Style {
    Style { width: style.width.saturating_sub(2), ..style }
}

fn indent(text: &str) -> String {
    text.split_inclusive('\n').flat_map(|line| ["  ", line]).collect()
}

fn head(stage: &StageSummary, style: Style) -> String {
    let requests = &stage.requests;
    let cache = match stage.cache {
        CachePolicy::Cold => "cold prefix cache",
        CachePolicy::Warm => "warm prefix cache",
        CachePolicy::AsIs => "prefix cache as it is",
    };
    let mut facts = vec![load(&stage.load), escape(&stage.workload).into_owned(), cache.to_owned()];
    facts.push(format!("at most {} output tokens", count(stage.max_tokens.into())));
    let mut counts = vec![format!("{} of {} requests ok", count(requests.ok), count(requests.sent))];
    if requests.failed > 0 {
        counts.push(style.paint(Ink::Bad, &format!("{} failed", count(requests.failed))));
    }
    if requests.warmup > 0 {
        counts.push(format!("{} warm-up apart", count(requests.warmup)));
    }
    let window = figures_of(stage);
    counts.push(match stage.window {
        WindowChoice::Steady => format!(
            "steady from {:.1} to {:.1} s of {:.1} s",
            window.start_s, window.end_s, stage.windows.whole.duration_s
        ),
        WindowChoice::Whole => format!("all of {:.1} s", window.duration_s),
    });
    let mut out = wrap("", &facts.join(" · "), style.width) + &wrap("", &counts.join(" · "), style.width);
    for note in window_note(stage).into_iter().chain(early_note(stage)) {
        out.push_str(&wrap("", &note, style.width));
    }
    out
}

fn early_note(stage: &StageSummary) -> Option<String> {
    stage.ended_early.as_ref().map(|why| format!("ended before its time: {}", escape(why)))
}

fn window_note(stage: &StageSummary) -> Option<String> {
    let reason = stage.window_reason.as_ref()?;
    Some(format!("figures are of the whole stage, ramp and tail included: {reason}"))
}

fn table(stage: &StageSummary, style: Style, marks: &mut Marks) -> String {
    let of = |metric: &str| stage.latency_ms.get(metric).filter(|d| d.n > 0);
    let median = |metric: &str| of(metric).and_then(|d| d.p50);
    let mut rows = vec![("TTFT", "ttft")];
    if is_open(&stage.load) {
        rows.push(("from schedule", "ttft_scheduled"));
    }
    if of("ttft_answer").map(|d| (d.p50, d.n)) != of("ttft").map(|d| (d.p50, d.n)) {
        rows.push(("to answer", "ttft_answer"));
    }
    if of("connect_time").is_some_and(|d| d.excluded * 2 < d.n) {
        rows.push(("after connect", "ttft_sent"));
        rows.push(("connect", "connect_time"));
    }
    rows.extend([("TPOT", "tpot"), ("ITL", "itl"), ("e2e", "e2e"), ("head gap", "header_gap")]);
    rows.retain(|(_, metric)| of(metric).is_some());
    if rows.is_empty() {
        return String::new();
    }

    let units: Vec<Unit> = rows.iter().map(|(_, metric)| Unit::of(median(metric))).collect();
    let ink = |metric: &str| if metric == "ttft" { Ink::Strong } else { Ink::Plain };
    let failed = stage.requests.failed > 0 && of("ttft").is_some();
    // The row for failures stands right below TTFT.
    let with_failures = |cells: Vec<Cell>, extra: Cell| {
        let mut cells = cells;
        if failed {
            cells.insert(1, extra);
        }
        cells
    };
    let mut table = Table::default();
    let names = rows.iter().map(|(title, metric)| Cell::new(*title).ink(ink(metric))).collect();
    table.column(("", ""), Align::Left, 0, with_failures(names, Cell::new("failures as ∞")));
    let signs: Vec<Cell> = units.iter().map(|unit| Cell::new(unit.sign()).ink(Ink::Faint)).collect();
    let first = signs.first().cloned().unwrap_or_default();
    table.column(("", ""), Align::Left, 0, with_failures(signs, first));
    for name in ["p50", "p95", "p99"] {
        let cells = rows
            .iter()
            .zip(&units)
            .map(|((_, metric), unit)| claim(stage, metric, name, *unit, marks).ink(ink(metric)));
        let cells = cells.collect();
        let bound = of("ttft").and_then(|d| d.pessimistic.get(name));
        let bound =
            bound.map_or_else(Cell::default, |b| Cell::new(units.first().unwrap_or(&Unit::Millis).show(b.0)));
        table.column(("", name), Align::Right, 0, with_failures(cells, bound));
    }
    for (name, drop) in [("mean", 2), ("max", 1)] {
        let cells = rows.iter().zip(&units).map(|((_, metric), unit)| {
            of(metric).and_then(|d| d.get(name)).map_or_else(Cell::default, |v| Cell::new(unit.show(v)))
        });
        let cells = cells.collect();
        table.column(("", name), Align::Right, drop, with_failures(cells, Cell::default()));
    }
    table.text(style)
}

fn rates(stage: &StageSummary, style: Style) -> String {
    let through = &stage.throughput;
    let mut parts = Vec::new();
    parts.extend(through.requests_per_s.map(|v| format!("{} requests/s", figures(v))));
    parts.extend(through.output_tokens_per_s.map(|v| format!("{} output tokens/s", figures(v))));
    parts.extend(through.input_tokens_per_s.map(|v| format!("{} input tokens/s", figures(v))));
    parts.extend(
        through.output_tokens_per_s_per_user.map(|v| format!("{} tokens/s for one user", figures(v))),
    );
    let mut out = wrap("", &parts.join(" · "), style.width);
    out.extend(stage.arrivals.as_ref().map(|arrivals| crate::arrivals::text(arrivals, style)));
    if let Some(little) = figures_of(stage).littles_law {
        let text = format!(
            "{} in flight · Little's law: {}/s × {} = {}, ratio {:.3}",
            figures(little.in_flight),
            figures(little.rate),
            time(Some(little.mean_total_s * 1e3)),
            figures(little.expected),
            little.ratio
        );
        out.push_str(&wrap("", &text, style.width));
    }
    out
}

fn failures(requests: &Requests, style: Style) -> String {
    if requests.failed == 0 {
        return String::new();
    }
    let mut out = style
        .paint(Ink::Bad, &format!("{} of {} requests failed", count(requests.failed), count(requests.sent)));
    out.push('\n');
    for group in &requests.failures {
        let first = format!("  {} × {}  ", count(group.n), group.class);
        out.push_str(&wrap(&first, group.class.meaning(), style.width));
        let status = group.status.map(|status| format!("HTTP {status} ")).unwrap_or_default();
        if !group.message.is_empty() {
            let share = if group.message_n < group.n {
                format!(" ({} of them)", count(group.message_n))
            } else {
                String::new()
            };
            let text = format!("{status}“{}”{share}", escape_to(&group.message, 240));
            out.push_str(&wrap("      said ", &text, style.width));
        }
        out.push_str(&wrap("      → ", group.class.remedy(), style.width));
    }
    out
}

fn client(client: &Client, style: Style) -> String {
    let (word, ink) = match client.verdict {
        Verdict::Ok => ("ok", Ink::Good),
        Verdict::Suspect => ("SUSPECT", Ink::Doubtful),
        Verdict::Invalid => ("INVALID", Ink::Bad),
    };
    let mut facts = Vec::new();
    facts.extend(client.kernel_stamped_share.map(|_| format!("{} stamps", escape(&client.clock))));
    let lag = |name: &str, of: &Distribution| of.p99.map(|p99| format!("{name} {} (p99)", time(Some(p99))));
    facts.extend(lag("read lag", &client.read_lag_ms));
    facts.extend(lag("dispatch", &client.dispatch_lag_ms));
    facts.extend(client.started_per_s.and_then(|_| lag("send lag", &client.send_lag_ms)));
    facts.extend(client.cpu_percent.map(|percent| format!("busiest worker {percent:.0} %")));
    let line = wrap(&format!("client {word}  "), &facts.join(" · "), style.width);
    let mut out = line.replacen(word, &style.paint(ink, word), 1);
    for reason in &client.reasons {
        out.push_str(&wrap("  - ", &escape(reason), style.width));
    }
    out
}

/// From this lag on bundles may be of the client's making.
const LATE_MS: f64 = 1.0;

/// What to know when reading the figures.
fn notes(stage: &StageSummary, style: Style) -> String {
    let (stream, ok) = (&stage.stream, stage.stream.requests);
    let mut notes = Vec::new();
    let mut say = |n: u64, text: &str| {
        if n > 0 {
            let verb = plural(n, "request", "requests");
            notes.push(format!("{} {verb} {text}", count(n)));
        }
    };
    say(stream.not_streamed, "got one document instead of a stream: they have no TTFT");
    let late = stage.client.read_lag_ms.p99.is_some_and(|p99| p99 > LATE_MS);
    let why = if late { "this client was late to read" } else { "something between collects the stream" };
    say(stream.all_in_one_read, &format!("got all output in one read: {why}"));
    say(stream.bundled_by_server, "have several tokens in an event: the server bundles");
    say(stream.compressed, "got a compressed answer although none was asked for");
    say(stream.without_terminator, "ended without the dialect's terminator");
    say(stream.resent, "went out again because a kept connection had been closed");
    say(stage.requests.unsent, "were due but never sent: --max-in-flight left no place for them");
    say(
        stage.requests.outcomes.get("cancelled").copied().unwrap_or(0),
        "were cut off by the end of the run and are in no figure",
    );
    if stream.without_usage < ok {
        say(stream.without_usage, "came without the server's token count and are in no token rate");
        say(stream.itl_mean, "told only the sum of tokens: ITL takes the mean for each event");
    } else if ok > 0 {
        notes.push("the server counts no tokens: TPOT, ITL and tokens/s are unknown".to_owned());
    }
    if stream.malformed_events > 0 {
        notes.push(format!("{} events were not valid for the dialect", count(stream.malformed_events)));
    }
    let gaps = stage.latency_ms.get("event_gap").map_or(0, |d| d.n) + stream.coalesced_gaps;
    if stream.coalesced_gaps * 100 > gaps {
        let share = percent(stream.coalesced_gaps as f64 / gaps as f64);
        let who = match (stream.bundled_by_client, stream.bundled_by_path) {
            (client, path) if client > path => "this client read late, and the kernel merges what waits",
            _ => "they came in one segment, bundled by the server's writes, a proxy or TCP",
        };
        notes.push(format!("{share} of the gaps between events cannot be measured: {who}"));
    }
    for (metric, title) in [("ttft", "TTFT"), ("tpot", "TPOT"), ("itl", "ITL")] {
        let excluded = stage.latency_ms.get(metric).map_or(0, |d| d.excluded);
        if excluded > 0 && stream.without_usage < ok {
            notes.push(format!("{title} is unknown for {} of {} ok requests", count(excluded), count(ok)));
        }
    }
    notes.iter().map(|note| wrap("- ", note, style.width)).collect()
}

/// The figures of the window that the stage's summary is of.
pub(crate) fn figures_of(stage: &StageSummary) -> &WindowFigures {
    match stage.window {
        WindowChoice::Steady => &stage.windows.steady,
        WindowChoice::Whole => &stage.windows.whole,
    }
}

/// One unit for a metric over all stages.
pub(crate) fn unit_of(stages: &[StageSummary], metric: &str) -> Unit {
    let medians = stages.iter().filter_map(|s| s.latency_ms.get(metric)?.p50);
    Unit::of(medians.min_by(f64::total_cmp))
}

/// A percentile, marked if it is weak.
pub(crate) fn figure(stage: &StageSummary, metric: &str, name: &str, unit: Unit, marks: &mut Marks) -> Cell {
    let Some(of) = stage.latency_ms.get(metric) else { return Cell::default() };
    let Some(value) = of.get(name) else { return Cell::default() };
    let weak = of.is_weak(name);
    marks.weak |= weak;
    Cell::new(format!("{}{}", if weak { "~" } else { "" }, unit.show(value)))
}

/// A percentile with its interval beside it.
pub(crate) fn claim(stage: &StageSummary, metric: &str, name: &str, unit: Unit, marks: &mut Marks) -> Cell {
    let cell = figure(stage, metric, name, unit, marks);
    let interval = stage.latency_ms.get(metric).and_then(|of| of.ci95.get(name));
    let Some([low, high]) = interval.filter(|ends| ends.iter().any(Option::is_some)) else { return cell };
    let end = |value: Option<f64>, unknown: &str| value.map_or_else(|| unknown.to_owned(), |v| unit.show(v));
    let (from, to) = (end(low, "0"), end(high, "∞"));
    if from == to {
        return cell; // It says no more than the figure itself.
    }
    marks.interval = true;
    marks.open |= high.is_none();
    cell.aside(format!("[{from}–{to}]"))
}

/// The load in words.
pub(crate) fn load(load: &Load) -> String {
    match load {
        Load::Closed { concurrency, think_time, .. } => {
            let thinking = think_time.map(|think| format!(" thinking {think}")).unwrap_or_default();
            format!("{concurrency} {}{thinking}", plural(u64::from(*concurrency), "user", "users"))
        }
        Load::Open { rate, rate_to, rate_steps, arrival, .. } => {
            let arrival = match arrival {
                Arrival::Constant => "constant".to_owned(),
                Arrival::Poisson => "poisson".to_owned(),
                Arrival::Gamma(shape) => format!("gamma {shape}"),
            };
            let change = match (rate_to, rate_steps) {
                (None, _) => String::new(),
                (Some(to), None) => format!(" to {to}"),
                (Some(to), Some(steps)) => format!(" to {to} in {steps} steps"),
            };
            format!("{rate}{change}/s {arrival}")
        }
        Load::Trace { path, speed, smooth, .. } => {
            let name = path.rsplit('/').next().unwrap_or(path);
            let smooth = if *smooth { ", smoothed" } else { "" };
            format!("trace {} at speed {speed}{smooth}", escape(name))
        }
    }
}

/// The one number that a load is known by.
pub(crate) fn level(load: &Load) -> String {
    match load {
        Load::Closed { concurrency, .. } => concurrency.to_string(),
        Load::Open { rate, rate_to: Some(to), .. } => format!("{rate}–{to}"),
        Load::Open { rate, .. } => rate.to_string(),
        Load::Trace { speed, .. } => format!("×{speed}"),
    }
}
