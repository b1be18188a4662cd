//! The JSON that `trtllm-serve` has at `/metrics`: statistics of its iterations since the last poll.

use serde_json::Value;

use crate::page::{Format, Labels, Page};

/// A key of an iteration's statistics that no other JSON has.
const TELLING: [&str; 4] = ["iterLatencyMS", "numActiveRequests", "kvCacheStats", "inflightBatchingStats"];

/// The page of such statistics; none if the JSON is something else. Of several iterations the last one stands:
/// `kvCacheStats.usedNumBlocks` becomes `trtllm_json:kvCacheStats.usedNumBlocks`.
pub(crate) fn page(value: &Value) -> Option<Page> {
    let last = match value {
        Value::Array(iterations) if iterations.is_empty() => {
            // Each poll empties the list.
            let mut page = Page::new(Format::Json);
            page.push("trtllm_json:iterations".to_owned(), Labels::new(), 0.0);
            page.marks.push("an empty list: nothing ran since the last poll".to_owned());
            return Some(page);
        }
        Value::Array(iterations) => iterations.last()?,
        other => other,
    };
    let object = last.as_object()?;
    if !TELLING.iter().any(|key| object.contains_key(*key)) {
        return None;
    }
    let mut page = Page::new(Format::Json);
    let iterations = value.as_array().map_or(1, Vec::len);
    page.push("trtllm_json:iterations".to_owned(), Labels::new(), iterations as f64);
    for (key, value) in object {
        match value {
            Value::Object(inner) => {
                for (inner_key, value) in inner {
                    add(&mut page, &format!("{key}.{inner_key}"), value);
                }
            }
            value => add(&mut page, key, value),
        }
    }
    page.marks.push(
        "JSON of single iterations, not Prometheus text: no latencies; for those start trtllm-serve with \
         return_perf_metrics and read /prometheus/metrics"
            .to_owned(),
    );
    page.settle();
    Some(page)
}

fn add(page: &mut Page, key: &str, value: &Value) {
    if let Some(value) = value.as_f64() {
        page.push(format!("trtllm_json:{key}"), Labels::new(), value);
    }
}
