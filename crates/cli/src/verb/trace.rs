//! `ttft trace`: one request across all vantage points: this client, the server's own timings, the levels that were
//! scraped around it, and the logs of whoever stood on its way.

mod clocks;
mod log;
mod text;
mod time;

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use serde_json::{Value, json};
use ttft_judge::metrics;
use ttft_model::{Nanos, Record, RequestId, Run};
use ttft_store::{Scrape, ScrapeFile, read_scrapes};

use self::log::{Log, Reader, Spans};
use crate::exit::Exit;
use crate::verb::report::{each_record, open};
use crate::{output, usage};

/// Scrapes this long before and after a request are around it.
const AROUND: Nanos = Nanos::from_millis(1_500);

/// Show one request across all vantage points: client, server, scraped levels, logs
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  ttft trace RUN --slowest 5                                  which were the slowest?
  ttft trace RUN 019a1b2c                                     the first digits of an id are enough
  ttft trace RUN 019a1b2c --log nginx.log --log vllm.log
  ttft trace RUN 019a1b2c --log gw.log \\
      --pattern 'start=(?<time>\\S+) id=(?<id>\\S+) upstream=(?<upstream_s>\\S+)'

An id is that of the request (sent in x-request-id), of its trace (sent in traceparent), or of the answer. \
Without --pattern a line belongs to the request if it holds one of the first two, and its time is the first that looks like \
one: RFC 3339, nginx and Apache, vLLM, or seconds or milliseconds since 1970.")]
pub(crate) struct Args {
    /// Run folder
    #[arg(value_name = "RUN")]
    run: PathBuf,
    /// Id of the request, or how it begins
    #[arg(value_name = "ID", required_unless_present = "slowest")]
    id: Option<String>,
    /// List the N requests with the longest TTFT instead
    #[arg(long, value_name = "N", conflicts_with_all = ["id", "log", "pattern"], value_parser = clap::value_parser!(u64).range(1..=1000))]
    slowest: Option<u64>,
    /// Log of a server or a gateway; may be repeated
    #[arg(long, value_name = "FILE")]
    log: Vec<PathBuf>,
    /// Regular expression for a line, with groups named `id` and `time`; groups of other names are shown as they are.
    /// May be repeated: the first that fits counts
    #[arg(long, value_name = "REGEX", requires = "log")]
    pattern: Vec<String>,
    /// Print JSON on standard output, and text on standard error
    #[arg(long)]
    json: bool,
}

/// Shows one request, or lists the slowest.
pub(crate) fn run(args: &Args) -> anyhow::Result<Exit> {
    match (&args.id, args.slowest) {
        (Some(id), _) => trace(args, id),
        (None, count) => slowest(args, count.unwrap_or(1) as usize),
    }
}

/// One request, with all that is known of it.
pub(crate) struct Traced {
    run: Run,
    record: Record,
    around: Vec<Scrape>,
    logs: Vec<Log>,
}

fn trace(args: &Args, id: &str) -> anyhow::Result<Exit> {
    let stored = open(&args.run).map_err(usage)?;
    let run = stored.run.clone();
    let mut spans = Spans::new();
    let mut found = Matches::of(id)?;
    each_record(&args.run, &stored, |record| {
        if !args.log.is_empty() {
            let span = (unix(&run, record.phases.started), unix(&run, record.finished));
            spans.insert(record.id.0, span);
            spans.insert(record.trace.trace, span);
        }
        found.look_at(record);
    })
    .map_err(usage)?;
    let record = found.only(id)?;
    let year = year_of(run.zero_unix_ns);
    let reader = Reader::new(&args.pattern, year)?;
    let logs = args.log.iter().map(|path| reader.read(path, &record, &spans));
    let logs = logs.collect::<anyhow::Result<Vec<_>>>()?;
    let traced = Traced { around: around(&args.run, &record)?, run, record, logs };
    output::show(args.json, &traced.json(), |style| text::trace(&traced, *style))?;
    Ok(Exit::Ok)
}

/// An instant of the run's axis on our wall clock.
fn unix(run: &Run, at: Nanos) -> i64 {
    run.zero_unix_ns + at.0
}

/// The year of an instant: logs that name none are of that one.
fn year_of(unix_ns: i64) -> i64 {
    let text = ttft_store::folder_name(unix_ns, "");
    text.split('-').next().and_then(|year| year.parse().ok()).unwrap_or(1970)
}

/// The records whose ids begin with a text.
struct Matches {
    wanted: String,
    found: Vec<Record>,
    more: u64,
}

impl Matches {
    /// So many are named when there are several.
    const NAMED: usize = 5;
    /// An answer's id is not looked for by less.
    const OF_ANSWERS: usize = 10;

    fn of(id: &str) -> anyhow::Result<Self> {
        let wanted = plain(id);
        if wanted.is_empty() {
            return Err(usage(anyhow!("the id is empty: name a request, or ask for --slowest 5")));
        }
        Ok(Self { wanted, found: Vec::new(), more: 0 })
    }

    fn look_at(&mut self, record: &Record) {
        let own = plain(&record.id.to_string());
        let trace = trace_id(record);
        let answer = record.answer.response_id.as_deref().map(plain).unwrap_or_default();
        // Answers' ids begin with a word that they share.
        let by_answer = self.wanted.len() >= Self::OF_ANSWERS && answer.starts_with(&self.wanted);
        if !by_answer && ![own, trace].iter().any(|id| id.starts_with(&self.wanted)) {
            return;
        }
        if self.found.len() < Self::NAMED {
            self.found.push(record.clone());
        } else {
            self.more += 1;
        }
    }

    fn only(mut self, id: &str) -> anyhow::Result<Record> {
        let all = self.found.len() as u64 + self.more;
        match (all, self.found.pop()) {
            (1, Some(record)) => Ok(record),
            (_, None) => Err(usage(anyhow!(
                "no request of this run has an id that begins with `{id}`; --slowest 5 lists some"
            ))),
            (_, Some(last)) => {
                self.found.push(last);
                let ids: Vec<String> = self.found.iter().map(|record| record.id.to_string()).collect();
                Err(usage(anyhow!("{all} requests have ids that begin with `{id}`: {} …", ids.join(", "))))
            }
        }
    }
}

/// An id without what different writers of it put between.
fn plain(id: &str) -> String {
    id.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

/// The 32 digits of a trace's id.
fn trace_id(record: &Record) -> String {
    plain(&RequestId(record.trace.trace).to_string())
}

/// The scrapes around a request.
fn around(folder: &Path, record: &Record) -> anyhow::Result<Vec<Scrape>> {
    let (from, to) = (record.phases.started - AROUND, record.finished + AROUND);
    let mut found = Vec::new();
    for file in ScrapeFile::ALL {
        read_scrapes(folder, file, |scrape| {
            if (from..=to).contains(&scrape.at_ns) {
                found.push(Scrape { page: None, ..scrape });
            }
        })?;
    }
    found.sort_by(|a, b| (&a.source, a.at_ns).cmp(&(&b.source, b.at_ns)));
    Ok(found)
}

/// The requests with the longest TTFT, the longest first.
fn slowest(args: &Args, count: usize) -> anyhow::Result<Exit> {
    let stored = open(&args.run).map_err(usage)?;
    let mut slowest: Vec<(Option<f64>, Record)> = Vec::new();
    each_record(&args.run, &stored, |record| {
        let ttft = metrics::ttft(record);
        if record.warmup || ttft.is_none() {
            return;
        }
        let at = slowest.partition_point(|(known, _)| *known >= ttft);
        if at < count {
            slowest.insert(at, (ttft, record.clone()));
            slowest.truncate(count);
        }
    })
    .map_err(usage)?;
    let rows: Vec<Value> = slowest.iter().map(|(_, record)| row(&stored.run, record)).collect();
    output::show(args.json, &rows, |_| text::slowest(&rows))?;
    Ok(if rows.is_empty() { Exit::NotMeasured } else { Exit::Ok })
}

fn row(run: &Run, record: &Record) -> Value {
    json!({
        "request_id": record.id.to_string(),
        "stage": stage_name(run, record),
        "outcome": record.outcome().name(),
        "started_s": record.phases.started.as_secs_f64(),
        "ttft_ms": metrics::ttft(record),
        "e2e_ms": metrics::e2e(record),
        "output_tokens": record.answer.output_tokens(),
    })
}

/// The header that carried the request's id.
fn id_header<'a>(run: &'a Run, record: &Record) -> &'a str {
    let stage = run.plan.stages.get(record.stage as usize);
    let endpoint = stage.map_or(run.plan.endpoint(), |stage| run.plan.endpoint_of(stage));
    &endpoint.request_id_header
}

fn stage_name(run: &Run, record: &Record) -> Option<String> {
    run.plan.stages.get(record.stage as usize).map(|stage| stage.name.clone())
}

impl Traced {
    /// Milliseconds from the start of the request to an instant of the run.
    fn since_start(&self, at: Nanos) -> f64 {
        (at - self.record.phases.started).as_millis_f64()
    }

    /// The same of an instant of a log, its clock set right.
    fn of_log(&self, log: &Log, told_ns: i64) -> f64 {
        let ahead = log.clock.map_or(0, |clock| clock.ahead_ns);
        Nanos(told_ns - ahead - unix(&self.run, self.record.phases.started)).as_millis_f64()
    }

    fn json(&self) -> Value {
        let r = &self.record;
        let phases = ttft_judge::phases(r).into_iter().map(|phase| {
            json!({ "name": phase.name, "from_ms": phase.from_ms, "to_ms": phase.to_ms, "stamped": phase.stamped })
        });
        let around = self.around.iter().map(|scrape| {
            json!({
                "source": scrape.source,
                "at_ms": self.since_start(scrape.at_ns),
                "values": scrape.values,
                "error": scrape.error,
            })
        });
        let mut all = row(&self.run, r);
        let more = json!({
            "trace_id": trace_id(r),
            "response_id": r.answer.response_id,
            "id_echoed": r.status.map(|_| r.id_echoed),
            "request_id_header": id_header(&self.run, r),
            "warmup": r.warmup,
            "seq": r.seq,
            "worker": r.worker,
            "http_status": r.status,
            "error_class": r.failure().map(|failure| failure.class.name()),
            "error_message": r.failure().map(|failure| failure.message.as_str()),
            "model": r.answer.model,
            "started_unix_ns": unix(&self.run, r.phases.started),
            "ended_unix_ns": unix(&self.run, r.finished),
            "ttft_scheduled_ms": metrics::ttft_scheduled(r),
            "ttft_sent_ms": metrics::ttft_sent(r),
            "header_gap_ms": metrics::header_gap(r),
            "tpot_ms": metrics::tpot(r),
            "rtt_ms": metrics::rtt(r),
            "input_tokens": r.answer.usage.input,
            "connection": r.connection.id,
            "reused": r.connection.reused,
            "phases": phases.collect::<Vec<_>>(),
            "server_timings": r.answer.timings,
            "levels": around.collect::<Vec<_>>(),
            "logs": self.logs.iter().map(|log| self.log_json(log)).collect::<Vec<_>>(),
        });
        if let (Value::Object(all), Value::Object(more)) = (&mut all, more) {
            all.extend(more);
        }
        all
    }

    fn log_json(&self, log: &Log) -> Value {
        let lines = log.lines.iter().map(|line| {
            json!({
                "number": line.number,
                "at_ms": line.told.map(|told| self.of_log(log, told.unix_ns)),
                "resolution_ms": line.told.map(|told| Nanos(told.step_ns).as_millis_f64()),
                "text": line.text,
                "fields": line.fields,
            })
        });
        let clock = log.clock.map(|clock| {
            json!({
                "ahead_ms": Nanos(clock.ahead_ns).as_millis_f64(),
                "within_ms": Nanos(clock.within_ns).as_millis_f64(),
                "fits_lines": clock.fits,
                "of_lines": clock.of,
            })
        });
        json!({
            "file": log.path.display().to_string(),
            "clock": clock,
            "lines": lines.collect::<Vec<_>>(),
            "left_out": log.left_out,
        })
    }
}
