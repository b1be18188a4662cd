//! From bytes to jobs: which path is meant, whether the request is right, and what the engine is to generate.

use serde_json::json;
use ttft_kernel::mono_now;
use ttft_model::Stamp;

use crate::engine::{Ask, Finish, JobId};
use crate::exchange::{Api, Exchange, Origin, Terms};
use crate::fault::Misdeeds;
use crate::http::{Bad, Head, Reply, read_body, read_head};
use crate::instant::{Instant, deliberate_refusal, locked};
use crate::question::{Counted, Question};
use crate::random::{Random, mix};
use crate::server::Server;
use crate::truth::Truth;

/// Sequences that one request may ask for.
const MAX_CHOICES: i64 = 1024;
/// What the models page shows when no names were given.
const ANY_MODEL: &str = "sim";

/// A generation request as it came.
struct Incoming<'a> {
    slot: usize,
    job: JobId,
    arrival: Stamp,
    head: &'a Head,
    api: Api,
    body: &'a [u8],
}

impl Server {
    /// Serves what the connection's input holds, one request after the other.
    pub(crate) fn take_requests(&mut self, slot: usize) {
        loop {
            let Some(connection) = self.connections.get_mut(slot) else { return };
            if connection.exchange.is_some() || connection.closing || connection.input.is_empty() {
                return;
            }
            let input = std::mem::take(&mut connection.input);
            let used = self.take_request(slot, &input);
            let Some(connection) = self.connections.get_mut(slot) else { return };
            connection.input = input;
            match used {
                Ok(0) => return,
                Ok(used) => drop(connection.input.drain(..used)),
                Err(Bad(status)) => {
                    connection.input.clear();
                    connection.closing = true;
                    let body = json!({"detail": "Invalid HTTP request received."}).to_string();
                    let answer = Instant { status, content_type: "application/json", extra: "", body };
                    return self.answer(slot, &answer, None, true);
                }
            }
        }
    }

    /// Serves the request at the start of the input, if it is whole; how many bytes it took.
    fn take_request(&mut self, slot: usize, input: &[u8]) -> Result<usize, Bad> {
        // Empty lines before a request are tolerated.
        let blank = input.iter().take_while(|b| matches!(b, b'\r' | b'\n')).count();
        let connection = &mut self.connections[slot];
        let head = match connection.head.take() {
            Some(head) => head,
            None => match read_head(&input[blank..])? {
                Some(head) => head,
                None => return Ok(0),
            },
        };
        let start = blank + head.len;
        let Some(body) = read_body(&input[start..], head.framing)? else {
            if head.expects_continue {
                connection.output.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n");
                self.flush_soon(slot);
            }
            self.connections[slot].head = Some(Head { expects_continue: false, ..head });
            return Ok(0);
        };
        connection.idle_since = None;
        let end = start + body.taken;
        let bytes = body.decoded.as_deref().unwrap_or(&input[start..end]);
        self.serve(slot, head, bytes);
        Ok(end)
    }

    fn serve(&mut self, slot: usize, head: Head, body: &[u8]) {
        let path = head.path.as_str();
        let api = if path.ends_with("/chat/completions") {
            Some(Api::Chat)
        } else {
            path.ends_with("/completions").then_some(Api::Completion)
        };
        let known_get =
            ["/models", "/health", "/version", "/metrics", "/ping"].iter().find(|p| path.ends_with(*p));
        let answer = match (head.post, api, known_get) {
            (true, Some(api), _) => return self.generate(slot, head, api, body),
            (true, None, None) if path.ends_with("/tokenize") => self.tokenize(body),
            (false, None, Some(&"/models")) if self.is_locked(&head) => locked(),
            (false, None, Some(page)) => self.page(page),
            (false, Some(_), _) | (true, None, Some(_)) => {
                let extra = if head.post { "allow: GET\r\n" } else { "allow: POST\r\n" };
                Instant { extra, ..Instant::json(405, &json!({"detail": "Method Not Allowed"})) }
            }
            _ => Instant::json(404, &json!({"detail": "Not Found"})),
        };
        self.answer(slot, &answer, head.request_id.as_deref(), !head.keep_alive);
    }

    fn page(&mut self, page: &str) -> Instant {
        match page {
            "/models" => {
                let names = self.options.models.iter().map(String::as_str);
                let names: Vec<&str> = if names.len() == 0 { vec![ANY_MODEL] } else { names.collect() };
                let (created, longest) = (self.created, self.options.profile.max_model_len);
                let models: Vec<_> = names
                    .iter()
                    .map(|id| {
                        json!({"id": id, "object": "model", "created": created, "owned_by": "ttft-sim",
                            "root": id, "parent": null, "max_model_len": longest})
                    })
                    .collect();
                Instant::json(200, &json!({"object": "list", "data": models}))
            }
            "/version" => Instant::json(200, &json!({"version": env!("CARGO_PKG_VERSION")})),
            "/metrics" => {
                let model = self.options.models.first().map_or(ANY_MODEL, String::as_str).to_owned();
                Instant {
                    status: 200,
                    content_type: "text/plain; version=1.0.0; charset=utf-8",
                    extra: "",
                    body: self.engine.metrics().page(&model),
                }
            }
            _ => Instant { status: 200, content_type: "application/json", extra: "", body: String::new() },
        }
    }

    fn tokenize(&self, body: &[u8]) -> Instant {
        let Some(counted) = serde_json::from_slice::<Question<'_>>(body).ok().and_then(|q| q.count(None))
        else {
            return Instant::error(
                400,
                "Bad Request",
                Some("body"),
                "a JSON object with `prompt` or `messages` is needed",
            );
        };
        let count: u32 = counted.iter().map(|prompt| prompt.tokens).sum();
        let tokens: Vec<u32> = (0..count).collect();
        Instant::json(
            200,
            &json!({"count": count, "max_model_len": self.options.profile.max_model_len, "tokens": tokens}),
        )
    }

    fn is_locked(&self, head: &Head) -> bool {
        let Some(key) = &self.options.api_key else { return false };
        let given = head.authorization.as_deref().and_then(|value| value.strip_prefix("Bearer "));
        given != Some(key.as_str())
    }

    fn generate(&mut self, slot: usize, head: Head, api: Api, body: &[u8]) {
        let job = self.next_job(slot);
        let arrival = self.connections[slot].arrival;
        let (seed, number) = (self.options.seed, u64::from(job.serial));
        let mut misdeeds = self.options.faults.pick(seed, number);
        let asked = head.fault.as_deref().map(|text| misdeeds.add_asked(text, seed, number));
        let refusal = match asked {
            Some(Err(error)) => Some(Instant::bad_request("x-sim-fault", &error.to_string())),
            _ if self.is_locked(&head) => Some(locked()),
            _ => deliberate_refusal(&misdeeds),
        };
        let outcome = match refusal {
            Some(refusal) => Err(refusal),
            None => self.submit(&Incoming { slot, job, arrival, head: &head, api, body }, misdeeds.clone()),
        };
        let Err(refusal) = outcome else { return };
        let close = !head.keep_alive;
        self.connections[slot].closing = close || misdeeds.close_after;
        self.answer(slot, &refusal, head.request_id.as_deref(), close);
        self.refused(Truth {
            request_id: head.request_id.unwrap_or_default(),
            arrival_ns: arrival.at().0,
            arrival_user_ns: arrival.user.0,
            connection: self.connections.get(slot).map_or(0, |c| c.number),
            path: head.path,
            prompt_tokens: 0,
            output_tokens: 0,
            queued_ns: None,
            scheduled_ns: None,
            write_ns: Vec::new(),
            first_write_ns: None,
            last_write_ns: None,
            end_ns: mono_now().0,
            outcome: "refused",
        });
    }

    /// Hands a right request to the engine.
    fn submit(&mut self, incoming: &Incoming<'_>, misdeeds: Misdeeds) -> Result<(), Instant> {
        let Incoming { slot, job, arrival, head, api, body } = *incoming;
        let question: Question<'_> = serde_json::from_slice(body).map_err(|error| {
            Instant::error(400, "Bad Request", Some("body"), &format!("1 validation error: {error}"))
        })?;
        let model = self.model(&question)?;
        let block_size = self.engine.block_size();
        let prompts = prompts(&question, api, block_size)?;
        let n = question.n.unwrap_or(1);
        if n < 1 || n.saturating_mul(prompts.len() as i64) > MAX_CHOICES {
            return Err(Instant::bad_request("n", &format!("n must be from 1 to {MAX_CHOICES}, got {n}.")));
        }
        let asks = self.asks(&question, &prompts, n as usize)?;
        let options = question.stream_options.unwrap_or_default();
        let stream = question.stream == Some(true) && !misdeeds.plain;
        let terms = Terms {
            api,
            stream,
            include_usage: options.include_usage == Some(true),
            continuous_usage: options.continuous_usage_stats == Some(true),
            cached_details: block_size.is_some(),
            per_request_metrics: self.options.per_request_metrics,
            head_with_first_token: self.options.headers_with_first_token || misdeeds.headers_with_first_token,
            // Without chunks only the end of the connection ends a stream.
            keep_alive: head.keep_alive && (head.chunks || !stream),
            chunks: head.chunks,
            prompt_tokens: prompts.iter().map(|prompt| prompt.tokens).sum(),
            seed: self.options.seed ^ prompts.first().map_or(0, |prompt| prompt.hash),
        };
        let (slow_headers, comments) = (misdeeds.slow_headers, misdeeds.comments.filter(|_| stream));
        let origin = Origin { job, head, arrival, created: self.created, model: &model };
        let mut exchange = Box::new(Exchange::new(origin, terms, misdeeds, asks.len()));
        let connection = &mut self.connections[slot];
        exchange.begin(&mut connection.output);
        connection.exchange = Some(exchange);
        self.flush_soon(slot);
        if let Some(by) = slow_headers {
            self.hold(slot, arrival.at() + by);
        }
        if let Some(every) = comments {
            self.comment_every(slot, every);
        }
        self.engine.submit(job, arrival.at(), asks);
        Ok(())
    }

    /// The model's name, if it is served.
    fn model(&self, question: &Question<'_>) -> Result<String, Instant> {
        let models = &self.options.models;
        match question.model.as_deref() {
            Some(model) if models.is_empty() || models.iter().any(|known| known == model) => {
                Ok(model.to_owned())
            }
            None => Ok(models.first().map_or(ANY_MODEL, String::as_str).to_owned()),
            Some(model) => Err(Instant::error(
                404,
                "NotFoundError",
                Some("model"),
                &format!("The model `{model}` does not exist. Valid aliases: {}.", models.join(", ")),
            )),
        }
    }

    /// The sequences to generate: `n` of each prompt.
    fn asks(&self, question: &Question<'_>, prompts: &[Counted], n: usize) -> Result<Vec<Ask>, Instant> {
        let longest = self.options.profile.max_model_len;
        let wanted = question.max_completion_tokens.or(question.max_tokens);
        if let Some(count) = wanted {
            if count < 1 {
                let message = format!(
                    "max_tokens must be at least 1, got {count}. (parameter=max_tokens, value={count})"
                );
                return Err(Instant::bad_request("max_tokens", &message));
            }
            if count > i64::from(longest) {
                let message = format!(
                    "max_tokens={count} cannot be greater than max_model_len={longest}. Please request fewer \
                     output tokens. (parameter=max_tokens, value={count})"
                );
                return Err(Instant::bad_request("max_tokens", &message));
            }
        }
        let at_least = question.min_tokens.unwrap_or(0).clamp(0, i64::from(longest)) as u32;
        let mut asks = Vec::with_capacity(prompts.len() * n);
        for prompt in prompts {
            let length = prompt.tokens;
            let room = longest.saturating_sub(length);
            let limit = wanted.map_or(room, |count| count as u32);
            if room == 0 || limit > room {
                let message = format!(
                    "This model's maximum context length is {longest} tokens. However, you requested {} output \
                     tokens and your prompt contains {length} input tokens. Please reduce the length of the input \
                     prompt or the number of requested output tokens. (parameter=input_tokens, value={length})",
                    wanted.unwrap_or(0)
                );
                return Err(Instant::bad_request("input_tokens", &message));
            }
            for choice in 0..n {
                let (output, finish) = if question.ignore_eos == Some(true) {
                    (limit, Finish::Length)
                } else {
                    let own_end = self.own_length(prompt.hash, choice).max(at_least);
                    if own_end < limit { (own_end, Finish::Stop) } else { (limit, Finish::Length) }
                };
                asks.push(Ask { prompt: length, blocks: prompt.blocks.clone(), output, finish });
            }
        }
        Ok(asks)
    }

    /// Where the model would end the answer by itself; the same for the same prompt.
    fn own_length(&self, prompt: u64, choice: usize) -> u32 {
        let output = self.options.profile.output;
        let mut random = Random::new(self.options.seed ^ prompt ^ mix(choice as u64 + 1));
        (output.median * random.factor(output.sigma)).round().clamp(1.0, 1e9) as u32
    }

    fn answer(&mut self, slot: usize, answer: &Instant, request_id: Option<&str>, close: bool) {
        let connection = &mut self.connections[slot];
        connection.closing |= close;
        Reply {
            status: answer.status,
            content_type: answer.content_type,
            request_id,
            close,
            extra: answer.extra,
        }
        .whole(&mut connection.output, answer.body.as_bytes());
        self.flush_soon(slot);
    }
}

fn prompts(question: &Question<'_>, api: Api, block_size: Option<u32>) -> Result<Vec<Counted>, Instant> {
    let field = if api == Api::Chat { "messages" } else { "prompt" };
    let missing = || {
        let message = format!(
            "1 validation error:\n  {{'type': 'missing', 'loc': 'body.{field}', 'msg': 'Field required'}}"
        );
        Instant::error(400, "Bad Request", Some(&format!("body.{field}")), &message)
    };
    match api {
        Api::Chat if question.messages.is_none() => return Err(missing()),
        Api::Chat if question.messages.as_ref().is_some_and(Vec::is_empty) => {
            let message =
                "Cannot apply chat template to an empty conversation. Provide at least one message.";
            return Err(Instant::error(400, "BadRequestError", None, message));
        }
        Api::Completion if question.prompt.is_none() => return Err(missing()),
        _ => {}
    }
    question.count(block_size).filter(|prompts| !prompts.is_empty()).ok_or_else(missing)
}
