//! Answers whose tokens the server did not count, counted by a tokenizer off the threads of the load.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use ttft_model::{Channel, EventLog, Outcome, Record, TokenSource};
use ttft_plan::Counter;

use crate::message::Progress;

/// Bytes of text that may wait to be counted, all workers together. What comes on top stays uncounted: a slow count
/// must not fill the memory.
const MOST: u64 = 64 << 20;

/// A record that waits for the count of its answer's tokens.
#[derive(Debug)]
pub struct Uncounted {
    pub(crate) record: Record,
    pub(crate) text: String,
    pub(crate) counter: Arc<Counter>,
    pub(crate) progress: Arc<Progress>,
}

impl Uncounted {
    /// Whether the tokens of that answer are to be counted: its text is all that was generated, the server has not
    /// counted it, and not too much waits already. What waits is noted.
    pub(crate) fn wants(record: &Record, text: &str, progress: &Progress) -> bool {
        let answer = &record.answer;
        // What tools are called with is not in the text.
        let is_text = |class: &u8| {
            let channel = Channel::from_u8(class & !EventLog::COALESCED);
            matches!(channel, Some(Channel::Text | Channel::Reasoning))
        };
        let is_whole = answer.outcome == Some(Outcome::Ok) && answer.events.class.iter().all(is_text);
        if answer.usage.output.is_some() || !is_whole || text.is_empty() {
            return false;
        }
        let bytes = text.len() as u64;
        let fits = progress.uncounted.fetch_add(bytes, Ordering::Relaxed) + bytes <= MOST;
        if !fits {
            progress.uncounted.fetch_sub(bytes, Ordering::Relaxed);
        }
        fits
    }

    /// The record with its tokens counted.
    pub fn count(self) -> Record {
        let mut record = self.record;
        self.progress.uncounted.fetch_sub(self.text.len() as u64, Ordering::Relaxed);
        if let Ok(tokens) = self.counter.count(&self.text) {
            record.answer.usage.output = Some(u64::from(tokens));
            record.token_source = TokenSource::Tokenizer;
            self.progress.tokens.fetch_add(u64::from(tokens), Ordering::Relaxed);
        }
        record
    }
}
