//! Answers made by hand.

use ttft_model::{Channel, Nanos, Record, Stamp};

use super::*;

/// An answer whose events of one token come at these milliseconds after the start.
fn answer(at: &[i64]) -> Record {
    let mut r = Record::default();
    for ms in at {
        r.answer.events.push(Nanos::from_millis(*ms), 1, Channel::Text, false);
    }
    r.answer.first_token = at.first().map(|ms| Stamp::user(Nanos::from_millis(*ms)));
    r.answer.last_token = at.last().map(|ms| Stamp::user(Nanos::from_millis(*ms)));
    r.answer.usage.output = Some(at.len() as u64);
    r
}

fn of(answers: &[Record], slos: &[&str]) -> Experience {
    let slos: Vec<_> = slos.iter().map(|slo| slo.parse().unwrap()).collect();
    let deadlines = Deadlines::of(&slos);
    let mut fold = ExperienceFold::default();
    for r in answers {
        fold.push(r, &deadlines);
    }
    fold.finish(&deadlines)
}

fn near(got: Option<f64>, wanted: f64) {
    assert!(got.is_some_and(|got| (got - wanted).abs() < 1e-9), "{got:?} for {wanted}");
}

#[test]
fn stalls_are_long_by_both_measures() {
    let pauses = answer(&[100, 120, 140, 160, 460, 480, 800]);
    let slow_throughout = answer(&[100, 400, 700, 1000]);
    let stalls = of(&[pauses, slow_throughout], &[]).stalls;
    assert_eq!((stalls.n, stalls.stalls, stalls.requests), (2, 2, 1));
    assert_eq!((stalls.longest_ms, stalls.requests_share), (Some(320.0), Some(0.5)));
    near(stalls.time_share, 620.0 / 1600.0);
}

#[test]
fn a_reader_waits_only_when_all_is_read() {
    // 180 ms a token: the second token is late by 120 ms, the next ten come early, and then 2 s pass, of which
    // ten tokens cover 1.8 s.
    let mut at = vec![0, 300];
    at.extend((1..10).map(|i| 300 + i));
    at.push(2309);
    let reader = of(&[answer(&at)], &[]).reader;
    near(Some(reader.tokens_per_s), 1.0 / 0.18);
    near(reader.waiting_share, (120.0 + (2309.0 - 300.0 - 1800.0)) / 2309.0);
    assert_eq!((reader.n, reader.requests), (1, 1));

    let fast: Vec<i64> = (0..50).map(|i| i * 20).collect();
    assert_eq!(of(&[answer(&fast)], &[]).reader.waiting_share, Some(0.0));
    let mut uncounted = answer(&fast);
    uncounted.answer.usage.output = None;
    uncounted.answer.events.tokens.fill(0);
    let reader = of(&[uncounted], &[]).reader;
    assert_eq!((reader.n, reader.excluded, reader.waiting_share), (0, 1, None));
}

#[test]
fn reasoning_is_not_read_unless_there_is_nothing_else() {
    let mut r = answer(&[0, 1000, 2000, 2100, 2200]);
    for class in &mut r.answer.events.class[..2] {
        *class = Channel::Reasoning as u8;
    }
    assert_eq!(of(&[r], &[]).reader.waiting_share, Some(0.0));
}

#[test]
fn deadlines_as_etalon_counts_them() {
    // First within 1 s, then a token every 100 ms.
    let slos = ["ttft_p95<1s", "tpot<100ms"];
    let index = |at: &[i64]| of(&[answer(at)], &slos).fluidity.index.mean;
    near(index(&[900, 1000, 1100]), 1.0);
    // 100 ms saved by the first token pay for a gap of 200, not for one of 250, which misses one.
    near(index(&[900, 1100, 1200]), 1.0);
    near(index(&[900, 1150, 1250]), 2.0 / 3.0);
    near(index(&[1000, 1250, 1350]), 2.0 / 4.0);
    // The first one late by 250 ms misses its own and two more.
    near(index(&[1250, 1350]), 1.0 / 4.0);
    let default = of(&[answer(&[1900, 1990])], &[]).fluidity;
    assert!(!default.from_slo);
    assert_eq!((default.first_token_ms, default.token_ms, default.fluid_share), (2000.0, 100.0, Some(1.0)));
}

#[test]
fn merged_is_as_pushed_one_by_one() {
    let answers = [answer(&[100, 120, 500]), answer(&[50, 60, 70, 900])];
    let deadlines = Deadlines::of(&[]);
    let mut merged = ExperienceFold::default();
    for r in &answers {
        let mut one = ExperienceFold::default();
        one.push(r, &deadlines);
        merged.merge(&one);
    }
    assert_eq!(merged.finish(&deadlines), of(&answers, &[]));
}
