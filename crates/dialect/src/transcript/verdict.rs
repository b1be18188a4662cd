//! How an answer ended, from all that was seen of it.

use ttft_model::{ErrorClass, Failure, Outcome, Stamp};

use super::{End, Mode, Transcript};

impl Transcript {
    /// Sets outcome and failure, and what can only be known at the end.
    pub(super) fn conclude(&mut self, end: End, at: Stamp) {
        self.body.reader.settle();
        let (outcome, failure) = self.verdict(end, at);
        let answer = &mut self.body.reader.answer;
        answer.outcome = Some(outcome);
        answer.failure = failure;

        // A server that tells queue and prefill tells its time to first token from arrival.
        let timings = &mut answer.timings;
        if let (None, Some(queue), Some(prefill)) = (timings.ttft_ms, timings.queue_ms, timings.prefill_ms) {
            timings.ttft_ms = Some(queue + prefill);
        }
    }

    fn verdict(&mut self, end: End, at: Stamp) -> (Outcome, Option<Failure>) {
        if self.mode == Mode::ErrorPage {
            return (Outcome::Error, Some(self.failure_of_status()));
        }
        let reader = &mut self.body.reader;
        if let Some(failure) = reader.failure.take() {
            return (Outcome::Error, Some(failure));
        }
        // Behind the terminator nothing can go wrong any more.
        if !reader.answer.facts.terminator {
            match end {
                End::Cancelled => return (Outcome::Cancelled, None),
                End::TimedOut(class) => {
                    return (Outcome::Timeout, Some(Failure::new(class, self.progress(at))));
                }
                End::Failed(failure) => return (Outcome::Error, Some(failure)),
                End::Clean | End::Reset => {}
            }
        }
        if self.mode == Mode::Document {
            return self.conclude_document(&end);
        }
        self.conclude_stream(&end, at)
    }

    fn conclude_stream(&mut self, end: &End, at: Stamp) -> (Outcome, Option<Failure>) {
        let reader = &mut self.body.reader;
        let finished = reader.answer.facts.finish && !reader.has_open_choice();
        if self.body.dialect.rules.finish_ends && finished {
            reader.answer.ended = reader.answer.ended.or(reader.finished_at);
        }
        let whole = self.body.dialect.rules.body_ends && *end == End::Clean && reader.has_shape;
        if whole {
            reader.answer.ended = reader.answer.ended.or(Some(at));
        }
        let facts = &reader.answer.facts;
        if let (false, Some(message)) = (facts.finish, self.body.not_json.take()) {
            return (Outcome::Error, Some(Failure::new(ErrorClass::InStreamError, message)));
        }
        if !facts.finish
            && let Some(failure) = reader.suspect.take()
        {
            return (Outcome::Error, Some(failure));
        }
        if !facts.terminator && !finished && !whole {
            return self.unfinished(end);
        }
        if reader.answer.first_token.is_none() && reader.document_output {
            // The whole answer was one event: nothing was streamed.
            reader.answer.facts.streamed = false;
            reader.answer.ended = reader.answer.ended.or(self.last_byte);
            return (Outcome::Ok, None);
        }
        if reader.answer.first_token.is_none() && reader.answer.usage.output.unwrap_or(0) == 0 {
            let message = "the stream ended as it should, but held no output";
            return (Outcome::NoOutput, Some(Failure::new(ErrorClass::NoOutput, message)));
        }
        (Outcome::Ok, None)
    }

    /// The verdict on a stream that neither finished nor announced its end.
    fn unfinished(&self, end: &End) -> (Outcome, Option<Failure>) {
        let error = |class, message: String| (Outcome::Error, Some(Failure::new(class, message)));
        let truncated = |class, message: &str| (Outcome::Truncated, Some(Failure::new(class, message)));
        let facts = &self.body.reader.answer.facts;
        if *end == End::Reset && !self.has_head {
            return error(ErrorClass::Reset, "the connection broke before an answer came".to_owned());
        }
        if *end == End::Reset {
            return truncated(
                ErrorClass::Truncated,
                "the connection broke before the stream's end was announced",
            );
        }
        if facts.events == 0 {
            return truncated(ErrorClass::Truncated, "the body ended without any event");
        }
        if facts.events == facts.malformed_events {
            return error(ErrorClass::Malformed, "no event could be understood".to_owned());
        }
        if !self.body.reader.has_shape {
            let dialect = self.body.dialect.name();
            return error(ErrorClass::Malformed, format!("no event is one of the dialect {dialect}"));
        }
        truncated(ErrorClass::Truncated, "the body ended without a finish reason and without a terminator")
    }

    /// How far the answer had come.
    fn progress(&self, at: Stamp) -> String {
        let answer = &self.body.reader.answer;
        match (answer.last_token, self.last_byte) {
            (Some(last), _) => format!(
                "{} output events, the last one {:.0} ms before",
                answer.events.len(),
                (at.at() - last.at()).as_millis_f64()
            ),
            (None, Some(_)) => "bytes came, but no output".to_owned(),
            (None, None) => "nothing came".to_owned(),
        }
    }
}
