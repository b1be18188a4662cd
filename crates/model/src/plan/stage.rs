//! One level of load. In a file its keys stand side by side: `concurrency = 8`, `requests = 200`.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::think::Think;
use crate::Span;

/// One level of load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "File", into = "File")]
pub struct Stage {
    /// Its name in reports.
    pub name: String,
    /// The endpoint's name; the first one unless it is given.
    pub endpoint: Option<String>,
    /// The model asked for; the endpoint's unless it is given.
    pub model: Option<String>,
    /// The workloads that its requests are of. Never empty.
    pub mix: Vec<Share>,
    /// The load.
    pub load: Load,
    /// When it ends.
    pub stop: Stop,
    /// Which repetition of its level it is, from 1.
    pub repetition: u32,
}

/// A workload's share of a stage's requests.
#[derive(Debug, Clone, PartialEq)]
pub struct Share {
    /// The workload's name.
    pub workload: String,
    /// Its weight among all of the stage, above 0.
    pub weight: f64,
}

impl Share {
    /// The only one of a stage.
    pub fn whole(workload: &str) -> Vec<Self> {
        vec![Self { workload: workload.to_owned(), weight: 1.0 }]
    }
}

/// The shape of a stage's load.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Load {
    /// Users that each send their next request when the last one has ended.
    Closed {
        /// Users.
        concurrency: u32,
        /// They begin evenly over this time.
        ramp_up: Span,
        /// Each waits for so long between an answer and its next request.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        think_time: Option<Think>,
    },
    /// Requests that start at given instants, however slow the answers are.
    Open {
        /// Requests a second, at the beginning.
        rate: f64,
        /// Requests a second at the stage's end, which it reaches steadily over its duration.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate_to: Option<f64>,
        /// In so many equal steps instead.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        rate_steps: Option<u32>,
        /// How the gaps between arrivals are distributed.
        arrival: Arrival,
        /// Arrivals over this many in flight wait for a place; the wait shows in `send_lag`.
        max_in_flight: Option<u32>,
    },
    /// Requests that start when a trace says, however slow the answers are. The workload's prompts are of the same
    /// trace.
    Trace {
        /// The trace.
        path: String,
        /// Its format; by default told from the content.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        format: Option<String>,
        /// So many times as fast as recorded.
        speed: f64,
        /// Spread the requests of one instant evenly to the next one.
        #[serde(default)]
        smooth: bool,
        /// Arrivals over this many in flight wait for a place; the wait shows in `send_lag`.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        max_in_flight: Option<u32>,
    },
}

impl Load {
    /// Users that all begin at once and do not think.
    pub fn closed(concurrency: u32) -> Self {
        Self::Closed { concurrency, ramp_up: Span::default(), think_time: None }
    }

    /// Arrivals at one rate, as many in flight as there may be.
    pub fn open(rate: f64, arrival: Arrival) -> Self {
        Self::Open { rate, rate_to: None, rate_steps: None, arrival, max_in_flight: None }
    }
}

/// How the gaps of an open loop are distributed.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrival {
    /// All the same.
    Constant,
    /// Exponential: a Poisson process.
    Poisson,
    /// Gamma with this shape: 1 is Poisson, below is burstier.
    Gamma(f64),
}

/// When a stage ends: at whichever comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Stop {
    /// After this many requests.
    pub requests: Option<u64>,
    /// After this time.
    pub duration: Option<Span>,
}

/// A stage whose keys do not go together.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum StageError {
    /// No load, or more than one.
    #[error("stage `{name}` needs one of `concurrency`, `rate` and `trace`{found}")]
    Load {
        /// The stage.
        name: String,
        /// What it has instead.
        found: String,
    },
    /// A key that the load has no use for.
    #[error("stage `{name}`: `{key}` does not go with `{load}`")]
    Key {
        /// The stage.
        name: String,
        /// The key.
        key: &'static str,
        /// What it does not go with.
        load: &'static str,
    },
    /// No workload, or both kinds.
    #[error("stage `{0}` needs `workload` or `mix`, and not both")]
    Mix(String),
}

/// A stage as it stands in a file.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct File {
    name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    endpoint: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    model: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    workload: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    concurrency: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    ramp_up: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    think_time: Option<Think>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_to: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rate_steps: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    arrival: Option<Arrival>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    trace_format: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    speed: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smooth: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_in_flight: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    duration: Option<Span>,
    #[serde(skip_serializing_if = "Option::is_none")]
    repetition: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    mix: Option<BTreeMap<String, f64>>,
}

impl File {
    /// The keys that are there and belong to one kind of load, with the keys that the kinds begin with.
    fn keys(&self) -> [(&'static str, bool, &'static [&'static str]); 11] {
        [
            ("concurrency", self.concurrency.is_some(), &["concurrency"]),
            ("ramp_up", self.ramp_up.is_some(), &["concurrency"]),
            ("think_time", self.think_time.is_some(), &["concurrency"]),
            ("rate", self.rate.is_some(), &["rate"]),
            ("rate_to", self.rate_to.is_some(), &["rate"]),
            ("rate_steps", self.rate_steps.is_some(), &["rate"]),
            ("arrival", self.arrival.is_some(), &["rate"]),
            ("trace_format", self.trace_format.is_some(), &["trace"]),
            ("speed", self.speed.is_some(), &["trace"]),
            ("smooth", self.smooth.is_some(), &["trace"]),
            ("max_in_flight", self.max_in_flight.is_some(), &["rate", "trace"]),
        ]
    }

    /// Which kind of load it is.
    fn kind(&self) -> Result<&'static str, StageError> {
        let kinds = [
            ("concurrency", self.concurrency.is_some()),
            ("rate", self.rate.is_some()),
            ("trace", self.trace.is_some()),
        ];
        let has: Vec<&str> = kinds.iter().filter(|(_, is)| *is).map(|(kind, _)| *kind).collect();
        let [kind] = has[..] else {
            let found = if has.is_empty() { String::new() } else { format!(", not {}", has.join(" and ")) };
            return Err(StageError::Load { name: self.name.clone(), found });
        };
        match self.keys().into_iter().find(|(_, is, kinds)| *is && !kinds.contains(&kind)) {
            Some((key, ..)) => Err(StageError::Key { name: self.name.clone(), key, load: kind }),
            None => Ok(kind),
        }
    }
}

impl TryFrom<File> for Stage {
    type Error = StageError;

    fn try_from(file: File) -> Result<Self, StageError> {
        file.kind()?;
        let mix = match (file.workload, file.mix) {
            (Some(workload), None) => Share::whole(&workload),
            (None, Some(mix)) if !mix.is_empty() => {
                mix.into_iter().map(|(workload, weight)| Share { workload, weight }).collect()
            }
            _ => return Err(StageError::Mix(file.name)),
        };
        let max_in_flight = file.max_in_flight;
        let load = if let Some(concurrency) = file.concurrency {
            let ramp_up = file.ramp_up.unwrap_or_default();
            Load::Closed { concurrency, ramp_up, think_time: file.think_time }
        } else if let Some(rate) = file.rate {
            let arrival = file.arrival.unwrap_or(Arrival::Poisson);
            Load::Open { rate, rate_to: file.rate_to, rate_steps: file.rate_steps, arrival, max_in_flight }
        } else {
            Load::Trace {
                path: file.trace.unwrap_or_default(),
                format: file.trace_format,
                speed: file.speed.unwrap_or(1.0),
                smooth: file.smooth.unwrap_or_default(),
                max_in_flight,
            }
        };
        Ok(Self {
            name: file.name,
            endpoint: file.endpoint,
            model: file.model,
            mix,
            load,
            stop: Stop { requests: file.requests, duration: file.duration },
            repetition: file.repetition.unwrap_or(1),
        })
    }
}

impl From<Stage> for File {
    fn from(stage: Stage) -> Self {
        let mut file = Self {
            name: stage.name,
            endpoint: stage.endpoint,
            model: stage.model,
            requests: stage.stop.requests,
            duration: stage.stop.duration,
            repetition: (stage.repetition > 1).then_some(stage.repetition),
            ..Self::default()
        };
        match &stage.mix[..] {
            [only] => file.workload = Some(only.workload.clone()),
            several => {
                file.mix = Some(several.iter().map(|s| (s.workload.clone(), s.weight)).collect());
            }
        }
        match stage.load {
            Load::Closed { concurrency, ramp_up, think_time } => {
                file.concurrency = Some(concurrency);
                file.ramp_up = (ramp_up != Span::default()).then_some(ramp_up);
                file.think_time = think_time;
            }
            Load::Open { rate, rate_to, rate_steps, arrival, max_in_flight } => {
                file.rate = Some(rate);
                (file.rate_to, file.rate_steps) = (rate_to, rate_steps);
                file.arrival = Some(arrival);
                file.max_in_flight = max_in_flight;
            }
            Load::Trace { path, format, speed, smooth, max_in_flight } => {
                file.trace = Some(path);
                file.trace_format = format;
                file.speed = Some(speed);
                file.smooth = Some(smooth);
                file.max_in_flight = max_in_flight;
            }
        }
        file
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Stage, String> {
        serde_json::from_str(text).map_err(|e| e.to_string())
    }

    #[test]
    fn a_stage_is_read_as_it_was_written() {
        for text in [
            r#"{"name":"c8","workload":"short","concurrency":8,"think_time":"exp:2s","requests":200}"#,
            r#"{"name":"r","mix":{"long":1.0,"short":9.0},"rate":2.0,"rate_to":20.0,"arrival":{"gamma":0.5},"duration":"1m"}"#,
            r#"{"name":"t","model":"big","workload":"w","trace":"t.jsonl","speed":2.0,"smooth":true,"repetition":3}"#,
        ] {
            let stage = read(text).unwrap();
            let again: Stage = serde_json::from_value(serde_json::to_value(&stage).unwrap()).unwrap();
            assert_eq!(stage, again);
        }
    }

    #[test]
    fn keys_that_do_not_go_together_are_errors() {
        for (text, says) in [
            (r#"{"name":"a","workload":"w"}"#, "needs one of"),
            (r#"{"name":"a","workload":"w","rate":1.0,"concurrency":1}"#, "not concurrency and rate"),
            (r#"{"name":"a","workload":"w","rate":1.0,"ramp_up":"1s"}"#, "`ramp_up` does not go with `rate`"),
            (r#"{"name":"a","rate":1.0}"#, "needs `workload` or `mix`"),
            (r#"{"name":"a","rate":1.0,"workload":"w","mix":{"w":1.0}}"#, "not both"),
            (r#"{"name":"a","workload":"w","concurency":1}"#, "unknown field"),
        ] {
            let error = read(text).unwrap_err();
            assert!(error.contains(says), "{error}");
        }
    }
}
