//! A page of metrics after parsing: series by name, whatever format they came in.

use std::collections::HashMap;

/// Label names and values, sorted by name.
pub type Labels = Vec<(String, String)>;

/// What a page was written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text.
    Prometheus,
    /// `OpenMetrics` text.
    OpenMetrics,
    /// JSON of an engine that is known.
    Json,
    /// The table that `nvidia-smi --query-gpu=… --format=csv` prints.
    NvidiaSmi,
}

impl Format {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Prometheus => "prometheus",
            Self::OpenMetrics => "openmetrics",
            Self::Json => "json",
            Self::NvidiaSmi => "nvidia-smi",
        }
    }
}

/// What a page says a metric is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Only grows, but for restarts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Cumulative buckets.
    Histogram,
    /// Quantiles that the server made.
    Summary,
    /// It does not say.
    Untyped,
}

/// One sample.
#[derive(Debug, Clone, PartialEq)]
pub struct Series {
    /// Labels.
    pub labels: Labels,
    /// Value.
    pub value: f64,
}

impl Series {
    /// The value of a label, empty if it has none: the two are the same to Prometheus.
    pub fn label(&self, name: &str) -> &str {
        label(&self.labels, name)
    }
}

pub(crate) fn label<'a>(labels: &'a Labels, name: &str) -> &'a str {
    labels.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
}

#[derive(Debug, Clone, Default)]
pub(crate) struct About {
    pub(crate) kind: Option<Kind>,
    pub(crate) help: String,
}

/// A page of metrics.
#[derive(Debug, Clone)]
pub struct Page {
    /// What it was written in.
    pub format: Format,
    /// What is odd about it, in words.
    pub marks: Vec<String>,
    pub(crate) series: HashMap<String, Vec<Series>>,
    pub(crate) about: HashMap<String, About>,
    /// When a counter, histogram or summary began, from its `_created` twin: seconds of the wall clock.
    pub(crate) created: HashMap<(String, Labels), f64>,
}

/// What a sample's name may have after the name of its metric.
const SUFFIXES: [&str; 4] = ["_total", "_bucket", "_count", "_sum"];

impl Page {
    pub(crate) fn new(format: Format) -> Self {
        Self {
            format,
            marks: Vec::new(),
            series: HashMap::new(),
            about: HashMap::new(),
            created: HashMap::new(),
        }
    }

    /// The series of that exact name.
    pub fn series(&self, name: &str) -> &[Series] {
        self.series.get(name).map_or(&[], Vec::as_slice)
    }

    /// All names that have series.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.series.keys().map(String::as_str)
    }

    /// How many series there are.
    pub fn len(&self) -> usize {
        self.series.values().map(Vec::len).sum()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.series.is_empty()
    }

    /// What the page says that the metric of a sample is.
    pub fn kind(&self, sample: &str) -> Kind {
        self.about(sample).and_then(|about| about.kind).unwrap_or(Kind::Untyped)
    }

    /// What the page says of the metric of a sample in words.
    pub fn help(&self, sample: &str) -> &str {
        self.about(sample).map_or("", |about| &about.help)
    }

    fn about(&self, sample: &str) -> Option<&About> {
        let known = |name: &str| self.about.get(name);
        known(sample).or_else(|| {
            let stems = SUFFIXES.iter().filter_map(|suffix| sample.strip_suffix(suffix));
            stems.chain([&*format!("{sample}_total")]).find_map(known)
        })
    }

    /// Adds a sample as it comes; [`Page::settle`] is to follow.
    pub(crate) fn push(&mut self, name: String, labels: Labels, value: f64) {
        self.series.entry(name).or_default().push(Series { labels, value });
    }

    /// Drops what stands twice, and the `_created` twins, which are instants and no values.
    pub(crate) fn settle(&mut self) {
        let mut twice = 0;
        for series in self.series.values_mut() {
            let before = series.len();
            series.sort_by(|a, b| a.labels.cmp(&b.labels));
            series.dedup_by(|a, b| a.labels == b.labels);
            twice += before - series.len();
        }
        if twice > 0 {
            self.marks.push(format!("{twice} series stand on the page twice: the first of each counts"));
        }
        let is_twin = |name: &&String| {
            name.strip_suffix("_created").is_some_and(|stem| {
                let of = |suffix: &str| self.series.contains_key(&format!("{stem}{suffix}"));
                of("_total") || of("_count") || of("_bucket") || of("")
            })
        };
        let twins: Vec<String> = self.series.keys().filter(is_twin).cloned().collect();
        for twin in twins {
            let stem = twin.strip_suffix("_created").unwrap_or_default().to_owned();
            for series in self.series.remove(&twin).into_iter().flatten() {
                self.created.insert((stem.clone(), series.labels), series.value);
            }
        }
    }
}
