//! Conversations of several turns: each turn's request holds what was said before, with the answers that came.

use serde_json::{Value, json};
use ttft_kernel::mono_now;

use crate::stage_job::StageJob;
use crate::think::Pauses;
use crate::worker::{Ended, Prepared, Worker};

/// One conversation under way.
#[derive(Debug)]
pub(crate) struct Session {
    /// Its number within the stage.
    pub number: u64,
    /// The prompt that it begins with.
    pub prompt: u64,
    /// The next turn, from 0.
    pub turn: u32,
    /// How many turns it has.
    turns: u32,
    /// What was said so far, as messages.
    said: Vec<Value>,
}

impl Session {
    pub(crate) const fn new(number: u64, prompt: u64, turns: u32) -> Self {
        Self { number, prompt, turn: 0, turns, said: Vec::new() }
    }

    /// Adds what is asked now; all messages of the request.
    pub(crate) fn ask(&mut self, asked: Value) -> Value {
        if let Value::Array(asked) = asked {
            self.said.extend(asked);
        }
        Value::Array(self.said.clone())
    }

    /// Adds the answer that came, and goes on to the next turn; false when that was the last one.
    pub(crate) fn answered(&mut self, text: &str) -> bool {
        self.said.push(json!({"role": "assistant", "content": text}));
        self.turn += 1;
        self.turn < self.turns
    }
}

/// The next turn, once its user has thought after the answer; nothing if the stage ends before that.
pub(crate) async fn next_turn(
    worker: &Worker,
    job: &StageJob,
    answered: Ended,
    session: Box<Session>,
) -> Option<Prepared> {
    let think = job.order.mix.of(session.number).maker.think_time();
    let seed = job.order.seed ^ u64::from(session.turn).rotate_left(48) ^ session.number.rotate_left(16);
    let pause = Pauses::new(think, seed, 0).next().unwrap_or_default();
    let due = answered.at + pause;
    let is_late = |at| job.deadline().is_some_and(|deadline| at >= deadline);
    if job.is_ending() || is_late(due) {
        return None;
    }
    // Made while the user thinks.
    let prepared = worker.make_turn(job, session, due);
    if mono_now() < due {
        tokio::select! {
            biased;
            () = worker.alarm.until(due) => {}
            () = job.ending() => {}
        }
    }
    worker.gate.pass().await;
    (!job.is_ending() && !is_late(mono_now())).then_some(prepared)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_holds_what_was_said_before() {
        let mut session = Session::new(3, 3, 2);
        let ask = |text: &str| json!([{"role": "user", "content": text}]);
        assert_eq!(session.ask(ask("a")), ask("a"));
        assert!(session.answered("b"));
        let expect = json!([{"role": "user", "content": "a"}, {"role": "assistant", "content": "b"},
            {"role": "user", "content": "c"}]);
        assert_eq!(session.ask(ask("c")), expect);
        assert!(!session.answered("d"));
    }
}
