//! From the label sets of a series to one value, without counting anything twice.

use std::collections::BTreeMap;

use crate::canonical::Shape;
use crate::engine::{Engine, LabelRules, Rule, Source};
use crate::histogram::Histogram;
use crate::page::{Labels, Page, label};

/// One label set with what it holds: a number, or a histogram.
pub(crate) trait Weigh: Clone {
    /// What tells the larger of two.
    fn weight(&self) -> f64;
}

impl Weigh for f64 {
    fn weight(&self) -> f64 {
        *self
    }
}

impl Weigh for Histogram {
    fn weight(&self) -> f64 {
        self.total()
    }
}

/// The name under which the page has a series of that metric: as it is, or with the `_total` that exporters add to counters
/// or not. The `_total` goes first: some have both, for the same count. Levels have none: what is called so beside
/// them is something else.
pub(crate) fn find<'a>(engine: &Engine, page: &'a Page, series: &str, shape: Shape) -> Option<&'a str> {
    engine.names(series).find_map(|name| {
        let with =
            (shape != Shape::Level).then(|| page.series.get_key_value(&format!("{name}_total"))).flatten();
        with.or_else(|| page.series.get_key_value(&name)).map(|(name, _)| name.as_str())
    })
}

/// The name of a histogram or a summary that the page has.
pub(crate) fn find_distribution(engine: &Engine, page: &Page, series: &str) -> Option<String> {
    engine.names(series).find(|name| {
        let has = |suffix: &str| page.series.contains_key(&format!("{name}{suffix}"));
        has("_bucket") || has("_count")
    })
}

/// Whether a label set is meant.
pub(crate) fn fits(source: &Source, labels: &Labels) -> bool {
    let fits =
        |(name, values): (&String, &Vec<String>)| values.iter().any(|value| value == label(labels, name));
    source.only.iter().all(fits) && !source.without.iter().any(fits)
}

/// Whether the page's words on a metric are those that are asked for.
pub(crate) fn help_fits(source: &Source, page: &Page, name: &str) -> bool {
    let help = page.help(name).to_ascii_lowercase();
    source.help.as_ref().is_none_or(|word| help.contains(word.as_str()))
        && source.not_help.as_ref().is_none_or(|word| !help.contains(word.as_str()))
}

/// The label sets that are left when copies, parts of totals and views of the same thing are gone.
pub(crate) fn distinct<T: Weigh>(rules: &LabelRules, mut sets: Vec<(Labels, T)>) -> Vec<(Labels, T)> {
    if !rules.identity.is_empty() {
        sets = largest(sets, |labels| {
            let identity = rules.identity.iter().map(|one| {
                let mut values = one.names().iter().map(|name| (name, label(labels, name)));
                let value = values.find(|(_, value)| !value.is_empty()).map_or("", |(_, value)| value);
                (one.names()[0].clone(), value.to_owned())
            });
            identity.collect()
        });
    }
    if !rules.copies.is_empty() {
        sets = largest(sets, |labels| {
            labels.iter().filter(|(name, _)| !rules.copies.contains(name)).cloned().collect()
        });
    }
    for (name, total) in &rules.totals {
        let without = |labels: &Labels| -> Labels {
            labels.iter().filter(|(known, _)| known != name).cloned().collect()
        };
        let totals: std::collections::BTreeSet<Labels> = sets
            .iter()
            .filter(|(labels, _)| label(labels, name) == total)
            .map(|(labels, _)| without(labels))
            .collect();
        sets.retain(|(labels, _)| label(labels, name) == total || !totals.contains(&without(labels)));
    }
    sets
}

/// Of the sets with the same key the largest, under that key.
fn largest<T: Weigh>(sets: Vec<(Labels, T)>, key: impl Fn(&Labels) -> Labels) -> Vec<(Labels, T)> {
    let mut kept: BTreeMap<Labels, T> = BTreeMap::new();
    for (labels, value) in sets {
        let key = key(&labels);
        match kept.get(&key) {
            Some(known) if known.weight() >= value.weight() => {}
            _ => {
                kept.insert(key, value);
            }
        }
    }
    kept.into_iter().collect()
}

/// One number of several.
pub(crate) fn together(rule: Rule, values: &[f64]) -> Option<f64> {
    let sum: f64 = values.iter().sum();
    match (values.len(), rule) {
        (0, _) => None,
        (_, Rule::Sum) => Some(sum),
        (n, Rule::Avg) => Some(sum / n as f64),
        (_, Rule::Max) => values.iter().copied().reduce(f64::max),
    }
}

/// The histograms of a metric, one a label set.
pub(crate) fn histograms(page: &Page, name: &str, source: &Source) -> Vec<(Labels, Histogram)> {
    #[derive(Default)]
    struct Parts {
        buckets: Vec<(f64, f64)>,
        sum: Option<f64>,
        count: Option<f64>,
    }
    let mut sets: BTreeMap<Labels, Parts> = BTreeMap::new();
    for series in page.series(&format!("{name}_bucket")) {
        let Ok(bound) = series.label("le").parse::<f64>() else { continue };
        let labels: Labels = series.labels.iter().filter(|(name, _)| name != "le").cloned().collect();
        sets.entry(labels).or_default().buckets.push((bound, series.value));
    }
    for series in page.series(&format!("{name}_sum")) {
        sets.entry(series.labels.clone()).or_default().sum = Some(series.value);
    }
    for series in page.series(&format!("{name}_count")) {
        sets.entry(series.labels.clone()).or_default().count = Some(series.value);
    }
    // A sum alone counts nothing.
    sets.into_iter()
        .filter(|(labels, parts)| {
            fits(source, labels) && (parts.count.is_some() || !parts.buckets.is_empty())
        })
        .map(|(labels, parts)| (labels, Histogram::new(parts.buckets, parts.sum, parts.count)))
        .collect()
}

/// The finite values of a series that are possible at all, one a label set.
pub(crate) fn values(page: &Page, name: &str, source: &Source) -> Vec<(Labels, f64)> {
    let possible = |value: f64| {
        value.is_finite() && source.valid.is_none_or(|(least, most)| (least..=most).contains(&value))
    };
    let series =
        page.series(name).iter().filter(|series| fits(source, &series.labels) && possible(series.value));
    series.map(|series| (series.labels.clone(), series.value)).collect()
}
