//! Contaminations made up, one at a time.

use ttft_model::Record;

use super::*;
use crate::made_up::{Made, Told, engine, summary};

fn found(made: Made) -> Vec<(Cause, Level)> {
    let summary = summary(&[made]);
    summary.contamination.iter().map(|f| (f.cause.unwrap(), f.level)).collect()
}

fn with(told: Told) -> Made {
    Made { sources: vec![told], ..Made::default() }
}

#[test]
fn nothing_is_found_where_nothing_is() {
    assert_eq!(found(Made::default()), []);
    assert_eq!(found(with(engine(98.0, 0.0, 98.0))), []);
}

#[test]
fn requests_of_others() {
    assert_eq!(found(with(Told { more: 2.0, ..engine(98.0, 0.0, 98.0) })), [], "two may be probes");
    assert_eq!(
        found(with(Told { more: 20.0, ..engine(98.0, 0.0, 98.0) })),
        [(Cause::ForeignTraffic, Level::Bad)]
    );
    let shared = summary(&[with(Told { more: 20.0, ..engine(98.0, 30.0, 68.0) })]);
    let parts = &shared.stages[0].decomposition;
    assert_eq!((parts.queue.ms, parts.prefill.ms, parts.engine.ms), (None, None, None), "means of others");
    let sum: f64 = parts.all().filter_map(|(_, part)| part.ms).sum();
    assert!((sum - parts.ttft_ms.unwrap()).abs() < 1e-9);
}

#[test]
fn a_restart_shows_in_the_counters_or_in_the_connections() {
    assert_eq!(found(with(Told { reset: true, ..engine(98.0, 0.0, 98.0) })), [(Cause::Restart, Level::Bad)]);
    let both = summary(&[Made { gone: 5, ..with(Told { reset: true, ..engine(98.0, 0.0, 98.0) }) }]);
    assert!(
        both.contamination[0].evidence.as_ref().unwrap().contains("5 requests"),
        "{:?}",
        both.contamination
    );
    let alone = summary(&[Made { gone: 5, ..Made::default() }]);
    assert_eq!(alone.contamination[0].cause, Some(Cause::Restart));
    assert_eq!(alone.contamination[0].confidence, Some(Confidence::Medium));
}

#[test]
fn hits_by_the_answers_or_by_the_counters() {
    let cached = |r: &mut Record, number| r.answer.usage.cached = Some(if number % 2 == 0 { 80 } else { 0 });
    assert_eq!(found(Made { edit: cached, ..Made::default() }), [(Cause::CacheHits, Level::Bad)]);
    let counters = vec![("prompt_tokens", 4000.0), ("cached_prompt_tokens", 3000.0)];
    assert_eq!(
        found(with(Told { numbers: counters, ..engine(98.0, 0.0, 98.0) })),
        [(Cause::CacheHits, Level::Bad)]
    );
    let template = |r: &mut Record, _| r.answer.usage.cached = Some(16);
    assert_eq!(found(Made { edit: template, ..Made::default() }), [], "16 of 100 are the template's");
    let few = vec![("prompt_tokens", 4000.0), ("cached_prompt_tokens", 100.0)];
    assert_eq!(found(with(Told { numbers: few, ..engine(98.0, 0.0, 98.0) })), []);
}

#[test]
fn answers_that_grow() {
    let longer = |r: &mut Record, number| {
        r.answer.usage.output = Some(if number < 20 { 10 } else { 15 } + u64::from(number % 3));
    };
    assert_eq!(found(Made { edit: longer, ..Made::default() }), [(Cause::OutputDrift, Level::Warn)]);
    let other = |r: &mut Record, number| r.answer.usage.output = Some(20 + u64::from(number % 3));
    let two = summary(&[Made::default(), Made { users: 2, edit: other, ..Made::default() }]);
    assert_eq!(two.contamination.len(), 1, "{:?}", two.contamination);
    assert!(two.contamination[0].what.contains("at c2 than at c1"));
}

#[test]
fn governors_that_save_power() {
    assert!(slow_governor("performance").is_none());
    assert!(slow_governor("schedutil").is_none());
    assert_eq!(slow_governor("performance,powersave").unwrap().level, Level::Note);
}
