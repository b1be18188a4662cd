//! The classes of failure that users see, each with its remedy.

use serde::{Deserialize, Serialize};

macro_rules! classes {
    ($($variant:ident $name:literal $meaning:literal $remedy:literal),+ $(,)?) => {
        /// Why a request failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum ErrorClass {
            $(#[doc = $meaning] $variant),+
        }

        impl ErrorClass {
            /// All classes, in the order of a request's phases.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The name used in every file and report.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            /// What it means, in one line.
            pub const fn meaning(self) -> &'static str {
                match self { $(Self::$variant => $meaning),+ }
            }

            /// What to do about it, in one line.
            pub const fn remedy(self) -> &'static str {
                match self { $(Self::$variant => $remedy),+ }
            }

            /// The class of that name.
            pub fn from_name(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)+ _ => None }
            }
        }
    };
}

classes! {
    Dns "dns" "the host name did not resolve"
        "check the spelling of the host, or give its address with --resolve HOST:PORT:ADDR",
    ConnectRefused "connect_refused" "nothing listens on that port"
        "start the server, or check host and port; a full accept queue refuses too",
    ConnectTimeout "connect_timeout" "the TCP connection was not ready in time"
        "check firewall and address; raise --timeout-connect if the path is slow",
    Tls "tls" "the TLS handshake failed"
        "if the port speaks plain HTTP use http://; else add the issuer with --ca FILE, or --insecure on a test system",
    Send "send" "the request could not be written"
        "the server closed while it was reading: look at its request-size limit and its log",
    Reset "reset" "the connection was closed or reset before an answer began"
        "look at the server's and the proxy's log for a crash or an idle timeout",
    HttpAuth "http_auth" "the server refused the key (401, 403)"
        "set the key in OPENAI_API_KEY, or name its variable with --api-key-env or its file with --api-key-file",
    HttpNotFound "http_not_found" "no such path or model (404)"
        "check the path of the URL and --model; `ttft check URL` lists the models that the server has",
    HttpRateLimited "http_rate_limited" "the server limits the rate (429)"
        "offer less load, or raise the quota: these answers say nothing about the engine's speed",
    HttpOverloaded "http_overloaded" "the server is overloaded (503, 529)"
        "offer less load, or raise the server's queue limit",
    HttpError "http_error" "another HTTP error status"
        "read the message: the server says what it did not like",
    InStreamError "in_stream_error" "the stream carried an error although it began with HTTP 200"
        "read the message and the server's log: the engine failed or refused after it had answered 200",
    InBodyError "in_body_error" "HTTP 200 with an error as its body"
        "read the message: the server failed but answered 200",
    NotStreamed "not_streamed" "a stream was asked for and none came"
        "check that no proxy or gateway collects the answer, and that this path can stream",
    Malformed "malformed" "the answer could not be understood"
        "save a stream with `ttft check URL --save FILE` and look at it with `ttft decode FILE`; is --dialect right?",
    Truncated "truncated" "the stream ended before its end was announced"
        "look for a proxy timeout, a killed worker, or a restart on the server's side",
    NoOutput "no_output" "the stream ended well but held no output"
        "look at max tokens, stop strings, the prompt's length and content filters",
    TimeoutFirstToken "timeout_first_token" "no first token in time"
        "the server queues or stalls; raise --timeout-first-token if you want to wait longer",
    TimeoutIdle "timeout_idle" "the stream stood still for too long"
        "the server stalled between events; raise --timeout-idle if you want to wait longer",
    TimeoutTotal "timeout_total" "the answer took longer than allowed"
        "lower --max-tokens or raise --timeout-total",
    Client "client" "this machine ran out of ports, file descriptors or memory"
        "raise `ulimit -n`, widen net.ipv4.ip_local_port_range, or reuse connections",
}

impl std::fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
