//! What a plan says where its writer says nothing.

use super::{
    ApiKey, Budget, CachePolicy, Calibration, Client, Connections, Endpoint, HttpVersion, Load, Plan, Prompt,
    Share, Sources, Stage, Stop, Timeouts, Workload,
};
use crate::{Nanos, Span};

/// The variable that holds the API key unless another is named.
const KEY_VARIABLE: &str = "OPENAI_API_KEY";

/// The simulated engine that is built in.
const SIMULATED: &str = "sim:default";

const fn seconds(seconds: i64) -> Span {
    Span(Nanos::from_millis(seconds * 1000))
}

/// The name of the only endpoint, or the only workload.
pub(super) fn default_name() -> String {
    "default".to_owned()
}

/// The header that most servers log and echo.
pub(super) fn request_id_header() -> String {
    "x-request-id".to_owned()
}

impl Default for Plan {
    /// No stage yet; the built-in engine, and one workload.
    fn default() -> Self {
        Self {
            name: "run".to_owned(),
            seed: 1,
            warmup: 10,
            drain: seconds(30),
            settle: Span::default(),
            precision: None,
            budget: Budget::default(),
            slo: Vec::new(),
            endpoints: vec![Endpoint::default()],
            timeouts: Timeouts::default(),
            client: Client::default(),
            sources: Sources::default(),
            workloads: vec![Workload::default()],
            stages: Vec::new(),
        }
    }
}

impl Default for Endpoint {
    fn default() -> Self {
        Self {
            name: default_name(),
            url: SIMULATED.to_owned(),
            dialect: "openai-chat".to_owned(),
            model: None,
            api_key: ApiKey::Env(KEY_VARIABLE.to_owned()),
            headers: Vec::new(),
            connections: Connections::Reuse,
            http: HttpVersion::H1,
            insecure: false,
            ca: None,
            resolve: Vec::new(),
            streams_per_connection: 8,
            request_id_header: request_id_header(),
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        Self { connect: seconds(10), first_token: seconds(600), idle: seconds(60), total: seconds(1800) }
    }
}

impl Default for Workload {
    fn default() -> Self {
        Self {
            name: default_name(),
            prompt: Prompt::Tokens(500),
            max_tokens: 64,
            output: None,
            calibration: Calibration::None,
            tokenizer: None,
            prefix: None,
            session: None,
            images: None,
            ignore_eos: false,
            cache: CachePolicy::Cold,
            body_json: None,
        }
    }
}

impl Default for Stage {
    /// One user, for ten seconds.
    fn default() -> Self {
        Self {
            name: "c1".to_owned(),
            endpoint: None,
            model: None,
            mix: Share::whole(&default_name()),
            load: Load::closed(1),
            stop: Stop { requests: None, duration: Some(seconds(10)) },
            repetition: 1,
        }
    }
}
