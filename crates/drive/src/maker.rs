//! Requests of one workload, made cheaply: everything that does not change is made once.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use http::{HeaderMap, Method};
use serde_json::Value;
use ttft_dialect::{BodyTemplate, Dialect, Prompt, RequestSpec};
use ttft_model::{CachePolicy, Endpoint, Lengths, RequestId, TraceId, Workload};
use ttft_plan::Prompts;
use ttft_plan::dataset::{DatasetError, Trace};
use ttft_wire::Request;

use crate::ids::traceparent;

static TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");

/// A plan whose requests cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum MakeError {
    /// A header's name.
    #[error("`{0}` is no header name")]
    HeaderName(String, #[source] InvalidHeaderName),
    /// A header's value; it may be secret and is not shown.
    #[error("the value of header `{0}` holds characters that no header may have (a line end?)")]
    HeaderValue(String, #[source] InvalidHeaderValue),
    /// The extra body.
    #[error("the extra body is not a JSON object: {0}")]
    Body(String),
    /// The prompts.
    #[error(transparent)]
    Prompts(#[from] DatasetError),
    /// What the dialect has no words for.
    #[error("{what}")]
    Unsayable {
        /// Which prompt, and the dialect.
        what: String,
        /// What it cannot send.
        #[source]
        source: ttft_dialect::Error,
    },
}

/// Makes the requests of one workload.
#[derive(Debug, Clone)]
pub struct RequestMaker {
    headers: HeaderMap,
    /// Carries each request's id.
    id_header: HeaderName,
    template: BodyTemplate,
    spec: RequestSpec,
    /// Answers of different lengths.
    output: Option<Lengths>,
    prompts: Prompts,
    salted: bool,
    /// With a warm cache, this many prompts are used over and over.
    distinct: Option<u64>,
}

impl RequestMaker {
    /// Everything that the requests of `workload` share. `key` is the API key; `warm_prompts` is how many prompts the
    /// warm-up sends.
    pub fn new(
        dialect: &Dialect,
        endpoint: &Endpoint,
        workload: &Workload,
        key: Option<&str>,
        seed: u64,
        warm_prompts: u64,
    ) -> Result<Self, MakeError> {
        let prompts = Prompts::load(&workload.prompt, seed, workload.calibration)?;
        let recorded = prompts.most_output().filter(|_| workload.output == Some(Lengths::Recorded));
        let max_tokens = recorded.unwrap_or(workload.max_tokens);
        let extra = workload.body_json.as_deref().map(parse_extra).transpose()?;
        let spec = RequestSpec {
            model: endpoint.model.clone().unwrap_or_default(),
            prompt: Prompt::Text(String::new()),
            max_tokens: Some(u64::from(max_tokens)),
            ignore_eos: workload.ignore_eos,
            stream: true,
            extra,
        };
        check(dialect, &spec, &prompts)?;
        Ok(Self {
            headers: headers(dialect, endpoint, key)?,
            id_header: header_name(&endpoint.request_id_header)?,
            template: dialect.template(&spec),
            spec,
            output: workload.output,
            prompts,
            salted: workload.cache == CachePolicy::Cold,
            distinct: (workload.cache == CachePolicy::Warm).then_some(warm_prompts.max(1)),
        })
    }

    /// The header that carries each request's id.
    pub(crate) fn id_header(&self) -> &HeaderName {
        &self.id_header
    }

    /// The trace that the requests follow.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.prompts.trace()
    }

    /// Output tokens asked for, the most of them where they differ.
    pub fn max_tokens(&self) -> u32 {
        self.spec.max_tokens.unwrap_or_default() as u32
    }

    /// The maker of a part of the run: when a trace is replayed with the prefixes that it shares, no part warms those
    /// of another.
    pub(crate) fn for_part(&self, part: u64) -> Self {
        Self { prompts: self.prompts.in_words_of(part), ..self.clone() }
    }

    /// Request number `number`. `text` is room for the prompt, used again from call to call.
    pub(crate) fn make(
        &self,
        dialect: &Dialect,
        number: u64,
        id: RequestId,
        trace: &TraceId,
        text: &mut String,
    ) -> Request {
        let id_text = id.to_string();
        let number = self.distinct.map_or(number, |distinct| number % distinct);
        let drawn = self.output.and_then(|lengths| self.prompts.output_tokens(lengths, number));
        let max_tokens = drawn.map(u64::from).or(self.spec.max_tokens);
        let body = match self.prompts.write(number, self.salted.then_some(id_text.as_str()), text) {
            None if max_tokens == self.spec.max_tokens => self.template.fill(text),
            None => dialect.template(&RequestSpec { max_tokens, ..self.spec.clone() }).fill(text),
            Some(messages) => {
                let messages =
                    if self.salted { salted(messages.into_owned(), &id_text) } else { messages.into_owned() };
                let prompt = Prompt::Messages(messages);
                dialect.request_body(&RequestSpec { prompt, max_tokens, ..self.spec.clone() })
            }
        };
        let mut headers = self.headers.clone();
        // Both are made of hexadecimal digits and hyphens.
        if let (Ok(id), Ok(parent)) =
            (HeaderValue::try_from(id_text), HeaderValue::from_bytes(&traceparent(trace)))
        {
            headers.insert(self.id_header.clone(), id);
            headers.insert(TRACEPARENT.clone(), parent);
        }
        Request { method: Method::POST, headers, body: Bytes::from(body) }
    }
}

/// Whether the dialect can say all that the requests are to hold: what it cannot must not be left out in silence.
fn check(dialect: &Dialect, spec: &RequestSpec, prompts: &Prompts) -> Result<(), MakeError> {
    let said = |spec: &RequestSpec, what: &dyn Fn() -> String| {
        dialect.check(spec).map_err(|source| MakeError::Unsayable { what: what(), source })
    };
    said(spec, &|| "the extra body cannot be sent".to_owned())?;
    if dialect.sends_messages_as_given() {
        return Ok(());
    }
    let mut text = String::new();
    for number in 0..prompts.given().max(1) {
        if let Some(messages) = prompts.write(number, None, &mut text) {
            let spec = RequestSpec { prompt: Prompt::Messages(messages.into_owned()), ..spec.clone() };
            said(&spec, &|| format!("prompt {} cannot be sent", number + 1))?;
        }
    }
    Ok(())
}

fn parse_extra(text: &str) -> Result<Value, MakeError> {
    match serde_json::from_str(text) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(MakeError::Body("write it as {\"field\": value}".to_owned())),
        Err(error) => Err(MakeError::Body(error.to_string())),
    }
}

fn headers(dialect: &Dialect, endpoint: &Endpoint, key: Option<&str>) -> Result<HeaderMap, MakeError> {
    let mut headers = HeaderMap::new();
    let fixed = [
        ("accept".to_owned(), "text/event-stream, application/json".to_owned()),
        ("accept-encoding".to_owned(), "identity".to_owned()),
        ("user-agent".to_owned(), concat!("ttft/", env!("CARGO_PKG_VERSION")).to_owned()),
    ];
    let own = endpoint.headers.iter().map(|header| (header.name.clone(), header.value.clone()));
    for (name, value) in fixed.into_iter().chain(dialect.headers(key)).chain(own) {
        let parsed = header_name(&name)?;
        let secret = key.is_some_and(|key| value.contains(key));
        let mut value = HeaderValue::try_from(value).map_err(|e| MakeError::HeaderValue(name, e))?;
        value.set_sensitive(secret);
        headers.insert(parsed, value);
    }
    Ok(headers)
}

fn header_name(name: &str) -> Result<HeaderName, MakeError> {
    HeaderName::try_from(name).map_err(|e| MakeError::HeaderName(name.to_owned(), e))
}

/// The conversation with the salt at the front of its first text.
fn salted(mut messages: Value, salt: &str) -> Value {
    if let Some(Value::String(first)) = messages.get_mut(0).and_then(|message| message.get_mut("content")) {
        first.insert_str(0, &format!("[{salt}] "));
    }
    messages
}
