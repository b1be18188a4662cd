//! What does not fit together on a page.

use crate::histogram::Quantile;
use crate::reading::{Measured, Reading};

/// A first token within this, of every request, is no first token of a model.
const TOO_SOON: f64 = 0.001;

/// Requests from which on a pattern is one.
const SOME: f64 = 10.0;

/// What a reader should doubt, in words.
pub(crate) fn doubts(reading: &Reading) -> Vec<String> {
    let mut doubts = Vec::new();
    let number = |name: &str| reading.values.get(name).and_then(Measured::number);
    let Some(ttft) = reading.values.get("ttft").and_then(Measured::distribution) else { return doubts };
    if let Some(Quantile::Between(_, upper)) = ttft.quantiles[0]
        && upper <= TOO_SOON
        && ttft.count >= SOME
    {
        doubts.push(format!("ttft: every first token came within {} ms: this metric is broken", upper * 1e3));
    }
    if let Some(ok) = number("requests_finished_ok") {
        let ended = ok + number("requests_aborted").unwrap_or(0.0) + number("requests_failed").unwrap_or(0.0);
        let under_way = number("running").unwrap_or(0.0);
        if ttft.count > ended + under_way {
            let more = ttft.count - ended;
            doubts.push(format!(
                "{} first tokens, but {ended} requests that ended and {under_way} that run: {more} or fewer were \
                 given up by their clients, or began anew",
                ttft.count
            ));
        }
    }
    doubts
}

#[cfg(test)]
mod tests {
    use crate::{Catalogue, Page};

    fn marks(page: &str) -> Vec<String> {
        Catalogue::builtin().unwrap().read(&Page::parse(page.as_bytes()).unwrap()).marks
    }

    #[test]
    fn first_tokens_that_came_too_soon() {
        let page = |count: u32| {
            let name = "vllm:time_to_first_token_seconds";
            format!(
                "{name}_bucket{{le=\"0.001\"}} {count}\n{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_count {count}\n{name}_sum 0.001\n"
            )
        };
        assert!(marks(&page(208))[0].contains("broken"));
        assert!(marks(&page(2)).is_empty());
    }

    #[test]
    fn first_tokens_without_an_end() {
        let page = |ok: u32, running: u32| {
            format!(
                "vllm:time_to_first_token_seconds_count 10\nvllm:time_to_first_token_seconds_sum 1\nvllm:request_success_total{{finished_reason=\"stop\"}} {ok}\n\
                 vllm:num_requests_running {running}\n"
            )
        };
        assert!(
            marks(&page(7, 1))[0]
                .starts_with("10 first tokens, but 7 requests that ended and 1 that run: 3 or fewer")
        );
        assert!(marks(&page(8, 2)).is_empty());
        assert!(marks(&page(12, 0)).is_empty());
    }
}
