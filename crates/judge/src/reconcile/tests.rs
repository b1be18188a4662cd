//! Differences made up, and what is said of them.

use ttft_model::ServerTimings;
use ttft_sources::Role;

use super::*;
use crate::made_up::{Made, Told, engine, summary};
use crate::{StageSummary, Summary};

fn stage(made: Made) -> StageSummary {
    summary(&[made]).stages.remove(0)
}

fn against(ttft_ms: f64, told: Told) -> Made {
    Made { ttft_ms, sources: vec![told], ..Made::default() }
}

fn adds_up(stage: &StageSummary) {
    let parts = &stage.decomposition;
    let sum: f64 = parts.all().filter_map(|(_, part)| part.ms).sum();
    assert!((sum - parts.ttft_ms.unwrap()).abs() < 1e-9, "{parts:?}");
    assert_eq!(parts.ttft_ms, stage.windows.whole.latency_ms["ttft"].mean, "of the whole stage");
    assert!(parts.all().all(|(_, part)| !part.rests_on.is_empty()));
}

#[test]
fn a_difference_of_the_round_trip_and_a_little_is_clean() {
    let stage = stage(Made { rtt_ms: 1.0, ..against(100.0, engine(98.0, 10.0, 85.0)) });
    let both = &stage.reconcile;
    assert_eq!(both.verdict, Some(Agreement::Clean), "{both:?}");
    assert_eq!(both.server_ttft_from.as_deref(), Some("arrival"));
    assert!((both.residual_ms.unwrap() - (both.mean.client_ms.unwrap() - 98.0 - 1.0 - 0.02)).abs() < 1e-9);
    assert_eq!(both.p95.server_between_ms.map(|b| b.map(f64::round)), Some([78.0, 118.0]));
    adds_up(&stage);
    let parts = &stage.decomposition;
    assert_eq!((parts.queue.ms, parts.prefill.ms), (Some(10.0), Some(85.0)));
    assert!((parts.engine.ms.unwrap() - 3.0).abs() < 1e-9 && parts.gateway.ms.is_none());
}

#[test]
fn a_large_round_trip_is_the_network() {
    let stage = stage(Made { rtt_ms: 80.0, ..against(200.0, engine(118.0, 0.0, 118.0)) });
    assert_eq!(stage.reconcile.verdict, Some(Agreement::Network), "{:?}", stage.reconcile);
    adds_up(&stage);
}

#[test]
fn a_client_below_the_server_means_something_else() {
    let stage = stage(against(100.0, engine(140.0, 0.0, 140.0)));
    assert_eq!(stage.reconcile.verdict, Some(Agreement::Inconsistent), "{:?}", stage.reconcile);
    assert!(stage.decomposition.rest.ms.unwrap() < 0.0, "named, not hidden");
    adds_up(&stage);
}

#[test]
fn a_residual_that_grows_with_load_is_a_queue_upstream_of_the_server() {
    let low = against(100.0, engine(98.0, 0.0, 98.0));
    let high = Made { users: 8, ..against(300.0, engine(110.0, 0.0, 110.0)) };
    let Summary { stages, .. } = summary(&[low, high]);
    let verdicts: Vec<_> = stages.iter().map(|s| s.reconcile.verdict).collect();
    assert_eq!(
        verdicts,
        [Some(Agreement::Clean), Some(Agreement::UpstreamQueue)],
        "{}",
        stages[1].reconcile.why
    );
}

#[test]
fn a_residual_alone_is_named_but_not_judged() {
    let stage = stage(against(300.0, engine(110.0, 0.0, 110.0)));
    assert_eq!(stage.reconcile.verdict, None);
    assert!(stage.reconcile.why.contains("not explained"), "{}", stage.reconcile.why);
    assert!(stage.reconcile.residual.as_ref().unwrap().contains("front end"));
}

#[test]
fn clumps_of_tokens_that_the_server_made_one_by_one_were_held_back() {
    let held = |r: &mut ttft_model::Record, _| {
        let last = r.answer.last_token.unwrap();
        r.answer.first_token = Some(last);
        r.answer.facts.all_in_one_read = true;
        r.answer.facts.first_token_coalesced = true;
        for i in 0..10 {
            r.answer.events.at[i] = last.at();
            r.answer.events.class[i] |= if i > 0 { ttft_model::EventLog::COALESCED } else { 0 };
        }
    };
    let with = stage(Made { edit: held, ..against(100.0, engine(98.0, 0.0, 98.0)) });
    assert_eq!(with.reconcile.verdict, Some(Agreement::GatewayBuffering), "{:?}", with.reconcile);
    let without = stage(Made { edit: held, ..Made::default() });
    assert_eq!(
        without.reconcile.verdict,
        Some(Agreement::GatewayBuffering),
        "seen without a server's figures too"
    );
}

#[test]
fn what_cannot_be_compared_is_not_judged() {
    for (told, why) in [
        (Told { reset: true, ..engine(98.0, 0.0, 98.0) }, "began anew"),
        (Told { more: 40.0, ..engine(98.0, 0.0, 98.0) }, "counted 80 requests where 40"),
        (Told { lost: true, ..engine(98.0, 0.0, 98.0) }, "did not answer at an edge"),
    ] {
        let both = stage(against(100.0, told)).reconcile;
        assert_eq!(both.verdict, None);
        assert!(both.why.contains(why), "{}", both.why);
    }
    let alone = stage(Made::default());
    assert!(alone.reconcile.why.contains("neither"), "{}", alone.reconcile.why);
    adds_up(&alone);
    assert!(alone.decomposition.prefill.ms.is_none() && alone.decomposition.network.ms.is_some());
}

#[test]
fn the_gateways_part_comes_from_its_own_metric() {
    let gateway = Told {
        engine: "litellm",
        role: Role::Gateway,
        times: vec![("ttft", 105.0), ("gateway_overhead", 20.0)],
        ..engine(0.0, 0.0, 0.0)
    };
    let made =
        Made { sources: vec![engine(98.0, 0.0, 98.0), gateway], ..against(120.0, engine(0.0, 0.0, 0.0)) };
    let stage = stage(made);
    assert_eq!(stage.reconcile.gateway.as_ref().unwrap().ms, Some(20.0));
    assert_eq!(stage.decomposition.gateway.ms, Some(20.0));
    assert_eq!(stage.reconcile.verdict, Some(Agreement::Clean), "{:?}", stage.reconcile);
    adds_up(&stage);
}

#[test]
fn answers_that_tell_their_times_are_enough() {
    let told = |r: &mut ttft_model::Record, _| {
        r.answer.timings =
            ServerTimings { queue_ms: Some(30.0), prefill_ms: Some(65.0), ..ServerTimings::default() };
    };
    let stage = stage(Made { edit: told, ..Made::default() });
    let both = &stage.reconcile;
    assert_eq!(both.verdict, Some(Agreement::Clean), "{both:?}");
    let each = both.per_request.as_ref().unwrap();
    assert_eq!((each.n, each.server_ms.p50, each.from.as_str()), (40, Some(95.0), "queued"));
    assert!(each.difference_ms.p50.unwrap() > 3.0);
    assert_eq!((stage.decomposition.queue.ms, stage.decomposition.prefill.ms), (Some(30.0), Some(65.0)));
    adds_up(&stage);
}
