//! The events of a stream, in the shapes of vLLM, and how they are framed.

use std::io::Write;

use super::{Api, Exchange};
use crate::engine::Finish;
use crate::http::{Reply, put_chunk};
use crate::words::{wide_word, word};

impl Exchange {
    pub(super) fn head(&mut self, out: &mut Vec<u8>) {
        if std::mem::replace(&mut self.head_sent, true) {
            return;
        }
        let reply = Reply {
            status: 200,
            content_type: "text/event-stream; charset=utf-8",
            request_id: self.echo_id.then_some(&self.request_id),
            close: !self.terms.keep_alive,
            extra: if self.gzip.is_some() { "content-encoding: gzip\r\n" } else { "" },
        };
        reply.open(out, self.terms.chunks);
    }

    pub(super) fn role(&mut self, out: &mut Vec<u8>, index: usize, event: &mut Vec<u8>) {
        if self.terms.api != Api::Chat {
            return;
        }
        self.choices[index].role_sent = true;
        event.clear();
        event.extend_from_slice(&self.opening);
        let _ = write!(
            event,
            r#"{{"index":{index},"delta":{{"role":"assistant","content":""}},"logprobs":null,"finish_reason":null}}]"#
        );
        self.running_usage(event);
        event.extend_from_slice(br#","prompt_token_ids":null,"prompt_text":null}"#);
        self.put(out, event);
    }

    /// The event of all pending tokens of a choice.
    pub(super) fn content(
        &mut self,
        out: &mut Vec<u8>,
        index: usize,
        finish: Option<Finish>,
        event: &mut Vec<u8>,
    ) {
        let choice = &mut self.choices[index];
        let first = choice.tokens - choice.pending + 1;
        let numbers = first..=choice.tokens;
        choice.pending = 0;
        let reasoning = first <= self.misdeeds.reasoning;
        event.clear();
        event.extend_from_slice(&self.opening);
        if index == 0 {
            event.extend_from_slice(br#"{"index":0,"#);
        } else {
            let _ = write!(event, r#"{{"index":{index},"#);
        }
        event.extend_from_slice(match (self.terms.api, reasoning) {
            (Api::Chat, false) => br#""delta":{"content":""#.as_slice(),
            (Api::Chat, true) => br#""delta":{"reasoning_content":""#.as_slice(),
            (Api::Completion, _) => br#""text":""#.as_slice(),
        });
        for number in numbers.clone() {
            event.extend_from_slice(self.word(index, number).as_bytes());
        }
        let padded =
            self.misdeeds.event_size.filter(|_| numbers.contains(&2) || (finish.is_some() && first == 1));
        let padding_at = event.len();
        event.push(b'"');
        if self.terms.api == Api::Chat {
            event.push(b'}');
        }
        event.extend_from_slice(br#","logprobs":null,"finish_reason":"#);
        event.extend_from_slice(match finish.filter(|_| !self.misdeeds.no_finish) {
            None => b"null".as_slice(),
            Some(Finish::Stop) => br#""stop","stop_reason":null"#.as_slice(),
            Some(Finish::Length) => br#""length","stop_reason":null"#.as_slice(),
        });
        event.extend_from_slice(match self.terms.api {
            Api::Chat => br#","token_ids":null}]"#.as_slice(),
            Api::Completion if finish.is_some() => {
                br#","prompt_token_ids":null,"token_ids":null}]"#.as_slice()
            }
            Api::Completion => {
                br#","stop_reason":null,"prompt_token_ids":null,"token_ids":null}]"#.as_slice()
            }
        });
        self.running_usage(event);
        event.push(b'}');
        if let Some(size) = padded.filter(|size| *size > event.len()) {
            let missing = size - event.len();
            event.splice(padding_at..padding_at, std::iter::repeat_n(b'x', missing));
        }
        self.put(out, event);
    }

    pub(super) fn word(&self, index: usize, number: u32) -> &'static str {
        if self.misdeeds.utf8_split {
            wide_word(number)
        } else {
            word(self.terms.seed.wrapping_add(index as u64), number)
        }
    }

    /// `[DONE]` and the end of the body.
    pub(super) fn last_words(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>) {
        if !self.misdeeds.no_done {
            event.clear();
            event.extend_from_slice(b"data: [DONE]");
            self.put(out, event);
        }
        if let Some(gzip) = self.gzip.take()
            && let Ok(rest) = gzip.finish()
        {
            self.frame(out, &rest);
        }
        if self.terms.chunks {
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }

    /// The usage of each event so far, when it was asked for.
    pub(super) fn running_usage(&self, event: &mut Vec<u8>) {
        if self.terms.continuous_usage && !self.misdeeds.no_usage {
            let sent: u32 = self.choices.iter().map(|choice| choice.tokens - choice.pending).sum();
            let prompt = self.terms.prompt_tokens;
            let _ = write!(
                event,
                r#","usage":{{"prompt_tokens":{prompt},"total_tokens":{},"completion_tokens":{sent}}}"#,
                prompt + sent
            );
        }
    }

    /// Ends an event's text and adds it to the body.
    pub(super) fn put(&mut self, out: &mut Vec<u8>, event: &mut Vec<u8>) {
        event.extend_from_slice(if self.misdeeds.crlf { b"\r\n\r\n" } else { b"\n\n" });
        self.events_held += 1;
        if let Some(gzip) = &mut self.gzip {
            // Writing to a Vec cannot fail.
            let _ = gzip.write_all(event);
            let _ = gzip.flush();
            let packed = std::mem::take(gzip.get_mut());
            self.frame(out, &packed);
        } else if let Some(at) =
            self.misdeeds.utf8_split.then(|| event.iter().position(|b| *b >= 0x80)).flatten()
        {
            self.frame(out, &event[..=at]);
            self.split_at = Some(out.len());
            self.frame(out, &event[at + 1..]);
        } else {
            self.frame(out, event);
        }
    }

    fn frame(&self, out: &mut Vec<u8>, bytes: &[u8]) {
        if self.terms.chunks {
            put_chunk(out, bytes);
        } else {
            out.extend_from_slice(bytes);
        }
    }
}
