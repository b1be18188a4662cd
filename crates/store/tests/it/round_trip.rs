//! What is written is read back, field by field.

use proptest::collection::vec;
use proptest::option;
use proptest::prelude::*;
use ttft_model::{
    Answer, Channel, ConnectionUse, Doubt, ErrorClass, EventLog, Failure, Nanos, Outcome, Phases, Record,
    RequestId, ServerTimings, Stamp, StreamFacts, TcpFacts, TokenSource, TraceId, Usage,
};
use ttft_store::{Appended, Events, Place, RequestReader, RunFolder, names, read_run};

use crate::sample::{ZERO, create, plan, read_all, rebased, record, records, run};

#[test]
fn a_finished_run_comes_back() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = create(root.path());
    assert_eq!(folder.append(&records(0..10_000)).unwrap(), Appended::Fine);
    assert_eq!(folder.append(&records(10_000..10_001)).unwrap(), Appended::Fine);
    assert_eq!(folder.flush().unwrap(), Appended::Fine);
    assert_eq!(folder.flush().unwrap(), Appended::Fine, "an empty flush writes nothing");
    let mut run = run(&plan());
    run.ended_ns = Some(5);
    let finished = folder.finish(&run).unwrap();
    assert_eq!((finished.rows, finished.low_space), (10_001, false));

    let stored = read_run(root.path()).unwrap();
    assert_eq!((&stored.run, &stored.plan), (&run, &plan()));
    let mut reader = stored.requests(Events::Load).unwrap();
    assert_eq!(reader.info().stages, ["c=8", "rate=2.5"]);
    assert_eq!(reader.info().workloads, ["short", "long"]);
    for seq in 0..10_001 {
        assert_eq!(reader.next().unwrap().unwrap(), rebased(record(seq), ZERO));
    }
    assert!(reader.next().is_none() && reader.is_complete());
    let mut files: Vec<_> =
        std::fs::read_dir(root.path()).unwrap().map(|file| file.unwrap().file_name()).collect();
    files.sort();
    assert_eq!(files, [names::PLAN, names::REQUESTS, names::RUN], "nothing else is left");
}

#[test]
fn an_empty_run_comes_back() {
    let root = tempfile::tempdir().unwrap();
    create(root.path()).finish(&run(&plan())).unwrap();
    assert_eq!(read_all(root.path()), (vec![], 0));
}

#[test]
fn event_lists_can_be_left_out() {
    let root = tempfile::tempdir().unwrap();
    let mut folder = create(root.path());
    folder.append(&records(0..100)).unwrap().stop_reason().map_or(Ok(()), Err).unwrap();
    folder.finish(&run(&plan())).unwrap();
    let reader = RequestReader::open(&root.path().join(names::REQUESTS), Events::Skip).unwrap();
    let expected = records(0..100).into_iter().map(|r| {
        let mut r = rebased(r, ZERO);
        r.answer.events = EventLog::default();
        r
    });
    assert!(reader.map(Result::unwrap).eq(expected));
}

#[test]
fn large_answers_make_small_batches() {
    let root = tempfile::tempdir().unwrap();
    let mut long = record(1);
    for i in 0..300_000 {
        long.answer.events.push(Nanos(ZERO + i), 1, Channel::Reasoning, false);
    }
    let mut folder = create(root.path());
    for _ in 0..10 {
        assert_eq!(folder.append(std::slice::from_ref(&long)).unwrap(), Appended::Fine);
    }
    folder.finish(&run(&plan())).unwrap();
    let mut reader = RequestReader::open(&root.path().join(names::REQUESTS), Events::Load).unwrap();
    let mut sizes = vec![];
    while let Some(batch) = reader.next_batch().unwrap() {
        sizes.push(batch.len());
    }
    assert_eq!(sizes, [4, 4, 2]);
}

#[test]
fn the_plan_can_be_run_again() {
    let root = tempfile::tempdir().unwrap();
    let folder = create(root.path());
    let text = std::fs::read_to_string(folder.path().join(names::PLAN)).unwrap();
    assert_eq!(toml::from_str::<ttft_model::Plan>(&text).unwrap(), plan());
    assert!(text.starts_with("# The plan as run."), "{text}");
}

#[test]
fn a_seed_may_be_any_number() {
    for seed in [0, i64::MAX as u64, u64::MAX] {
        let root = tempfile::tempdir().unwrap();
        let plan = ttft_model::Plan { seed, ..plan() };
        RunFolder::create(Place::Exactly(root.path()), &plan, &run(&plan)).unwrap();
        assert_eq!(read_run(root.path()).unwrap().plan, plan);
    }
}

fn nanos() -> impl Strategy<Value = Nanos> {
    (-1_000_000_000_000_000_i64..1_000_000_000_000_000).prop_map(Nanos)
}

fn stamp() -> impl Strategy<Value = Option<Stamp>> {
    // A kernel stamp equal to our own must not be taken for none.
    option::of(
        (nanos(), option::of(prop_oneof![Just(0), any::<i32>()]))
            .prop_map(|(user, lag)| Stamp { kernel: lag.map(|lag| Nanos(user.0 - i64::from(lag))), user }),
    )
}

fn text() -> impl Strategy<Value = Option<String>> {
    option::of(any::<String>())
}

fn phases() -> impl Strategy<Value = Phases> {
    let optional = || option::of(nanos());
    (
        nanos(),
        nanos(),
        (optional(), optional(), optional(), optional()),
        (optional(), optional(), optional(), optional()),
        stamp(),
    )
        .prop_map(|(scheduled, started, connect, sent, headers)| Phases {
            scheduled,
            started,
            dns_done: connect.0,
            tcp_done: connect.1,
            tls_done: connect.2,
            connected: connect.3,
            sent_first: sent.0,
            sent: sent.1,
            sent_device: sent.2,
            acked: sent.3,
            headers,
        })
}

fn events() -> impl Strategy<Value = EventLog> {
    vec((nanos(), prop_oneof![Just(0), any::<u32>()], any::<u8>()), 0..20).prop_map(|events| EventLog {
        at: events.iter().map(|e| e.0).collect(),
        tokens: events.iter().map(|e| e.1).collect(),
        class: events.iter().map(|e| e.2).collect(),
    })
}

fn failure() -> impl Strategy<Value = Option<Failure>> {
    let class = proptest::sample::select(ErrorClass::ALL);
    option::of((class, text(), any::<String>()).prop_map(|(class, code, message)| Failure {
        class,
        code,
        message,
    }))
}

fn facts() -> impl Strategy<Value = StreamFacts> {
    (any::<[bool; 7]>(), any::<[u32; 7]>()).prop_map(|(b, n)| StreamFacts {
        streamed: b[0],
        first_token_coalesced: b[1],
        all_in_one_read: b[2],
        terminator: b[3],
        finish: b[4],
        compressed: b[5],
        unfinished_event: b[6],
        malformed_events: n[0],
        comments: n[1],
        after_end: n[2],
        reads: n[3],
        coalesced_reads: n[4],
        events: n[5],
        first_event_bytes: n[6],
    })
}

fn answer() -> impl Strategy<Value = Answer> {
    let stamps = (stamp(), stamp(), stamp(), stamp(), stamp(), stamp(), stamp());
    let usage = any::<[Option<u64>; 4]>();
    let timings = vec(option::of(-1e12..1e12), 6);
    let outcome = option::of(proptest::sample::select(Outcome::ALL.as_slice()));
    let said = (text(), text(), text());
    (stamps, vec(option::of(nanos()), 0..4), events(), usage, timings, said, facts(), outcome, failure())
        .prop_map(|(stamps, choices, events, usage, timings, said, facts, outcome, failure)| Answer {
            first_byte: stamps.0,
            first_event: stamps.1,
            first_token: stamps.2,
            first_answer: stamps.3,
            first_sentence: stamps.3.map(|stamp| stamp.user),
            last_token: stamps.4,
            usage_at: stamps.5,
            ended: stamps.6,
            choice_first_token: choices,
            events,
            usage: Usage { input: usage[0], cached: usage[1], output: usage[2], reasoning: usage[3] },
            timings: ServerTimings {
                queue_ms: timings[0],
                prefill_ms: timings[1],
                ttft_ms: timings[2],
                decode_ms: timings[3],
                total_ms: timings[4],
                load_ms: timings[5],
            },
            finish_reason: said.0,
            response_id: said.1,
            model: said.2,
            facts,
            outcome,
            failure,
        })
}

fn tcp() -> impl Strategy<Value = Option<TcpFacts>> {
    option::of(any::<[u32; 4]>().prop_map(|n| TcpFacts {
        rtt_us: n[0],
        min_rtt_us: n[1],
        retransmits: n[2],
        out_of_order: n[3],
    }))
}

fn any_record() -> impl Strategy<Value = Record> {
    let connection = (any::<u64>(), any::<[bool; 3]>(), any::<u8>())
        .prop_map(|(id, b, http)| ConnectionUse { id, reused: b[0], resent: b[1], tls: b[2], http });
    let source =
        proptest::sample::select([TokenSource::Usage, TokenSource::Tokenizer, TokenSource::None].as_slice());
    (
        (any::<[u8; 16]>(), any::<[u8; 16]>(), any::<[u8; 8]>()),
        (any::<[u32; 5]>(), any::<[u64; 3]>(), any::<[bool; 2]>(), option::of(any::<(u64, u32)>())),
        (phases(), answer(), nanos()),
        (option::of(any::<u16>()), prop_oneof![Just(ConnectionUse::default()), connection]),
        (tcp(), tcp(), source, option::of(nanos()), option::of(0.0..1e9), any::<u16>()),
    )
        .prop_map(|(ids, numbers, (phases, answer, finished), (status, connection), rest)| Record {
            id: RequestId(ids.0),
            trace: TraceId { trace: ids.1, span: ids.2 },
            stage: numbers.0[0] % 3,
            workload: numbers.0[1] % 3,
            agent: numbers.0[2],
            worker: numbers.0[3],
            seq: numbers.1[0],
            session: numbers.3.map(|(session, _)| session),
            turn: numbers.3.map(|(_, turn)| turn),
            attempt: numbers.0[4],
            warmup: numbers.2[0],
            phases,
            answer,
            finished,
            status,
            request_bytes: numbers.1[1],
            response_bytes: numbers.1[2],
            connection,
            tcp_first: rest.0,
            tcp_end: rest.1,
            token_source: rest.2,
            read_lag_max: rest.3,
            id_echoed: numbers.2[1],
            retry_after_s: rest.4,
            upstream_head_ms: rest.4.map(|s| s + 0.5),
            doubt: Doubt(rest.5),
        })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_record_comes_back(batches in vec(vec(any_record(), 0..6), 0..3), zero in -1_000_000_000_000_i64..1_000_000_000_000) {
        let root = tempfile::tempdir().unwrap();
        let mut run = run(&plan());
        run.zero_monotonic_ns = zero;
        let mut folder = RunFolder::create(Place::Exactly(root.path()), &run.plan, &run).unwrap();
        for batch in &batches {
            prop_assert_eq!(folder.append(batch).unwrap(), Appended::Fine);
            prop_assert_eq!(folder.flush().unwrap(), Appended::Fine);
        }
        folder.finish(&run).unwrap();
        let expected: Vec<_> = batches.into_iter().flatten().map(|r| rebased(r, zero)).collect();
        prop_assert_eq!(read_all(root.path()), (expected, 0));
    }
}
