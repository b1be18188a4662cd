//! How fast a simulated engine is: TOML files, some of them embedded.

use std::path::Path;

use serde::Deserialize;

use crate::Error;

/// The embedded profiles, by name.
const EMBEDDED: [(&str, &str); 3] = [
    ("default", include_str!("../../../profiles/default.toml")),
    ("fixed", include_str!("../../../profiles/fixed.toml")),
    ("instant", include_str!("../../../profiles/instant.toml")),
];

/// An engine's speed and limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile {
    /// Its name, or the file it came from.
    pub name: String,
    /// What it is like, in one line.
    pub about: String,
    /// Longest prompt plus answer, in tokens.
    pub max_model_len: u32,
    /// How long answers are when nothing but the model ends them.
    pub output: OutputLength,
    /// When tokens come.
    pub pace: Pace,
}

/// Length of an answer that the model ends by itself: log-normal, in tokens.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OutputLength {
    /// Half of the answers are shorter.
    pub median: f64,
    /// Spread of the logarithm; 0 makes all answers equal.
    pub sigma: f64,
}

/// When tokens come.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Pace {
    /// From a model of an engine with continuous batching: requests wait for and slow down each other.
    Batching(Batching),
    /// At fixed times after the arrival, whatever the load.
    Timed(Timed),
}

/// Costs and limits of an engine with continuous batching.
///
/// A step takes `step_ms + prefill_ms × (prompt tokens ^ prefill_exponent) + attention_ns × Σ (prompt tokens ×
/// tokens before them) + decode_ms_per_seq × decoding sequences + context_ns × Σ tokens in their context`,
/// times a log-normal factor of spread `sigma`.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Batching {
    /// Sequences that run at once.
    pub max_num_seqs: usize,
    /// Tokens that one step may compute, decodes included.
    pub max_num_batched_tokens: u32,
    /// Tokens of one block of the KV cache.
    pub block_size: u32,
    /// Blocks of the KV cache.
    pub num_blocks: u32,
    /// Whether blocks of earlier prompts are used again.
    pub prefix_cache: bool,
    /// Time between the end of a step and the scheduling of the next one, in milliseconds.
    #[serde(default)]
    pub gap_ms: f64,
    /// Fixed part of a step, in milliseconds.
    pub step_ms: f64,
    /// Per prompt token, in milliseconds.
    pub prefill_ms: f64,
    /// Below 1, many prompt tokens in one step cost less than each by itself, as a device that is used better.
    #[serde(default = "one")]
    pub prefill_exponent: f64,
    /// Per prompt token and token before it, in nanoseconds.
    #[serde(default)]
    pub attention_ns: f64,
    /// Per decoding sequence, in milliseconds.
    pub decode_ms_per_seq: f64,
    /// Per token in the context of a decoding sequence, in nanoseconds.
    #[serde(default)]
    pub context_ns: f64,
    /// Spread of the logarithm of a step's duration.
    #[serde(default)]
    pub sigma: f64,
    /// What happens when memory grows scarce.
    #[serde(default)]
    pub pressure: Option<Pressure>,
    /// What is compiled or loaded with first use.
    #[serde(default)]
    pub cold: Option<Cold>,
}

/// A cold start: the first prompts take longer, one after another.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cold {
    /// So many.
    pub prompts: u32,
    /// By so long, in milliseconds.
    pub ms: f64,
}

/// Scarce memory: now and then a new sequence has to wait until the engine has moved older blocks away, and all
/// behind it wait too, while those that run go on.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pressure {
    /// From so many running sequences on.
    pub from_seqs: usize,
    /// One admission in so many waits.
    pub one_in: u32,
    /// For so long, in milliseconds.
    pub wait_ms: f64,
}

fn one() -> f64 {
    1.0
}

/// Fixed times.
#[derive(Debug, Clone, Copy, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Timed {
    /// From the arrival to the first token, in milliseconds.
    pub ttft_ms: f64,
    /// Between two tokens of one answer, in milliseconds.
    pub itl_ms: f64,
    /// Spread of the logarithm of both, drawn once a request.
    #[serde(default)]
    pub sigma: f64,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    about: String,
    max_model_len: u32,
    output: OutputLength,
    batching: Option<Batching>,
    timed: Option<Timed>,
}

impl Profile {
    /// Names of the embedded profiles.
    pub fn names() -> Vec<&'static str> {
        EMBEDDED.iter().map(|(name, _)| *name).collect()
    }

    /// An embedded profile by its name, or one from a file.
    pub fn load(name_or_file: &str) -> Result<Self, Error> {
        if let Some((name, text)) = EMBEDDED.iter().find(|(name, _)| *name == name_or_file) {
            return Self::parse(name, text);
        }
        let path = Path::new(name_or_file);
        if !path.exists() && path.extension().is_none() {
            return Err(Error::UnknownProfile { name: name_or_file.to_owned(), known: Self::names() });
        }
        let text = std::fs::read_to_string(path)
            .map_err(|source| Error::ReadProfile { path: path.to_owned(), source })?;
        Self::parse(name_or_file, &text)
    }

    /// A profile from its text.
    pub fn parse(name: &str, text: &str) -> Result<Self, Error> {
        let file: File = toml::from_str(text)
            .map_err(|source| Error::ParseProfile { name: name.to_owned(), source: Box::new(source) })?;
        let bad = |problem: &str| Error::BadProfile { name: name.to_owned(), problem: problem.to_owned() };
        let pace = match (file.batching, file.timed) {
            (Some(batching), None) => Pace::Batching(batching),
            (None, Some(timed)) => Pace::Timed(timed),
            _ => return Err(bad("it needs either a table [batching] or a table [timed]")),
        };
        let profile = Self {
            name: name.to_owned(),
            about: file.about,
            max_model_len: file.max_model_len,
            output: file.output,
            pace,
        };
        match profile.problem() {
            Some(problem) => Err(bad(problem)),
            None => Ok(profile),
        }
    }

    /// The profile with other fixed times; an error for one with batching, whose times follow from the load.
    pub fn with_times(mut self, ttft_ms: Option<f64>, itl_ms: Option<f64>) -> Result<Self, Error> {
        match &mut self.pace {
            Pace::Timed(timed) => {
                timed.ttft_ms = ttft_ms.unwrap_or(timed.ttft_ms);
                timed.itl_ms = itl_ms.unwrap_or(timed.itl_ms);
            }
            Pace::Batching(_) if ttft_ms.is_some() || itl_ms.is_some() => {
                let problem =
                    "its times follow from the load; fixed ones need the profile `fixed`".to_owned();
                return Err(Error::BadProfile { name: self.name, problem });
            }
            Pace::Batching(_) => {}
        }
        match self.problem() {
            Some(problem) => Err(Error::BadProfile { name: self.name, problem: problem.to_owned() }),
            None => Ok(self),
        }
    }

    fn problem(&self) -> Option<&'static str> {
        let time = |ms: f64| (0.0..=1e9).contains(&ms);
        if self.max_model_len == 0 {
            return Some("max_model_len must be at least 1");
        }
        if !(1.0..=1e9).contains(&self.output.median) || !(0.0..=10.0).contains(&self.output.sigma) {
            return Some("output needs a median of at least 1 and a sigma from 0 to 10");
        }
        match self.pace {
            Pace::Timed(t) if ![t.ttft_ms, t.itl_ms].into_iter().all(time) => {
                Some("times must be from 0 to 1e9 ms")
            }
            Pace::Timed(Timed { sigma, .. }) | Pace::Batching(Batching { sigma, .. })
                if !(0.0..=10.0).contains(&sigma) =>
            {
                Some("sigma must be from 0 to 10")
            }
            Pace::Timed(_) => None,
            Pace::Batching(b) => {
                let costs =
                    [b.gap_ms, b.step_ms, b.prefill_ms, b.attention_ns, b.decode_ms_per_seq, b.context_ns];
                if !costs.into_iter().all(time) {
                    Some("costs must be from 0 to 1e9")
                } else if !(0.0..=3.0).contains(&b.prefill_exponent) {
                    Some("prefill_exponent must be from 0 to 3")
                } else if b.pressure.is_some_and(|p| p.one_in == 0 || !time(p.wait_ms)) {
                    Some("pressure needs one_in of at least 1 and wait_ms from 0 to 1e9")
                } else if b.cold.is_some_and(|cold| !time(cold.ms)) {
                    Some("cold needs ms from 0 to 1e9")
                } else if b.max_num_seqs == 0 || b.block_size == 0 {
                    Some("max_num_seqs and block_size must be at least 1")
                } else if (b.max_num_batched_tokens as usize) < b.max_num_seqs {
                    Some("max_num_batched_tokens must hold a token of each of max_num_seqs sequences")
                } else if u64::from(b.num_blocks) * u64::from(b.block_size) < u64::from(self.max_model_len) {
                    Some("num_blocks × block_size must hold one sequence of max_model_len tokens")
                } else {
                    None
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn embedded_profiles_load() {
        for name in Profile::names() {
            assert_eq!(Profile::load(name).unwrap().name, name);
        }
    }

    #[test]
    fn files_load_and_errors_name_what_is_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("mine.toml");
        let write = |text: &str| std::fs::write(&path, text).unwrap();
        let load = || Profile::load(path.to_str().unwrap());
        write("about='x'\nmax_model_len=10\noutput={median=5,sigma=0}\ntimed={ttft_ms=1,itl_ms=2}");
        assert_eq!(load().unwrap().pace, Pace::Timed(Timed { ttft_ms: 1.0, itl_ms: 2.0, sigma: 0.0 }));
        write("about='x'\nmax_model_len=10\noutput={median=5,sigma=0}");
        assert!(load().unwrap_err().to_string().contains("[batching] or a table [timed]"));
        write("about='x'\nmax_model_len=10\noutput={median=5,sigma=0}\ntimed={ttft_ms=-1,itl_ms=2}");
        assert!(load().is_err());
        assert!(matches!(Profile::load("nope"), Err(Error::UnknownProfile { .. })));
        assert!(matches!(Profile::load("nope.toml"), Err(Error::ReadProfile { .. })));
    }

    #[test]
    fn times_change_only_where_they_are_fixed() {
        let fixed = Profile::load("fixed").unwrap().with_times(Some(3.0), None).unwrap();
        assert!(matches!(fixed.pace, Pace::Timed(Timed { ttft_ms: 3.0, .. })));
        assert!(Profile::load("default").unwrap().with_times(Some(3.0), None).is_err());
        assert!(Profile::load("default").unwrap().with_times(None, None).is_ok());
        assert!(Profile::load("fixed").unwrap().with_times(None, Some(f64::NAN)).is_err());
    }
}
