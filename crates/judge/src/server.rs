//! What the server's own pages said over one stage: what reconciliation and diagnosis rest on.

mod view;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use ttft_model::Nanos;
use ttft_sources::{Measured, Reading};

pub(crate) use view::{Times, View};

/// What one scraped source told over one stage.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceStage {
    /// Index into the plan's stages.
    pub stage: u32,
    /// Where it was scraped, credentials left out.
    pub source: String,
    /// The page at the stage's end, with the window since its start; `None` if an edge is missing.
    pub reading: Option<Reading>,
    /// Levels in between, oldest first.
    pub levels: Vec<Levels>,
    /// Scrapes of this stage that failed or came too late.
    pub missed: u32,
}

/// The levels of one scrape.
#[derive(Debug, Clone, PartialEq)]
pub struct Levels {
    /// When the page was asked for, on the axis of the run.
    pub at: Nanos,
    /// Canonical values that are no distributions; what the page did not tell is not there.
    pub values: BTreeMap<&'static str, f64>,
}

/// The server's own figures over one stage, as `summary.json` holds them.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Server {
    /// One entry for each engine, gateway or accelerator that a scraped page told of; empty when nothing was scraped.
    pub sources: Vec<ServerSource>,
}

/// What one engine, gateway or accelerator said. Its figures have the canonical names of `ttft metrics`.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ServerSource {
    /// Where it was scraped, credentials left out.
    pub source: String,
    /// Its name in the catalogue; null if unknown, or if a page of the stage's edges is missing.
    pub engine: Option<String>,
    /// `engine`, `gateway` or `accelerator`.
    pub role: Option<String>,
    /// A guess, from which series there are.
    pub version: Option<String>,
    /// What grew from the stage's start to its end: distributions, totals, ratios.
    pub window: Map<String, Value>,
    /// How long that was, in seconds.
    pub window_s: Option<f64>,
    /// Counters began anew inside the window: all its values are lower bounds. Null without both edges.
    pub reset_detected: Option<bool>,
    /// The edges were answered by different processes: there is no window.
    pub other_process: bool,
    /// Levels between the edges: running, waiting, cache usage and so on.
    pub levels: BTreeMap<String, LevelRange>,
    /// Scrapes between the edges.
    pub scrapes: u32,
    /// Scrapes that failed or came too late: gaps, not zeros.
    pub missed: u32,
    /// What has to be known of single values, by name.
    pub notes: BTreeMap<String, String>,
    /// What is odd, in words.
    pub marks: Vec<String>,
}

/// A level over the scrapes between the edges of a stage.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
pub struct LevelRange {
    /// Scrapes that told it.
    pub n: u64,
    /// Their mean.
    pub mean: f64,
    /// The highest.
    pub max: f64,
}

impl LevelRange {
    /// Over all values; `None` of none.
    pub(crate) fn of(values: impl Iterator<Item = f64>) -> Option<Self> {
        let samples: crate::Samples = values.collect();
        Some(Self { n: samples.len(), mean: samples.mean()?, max: samples.max()? })
    }
}

impl Server {
    /// What these sources told of one stage.
    pub(crate) fn of<'a>(sources: impl Iterator<Item = &'a SourceStage>) -> Self {
        Self { sources: sources.flat_map(ServerSource::of).collect() }
    }
}

impl ServerSource {
    /// One entry for each engine on the page.
    fn of(source: &SourceStage) -> Vec<Self> {
        let base = Self {
            source: source.source.clone(),
            levels: levels(&source.levels),
            scrapes: source.levels.len() as u32,
            missed: source.missed,
            ..Self::default()
        };
        let Some(reading) = &source.reading else { return vec![base] };
        let mut all = vec![base.told(reading)];
        let bare = Self { source: source.source.clone(), missed: source.missed, ..Self::default() };
        all.extend(reading.also.iter().map(|other| bare.clone().told(other)));
        all
    }

    fn told(mut self, reading: &Reading) -> Self {
        self.engine.clone_from(&reading.engine);
        self.role = reading.role.map(|role| role.name().to_owned());
        self.version.clone_from(&reading.version);
        self.notes = reading.notes.iter().map(|(name, note)| ((*name).to_owned(), note.clone())).collect();
        self.marks.clone_from(&reading.marks);
        if let Some(window) = &reading.window {
            self.window_s = window.seconds;
            self.reset_detected = Some(window.reset_detected);
            self.other_process = window.other_process;
            self.window =
                window.values.iter().map(|(name, value)| ((*name).to_owned(), json(value))).collect();
        }
        self
    }
}

fn json(value: &Measured) -> Value {
    match value {
        Measured::Distribution(distribution) => serde_json::to_value(distribution).unwrap_or_default(),
        Measured::Number(number) => Value::from(*number),
    }
}

fn levels(scrapes: &[Levels]) -> BTreeMap<String, LevelRange> {
    let names: std::collections::BTreeSet<&str> =
        scrapes.iter().flat_map(|scrape| scrape.values.keys().copied()).collect();
    let range = |name: &str| LevelRange::of(scrapes.iter().filter_map(|s| s.values.get(name).copied()));
    // Totals only grow: their mean says nothing.
    let level = |name: &&str| {
        matches!(
            ttft_sources::shape(name),
            Some((_, ttft_sources::Shape::Level | ttft_sources::Shape::Ratio))
        )
    };
    names.into_iter().filter(level).filter_map(|name| Some((name.to_owned(), range(name)?))).collect()
}
