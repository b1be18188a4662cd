//! One stream by every definition, and one sample by every percentile.

use proptest::prelude::*;
use ttft_model::{Channel, Nanos, Outcome, Record, Stamp, TokenSource};

use super::fold::Figures;
use super::measure::View;
use super::*;
use crate::Samples;

fn at(ms: f64) -> Nanos {
    Nanos((ms * 1e6).round() as i64)
}

fn stamp(ms: f64) -> Stamp {
    Stamp::user(at(ms))
}

/// In milliseconds after the client calls send: first byte written 3.2, head 12.0, role-only chunk 12.1, 20
/// reasoning chunks of one token from 200 to 580, 40 content chunks from 600 to 1380, usage (60 tokens) 1400,
/// `[DONE]` 1401. Scheduled 50 ms before.
fn stream() -> Record {
    let mut r = Record::default();
    r.phases.scheduled = at(-50.0);
    r.phases.started = at(0.0);
    (r.phases.sent_first, r.phases.sent) = (Some(at(3.2)), Some(at(3.2)));
    r.phases.headers = Some(stamp(12.0));
    r.answer.first_event = Some(stamp(12.1));
    r.answer.first_token = Some(stamp(200.0));
    r.answer.first_answer = Some(stamp(600.0));
    r.answer.last_token = Some(stamp(1380.0));
    r.answer.usage_at = Some(stamp(1400.0));
    r.answer.ended = Some(stamp(1401.0));
    r.finished = at(1401.0);
    for i in 0..60 {
        let channel = if i < 20 { Channel::Reasoning } else { Channel::Text };
        r.answer.events.push(at(200.0 + 20.0 * f64::from(i)), 0, channel, false);
    }
    r.answer.usage.output = Some(60);
    r.token_source = TokenSource::Usage;
    r.answer.outcome = Some(Outcome::Ok);
    r
}

/// TTFT and the figures of each reading, as (peer, variant, TTFT, figure, value); NaN where there is no figure.
#[test]
fn one_stream_by_every_definition() {
    let none = f64::NAN;
    for (name, variant, ttft, figure, wanted) in [
        ("vllm-rs", "", 12.1, "TPOT", 23.52),
        ("jmeter", "", 12.0, "", none),
        ("k6-sse", "", 12.1, "", none),
        ("vllm", "", 200.0, "TPOT", 20.0),
        ("vllm", "server says reasoning_content", 600.0, "TPOT", 13.22),
        ("sglang", "", 200.0, "TPOT", 20.36),
        ("genai-bench", "", 200.0, "TPOT", 20.36),
        ("evalscope", "", 200.0, "TPOT", 20.34),
        ("aiperf", "", 200.0, "ITL", 20.0),
        ("guidellm", "", 196.8, "ITL", 20.0),
        ("guidellm", "", 196.8, "TPOT", 22.95),
        ("inference-perf", "", 600.0, "TPOT", 20.0),
        ("inference-perf", "server tokens", 600.0, "TPOT", 13.22),
        ("hf-benchmarker", "", 600.0, "ITL", 20.0),
        ("llmeter", "", 600.0, "TPOT", 13.22),
        ("llmperf", "", 600.0, "ITL", 34.5),
        ("mlc-endpoints", "", 200.0, "TPOT", 20.36),
        ("mlperf", "", 250.0, "TPOT", 20.0),
    ] {
        let readings = peer(name).unwrap().readings();
        let (_, peer) = readings.iter().find(|(v, _)| v.as_deref().unwrap_or("") == variant).unwrap();
        let record = stream();
        let view = View::new(&record, peer);
        assert!((view.ttft().unwrap() - ttft).abs() < 1e-9, "{name} {variant}: {:?}", view.ttft());
        assert!(!view.is_estimated());
        if let Some(rule) = peer.figures.iter().find(|rule| rule.name == figure) {
            let value = view.figure(rule)[0].0;
            assert_eq!(format!("{value:.2}"), format!("{wanted:.2}"), "{name} {variant} {figure}");
        } else {
            assert!(wanted.is_nan(), "{name} has no {figure}");
        }
    }
}

#[test]
fn every_peer_has_a_source_and_fits_a_line() {
    for name in names() {
        let peer = peer(name).unwrap();
        assert!(!peer.source.is_empty() && !peer.version.is_empty(), "{name}");
        for (_, reading) in peer.readings() {
            assert!(reading.why.len() <= 140 && !reading.why.contains('\n'), "{name}: {}", reading.why);
        }
    }
    assert!(matches!(peer("vlm"), Err(PeerError::Unknown { .. })));
    assert!(matches!(Peer::parse("x", "title = 3"), Err(PeerError::File { .. })));
}

#[derive(serde::Deserialize)]
struct Golden {
    one_sequence: Vec<Drawn>,
}

#[derive(serde::Deserialize)]
struct Drawn {
    samples: Vec<f64>,
}

/// p99 of a log-normal sequence: linear, nearest rank, floor index, exclusive, and the largest.
#[test]
fn one_sample_by_every_percentile() {
    let golden: Golden = serde_json::from_str(include_str!("../../testdata/golden.json")).unwrap();
    let wanted = [
        [345.0, 406.0, 406.0, 468.0, 406.0],
        [572.0, 570.0, 781.0, 779.0, 781.0],
        [536.0, 535.0, 704.0, 702.0, 739.0],
        [619.0, 619.0, 629.0, 629.0, 1220.0],
    ];
    for (drawn, wanted) in golden.one_sequence.iter().zip(wanted) {
        let samples: Samples = drawn.samples.iter().copied().collect();
        let of = |convention| Figures::new(&samples, 0, convention);
        let conventions =
            [Convention::Linear, Convention::NearestRank, Convention::Floor, Convention::Exclusive];
        let mut got: Vec<f64> = conventions.map(|c| of(c).p99.unwrap().round()).to_vec();
        got.push(samples.max().unwrap().round());
        assert_eq!(got, wanted, "n={}", samples.len());
        assert_eq!(of(Convention::InverseCdf), of(Convention::NearestRank));
    }
}

#[test]
fn several_tokens_in_a_chunk_and_one_token_answers() {
    let mut r = stream();
    for tokens in &mut r.answer.events.tokens {
        *tokens = 2;
    }
    r.answer.usage.output = Some(120);
    let inference_perf = peer("inference-perf").unwrap();
    let view = View::new(&r, &inference_perf);
    let itl: Vec<_> = inference_perf.figures.iter().filter(|f| f.name == "ITL").collect();
    let gaps = view.figure(itl[0]);
    let zeros: u64 = gaps.iter().filter(|(ms, _)| *ms == 0.0).map(|(_, n)| n).sum();
    assert_eq!((zeros, gaps.iter().map(|(_, n)| n).sum()), (40, 79u64), "40 chunks of two tokens");

    r.answer.usage.output = Some(1);
    let vllm = peer("vllm").unwrap();
    assert_eq!(View::new(&r, &vllm).figure(&vllm.figures[0]), [(0.0, 1)]);
    let aiperf = peer("aiperf").unwrap();
    assert_eq!(View::new(&r, &aiperf).figure(&aiperf.figures[0]), []);
}

#[test]
fn tokens_nobody_told_are_said_to_be_estimated() {
    let mut r = stream();
    r.answer.usage.output = Some(90);
    let llmperf = peer("llmperf").unwrap();
    let view = View::new(&r, &llmperf);
    assert!(view.is_estimated());
    assert!((view.figure(&llmperf.figures[0])[0].0 - 1380.0 / 60.0).abs() < 1e-9);
    r.answer.usage.reasoning = Some(30);
    assert!(!View::new(&r, &llmperf).is_estimated(), "usage tells the reasoning apart");
}

#[test]
fn what_is_not_on_record_is_not_made_up() {
    let empty = Record::default();
    for (_, peer) in names().flat_map(|name| peer(name).unwrap().readings()) {
        let view = View::new(&empty, &peer);
        assert_eq!(view.ttft(), None, "{}", peer.name);
        let values: u64 = peer.figures.iter().flat_map(|f| view.figure(f)).map(|(_, n)| n).sum();
        assert_eq!(values, 0, "{}", peer.name);
    }
}

proptest! {
    #[test]
    fn every_convention_but_the_exclusive_one_stays_inside(mut x in prop::collection::vec(0f64..1e6, 1..80), percent in 1u64..100) {
        x.sort_by(f64::total_cmp);
        let n = x.len() as u64;
        for convention in [Convention::Linear, Convention::NearestRank, Convention::InverseCdf, Convention::Floor] {
            let value = convention.of_nth(n, percent, |k| x[k as usize]).unwrap();
            prop_assert!(x[0] <= value && value <= x[x.len() - 1]);
        }
        prop_assert!(Convention::Exclusive.of_nth(n, percent, |k| x[k as usize]).unwrap().is_finite());
    }
}
