//! What is said of an answer as a whole: its usage, its own times, and the document of one without events.

use std::io::Write;

use super::{Api, Exchange};
use crate::engine::{Finish, Timings};
use crate::http::Reply;

impl Exchange {
    pub(super) fn usage(&self, event: &mut Vec<u8>, cached: u32) {
        let (prompt, output) = (self.terms.prompt_tokens, self.tokens);
        let _ = write!(
            event,
            r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{output}"#,
            prompt + output
        );
        if self.terms.cached_details {
            let _ = write!(event, r#","prompt_tokens_details":{{"cached_tokens":{cached}}}"#);
        }
        if self.misdeeds.reasoning > 0 && self.terms.api == Api::Chat {
            let reasoning: u32 = self.choices.iter().map(|c| c.tokens.min(self.misdeeds.reasoning)).sum();
            let _ = write!(event, r#","completion_tokens_details":{{"reasoning_tokens":{reasoning}}}"#);
        }
        event.push(b'}');
    }

    /// As vLLM's `--enable-per-request-metrics`: its time to first token begins when the request was scheduled.
    pub(super) fn metrics(&self, event: &mut Vec<u8>, timings: &Timings) {
        let Timings { scheduled: Some(scheduled), first: Some(first), last: Some(last), .. } = *timings
        else {
            return;
        };
        let decode = (last - first).as_millis_f64();
        let gaps = f64::from(self.tokens.saturating_sub(1));
        let total = (last - scheduled).as_secs_f64();
        let over = |value: f64, by: f64| if by > 0.0 { value / by } else { 0.0 };
        let _ = write!(
            event,
            r#","metrics":{{"time_to_first_token_ms":{},"generation_time_ms":{decode},"queue_time_ms":{},"mean_itl_ms":{},"tokens_per_second":{}}}"#,
            (first - scheduled).as_millis_f64(),
            (scheduled - self.arrival.at()).as_millis_f64().max(0.0),
            over(decode, gaps),
            over(f64::from(self.tokens), total),
        );
    }

    /// The answer to a request that wants no stream.
    pub(super) fn document(&mut self, out: &mut Vec<u8>, timings: &Timings) {
        let mut body = std::mem::take(&mut self.opening);
        for (index, choice) in self.choices.iter().enumerate() {
            if index > 0 {
                body.push(b',');
            }
            let finish = match choice.finish {
                _ if self.misdeeds.no_finish => "null",
                Some(Finish::Length) => r#""length""#,
                _ => r#""stop""#,
            };
            let reasoning =
                if self.terms.api == Api::Chat { self.misdeeds.reasoning.min(choice.tokens) } else { 0 };
            let text = |numbers: std::ops::Range<u32>| {
                numbers.map(|number| self.word(index, number)).collect::<String>()
            };
            let answer = text(reasoning + 1..choice.tokens + 1);
            let _ = match self.terms.api {
                Api::Chat => {
                    let thought = match text(1..reasoning + 1) {
                        none if none.is_empty() => "null".to_owned(),
                        some => format!("\"{some}\""),
                    };
                    write!(
                        body,
                        r#"{{"index":{index},"message":{{"role":"assistant","content":"{answer}","refusal":null,"annotations":null,"audio":null,"function_call":null,"reasoning_content":{thought}}},"logprobs":null,"finish_reason":{finish},"stop_reason":null,"token_ids":null}}"#
                    )
                }
                Api::Completion => write!(
                    body,
                    r#"{{"index":{index},"text":"{answer}","logprobs":null,"finish_reason":{finish},"stop_reason":null,"token_ids":null,"prompt_logprobs":null,"prompt_token_ids":null}}"#
                ),
            };
        }
        body.extend_from_slice(br#"],"service_tier":null,"system_fingerprint":"ttft-sim""#);
        if !self.misdeeds.no_usage {
            self.usage(&mut body, timings.cached);
        }
        if self.terms.per_request_metrics && self.choices.len() == 1 {
            self.metrics(&mut body, timings);
        }
        body.push(b'}');
        Reply {
            status: 200,
            content_type: "application/json",
            request_id: self.echo_id.then_some(&self.request_id),
            close: !self.terms.keep_alive,
            extra: "",
        }
        .whole(out, &body);
    }
}
