//! The names that values have here, whatever an engine calls them.

/// What kind of value stands behind a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Times of requests, in seconds: count, mean and quantiles.
    Times,
    /// Other sizes: count, mean and quantiles without unit.
    Sizes,
    /// A total that only grows.
    Total,
    /// A level that goes up and down.
    Level,
    /// A part of a whole made of two totals, or a level where an engine gives only that.
    Ratio,
}

/// All names, in the order in which they are told.
const NAMES: &[(&str, Shape)] = &[
    ("ttft", Shape::Times),
    ("queue_time", Shape::Times),
    ("prefill_time", Shape::Times),
    ("decode_time", Shape::Times),
    ("inference_time", Shape::Times),
    ("itl_per_output_event", Shape::Times),
    ("tpot_per_request", Shape::Times),
    ("e2e", Shape::Times),
    ("gateway_overhead", Shape::Times),
    ("upstream_time", Shape::Times),
    ("tokens_per_engine_step", Shape::Sizes),
    ("running", Shape::Level),
    ("waiting", Shape::Level),
    ("kv_cache_usage_ratio", Shape::Level),
    ("preemptions", Shape::Total),
    ("prefix_cache_hit_ratio_tokens", Shape::Ratio),
    ("prefix_cache_hit_ratio_blocks", Shape::Ratio),
    ("cached_prompt_tokens", Shape::Total),
    ("prompt_tokens", Shape::Total),
    ("generation_tokens", Shape::Total),
    ("requests_finished_ok", Shape::Total),
    ("requests_aborted", Shape::Total),
    ("requests_failed", Shape::Total),
    ("prefill_tokens_per_s", Shape::Ratio),
    ("decode_tokens_per_s", Shape::Ratio),
    ("prefill_time_s", Shape::Total),
    ("decode_time_s", Shape::Total),
    ("gpu_util_percent", Shape::Level),
    ("gr_engine_active", Shape::Level),
    ("fb_used_bytes", Shape::Level),
    ("fb_total_bytes", Shape::Level),
    ("power_watts", Shape::Level),
    ("temperature_celsius", Shape::Level),
    ("energy_joules", Shape::Total),
];

/// All canonical names, in the order in which they are told.
pub fn names() -> impl Iterator<Item = (&'static str, Shape)> {
    NAMES.iter().copied()
}

/// What kind of value a name stands for, with the name as it lives here.
pub fn shape(name: &str) -> Option<(&'static str, Shape)> {
    names().find(|(known, _)| *known == name)
}

impl Shape {
    /// Whether it grows over a window, so that a window has a value of its own.
    pub(crate) fn has_window(self) -> bool {
        self != Self::Level
    }
}
