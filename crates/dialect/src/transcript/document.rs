//! An answer that came as one document although a stream was asked for.

use ttft_model::{ErrorClass, Failure, Outcome};

use super::failure::{class_of_status, of_page, page_code, page_tells_error, page_text, tells_error};
use super::{End, Transcript};

impl Transcript {
    /// The outcome of a body that is one document, at a status that says all is well.
    pub(super) fn conclude_document(&mut self, end: &End) -> (Outcome, Option<Failure>) {
        let json = std::mem::take(&mut self.kept);
        let read = self.body.document(&json);
        let reader = &mut self.body.reader;
        if let Some(failure) = reader.failure.take() {
            return (Outcome::Error, Some(failure));
        }
        if read
            && (reader.document_output || reader.answer.facts.finish || reader.answer.usage.output > Some(0))
        {
            reader.answer.ended = self.last_byte;
            return (Outcome::Ok, None);
        }
        if *end == End::Reset {
            let message = "the connection broke inside a document";
            return (Outcome::Truncated, Some(Failure::new(ErrorClass::Truncated, message)));
        }

        let text = String::from_utf8_lossy(&json);
        let failure = if read {
            let (code, message) = of_page(&json);
            let class = if tells_error(&json) { ErrorClass::InBodyError } else { ErrorClass::Malformed };
            Failure { class, code, message: message.unwrap_or_default() }
        } else if text.trim_start().starts_with('{') {
            Failure::new(ErrorClass::Malformed, "the answer is one document of broken JSON")
        } else {
            let message = page_text(text.trim()).unwrap_or_default();
            let tells = page_tells_error(&message);
            let class = if tells { ErrorClass::InBodyError } else { ErrorClass::NotStreamed };
            Failure { class, code: page_code(&message), message }
        };
        (Outcome::Error, Some(failure))
    }

    /// The failure that a status other than 2xx is.
    pub(super) fn failure_of_status(&self) -> Failure {
        let (code, message) = of_page(&self.kept);
        let message = message.unwrap_or_else(|| format!("HTTP status {} without a body", self.status));
        Failure { class: class_of_status(self.status), code, message }
    }
}
