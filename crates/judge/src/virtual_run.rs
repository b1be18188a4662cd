//! For tests: stages played on the simulated engine in virtual time, as the plan, windows and records of a run.

use ttft_model::{Load, Nanos, Outcome, Plan, Record, Share, Stage, StageWindow, Stamp, Workload};
use ttft_sim::{Played, Profile};

use crate::StageSummary;
use crate::fold::StageFold;
use crate::knee::Evidence;

/// An engine with sixteen places, whose steps vary a little in length. A step costs about the same however many
/// sequences it serves, so throughput grows with the users until the places are taken.
pub(crate) fn sixteen_places() -> Profile {
    Profile::parse(
        "sixteen",
        "about = 'x'\nmax_model_len = 4096\noutput = { median = 9, sigma = 0 }\n[batching]\n\
         max_num_seqs = 16\nmax_num_batched_tokens = 2048\nblock_size = 16\nnum_blocks = 4096\n\
         prefix_cache = false\ngap_ms = 0.5\nstep_ms = 10\nprefill_ms = 0.02\ndecode_ms_per_seq = 0.3\nsigma = 0.1",
    )
    .unwrap()
}

/// A plan of these stages, with one workload.
pub(crate) fn plan(loads: &[Load], slo: &[&str]) -> Plan {
    let stage = |(i, load): (usize, &Load)| Stage {
        name: format!("s{i}"),
        mix: Share::whole("w"),
        load: load.clone(),
        ..Stage::default()
    };
    Plan {
        slo: slo.iter().map(|&text| text.to_owned()).collect(),
        workloads: vec![Workload { name: "w".to_owned(), ..Workload::default() }],
        stages: loads.iter().enumerate().map(stage).collect(),
        ..Plan::default()
    }
}

/// The window of a played stage.
pub(crate) fn window(stage: u32, played: &Played) -> StageWindow {
    StageWindow {
        stage,
        start: played.start,
        reached: played.reached,
        dry: Some(played.dry),
        end: Some(played.end),
        ..StageWindow::default()
    }
}

/// The records of a played stage.
pub(crate) fn records(stage: u32, played: &Played) -> Vec<Record> {
    let record = |(seq, trip): (usize, &ttft_sim::Trip)| {
        let stamp = |at: Nanos| Some(Stamp { kernel: Some(at), user: at });
        let mut r = Record { stage, seq: seq as u64, finished: trip.last, ..Record::default() };
        (r.phases.scheduled, r.phases.started) = (trip.started, trip.started);
        (r.phases.sent_first, r.phases.sent) = (Some(trip.started), Some(trip.started));
        r.connection.reused = true;
        (r.answer.first_token, r.answer.last_token) = (stamp(trip.first), stamp(trip.last));
        r.answer.ended = r.answer.last_token;
        r.answer.usage.input = Some(u64::from(trip.input));
        r.answer.usage.output = Some(u64::from(trip.output));
        r.answer.outcome = Some(Outcome::Ok);
        r
    };
    played.trips.iter().enumerate().map(record).collect()
}

/// The summary of one stage of a plan, and its evidence.
pub(crate) fn fold(plan: &Plan, stage: u32, played: &Played) -> (StageSummary, Evidence) {
    let window = window(stage, played);
    let mut fold = StageFold::new(plan, &window).unwrap().unwrap();
    for record in &records(stage, played) {
        fold.push(record);
    }
    fold.finish_with_evidence()
}
