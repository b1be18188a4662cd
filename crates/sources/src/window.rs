//! What grew between two scrapes of one page.

use std::collections::{HashMap, HashSet};

use crate::page::{Kind, Labels, Page};

/// Seconds by which start times of one process may differ.
const SAME_START: f64 = 1.0;

/// Labels that tell apart what can restart by itself behind one page.
const INSTANCES: [&str; 9] =
    ["engine", "dp_rank", "worker", "worker_id", "WorkerId", "ReplicaId", "pod", "instance", "pid"];

/// The growth between two pages, itself a page.
pub(crate) struct Growth {
    pub(crate) page: Page,
    /// Something was restarted in between: what it did before is lost, and the window is a lower bound.
    pub(crate) reset: bool,
    /// The pages are of two processes, the later page of the older one: nothing can be said of the time between.
    pub(crate) other_process: bool,
    pub(crate) marks: Vec<String>,
}

/// What grew from `before` to `after`. After a restart, which the fall of a counter or a later start shows, growth is the
/// new value itself, as for `increase` of Prometheus.
pub(crate) fn growth(before: &Page, after: &Page) -> Growth {
    let moved = start(before).zip(start(after)).map_or(0.0, |(old, new)| new - old);
    let restarted = moved > SAME_START;
    let fallen = Fallen::find(before, after);
    let mut page = Page::new(after.format);
    page.about.clone_from(&after.about);
    let mut gone = 0_usize;
    for (name, series) in &after.series {
        let old: HashMap<&Labels, f64> = values(before, name);
        for series in series {
            // A series that was not there before began at zero: labels appear with their first use.
            let was = old.get(&series.labels).copied().filter(|value| value.is_finite()).unwrap_or(0.0);
            let anew = restarted
                || fallen.has(name, &series.labels)
                || began_later(before, after, name, &series.labels);
            page.push(
                name.clone(),
                series.labels.clone(),
                if anew { series.value } else { series.value - was },
            );
        }
    }
    for (name, series) in &before.series {
        let new = values(after, name);
        gone += series.iter().filter(|series| !new.contains_key(&series.labels)).count();
    }
    let reset = restarted || fallen.any() || some_began_later(before, after);
    let other_process = moved < -SAME_START;
    let mut marks = Vec::new();
    if other_process {
        marks.push(
            "the later page is of a process that started earlier: these are two processes behind one address, or the \
             pages are the wrong way round"
                .to_owned(),
        );
    } else if reset {
        marks.push(
            "counters began anew between the scrapes (a restart): what was counted before it is lost, so the window \
             is a lower bound"
                .to_owned(),
        );
    }
    if gone > 0 {
        marks.push(format!("{gone} series of the first scrape are gone in the second"));
    }
    Growth { page, reset: reset && !other_process, other_process, marks }
}

fn values<'a>(page: &'a Page, name: &str) -> HashMap<&'a Labels, f64> {
    page.series(name).iter().map(|series| (&series.labels, series.value)).collect()
}

/// When the process began: the latest of several.
fn start(page: &Page) -> Option<f64> {
    let starts = page.series("process_start_time_seconds").iter().map(|series| series.value);
    starts.filter(|value| value.is_finite()).reduce(f64::max)
}

/// Whether a sample is of something that only grows. Sums of times do.
fn counts(page: &Page, name: &str) -> bool {
    match page.kind(name) {
        Kind::Counter | Kind::Histogram => true,
        Kind::Summary => name.ends_with("_count"),
        Kind::Gauge => false,
        Kind::Untyped => ["_total", "_bucket", "_count"].iter().any(|suffix| name.ends_with(suffix)),
    }
}

/// The metric of a sample, and its labels without those of its parts.
fn whole<'a>(name: &'a str, labels: &Labels) -> (&'a str, Labels) {
    let stem = ["_bucket", "_count", "_sum", "_total"].iter().find_map(|suffix| name.strip_suffix(suffix));
    let own = labels.iter().filter(|(name, _)| name != "le" && name != "quantile");
    (stem.unwrap_or(name), own.cloned().collect())
}

fn instance(labels: &Labels) -> Labels {
    labels.iter().filter(|(name, _)| INSTANCES.contains(&name.as_str())).cloned().collect()
}

fn began_later(before: &Page, after: &Page, name: &str, labels: &Labels) -> bool {
    if after.created.is_empty() || before.created.is_empty() {
        return false;
    }
    let (name, labels) = whole(name, labels);
    is_later(before, after, &(name.to_owned(), labels))
}

fn is_later(before: &Page, after: &Page, key: &(String, Labels)) -> bool {
    before.created.get(key).zip(after.created.get(key)).is_some_and(|(old, new)| new - old > SAME_START)
}

fn some_began_later(before: &Page, after: &Page) -> bool {
    after.created.keys().any(|key| is_later(before, after, key))
}

/// What fell, and so began anew.
struct Fallen {
    /// Metrics of which a part fell: all their parts began anew, those too that have grown past their old value.
    metrics: HashSet<(String, Labels)>,
    /// Instances most of whose metrics fell: all of theirs began anew.
    instances: HashSet<Labels>,
}

impl Fallen {
    fn find(before: &Page, after: &Page) -> Self {
        let mut metrics = HashSet::new();
        let mut standing: HashSet<(String, Labels)> = HashSet::new();
        for name in after.series.keys().filter(|name| counts(after, name)) {
            let old = values(before, name);
            for series in after.series(name) {
                let Some(was) = old.get(&series.labels).filter(|was| **was > 0.0) else { continue };
                let (stem, labels) = whole(name, &series.labels);
                let key = (stem.to_owned(), labels);
                if series.value < *was {
                    metrics.insert(key)
                } else {
                    standing.insert(key)
                };
            }
        }
        let mut weights: HashMap<Labels, (usize, usize)> = HashMap::new();
        for (_, labels) in &metrics {
            weights.entry(instance(labels)).or_default().0 += 1;
        }
        for key in standing.difference(&metrics) {
            weights.entry(instance(&key.1)).or_default().1 += 1;
        }
        let instances =
            weights.into_iter().filter(|(_, (fell, stood))| fell > stood).map(|(labels, _)| labels).collect();
        Self { metrics, instances }
    }

    fn any(&self) -> bool {
        !self.metrics.is_empty()
    }

    fn has(&self, name: &str, labels: &Labels) -> bool {
        if !self.any() {
            return false;
        }
        let (stem, labels) = whole(name, labels);
        self.instances.contains(&instance(&labels)) || self.metrics.contains(&(stem.to_owned(), labels))
    }
}

#[cfg(test)]
#[allow(clippy::float_cmp, reason = "the arithmetic of these numbers is exact")]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn grown(before: &str, after: &str) -> Growth {
        growth(&Page::parse(before.as_bytes()).unwrap(), &Page::parse(after.as_bytes()).unwrap())
    }

    fn value(growth: &Growth, name: &str) -> f64 {
        growth.page.series(name).iter().map(|series| series.value).sum()
    }

    #[test]
    fn what_grows() {
        let growth = grown("a_total 5\n", "a_total 7\nnew_total{x=\"1\"} 3\n");
        assert_eq!((value(&growth, "a_total"), value(&growth, "new_total"), growth.reset), (2.0, 3.0, false));
    }

    #[test]
    fn a_fall_is_a_restart() {
        let growth = grown("a_total 5\nb_total 9\nc_total 1\n", "a_total 2\nb_total 4\nc_total 8\n");
        assert_eq!(value(&growth, "a_total"), 2.0);
        assert_eq!(value(&growth, "c_total"), 8.0, "most fell, so this one too");
        assert!(growth.reset);
    }

    #[test]
    fn one_of_several_engines_restarts() {
        let growth = grown(
            "a_total{engine=\"0\"} 50\na_total{engine=\"1\"} 60\n",
            "a_total{engine=\"0\"} 55\na_total{engine=\"1\"} 7\n",
        );
        assert_eq!((value(&growth, "a_total"), growth.reset), (12.0, true));
    }

    #[test]
    fn a_restart_that_only_the_start_shows() {
        let start = |at: f64, n: u32| format!("process_start_time_seconds {at}\na_total {n}\n");
        let growth = grown(&start(1000.0, 5), &start(1060.0, 8));
        assert_eq!((value(&growth, "a_total"), growth.reset), (8.0, true));
        let growth = grown(&start(1000.0, 5), &start(1000.2, 8));
        assert_eq!((value(&growth, "a_total"), growth.reset), (3.0, false));
        let twins = grown("a_total 5\na_created 1000\n", "a_total 8\na_created 1060\n");
        assert_eq!((value(&twins, "a_total"), twins.reset), (8.0, true));
    }

    #[test]
    fn another_worker_is_no_restart() {
        let growth = grown(
            "process_start_time_seconds 1060\na_total 50\n",
            "process_start_time_seconds 1000\na_total 8\n",
        );
        assert!(growth.other_process && !growth.reset);
    }

    proptest! {
        #[test]
        fn growth_is_never_negative(
            before in prop::collection::vec((0_u8..4, 0_u8..3, 0_u32..100), 1..20),
            after in prop::collection::vec((0_u8..4, 0_u8..3, 0_u32..100), 1..20),
        ) {
            let page = |rows: Vec<(u8, u8, u32)>| {
                let line = |(name, label, value)| format!("c{name}_total{{engine=\"{label}\"}} {value}\n");
                rows.into_iter().map(line).collect::<Vec<_>>().concat()
            };
            let growth = grown(&page(before), &page(after));
            for series in growth.page.series.values().flatten() {
                prop_assert!(series.value >= 0.0);
            }
        }
    }

    #[test]
    fn parts_of_a_histogram_stay_together() {
        let page = |slow: u32, count: u32, sum: f64| {
            format!(
                "# TYPE h histogram\nh_bucket{{le=\"1\"}} {slow}\nh_bucket{{le=\"+Inf\"}} {count}\nh_count {count}\nh_sum {sum}\n"
            )
        };
        let growth = grown(&page(5, 10, 30.0), &page(12, 12, 6.0));
        assert_eq!((value(&growth, "h_count"), value(&growth, "h_sum")), (12.0, 6.0), "the sum fell");
        assert!(growth.reset);
    }
}
