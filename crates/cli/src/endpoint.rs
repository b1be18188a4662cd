//! The flags that say where requests go and what they ask, and what they mean. Shared by all verbs that send.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use ttft_dialect::Dialect;
use ttft_drive::RequestMaker;
use ttft_model::{
    ApiKey, Endpoint, Header, HttpVersion, ImageSize, Lengths, Pick, Resolve, Span, Think, Timeouts, Workload,
};
use ttft_plan::file::{Overlay, Part};
use ttft_plan::{EndpointError, endpoint_url};
use ttft_store::redact;
use ttft_wire::{ConnectOptions, Target, TlsOptions, tls_config};

use crate::usage;

/// Where requests go.
#[derive(Debug, Args)]
#[command(next_help_heading = "Endpoint")]
pub(crate) struct EndpointArgs {
    /// Base URL (http://host:8000, …/v1, https://gateway/api) or full path; without one, the built-in simulated
    /// engine is tested
    #[arg(help_heading = None::<&'static str>)]
    pub url: Option<String>,
    /// Model to ask for [default: the first that the server lists]; `run` takes a list, with
    /// stages of each
    #[arg(long, short, value_name = "NAME,…", value_delimiter = ',')]
    pub model: Vec<String>,
    /// Stream dialect: a name, or a TOML file [default: told from the URL, else openai-chat]
    #[arg(long)]
    pub dialect: Option<String>,
    /// Extra request header, `Name: value`; may be repeated
    #[arg(long, short = 'H', value_name = "HEADER")]
    pub header: Vec<String>,
    /// Environment variable with the API key [default: OPENAI_API_KEY, if it is set]
    #[arg(long, value_name = "NAME")]
    pub api_key_env: Option<String>,
    /// File with the API key
    #[arg(long, value_name = "FILE", conflicts_with = "api_key_env")]
    pub api_key_file: Option<String>,
    /// Header that carries each request's own id, for the logs of servers and gateways [default: x-request-id]
    #[arg(long, value_name = "NAME")]
    pub request_id_header: Option<String>,
    /// Protocol: 1.1 is the precise mode; on 2 several streams share a connection [default: 1.1]
    #[arg(long, value_name = "VERSION", value_parser = parse_http)]
    pub http: Option<HttpVersion>,
    /// Accept any certificate
    #[arg(long)]
    pub insecure: bool,
    /// PEM file with more roots to trust
    #[arg(long, value_name = "FILE")]
    pub ca: Option<String>,
    /// Connect to ADDR for HOST:PORT, without asking the resolver; may be repeated
    #[arg(long, value_name = "HOST:PORT:ADDR")]
    pub resolve: Vec<Resolve>,
}

/// What is asked.
#[derive(Debug, Args)]
#[command(next_help_heading = "Prompt and answer")]
pub(crate) struct PromptArgs {
    /// The same prompt for all requests
    #[arg(long, value_name = "TEXT", conflicts_with_all = ["prompt_tokens", "dataset"])]
    pub prompt: Option<String>,
    /// Made-up prompts of this many tokens: 500, 4k, uniform:100:900, normal:500:100 (mean, deviation),
    /// lognormal:500:0.5 (median, deviation of the logarithm) or empirical:FILE (drawn from the lengths in a list,
    /// histogram or trace) [default: 500]
    #[arg(long, value_name = "LENGTHS", value_parser = lengths, conflicts_with = "dataset")]
    pub prompt_tokens: Option<Lengths>,
    /// Prompts from a file, in turn: text, ShareGPT, OpenAI messages, jsonl of AIPerf, GuideLLM or vLLM
    #[arg(long, value_name = "FILE")]
    pub dataset: Option<String>,
    /// Most tokens of an answer, also as a distribution like that of prompts, or `recorded`: what the dataset or
    /// trace says, or the same line of an empirical FILE [default: recorded with those, else 64]
    #[arg(long, value_name = "LENGTHS", value_parser = lengths)]
    pub max_tokens: Option<Lengths>,
    /// Ask the engine to go on to --max-tokens where the model would stop (vLLM, SGLang)
    #[arg(long)]
    pub ignore_eos: bool,
    /// A tokenizer.json: made-up prompts have exactly the asked lengths by it, and answers are counted where the
    /// server does not count them
    #[arg(long, value_name = "FILE")]
    pub tokenizer: Option<String>,
    /// This many beginnings are shared by the prompts, each of --prefix-tokens, which come on top of the prompt's own
    #[arg(long, value_name = "N", value_parser = count32)]
    pub prefix_groups: Option<u32>,
    /// Tokens of a shared beginning [groups: 1]
    #[arg(long, value_name = "N", value_parser = count32)]
    pub prefix_tokens: Option<u32>,
    /// How a request takes one of them: uniform, or zipf:EXPONENT (a few are taken most often) [default: uniform]
    #[arg(long, value_name = "HOW")]
    pub prefix_pick: Option<Pick>,
    /// Conversations of this many turns, each with the history and the answers that came: a number, a distribution,
    /// or `recorded` with --dataset. A stage's requests and rates then count conversations
    #[arg(long, value_name = "LENGTHS", value_parser = lengths)]
    pub turns: Option<Lengths>,
    /// Between an answer and the next turn: 2s, uniform:1s:3s or exp:2s
    #[arg(long, value_name = "TIME")]
    pub turn_think: Option<Think>,
    /// Images sent with each prompt, made up, no two the same
    #[arg(long, value_name = "N", value_parser = count32)]
    pub images: Option<u32>,
    /// Width and height of an image [default: 512x512]
    #[arg(long, value_name = "WxH")]
    pub image_size: Option<ImageSize>,
    /// JSON object merged into every request body; null removes a field
    #[arg(long, value_name = "JSON")]
    pub body_json: Option<String>,
}

/// How long each phase may take.
#[derive(Debug, Args)]
#[command(next_help_heading = "Timeouts")]
#[expect(clippy::struct_field_names, reason = "the names are the flags")]
pub(crate) struct TimeoutArgs {
    /// For name, TCP and TLS together [default: 10s]
    #[arg(long, value_name = "TIME")]
    pub timeout_connect: Option<Span>,
    /// From the start to the first token [default: 10m]
    #[arg(long, value_name = "TIME")]
    pub timeout_first_token: Option<Span>,
    /// Between two reads of a stream [default: 60s]
    #[arg(long, value_name = "TIME")]
    pub timeout_idle: Option<Span>,
    /// The whole request [default: 30m]
    #[arg(long, value_name = "TIME")]
    pub timeout_total: Option<Span>,
}

/// A count such as `200` or `4k`, for clap.
pub(crate) fn count(text: &str) -> Result<u64, String> {
    ttft_model::parse_count(text).map_err(|e| e.to_string())
}

/// A smaller count, for clap.
fn count32(text: &str) -> Result<u32, String> {
    u32::try_from(count(text)?).map_err(|_| "that is too many".to_owned())
}

/// Lengths in tokens, for clap.
pub(crate) fn lengths(text: &str) -> Result<Lengths, String> {
    text.parse().map_err(|e: ttft_model::ParseLengthsError| e.to_string())
}

fn parse_http(text: &str) -> Result<HttpVersion, String> {
    match text {
        "1" | "1.1" => Ok(HttpVersion::H1),
        "2" => Ok(HttpVersion::H2),
        _ => Err("there are 1.1 and 2".to_owned()),
    }
}

impl EndpointArgs {
    /// The extra headers. A wrong one is not shown: it may be a secret with a slip in its name.
    fn headers(&self) -> anyhow::Result<Vec<Header>> {
        let parse = |(i, text): (usize, &String)| match text.split_once(':') {
            Some((name, value)) => {
                Ok(Header { name: name.trim().to_ascii_lowercase(), value: value.trim().to_owned() })
            }
            None => Err(usage(anyhow!("--header number {} has no colon: write it as `Name: value`", i + 1))),
        };
        self.header.iter().enumerate().map(parse).collect()
    }

    /// Where the key comes from, if that was said.
    fn api_key(&self) -> anyhow::Result<Option<ApiKey>> {
        match (&self.api_key_file, &self.api_key_env) {
            (Some(file), _) => Ok(Some(ApiKey::File(file.clone()))),
            (None, None) => Ok(None),
            (None, Some(name)) if std::env::var_os(name).is_some() => Ok(Some(ApiKey::Env(name.clone()))),
            (None, Some(name)) if redact::is_variable(name) => {
                Err(usage(anyhow!("the environment has no variable `{name}`: set it to the key")))
            }
            (None, Some(_)) => {
                Err(usage(anyhow!("--api-key-env takes the name of a variable, not the key itself")))
            }
        }
    }

    /// Puts what was said into the words of a plan.
    pub(crate) fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let headers = (!self.header.is_empty()).then(|| self.headers()).transpose()?;
        let mut put = Putter { flags, part: Part::Endpoint };
        put.say("url", "URL", self.url.as_ref())?;
        put.say("dialect", "--dialect", self.dialect.as_ref())?;
        put.say("api_key", "--api-key-env", self.api_key()?)?;
        put.say("headers", "--header", headers)?;
        let request_id = self.request_id_header.as_ref().map(|name| name.to_ascii_lowercase());
        put.say("request_id_header", "--request-id-header", request_id)?;
        put.say("http", "--http", self.http)?;
        put.say("insecure", "--insecure", self.insecure.then_some(true))?;
        put.say("ca", "--ca", self.ca.as_ref())?;
        put.say("resolve", "--resolve", given(&self.resolve))?;
        flags.models(&self.model);
        Ok(())
    }
}

/// Puts flags of one part of a plan into its words.
pub(crate) struct Putter<'a> {
    pub(crate) flags: &'a mut Overlay,
    pub(crate) part: Part,
}

impl Putter<'_> {
    /// What a flag says, if it was given.
    pub(crate) fn say<T: serde::Serialize>(
        &mut self,
        key: &str,
        flag: &str,
        value: Option<T>,
    ) -> anyhow::Result<()> {
        self.flags.put(self.part, key, flag, value).map_err(usage)
    }
}

/// A list that was given.
pub(crate) fn given<T>(list: &[T]) -> Option<&[T]> {
    (!list.is_empty()).then_some(list)
}

/// The dialect that a URL's path tells; a base URL tells none.
pub(crate) fn dialect_of_url(url: &str) -> Option<String> {
    Dialect::of_path(url).map(|dialect| dialect.name().to_owned())
}

impl PromptArgs {
    /// Puts what was said into the words of a plan.
    pub(crate) fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let mut put = Putter { flags, part: Part::Workload };
        put.say("prompt", "--prompt", self.prompt.as_ref())?;
        put.say("prompt_tokens", "--prompt-tokens", self.prompt_tokens.as_ref())?;
        put.say("dataset", "--dataset", self.dataset.as_ref())?;
        put.say("max_tokens", "--max-tokens", self.max_tokens.as_ref())?;
        put.say("ignore_eos", "--ignore-eos", self.ignore_eos.then_some(true))?;
        put.say("tokenizer", "--tokenizer", self.tokenizer.as_ref())?;
        put.say("prefix.groups", "--prefix-groups", self.prefix_groups)?;
        put.say("prefix.tokens", "--prefix-tokens", self.prefix_tokens)?;
        put.say("prefix.pick", "--prefix-pick", self.prefix_pick)?;
        put.say("session.turns", "--turns", self.turns.as_ref())?;
        put.say("session.think_time", "--turn-think", self.turn_think)?;
        put.say("images.count", "--images", self.images)?;
        put.say("images.size", "--image-size", self.image_size)?;
        put.say("body_json", "--body-json", self.body_json.as_ref())
    }
}

impl TimeoutArgs {
    /// Puts what was said into the words of a plan.
    pub(crate) fn lay(&self, flags: &mut Overlay) -> anyhow::Result<()> {
        let mut put = Putter { flags, part: Part::Run };
        put.say("timeouts.connect", "--timeout-connect", self.timeout_connect)?;
        put.say("timeouts.first_token", "--timeout-first-token", self.timeout_first_token)?;
        put.say("timeouts.idle", "--timeout-idle", self.timeout_idle)?;
        put.say("timeouts.total", "--timeout-total", self.timeout_total)
    }
}

/// An endpoint, ready to be asked.
pub(crate) struct Reached {
    pub dialect: Arc<Dialect>,
    pub target: Target,
    /// The full URL, without secrets shown only where they are redacted.
    pub url: String,
    pub connect: ConnectOptions,
    pub key: Option<String>,
}

/// Resolves what an endpoint names: dialect, URL, TLS, key. `base` replaces the endpoint's URL where that names a
/// simulated engine.
pub(crate) fn reach(endpoint: &Endpoint, timeouts: &Timeouts, base: Option<&str>) -> anyhow::Result<Reached> {
    let dialect = load_dialect(&endpoint.dialect)?;
    let model = endpoint.model.clone().unwrap_or_default();
    let url = endpoint_url(base.unwrap_or(&endpoint.url), &dialect.path(&model)).map_err(without_secrets)?;
    let target = Target::parse(&url).map_err(usage)?;
    let tls = TlsOptions {
        insecure: endpoint.insecure,
        ca: endpoint.ca.as_ref().map(PathBuf::from),
        http: endpoint.http,
    };
    let connect = ConnectOptions {
        tls: tls_config(&tls).map_err(usage)?,
        http: endpoint.http,
        timeout: timeouts.connect.0.to_std(),
        streams_per_connection: endpoint.streams_per_connection,
    };
    Ok(Reached { dialect, target, url, connect, key: read_key(&endpoint.api_key)? })
}

/// A URL that is none may still hold a key.
fn without_secrets(error: EndpointError) -> anyhow::Error {
    usage(match error {
        EndpointError::NotUrl { given, why, hint } => {
            EndpointError::NotUrl { given: redact::url(&given).into_owned(), why, hint }
        }
        other @ EndpointError::Scheme(_) => other,
    })
}

pub(crate) fn load_dialect(name: &str) -> anyhow::Result<Arc<Dialect>> {
    let is_file = std::path::Path::new(name).extension().is_some_and(|end| end == "toml");
    let loaded = if is_file { Dialect::load(name.as_ref()) } else { Dialect::named(name) };
    loaded.map_err(usage)
}

/// The key itself. It never leaves this process but in requests.
pub(crate) fn read_key(source: &ApiKey) -> anyhow::Result<Option<String>> {
    let key = match source {
        ApiKey::None => return Ok(None),
        ApiKey::Env(name) => std::env::var(name).ok(),
        ApiKey::File(path) => Some(
            std::fs::read_to_string(path)
                .with_context(|| format!("cannot read the API key from {path}"))
                .map_err(usage)?,
        ),
    };
    let Some(key) = key.map(|key| key.trim().to_owned()).filter(|key| !key.is_empty()) else {
        return Ok(None);
    };
    if key.chars().any(char::is_control) {
        let error = anyhow!("the API key holds a line end or another control character");
        return Err(usage(error));
    }
    Ok(Some(key))
}

impl Reached {
    /// Makes the requests of a workload.
    pub(crate) fn maker(
        &self,
        endpoint: &Endpoint,
        workload: &Workload,
        seed: u64,
        warm_prompts: u64,
    ) -> anyhow::Result<RequestMaker> {
        RequestMaker::new(&self.dialect, endpoint, workload, self.key.as_deref(), seed, warm_prompts)
            .map_err(usage)
    }
}

/// Refuses a load that this machine cannot hold open at once.
pub(crate) fn check_open_files(connections: u64) -> anyhow::Result<()> {
    const OWN: u64 = 64;
    let limit = ttft_kernel::raise_open_files();
    if limit < connections + OWN {
        bail!(
            "{connections} connections need {} open files, but this process may have {limit}: \
             raise the hard limit (`ulimit -Hn`), or ask for less",
            connections + OWN
        );
    }
    Ok(())
}
