//! Requests of one workload, made cheaply: everything that does not change is made once.

use std::sync::Arc;

use bytes::Bytes;
use http::header::{HeaderName, HeaderValue, InvalidHeaderName, InvalidHeaderValue};
use http::{HeaderMap, Method};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use serde_json::{Value, json};
use ttft_dialect::{BodyTemplate, Dialect, Prompt, RequestSpec};
use ttft_model::{CachePolicy, Endpoint, ImageSize, Images, RequestId, Think, TraceId, Workload};
use ttft_plan::dataset::{DatasetError, Trace};
use ttft_plan::{Pictures, Prompts};
use ttft_wire::Request;

use crate::ids::{request_id, traceparent};
use crate::session::Session;

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
    prompts: Prompts,
    salt: Salt,
    pictures: Option<(Arc<Pictures>, u32)>,
    think_time: Option<Think>,
    /// With a warm cache, this many prompts are used over and over.
    distinct: Option<u64>,
}

/// What stands at the front of prompts, so that nothing of them is in a cache.
#[derive(Debug, Clone)]
enum Salt {
    /// Nothing.
    None,
    /// Each request's own id; that of the first one in all turns of a session.
    Each,
    /// The same for a part of the run: what its prompts share is warm by them alone.
    Part(Arc<str>),
}

impl Salt {
    fn of(workload: &Workload) -> Self {
        match workload.cache {
            CachePolicy::Cold if workload.prefix.is_some() => Self::of_a_part(),
            CachePolicy::Cold => Self::Each,
            CachePolicy::Warm | CachePolicy::AsIs => Self::None,
        }
    }

    fn of_a_part() -> Self {
        let now = ttft_kernel::real_now();
        let id = request_id(now, &mut SmallRng::seed_from_u64(now as u64));
        Self::Part(id.to_string().into())
    }

    /// For the request or the session of that id.
    fn text<'a>(&'a self, id: &'a str) -> Option<&'a str> {
        match self {
            Self::None => None,
            Self::Each => Some(id),
            Self::Part(salt) => Some(salt),
        }
    }
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
        let prompts = Prompts::load(workload, seed)?;
        let max_tokens = prompts.most_output().unwrap_or(workload.max_tokens);
        let extra = workload.body_json.as_deref().map(parse_extra).transpose()?;
        let spec = RequestSpec {
            model: endpoint.model.clone().unwrap_or_default(),
            prompt: Prompt::Text(String::new()),
            max_tokens: Some(u64::from(max_tokens)),
            ignore_eos: workload.ignore_eos,
            stream: true,
            extra,
        };
        check(dialect, &spec, &prompts, workload.images)?;
        let pictures = |images: Images| (Arc::new(Pictures::new(images.size, seed)), images.count);
        Ok(Self {
            headers: headers(dialect, endpoint, key)?,
            id_header: header_name(&endpoint.request_id_header)?,
            template: dialect.template(&spec),
            spec,
            prompts,
            salt: Salt::of(workload),
            pictures: workload.images.filter(|images| images.count > 0).map(pictures),
            think_time: workload.session.as_ref().and_then(|session| session.think_time),
            distinct: (workload.cache == CachePolicy::Warm).then_some(warm_prompts.max(1)),
        })
    }

    /// The header that carries each request's id.
    pub(crate) fn id_header(&self) -> &HeaderName {
        &self.id_header
    }

    /// The same prompts, those of `workload`, for another model or endpoint.
    pub fn for_model(
        &self,
        dialect: &Dialect,
        endpoint: &Endpoint,
        workload: &Workload,
        key: Option<&str>,
    ) -> Result<Self, MakeError> {
        let model = endpoint.model.clone().unwrap_or_default();
        let spec = RequestSpec { model, ..self.spec.clone() };
        check(dialect, &spec, &self.prompts, workload.images)?;
        Ok(Self {
            headers: headers(dialect, endpoint, key)?,
            id_header: header_name(&endpoint.request_id_header)?,
            template: dialect.template(&spec),
            spec,
            ..self.clone()
        })
    }

    /// The trace that the requests follow.
    pub fn trace(&self) -> Option<&Arc<Trace>> {
        self.prompts.trace()
    }

    /// The prompts that the requests hold.
    pub const fn prompts(&self) -> &Prompts {
        &self.prompts
    }

    /// Output tokens asked for, the most of them where they differ.
    pub fn max_tokens(&self) -> u32 {
        self.spec.max_tokens.unwrap_or_default() as u32
    }

    /// The maker of a part of the run: no part warms the prefixes that those of another share, unless that is what is
    /// asked for.
    pub(crate) fn for_part(&self, part: u64) -> Self {
        if self.distinct.is_some() {
            return self.clone();
        }
        let salt = match &self.salt {
            Salt::Part(_) => Salt::of_a_part(),
            salt => salt.clone(),
        };
        Self { prompts: self.prompts.in_words_of(part), salt, ..self.clone() }
    }

    /// Between an answer and the next turn of a session.
    pub(crate) const fn think_time(&self) -> Option<Think> {
        self.think_time
    }

    /// The session of that number, before its first turn; `None` where each request stands alone.
    pub(crate) fn session(&self, number: u64) -> Option<Session> {
        let prompt = self.distinct.map_or(number, |distinct| number % distinct);
        Some(Session::new(number, prompt, self.prompts.turns(prompt)?))
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
        let drawn = self.prompts.output_tokens(number, 0);
        let max_tokens = drawn.map(u64::from).or(self.spec.max_tokens);
        let given = self.prompts.write(number, self.salt.text(&id_text), text);
        let messages = match (given, &self.pictures) {
            (None, Some(_)) => Some(json!([{"role": "user", "content": text.as_str()}])),
            (given, _) => given,
        };
        let body = match messages {
            None if max_tokens == self.spec.max_tokens => self.template.fill(text),
            None => dialect.template(&RequestSpec { max_tokens, ..self.spec.clone() }).fill(text),
            Some(mut messages) => {
                self.add_pictures(&mut messages, number, id);
                let prompt = Prompt::Messages(messages);
                dialect.request_body(&RequestSpec { prompt, max_tokens, ..self.spec.clone() })
            }
        };
        self.request(body, id_text, trace)
    }

    /// The request of a session's next turn: all that was said before, and what is asked now.
    pub(crate) fn make_turn(
        &self,
        dialect: &Dialect,
        session: &mut Session,
        id: RequestId,
        trace: &TraceId,
        text: &mut String,
    ) -> Request {
        let id_text = id.to_string();
        let (number, turn) = (session.prompt, session.turn);
        let drawn = self.prompts.output_tokens(number, turn);
        let max_tokens = drawn.map(u64::from).or(self.spec.max_tokens);
        let asked = self.prompts.turn(number, turn, self.salt.text(&id_text), text);
        let mut asked = Value::Array(asked);
        if turn == 0 {
            self.add_pictures(&mut asked, number, id);
        }
        let prompt = Prompt::Messages(session.ask(asked));
        let body = dialect.request_body(&RequestSpec { prompt, max_tokens, ..self.spec.clone() });
        self.request(body, id_text, trace)
    }

    /// Adds images to the first thing that is asked: different ones for each request, or, where caches are not to be
    /// kept cold, for each prompt.
    fn add_pictures(&self, messages: &mut Value, number: u64, id: RequestId) {
        let Some((pictures, count)) = &self.pictures else { return };
        let first = match self.salt {
            Salt::None => u128::from(number) * u128::from(*count),
            Salt::Each | Salt::Part(_) => u128::from_be_bytes(id.0),
        };
        let urls = (0..*count).map(|i| pictures.data_url(first.wrapping_add(u128::from(i))));
        with_images(messages, urls);
    }

    fn request(&self, body: Vec<u8>, id: String, trace: &TraceId) -> Request {
        let mut headers = self.headers.clone();
        // Both are made of hexadecimal digits and hyphens.
        if let (Ok(id), Ok(parent)) =
            (HeaderValue::try_from(id), HeaderValue::from_bytes(&traceparent(trace)))
        {
            headers.insert(self.id_header.clone(), id);
            headers.insert(TRACEPARENT.clone(), parent);
        }
        Request { method: Method::POST, headers, body: Bytes::from(body) }
    }
}

/// Puts images behind the text of the first message of a user.
fn with_images(messages: &mut Value, urls: impl Iterator<Item = String>) {
    let users = messages.as_array_mut().into_iter().flatten();
    let Some(message) = users.into_iter().find(|message| message["role"] == "user") else { return };
    let mut parts = match message["content"].take() {
        Value::Array(parts) => parts,
        Value::String(text) => vec![json!({"type": "text", "text": text})],
        _ => Vec::new(),
    };
    parts.extend(urls.map(|url| json!({"type": "image_url", "image_url": {"url": url}})));
    message["content"] = Value::Array(parts);
}

/// Whether the dialect can say all that the requests are to hold: what it cannot must not be left out in silence.
fn check(
    dialect: &Dialect,
    spec: &RequestSpec,
    prompts: &Prompts,
    images: Option<Images>,
) -> Result<(), MakeError> {
    let said = |spec: &RequestSpec, what: &dyn Fn() -> String| {
        dialect.check(spec).map_err(|source| MakeError::Unsayable { what: what(), source })
    };
    said(spec, &|| "the extra body cannot be sent".to_owned())?;
    if dialect.sends_messages_as_given() {
        return Ok(());
    }
    if images.is_some_and(|images| images.count > 0) {
        let mut messages = json!([{"role": "user", "content": "an image"}]);
        let one = Pictures::new(ImageSize { width: 1, height: 1 }, 0).data_url(0);
        with_images(&mut messages, std::iter::once(one));
        said(&RequestSpec { prompt: Prompt::Messages(messages), ..spec.clone() }, &|| {
            "images cannot be sent".to_owned()
        })?;
    }
    let mut text = String::new();
    for number in 0..prompts.given().max(1) {
        if let Some(messages) = prompts.write(number, None, &mut text) {
            let spec = RequestSpec { prompt: Prompt::Messages(messages), ..spec.clone() };
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
