//! What a page says, in canonical names.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use serde::ser::SerializeMap;
use serde_json::Value;

use crate::canonical::{Shape, names};
use crate::doubts::doubts;
use crate::engine::{Engine, Part, Role, Rule, Source};
use crate::histogram::{Distribution, Histogram, PROBABILITIES, Quantile};
use crate::page::{Format, Kind, Labels, Page};
use crate::select::{distinct, find, find_distribution, fits, help_fits, histograms, together, values};
use crate::window::Growth;

/// A canonical value.
#[derive(Debug, Clone, PartialEq)]
pub enum Measured {
    /// Count, mean, quantiles.
    Distribution(Distribution),
    /// One number.
    Number(f64),
}

impl Measured {
    /// The number, if it is one.
    pub fn number(&self) -> Option<f64> {
        match self {
            Self::Number(value) => Some(*value),
            Self::Distribution(_) => None,
        }
    }

    /// The distribution, if it is one.
    pub fn distribution(&self) -> Option<&Distribution> {
        match self {
            Self::Distribution(distribution) => Some(distribution),
            Self::Number(_) => None,
        }
    }
}

/// What grew between two scrapes.
#[derive(Debug, Clone, PartialEq)]
pub struct Window {
    /// How long, where that is known.
    pub seconds: Option<f64>,
    /// Counters began anew in between: all values are lower bounds.
    pub reset_detected: bool,
    /// The scrapes were answered by different processes: there are no values.
    pub other_process: bool,
    /// Canonical values of the window.
    pub values: BTreeMap<&'static str, Measured>,
}

/// What a page says.
#[derive(Debug, Clone, PartialEq)]
pub struct Reading {
    /// The engine's name in the catalogue; none if it is unknown.
    pub engine: Option<String>,
    /// The engine's name for people.
    pub title: String,
    /// What it is.
    pub role: Option<Role>,
    /// A guess, from which series there are.
    pub version: Option<String>,
    /// What the page was written in.
    pub format: Format,
    /// How many series it has.
    pub series: usize,
    /// Canonical values; what is not there is unknown.
    pub values: BTreeMap<&'static str, Measured>,
    /// Which series each value is from.
    pub from: BTreeMap<&'static str, String>,
    /// What a reader has to know of single values, by name.
    pub notes: BTreeMap<&'static str, String>,
    /// What grew since an earlier scrape.
    pub window: Option<Window>,
    /// Machines that an accelerator's page names.
    pub hosts: Vec<String>,
    /// Devices that an accelerator's page has.
    pub devices: Option<usize>,
    /// What is odd, in words.
    pub marks: Vec<String>,
    /// Other engines on the same page.
    pub also: Vec<Reading>,
}

/// JSON has no NaN; whole numbers are written as such.
pub(crate) fn number(value: f64) -> Value {
    if value.fract() == 0.0 && value.abs() < 9e15 { (value as i64).into() } else { value.into() }
}

pub(crate) fn read(
    engine: Option<&Engine>,
    page: &Page,
    growth: Option<&Growth>,
    seconds: Option<f64>,
) -> Reading {
    let mut reading = Reading {
        engine: engine.map(|engine| engine.name.clone()),
        title: engine.map_or_else(|| "unknown".to_owned(), |engine| engine.title.clone()),
        role: engine.map(|engine| engine.role),
        version: engine.and_then(|engine| version(engine, page)),
        format: page.format,
        series: page.len(),
        values: BTreeMap::new(),
        from: BTreeMap::new(),
        notes: BTreeMap::new(),
        window: None,
        hosts: Vec::new(),
        devices: None,
        marks: page.marks.clone(),
        also: Vec::new(),
    };
    reading.window = growth.map(|growth| Window {
        seconds,
        reset_detected: growth.reset,
        other_process: growth.other_process,
        values: BTreeMap::new(),
    });
    reading.marks.extend(growth.into_iter().flat_map(|growth| growth.marks.clone()));
    let Some(engine) = engine else {
        reading.marks.push("no engine of the catalogue has series of these names".to_owned());
        return reading;
    };
    for (name, shape) in names() {
        let Some(found) = engine.metrics.get(name).and_then(|sources| value(engine, page, sources, shape))
        else {
            continue;
        };
        reading.marks.extend(found.marks.iter().map(|mark| format!("{name}: {mark}")));
        if let Some(note) = engine.notes.get(name) {
            reading.notes.insert(name, note.clone());
        }
        if let (Some(growth), Some(window)) = (growth, reading.window.as_mut())
            && shape.has_window()
            && !growth.other_process
            && let Some(grown) = one(engine, &growth.page, found.source, shape)
            // A ratio that the engine tells as a level has no window.
            && (shape != Shape::Ratio || !found.source.over.is_empty())
        {
            window.values.insert(name, grown.value);
        }
        reading.values.insert(name, found.value);
        reading.from.insert(name, found.from);
    }
    rates_of_window(engine, growth, &mut reading);
    reading.marks.extend(doubts(&reading));
    if engine.role == Role::Accelerator {
        devices(engine, page, &mut reading);
    }
    reading
}

fn version(engine: &Engine, page: &Page) -> Option<String> {
    let has = |series: &String| {
        find(engine, page, series, Shape::Total).is_some()
            || find_distribution(engine, page, series).is_some()
    };
    let fits = engine.versions.iter().find(|v| v.has.iter().all(has) && !v.lacks.iter().any(has));
    fits.map(|version| version.says.clone())
}

struct Found<'a> {
    value: Measured,
    from: String,
    source: &'a Source,
    marks: Vec<&'static str>,
}

/// The value by the first way that the page offers. A way whose series are there but say nothing (no label set fits,
/// NaN, a sentinel) leads nowhere, and the next one is tried.
fn value<'a>(engine: &Engine, page: &Page, sources: &'a [Source], shape: Shape) -> Option<Found<'a>> {
    sources.iter().find_map(|source| one(engine, page, source, shape))
}

fn one<'a>(engine: &Engine, page: &Page, source: &'a Source, shape: Shape) -> Option<Found<'a>> {
    match shape {
        Shape::Times | Shape::Sizes => distribution(engine, page, source, shape == Shape::Times),
        Shape::Total | Shape::Level | Shape::Ratio => {
            let (value, from) = scalar(engine, page, source, shape)?;
            Some(Found { value: Measured::Number(value), from, source, marks: Vec::new() })
        }
    }
}

fn scalar(engine: &Engine, page: &Page, source: &Source, shape: Shape) -> Option<(f64, String)> {
    let (value, name) = plain(engine, page, source, &source.series, shape)?;
    if source.over.is_empty() {
        return Some((value * source.unit.scale(), name));
    }
    let under: Vec<f64> = source
        .over
        .iter()
        .filter_map(|series| plain(engine, page, source, series, shape))
        .map(|(value, _)| value)
        .collect();
    let under = (under.len() == source.over.len()).then(|| under.iter().sum::<f64>())?;
    let ratio = value / under;
    let from = format!("{name} / {}", source.over.join(" + "));
    // Nothing over nothing is unknown.
    (under > 0.0).then_some((ratio * source.unit.scale(), from))
}

fn plain(engine: &Engine, page: &Page, source: &Source, series: &str, shape: Shape) -> Option<(f64, String)> {
    if let Some(part) = source.part {
        let name = find_distribution(engine, page, series)?;
        let sets = distinct(&engine.labels, histograms(page, &name, source));
        let parts: Option<Vec<f64>> = sets
            .iter()
            .map(|(_, histogram)| match part {
                Part::Sum => histogram.sum,
                Part::Count => Some(histogram.count.unwrap_or_else(|| histogram.total())),
            })
            .collect();
        return Some((together(source.rule, &parts?)?, name));
    }
    let name = find(engine, page, series, shape)?;
    if !help_fits(source, page, name) {
        return None;
    }
    let sets = distinct(&engine.labels, values(page, name, source));
    let values: Vec<f64> = sets.into_iter().map(|(_, value)| value).collect();
    together(source.rule, &values)
        .or_else(|| not_yet(page, name, source))
        .map(|value| (value, name.to_owned()))
}

/// Labels appear with their first use: where a counter has a label but none of the values that are meant, that is zero.
fn not_yet(page: &Page, name: &str, source: &Source) -> Option<f64> {
    let series = page.series(name);
    let labelled = source
        .only
        .keys()
        .chain(source.without.keys())
        .all(|label| series.iter().all(|series| !series.label(label).is_empty()));
    let chosen = !source.only.is_empty() || !source.without.is_empty();
    let none = !series.iter().any(|series| fits(source, &series.labels));
    (chosen && labelled && none && !series.is_empty() && page.kind(name) == Kind::Counter).then_some(0.0)
}

fn distribution<'a>(engine: &Engine, page: &Page, source: &'a Source, seconds: bool) -> Option<Found<'a>> {
    let scale = source.unit.scale();
    if let Some(count) = &source.count {
        let (sum, from) = plain(engine, page, source, &source.series, Shape::Total)?;
        let (count, _) = plain(engine, page, source, count, Shape::Total)?;
        let mean = (count > 0.0).then(|| sum * scale / count);
        let value = Distribution { count, mean, seconds, ..Distribution::default() };
        return Some(Found { value: Measured::Distribution(value), from, source, marks: Vec::new() });
    }
    let from = find_distribution(engine, page, &source.series)?;
    if page.series(&format!("{from}_bucket")).is_empty() && !page.series(&from).is_empty() {
        let value = summary(engine, page, &from, source, seconds)?;
        return Some(Found { value: Measured::Distribution(value), from, source, marks: Vec::new() });
    }
    let sets = distinct(&engine.labels, histograms(page, &from, source));
    let sets: Vec<Histogram> = sets.into_iter().map(|(_, histogram)| histogram).collect();
    let whole = if source.rule == Rule::Max {
        sets.into_iter().reduce(|a, b| if b.total() > a.total() { b } else { a })
    } else {
        // Label sets without samples have nothing to say, not even bounds.
        let all = sets.clone();
        let used: Vec<Histogram> = sets.into_iter().filter(|histogram| histogram.total() > 0.0).collect();
        let sets = if used.is_empty() { all } else { used };
        sets.into_iter().reduce(|a, b| a.plus(&b))
    }?
    .scaled(scale);
    let mut marks = Vec::new();
    if whole.mended {
        marks.push("counts fall from bucket to bucket; lifted to the one before");
    }
    if whole.coarsened {
        marks.push("parts have different buckets; only bounds that all have are used");
    }
    if whole.sum.is_none() && whole.total() > 0.0 {
        marks.push("no sum, so no mean");
    }
    if whole.contradicts_itself() {
        marks.push("sum and buckets contradict each other: do not trust this metric");
    }
    let value = Measured::Distribution(whole.distribution(seconds));
    Some(Found { value, from, source, marks })
}

/// Quantiles that the server made cannot be put together: there are some only where one label set is left.
fn summary(engine: &Engine, page: &Page, name: &str, source: &Source, seconds: bool) -> Option<Distribution> {
    let scale = source.unit.scale();
    let sets = distinct(&engine.labels, histograms(page, name, source));
    let count = sets.iter().map(|(_, h)| h.total()).sum::<f64>();
    let sum = sets.iter().map(|(_, h)| h.sum).sum::<Option<f64>>();
    let [(labels, _)] = sets.as_slice() else {
        let mean = sum.filter(|_| count > 0.0).map(|sum| sum * scale / count);
        return (!sets.is_empty()).then(|| Distribution { count, mean, seconds, ..Distribution::default() });
    };
    let told = |p: f64| {
        let of = |series: &&crate::Series| {
            let own: Labels = series.labels.iter().filter(|(name, _)| name != "quantile").cloned().collect();
            own == *labels && series.label("quantile").parse::<f64>().is_ok_and(|q| (q - p).abs() < 1e-9)
        };
        let value = page.series(name).iter().find(of)?.value;
        value.is_finite().then_some(Quantile::Told(value * scale))
    };
    Some(Distribution {
        count,
        mean: sum.filter(|_| count > 0.0).map(|sum| sum * scale / count),
        quantiles: PROBABILITIES.map(|(p, _)| told(p)),
        seconds,
    })
}

/// Speeds of the window: tokens over the seconds that the engine spent on them, where it counts both.
fn rates_of_window(engine: &Engine, growth: Option<&Growth>, reading: &mut Reading) {
    let (Some(growth), Some(window)) = (growth, reading.window.as_mut()) else { return };
    for name in ["prefill_tokens_per_s", "decode_tokens_per_s"] {
        let shared = engine.metrics.get(name).into_iter().flatten().filter(|source| !source.over.is_empty());
        let found = shared
            .filter(|_| !growth.other_process)
            .find_map(|source| scalar(engine, &growth.page, source, Shape::Ratio));
        let known = names().find(|(known, _)| *known == name);
        if let (Some((value, _)), Some((name, _))) = (found, known) {
            window.values.insert(name, Measured::Number(value));
        }
    }
}

fn devices(engine: &Engine, page: &Page, reading: &mut Reading) {
    let mut hosts = BTreeSet::new();
    let mut devices = BTreeSet::new();
    for sources in engine.metrics.values() {
        for name in sources.iter().filter_map(|source| find(engine, page, &source.series, Shape::Total)) {
            for series in page.series(name) {
                let host =
                    engine.labels.host.iter().map(|name| series.label(name)).find(|host| !host.is_empty());
                hosts.extend(host.map(str::to_owned));
                devices.extend(
                    distinct(&engine.labels, vec![(series.labels.clone(), 0.0)])
                        .into_iter()
                        .map(|(key, _)| key),
                );
            }
        }
    }
    // A partition of a device is none of its own.
    for partition in ["GPU_I_ID", "gpu_partition_id"] {
        devices = devices
            .into_iter()
            .map(|labels| labels.into_iter().filter(|(name, _)| name != partition).collect())
            .collect();
    }
    reading.hosts = hosts.into_iter().collect();
    reading.devices = Some(devices.len());
}

impl Reading {
    /// Whether the page is one that Prometheus can scrape.
    pub fn is_prometheus(&self) -> bool {
        matches!(self.format, Format::Prometheus | Format::OpenMetrics)
    }
}

/// All canonical names are there, null where unknown; those of a window only if there is one.
impl Serialize for Reading {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("engine", &self.engine)?;
        map.serialize_entry("title", &self.title)?;
        map.serialize_entry("role", &self.role.map(Role::name))?;
        map.serialize_entry("version_guess", &self.version)?;
        map.serialize_entry("format", self.format.name())?;
        map.serialize_entry("is_prometheus", &self.is_prometheus())?;
        map.serialize_entry("series", &self.series)?;
        for (name, _) in names() {
            map.serialize_entry(name, &self.values.get(name))?;
        }
        map.serialize_entry("hosts", &(self.role == Some(Role::Accelerator)).then_some(&self.hosts))?;
        map.serialize_entry("devices", &self.devices)?;
        if let Some(window) = &self.window {
            map.serialize_entry("window_s", &window.seconds)?;
            map.serialize_entry("reset_detected", &window.reset_detected)?;
            map.serialize_entry("other_process", &window.other_process)?;
            for (name, _) in names().filter(|(_, shape)| shape.has_window()) {
                map.serialize_entry(&format!("{name}_window"), &window.values.get(name))?;
            }
        }
        map.serialize_entry("from", &self.from)?;
        map.serialize_entry("notes", &self.notes)?;
        map.serialize_entry("marks", &self.marks)?;
        if !self.also.is_empty() {
            map.serialize_entry("also", &self.also)?;
        }
        map.end()
    }
}

impl Serialize for Measured {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Distribution(distribution) => distribution.serialize(serializer),
            Self::Number(value) => number(*value).serialize(serializer),
        }
    }
}
