//! What a record costs on its way to disk and back: `cargo bench -p ttft-store -- [FOLDER]`.
//!
//! With a folder the file is left there, to be opened by other programs.

#![expect(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a bench reports and stops on what it did not expect"
)]

use std::path::{Path, PathBuf};

use ttft_kernel::mono_now;
use ttft_model::{
    Channel, ErrorClass, Failure, Nanos, Outcome, Plan, Record, Run, Stamp, TcpFacts, TokenSource,
};
use ttft_store::{Appended, Events, Place, RequestReader, RunFolder, names};

const RECORDS: usize = 200_000;
const EVENTS: i64 = 32;
/// Records between two flushes.
const FLUSH: usize = 2000;

const PLAN: &str = r#"
name = "bench"
seed = 1
warmup = 0
drain = "1s"
workloads = []
stages = []
[endpoint]
url = "http://localhost/"
dialect = "openai-chat"
model = "m"
api_key = "none"
connections = "reuse"
http = "1.1"
streams_per_connection = 1
headers = [{ name = "authorization", value = "Bearer something-secret" }]
[timeouts]
connect = "1s"
first_token = "1s"
idle = "1s"
total = "1s"
[client]
"#;

fn main() {
    let scratch = tempfile::tempdir().unwrap();
    let given = std::env::args().skip(1).find(|arg| !arg.starts_with("--")).map(PathBuf::from);
    let root = given.unwrap_or_else(|| scratch.path().to_owned());
    let run = run(&toml::from_str(PLAN).unwrap());
    let records: Vec<Record> = (0..FLUSH as i64).map(record).collect();

    let began = mono_now();
    let mut folder = RunFolder::create(Place::Exactly(&root), &run.plan, &run).unwrap();
    report("create", began, 1);

    let began = mono_now();
    for _ in 0..RECORDS / FLUSH {
        for few in records.chunks(8) {
            assert_eq!(folder.append(few).unwrap(), Appended::Fine);
        }
        assert_eq!(folder.flush().unwrap(), Appended::Fine);
    }
    report("append and flush", began, RECORDS);

    let began = mono_now();
    let finished = folder.finish(&run).unwrap();
    report("finish", began, 1);
    println!("{} bytes per record", finished.bytes / finished.rows);
    for events in [Events::Load, Events::Skip] {
        read(&root, events);
    }
}

fn read(root: &Path, events: Events) {
    let began = mono_now();
    let reader = RequestReader::open(&root.join(names::REQUESTS), events).unwrap();
    assert_eq!(reader.map(Result::unwrap).count(), RECORDS);
    report(if events == Events::Load { "read" } else { "read without events" }, began, RECORDS);
}

fn report(what: &str, began: Nanos, records: usize) {
    let took = (mono_now() - began).0 as f64 / 1e3;
    println!("{what:20} {:10.3} µs each, {:8.1} ms in all", took / records as f64, took / 1e3);
}

fn record(seq: i64) -> Record {
    let at = |us: i64| Nanos(seq * 1_000_000 + us * 1000);
    let stamp = |us: i64| Some(Stamp { kernel: Some(at(us)), user: at(us + 7) });
    let mut r = Record { seq: seq as u64, attempt: 1, status: Some(200), ..Record::default() };
    r.id.0[8..].copy_from_slice(&seq.to_be_bytes());
    r.phases.scheduled = at(0);
    r.phases.started = at(3);
    r.phases.sent = Some(at(320));
    r.phases.headers = stamp(19_000);
    r.answer.first_byte = stamp(20_000);
    r.answer.first_token = stamp(20_100);
    r.answer.first_answer = stamp(20_100);
    r.answer.last_token = stamp(200_000);
    r.answer.ended = stamp(200_200);
    r.answer.usage.output = Some(64);
    r.answer.finish_reason = Some("length".to_owned());
    r.answer.response_id = Some(format!("chatcmpl-{seq:032}"));
    r.answer.model = Some("meta-llama/Llama-3.1-8B-Instruct".to_owned());
    r.answer.outcome = Some(Outcome::Ok);
    if seq % 100 == 99 {
        r.answer.outcome = Some(Outcome::Error);
        r.answer.failure = Some(Failure::new(ErrorClass::InStreamError, "the engine said something-secret"));
    }
    for i in 0..EVENTS {
        r.answer.events.push(at(20_100 + i * 5000), u32::from(i % 2 == 0) * 2, Channel::Text, i == 5);
    }
    r.connection.http = 1;
    r.tcp_end = Some(TcpFacts { rtt_us: 120, min_rtt_us: 90, ..TcpFacts::default() });
    r.token_source = TokenSource::Usage;
    r
}

fn run(plan: &Plan) -> Run {
    let facts = serde_json::json!({
        "schema": "ttft.run/1", "version": "0", "name": "bench", "command": [], "host": "h", "kernel": "k",
        "cpus": 2, "zero_unix_ns": 0, "zero_monotonic_ns": 0, "ended_ns": null, "interrupted": false,
        "stages": [], "plan": plan,
        "clock": {"receive": "kernel", "transmit": true, "wall_steps": 0, "note": "", "realtime": false},
    });
    serde_json::from_value(facts).unwrap()
}
