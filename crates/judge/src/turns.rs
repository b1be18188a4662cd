//! Conversations of several turns: what each turn was like.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use ttft_model::{Outcome, Record};

use crate::{Distribution, Samples, metrics};

/// Turns that have figures of their own; those behind them are counted with the last.
const TURNS: u32 = 64;

/// Values of a turn that are kept exactly.
const EXACT: usize = 1 << 16;

/// The conversations of a stage, over all of it.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Sessions {
    /// Conversations whose first turn was sent.
    pub begun: u64,
    /// Those that a failed turn ended.
    pub failed: u64,
    /// Each turn.
    pub turns: Vec<Turn>,
}

impl Sessions {
    /// Whether there were none.
    pub const fn is_empty(&self) -> bool {
        self.turns.is_empty()
    }
}

/// All requests that were the same turn of their conversations.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Turn {
    /// Which, from 1; the last one may stand for all behind it, too.
    pub turn: u32,
    /// Requests that ended well.
    pub n: u64,
    /// Requests that failed.
    pub failed: u64,
    /// Their time to the first token, in milliseconds.
    pub ttft_ms: Distribution,
    /// Mean tokens of the prompt, history included.
    pub input_tokens: Option<f64>,
    /// The share of those tokens that came from the server's cache, where it says so.
    pub cached_share: Option<f64>,
}

/// Folds records into [`Sessions`].
#[derive(Debug, Default)]
pub(crate) struct TurnsFold {
    begun: u64,
    turns: BTreeMap<u32, TurnFold>,
}

#[derive(Debug)]
struct TurnFold {
    n: u64,
    failed: u64,
    ttft: Samples,
    input: Samples,
    /// Cached tokens and all tokens of prompts of which both are known.
    cached: Option<(u64, u64)>,
}

impl Default for TurnFold {
    fn default() -> Self {
        let samples = || Samples::within(EXACT);
        Self { n: 0, failed: 0, ttft: samples(), input: samples(), cached: None }
    }
}

impl TurnsFold {
    /// Counts one record; one that is no turn is passed over.
    pub(crate) fn push(&mut self, r: &Record) {
        let Some(turn) = r.turn else { return };
        self.begun += u64::from(turn == 1);
        let fold = self.turns.entry(turn.min(TURNS)).or_default();
        match r.outcome() {
            Outcome::Ok => {}
            outcome => {
                fold.failed += u64::from(outcome.is_failure());
                return;
            }
        }
        fold.n += 1;
        if let Some(ttft) = metrics::ttft(r) {
            fold.ttft.push(ttft);
        }
        let usage = r.answer.usage;
        if let Some(input) = usage.input {
            fold.input.push(input as f64);
        }
        if let (Some(cached), Some(input)) = (usage.cached, usage.input) {
            let (known, of) = fold.cached.unwrap_or_default();
            fold.cached = Some((known + cached, of + input));
        }
    }

    pub(crate) fn finish(self) -> Sessions {
        let turns = self.turns.into_iter().map(|(turn, fold)| Turn {
            turn,
            n: fold.n,
            failed: fold.failed,
            ttft_ms: Distribution::of(&fold.ttft),
            input_tokens: Distribution::of(&fold.input).mean,
            cached_share: fold.cached.filter(|(_, of)| *of > 0).map(|(known, of)| known as f64 / of as f64),
        });
        let turns: Vec<Turn> = turns.collect();
        // A failed turn ends its conversation.
        Sessions { begun: self.begun, failed: turns.iter().map(|turn| turn.failed).sum(), turns }
    }
}

#[cfg(test)]
mod tests {
    use ttft_model::{Nanos, Stamp};

    use super::*;

    fn turn(turn: Option<u32>, outcome: Outcome, ttft: i64, input: u64, cached: Option<u64>) -> Record {
        let mut r = Record { turn, ..Record::default() };
        r.answer.outcome = Some(outcome);
        r.answer.first_token = Some(Stamp::user(Nanos::from_millis(ttft)));
        (r.answer.usage.input, r.answer.usage.cached) = (Some(input), cached);
        r
    }

    #[test]
    fn each_turn_has_its_figures() {
        let mut fold = TurnsFold::default();
        for r in [
            turn(None, Outcome::Ok, 999, 9, None),
            turn(Some(1), Outcome::Ok, 10, 100, Some(0)),
            turn(Some(1), Outcome::Ok, 30, 100, Some(0)),
            turn(Some(2), Outcome::Ok, 5, 200, Some(150)),
            turn(Some(2), Outcome::Error, 7, 200, None),
            turn(Some(500), Outcome::Ok, 1, 10, None),
        ] {
            fold.push(&r);
        }
        let sessions = fold.finish();
        assert_eq!((sessions.begun, sessions.failed, sessions.turns.len()), (2, 1, 3));
        let [first, second, last] = &sessions.turns[..] else { panic!() };
        assert_eq!(
            (first.turn, first.n, first.ttft_ms.p50, first.cached_share),
            (1, 2, Some(20.0), Some(0.0))
        );
        assert_eq!((second.n, second.failed, second.input_tokens), (1, 1, Some(200.0)));
        assert_eq!((second.cached_share, last.turn, last.cached_share), (Some(0.75), TURNS, None));
        assert!(TurnsFold::default().finish().is_empty());
    }
}
