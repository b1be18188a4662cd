//! A plan, a run and records to write.

use std::path::Path;

use ttft_model::{
    Answer, ApiKey, Arrival, CachePolicy, Channel, Client, ClockInfo, ConnectionUse, Connections, Doubt,
    Endpoint, ErrorClass, Failure, Header, HttpVersion, Load, Nanos, Outcome, Phases, Plan, Prompt, Record,
    RequestId, Resolve, Run, SaveStreams, ServerTimings, Share, Sources, Span, Stage, StageWindow, Stamp,
    StampSource, Stop, StreamFacts, TcpFacts, Timeouts, TokenSource, TraceId, Usage, Workload,
};
use ttft_store::{Events, Place, RequestReader, RunFolder, names};

/// The monotonic clock at the start of the sample run.
pub(crate) const ZERO: i64 = 86_400_000_000_000;

pub(crate) fn plan() -> Plan {
    let span = |ms| Span(Nanos::from_millis(ms));
    let workload = |name: &str, body: Option<&str>| Workload {
        name: name.to_owned(),
        prompt: Prompt::Text("Say \"hello\"\nto 世界".to_owned()),
        ignore_eos: true,
        cache: CachePolicy::AsIs,
        body_json: body.map(str::to_owned),
        ..Workload::default()
    };
    let stage = |name: &str, load| Stage {
        name: name.to_owned(),
        mix: Share::whole("long"),
        load,
        stop: Stop { requests: Some(100), duration: Some(span(1500)) },
        ..Stage::default()
    };
    Plan {
        name: "sample".to_owned(),
        seed: 42,
        slo: vec!["ttft_p95<2s".to_owned()],
        endpoints: vec![Endpoint {
            name: "gateway".to_owned(),
            url: "http://localhost:8000/v1/chat/completions".to_owned(),
            dialect: "openai-chat".to_owned(),
            model: Some("m".to_owned()),
            api_key: ApiKey::Env("OPENAI_API_KEY".to_owned()),
            headers: vec![Header { name: "x-run".to_owned(), value: "1".to_owned() }],
            connections: Connections::PerUser,
            http: HttpVersion::H1,
            insecure: true,
            ca: Some("ca.pem".to_owned()),
            resolve: vec![Resolve { host: "h".to_owned(), port: 1, addr: [127, 0, 0, 1].into() }],
            streams_per_connection: 100,
            request_id_header: "x-id".to_owned(),
        }],
        timeouts: Timeouts {
            connect: span(5000),
            first_token: span(60_000),
            idle: span(30_000),
            total: span(300_000),
        },
        client: Client { workers: Some(2), realtime: false, save_streams: Some(SaveStreams::First(3)) },
        sources: Sources {
            server: vec!["http://localhost:8000/metrics".to_owned()],
            gpu: vec!["nvidia-smi".to_owned()],
            find: false,
        },
        workloads: vec![workload("short", None), workload("long", Some("{\"temperature\": 0.0}"))],
        stages: vec![stage("c=8", Load::closed(8)), stage("rate=2.5", Load::open(2.5, Arrival::Gamma(0.5)))],
        ..Plan::default()
    }
}

pub(crate) fn run(plan: &Plan) -> Run {
    Run {
        schema: "ttft.run/1".to_owned(),
        version: "0.1.0".to_owned(),
        name: plan.name.clone(),
        command: ["ttft", "run", "--concurrency", "8"].map(str::to_owned).to_vec(),
        host: "host".to_owned(),
        kernel: "6.1".to_owned(),
        cpus: 2,
        clock: ClockInfo {
            receive: StampSource::Kernel,
            transmit: true,
            wall_steps: 0,
            note: "kernel stamps".to_owned(),
            realtime: false,
        },
        zero_unix_ns: 1_796_055_605_000_000_000,
        zero_monotonic_ns: ZERO,
        ended_ns: None,
        interrupted: false,
        stopped_by: None,
        server: Some("uvicorn".to_owned()),
        governor: Some("performance".to_owned()),
        stages: vec![StageWindow { worker_cpu_ns: vec![1, 2], ..StageWindow::default() }],
        plan: plan.clone(),
    }
}

/// A complete answer; every seventh request fails.
pub(crate) fn record(seq: u64) -> Record {
    let at = |us: i64| Nanos(ZERO + seq as i64 * 1_000_000 + us * 1000);
    let stamp = |us: i64| Some(Stamp { kernel: Some(at(us)), user: at(us + 7) });
    let mut id = [7; 16];
    id[8..].copy_from_slice(&seq.to_be_bytes());
    let failed = seq % 7 == 6;
    let mut answer = Answer {
        first_byte: stamp(20_000),
        first_event: stamp(20_000),
        first_token: stamp(20_100),
        first_answer: stamp(20_100),
        first_sentence: Some(at(60_000)),
        last_token: stamp(200_000),
        usage_at: Some(Stamp::user(at(200_100))),
        ended: stamp(200_200),
        choice_first_token: vec![Some(at(20_100)), None],
        usage: Usage { input: Some(100), cached: None, output: Some(64), reasoning: None },
        timings: ServerTimings { ttft_ms: Some(19.5), ..ServerTimings::default() },
        finish_reason: Some("length".to_owned()),
        response_id: Some(format!("chatcmpl-{seq}")),
        model: Some("m-2026".to_owned()),
        facts: StreamFacts {
            streamed: true,
            terminator: true,
            events: 34,
            reads: 33,
            ..StreamFacts::default()
        },
        outcome: Some(if failed { Outcome::Error } else { Outcome::Ok }),
        failure: failed.then(|| Failure::new(ErrorClass::InStreamError, "engine died\u{1b}[31m")),
        ..Answer::default()
    };
    for i in 0..32 {
        answer.events.push(at(20_100 + i * 5000), u32::from(i % 2 == 0), Channel::Text, i == 5);
    }
    Record {
        id: RequestId(id),
        trace: TraceId { trace: [0xab; 16], span: [1; 8] },
        stage: 1,
        seq,
        attempt: 1,
        phases: Phases {
            scheduled: at(0),
            started: at(3),
            connected: Some(at(300)),
            sent_first: Some(at(320)),
            sent: Some(at(321)),
            headers: stamp(19_000),
            ..Phases::default()
        },
        answer,
        finished: at(200_300),
        status: Some(200),
        request_bytes: 300,
        response_bytes: 9000,
        connection: ConnectionUse { id: seq % 8, reused: seq > 7, resent: false, http: 1, tls: false },
        tcp_end: Some(TcpFacts { rtt_us: 120, min_rtt_us: 90, retransmits: 0, out_of_order: 0 }),
        token_source: TokenSource::Usage,
        read_lag_max: Some(Nanos(7000)),
        doubt: Doubt::RETRANSMITTED,
        ..Record::default()
    }
}

pub(crate) fn records(seqs: std::ops::Range<u64>) -> Vec<Record> {
    seqs.map(record).collect()
}

/// The record as it is read back: on the axis of the run, its outcome said.
pub(crate) fn rebased(mut r: Record, zero: i64) -> Record {
    let shift = |at: &mut Nanos| at.0 -= zero;
    let p = &mut r.phases;
    for at in [&mut p.scheduled, &mut p.started, &mut r.finished] {
        shift(at);
    }
    let instants = [
        &mut p.dns_done,
        &mut p.tcp_done,
        &mut p.tls_done,
        &mut p.connected,
        &mut p.sent_first,
        &mut p.sent,
        &mut p.sent_device,
        &mut p.acked,
    ];
    let a = &mut r.answer;
    a.first_sentence.iter_mut().for_each(shift);
    for at in instants.into_iter().flatten().chain(a.choice_first_token.iter_mut().flatten()) {
        shift(at);
    }
    let stamps = [
        &mut p.headers,
        &mut a.first_byte,
        &mut a.first_event,
        &mut a.first_token,
        &mut a.first_answer,
        &mut a.last_token,
        &mut a.usage_at,
        &mut a.ended,
    ];
    for stamp in stamps.into_iter().flatten() {
        shift(&mut stamp.user);
        stamp.kernel.iter_mut().for_each(shift);
    }
    a.events.at.iter_mut().for_each(shift);
    a.outcome = Some(a.outcome.unwrap_or(Outcome::Cancelled));
    r
}

/// A folder under `root`, begun with the sample plan.
pub(crate) fn create(root: &Path) -> RunFolder {
    let plan = plan();
    RunFolder::create(Place::Exactly(root), &plan, &run(&plan)).unwrap()
}

/// All that can be read, and the bytes that could not.
pub(crate) fn read_all(root: &Path) -> (Vec<Record>, u64) {
    let mut reader = RequestReader::open(&root.join(names::REQUESTS), Events::Load).unwrap();
    let records = reader.by_ref().collect::<Result<_, _>>().unwrap();
    (records, reader.truncated_bytes())
}
