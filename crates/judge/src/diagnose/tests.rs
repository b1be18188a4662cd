//! Sweeps made up, each with one cause.

use ttft_model::{EventLog, Record, ServerTimings, Stamp};
use ttft_sources::Role;

use super::*;
use crate::made_up::{Made, Told, engine, summary};

/// One user at 100 ms, of which the engine takes 98, then eight.
fn sweep(worst: Made) -> Vec<Finding> {
    let base = Made { sources: vec![engine(98.0, 0.0, 98.0)], ..Made::default() };
    let base = if worst.sources.is_empty() { Made { sources: Vec::new(), ..base } } else { base };
    summary(&[base, Made { users: 8, ..worst }]).diagnosis
}

fn told(ttft_ms: f64, told: Told) -> Made {
    Made { ttft_ms, sources: vec![told], ..Made::default() }
}

fn first(diagnosis: &[Finding]) -> (Option<Cause>, Option<Confidence>) {
    for finding in diagnosis {
        assert!(
            finding.evidence.is_some() && finding.remedy.is_some() && finding.effect.is_some(),
            "{finding:?}"
        );
    }
    diagnosis.first().map_or((None, None), |finding| (finding.cause, finding.confidence))
}

#[test]
fn a_healthy_run_has_no_cause() {
    assert_eq!(sweep(told(110.0, engine(107.0, 5.0, 102.0))), []);
    assert_eq!(sweep(Made { ttft_ms: 110.0, ..Made::default() }), [], "nor has one whose server is silent");
    assert_eq!(summary(&[told(100.0, engine(98.0, 0.0, 98.0))]).diagnosis, []);
    assert_eq!(summary(&[Made::default()]).diagnosis, []);
}

#[test]
fn a_queue() {
    let made = Made { gap_ms: 60.0, ..told(900.0, engine(895.0, 790.0, 105.0)) };
    assert_eq!(first(&sweep(made.clone())), (Some(Cause::Queue), Some(Confidence::High)));
    assert_eq!(
        first(&summary(&[made]).diagnosis),
        (Some(Cause::Queue), Some(Confidence::High)),
        "of one stage alone"
    );
}

#[test]
fn a_queue_that_only_the_client_sees() {
    // Eight users for two places: the rate of one, more or less.
    let diagnosis = sweep(Made { ttft_ms: 3000.0, gap_ms: 100.0, ..Made::default() });
    assert!(
        matches!(first(&diagnosis), (Some(Cause::Queue | Cause::DecodeInterference), _)),
        "{diagnosis:?}"
    );
    let slow_decoding = Made { gap_ms: 60.0, ..Made::default() };
    let queue =
        summary(&[slow_decoding.clone(), Made { users: 8, ttft_ms: 2000.0, ..slow_decoding }]).diagnosis;
    assert_eq!(first(&queue), (Some(Cause::Queue), Some(Confidence::Medium)), "{queue:?}");
}

#[test]
fn accelerators_are_evidence() {
    let gpu = Told {
        engine: "dcgm-exporter",
        role: Role::Accelerator,
        times: Vec::new(),
        numbers: Vec::new(),
        levels: vec![("gpu_util_percent", 97.0)],
        ..engine(0.0, 0.0, 0.0)
    };
    let sources = vec![engine(895.0, 790.0, 105.0), gpu];
    let diagnosis = sweep(Made { gap_ms: 60.0, ttft_ms: 900.0, sources, ..Made::default() });
    assert_eq!(first(&diagnosis), (Some(Cause::Queue), Some(Confidence::High)));
    assert!(diagnosis[0].evidence.as_ref().unwrap().contains("accelerators 97 % busy"), "{diagnosis:?}");
}

#[test]
fn memory() {
    let preempting = Told { numbers: vec![("preemptions", 12.0)], ..engine(500.0, 300.0, 200.0) };
    assert_eq!(first(&sweep(told(505.0, preempting))), (Some(Cause::KvCache), Some(Confidence::High)));
    let full = Told {
        levels: vec![("running", 4.0), ("waiting", 4.0), ("kv_cache_usage_ratio", 0.97)],
        ..engine(500.0, 400.0, 100.0)
    };
    assert_eq!(first(&sweep(told(505.0, full))), (Some(Cause::KvCache), Some(Confidence::Medium)));
}

#[test]
fn prompts_that_keep_the_engine_busy() {
    // 10 requests a second of 98 ms each.
    let made = Made { gap_ms: 1.0, ..told(790.0, engine(785.0, 285.0, 500.0)) };
    assert_eq!(first(&sweep(made)).0, Some(Cause::Prefill));
    let silent = Made { gap_ms: 1.0, ttft_ms: 790.0, ..Made::default() };
    assert_eq!(first(&sweep(silent)), (Some(Cause::Prefill), Some(Confidence::Medium)));
}

#[test]
fn prompts_that_take_long_whatever_the_load() {
    let alone = summary(&[told(2100.0, engine(2095.0, 0.0, 2095.0))]).diagnosis;
    assert_eq!(first(&alone), (Some(Cause::Prefill), Some(Confidence::High)));
    assert!(alone[0].evidence.as_ref().unwrap().contains("100 tokens at 48 tokens/s"), "{alone:?}");
}

#[test]
fn a_front_end_that_is_busy() {
    let made = Made { gap_ms: 60.0, ..told(400.0, engine(395.0, 10.0, 110.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::FrontEnd), Some(Confidence::High)));
}

#[test]
fn decoding_that_slows_prompts() {
    let made = Made { gap_ms: 400.0, ..told(300.0, engine(296.0, 0.0, 296.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::DecodeInterference), Some(Confidence::High)));
}

#[test]
fn the_network() {
    let made = Made { rtt_ms: 50.0, ..told(150.0, engine(98.0, 0.0, 98.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::Network), Some(Confidence::High)));
    let silent = Made { rtt_ms: 50.0, ttft_ms: 150.0, ..Made::default() };
    assert_eq!(first(&summary(&[silent]).diagnosis), (Some(Cause::Network), Some(Confidence::High)));
}

#[test]
fn a_gateway() {
    let gateway = Told {
        engine: "litellm",
        role: Role::Gateway,
        times: vec![("ttft", 100.0), ("gateway_overhead", 60.0)],
        ..engine(0.0, 0.0, 0.0)
    };
    let made = Made { sources: vec![engine(98.0, 0.0, 98.0), gateway], ..told(160.0, engine(0.0, 0.0, 0.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::Gateway), Some(Confidence::High)));
    let unknown = told(400.0, engine(98.0, 0.0, 98.0));
    assert_eq!(
        first(&sweep(unknown)),
        (Some(Cause::Gateway), Some(Confidence::Medium)),
        "named by what is left"
    );
}

#[test]
fn a_stream_that_is_held_back() {
    let held = |r: &mut Record, _| {
        let last = r.answer.last_token.unwrap();
        r.answer.first_token = Some(last);
        (r.answer.facts.all_in_one_read, r.answer.facts.first_token_coalesced) = (true, true);
        for i in 0..10 {
            r.answer.events.at[i] = last.at();
            r.answer.events.class[i] |= if i > 0 { EventLog::COALESCED } else { 0 };
        }
    };
    let made = Made { edit: held, ..told(100.0, engine(98.0, 0.0, 98.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::Gateway), Some(Confidence::High)));
    let silent = Made { edit: held, ..Made::default() };
    assert_eq!(first(&summary(&[silent]).diagnosis), (Some(Cause::Gateway), Some(Confidence::Medium)));
}

#[test]
fn the_client() {
    let late = |r: &mut Record, _| {
        let sent = r.phases.started + ttft_model::Nanos(60_000_000);
        (r.phases.sent_first, r.phases.sent) = (Some(sent), Some(sent));
        let first = r.answer.first_token.unwrap();
        r.answer.first_token = Some(Stamp { kernel: first.kernel, user: first.user });
    };
    let made = Made { edit: late, ..told(160.0, engine(98.0, 0.0, 98.0)) };
    assert_eq!(first(&sweep(made)), (Some(Cause::Client), Some(Confidence::High)));
}

#[test]
fn what_contaminates_stands_before_what_load_does() {
    let queue = engine(895.0, 790.0, 105.0);
    for (told_by, cause) in [
        (Told { more: 300.0, ..queue.clone() }, Cause::ForeignTraffic),
        (Told { reset: true, ..queue.clone() }, Cause::Restart),
        (
            Told { numbers: vec![("prompt_tokens", 4000.0), ("cached_prompt_tokens", 3000.0)], ..queue },
            Cause::CacheHits,
        ),
    ] {
        assert_eq!(first(&sweep(told(900.0, told_by))), (Some(cause), Some(Confidence::High)));
    }
}

#[test]
fn a_cold_start() {
    let cold = |r: &mut Record, number| {
        if number < 15 {
            let first = r.answer.first_token.unwrap().at() + ttft_model::Nanos(300_000_000);
            r.answer.first_token = Some(Stamp { kernel: Some(first), user: first });
        }
    };
    let made = Made { edit: cold, each: 100, ..told(100.0, engine(143.0, 0.0, 143.0)) };
    assert_eq!(first(&summary(&[made]).diagnosis), (Some(Cause::ColdStart), Some(Confidence::High)));
}

#[test]
fn answers_that_tell_their_queue_name_it() {
    let queued = |r: &mut Record, _| {
        r.answer.timings =
            ServerTimings { queue_ms: Some(790.0), prefill_ms: Some(100.0), ..ServerTimings::default() };
    };
    let made = Made { edit: queued, ttft_ms: 900.0, ..Made::default() };
    assert_eq!(first(&summary(&[made]).diagnosis), (Some(Cause::Queue), Some(Confidence::High)));
}
