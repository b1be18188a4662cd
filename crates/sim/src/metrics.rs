//! The engine's own counters, and the Prometheus page that vLLM (V1) would show of them.

use std::fmt::Write;

use ttft_model::Nanos;

use crate::engine::Finish;

const TTFT: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0,
    80.0, 160.0, 640.0, 2560.0,
];
const PER_TOKEN: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
];
const REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0,
    960.0, 1920.0, 7680.0,
];
const LENGTH: &[f64] = &[
    1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0, 500.0, 1000.0, 2000.0, 5000.0, 10_000.0, 20_000.0,
    50_000.0, 100_000.0,
];
const ITERATION: &[f64] =
    &[1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16_384.0];
const PREEMPTIONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];

/// A Prometheus histogram.
#[derive(Debug, Clone)]
pub(crate) struct Histogram {
    bounds: &'static [f64],
    /// One per bound and one above the last, not cumulative.
    counts: Vec<u64>,
    sum: f64,
    count: u64,
}

impl Histogram {
    fn new(bounds: &'static [f64]) -> Self {
        Self { bounds, counts: vec![0; bounds.len() + 1], sum: 0.0, count: 0 }
    }

    pub(crate) fn observe(&mut self, value: f64) {
        let bucket = self.bounds.iter().position(|bound| value <= *bound).unwrap_or(self.bounds.len());
        self.counts[bucket] += 1;
        self.sum += value;
        self.count += 1;
    }
}

/// One sequence from arrival to its last token.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Life {
    pub(crate) arrival: Nanos,
    pub(crate) scheduled: Nanos,
    pub(crate) first: Nanos,
    pub(crate) last: Nanos,
    pub(crate) prompt: u32,
    pub(crate) generated: u32,
    pub(crate) target: u32,
    pub(crate) preemptions: u32,
    pub(crate) finish: Finish,
}

/// Everything on the page.
#[derive(Debug, Clone)]
pub(crate) struct Metrics {
    pub(crate) running: usize,
    pub(crate) waiting: usize,
    pub(crate) kv_usage: f64,
    pub(crate) prompt_tokens: u64,
    pub(crate) prompt_tokens_cached: u64,
    pub(crate) generation_tokens: u64,
    pub(crate) preemptions: u64,
    pub(crate) prefix_queries: u64,
    pub(crate) prefix_hits: u64,
    pub(crate) aborted: u64,
    finished_stop: u64,
    finished_length: u64,
    pub(crate) time_to_first_token: Histogram,
    pub(crate) inter_token_latency: Histogram,
    pub(crate) iteration_tokens: Histogram,
    time_per_output_token: Histogram,
    e2e: Histogram,
    queue: Histogram,
    inference: Histogram,
    prefill: Histogram,
    decode: Histogram,
    request_prompt_tokens: Histogram,
    request_generation_tokens: Histogram,
    request_max_tokens: Histogram,
    request_preemptions: Histogram,
}

impl Default for Metrics {
    fn default() -> Self {
        Self {
            running: 0,
            waiting: 0,
            kv_usage: 0.0,
            prompt_tokens: 0,
            prompt_tokens_cached: 0,
            generation_tokens: 0,
            preemptions: 0,
            prefix_queries: 0,
            prefix_hits: 0,
            aborted: 0,
            finished_stop: 0,
            finished_length: 0,
            time_to_first_token: Histogram::new(TTFT),
            inter_token_latency: Histogram::new(PER_TOKEN),
            iteration_tokens: Histogram::new(ITERATION),
            time_per_output_token: Histogram::new(PER_TOKEN),
            e2e: Histogram::new(REQUEST),
            queue: Histogram::new(REQUEST),
            inference: Histogram::new(REQUEST),
            prefill: Histogram::new(REQUEST),
            decode: Histogram::new(REQUEST),
            request_prompt_tokens: Histogram::new(LENGTH),
            request_generation_tokens: Histogram::new(LENGTH),
            request_max_tokens: Histogram::new(LENGTH),
            request_preemptions: Histogram::new(PREEMPTIONS),
        }
    }
}

impl Metrics {
    /// Counts a sequence that came to its end. As in vLLM, these are seen only now, TTFT and ITL as they happen.
    pub(crate) fn finished(&mut self, life: &Life) {
        match life.finish {
            Finish::Stop => self.finished_stop += 1,
            Finish::Length => self.finished_length += 1,
        }
        let seconds = |from: Nanos, to: Nanos| (to - from).as_secs_f64();
        self.e2e.observe(seconds(life.arrival, life.last));
        self.queue.observe(seconds(life.arrival, life.scheduled));
        self.inference.observe(seconds(life.scheduled, life.last));
        self.prefill.observe(seconds(life.scheduled, life.first));
        self.decode.observe(seconds(life.first, life.last));
        if life.generated > 1 {
            let gaps = f64::from(life.generated - 1);
            self.time_per_output_token.observe(seconds(life.first, life.last) / gaps);
        }
        self.request_prompt_tokens.observe(f64::from(life.prompt));
        self.request_generation_tokens.observe(f64::from(life.generated));
        self.request_max_tokens.observe(f64::from(life.target));
        self.request_preemptions.observe(f64::from(life.preemptions));
    }

    /// The page, in the text format of Prometheus.
    pub(crate) fn page(&self, model: &str) -> String {
        let mut page = Page { text: String::with_capacity(16 << 10), model: escape_label(model) };
        page.gauge(
            "num_requests_running",
            "Number of requests in model execution batches.",
            self.running as f64,
        );
        page.gauge(
            "num_requests_waiting",
            "Number of requests waiting to be processed.",
            self.waiting as f64,
        );
        page.gauge("kv_cache_usage_perc", "KV-cache usage. 1 means 100 percent usage.", self.kv_usage);
        for (name, help, value) in [
            (
                "prefix_cache_queries",
                "Prefix cache queries, in number of queried tokens.",
                self.prefix_queries,
            ),
            ("prefix_cache_hits", "Prefix cache hits, in number of cached tokens.", self.prefix_hits),
            ("num_preemptions", "Cumulative number of preemptions.", self.preemptions),
            ("prompt_tokens", "Number of prefill tokens processed.", self.prompt_tokens),
            ("prompt_tokens_cached", "Number of cached prompt tokens.", self.prompt_tokens_cached),
            ("generation_tokens", "Number of generation tokens processed.", self.generation_tokens),
        ] {
            page.head(&format!("{name}_total"), help, "counter");
            page.sample(&format!("{name}_total"), "", value as f64);
        }
        page.head("request_success_total", "Count of successfully processed requests.", "counter");
        for (reason, value) in [
            ("stop", self.finished_stop),
            ("length", self.finished_length),
            ("abort", self.aborted),
            ("error", 0),
        ] {
            page.sample("request_success_total", &format!("finished_reason=\"{reason}\","), value as f64);
        }
        for (name, help, histogram) in [
            ("request_prompt_tokens", "Number of prefill tokens per request.", &self.request_prompt_tokens),
            ("request_generation_tokens", "Number of tokens per answer.", &self.request_generation_tokens),
            (
                "iteration_tokens_total",
                "Histogram of number of tokens per engine_step.",
                &self.iteration_tokens,
            ),
            (
                "request_max_num_generation_tokens",
                "Most tokens that were asked for.",
                &self.request_max_tokens,
            ),
            ("time_to_first_token_seconds", "Time to first token in seconds.", &self.time_to_first_token),
            ("inter_token_latency_seconds", "Inter-token latency in seconds.", &self.inter_token_latency),
            (
                "request_time_per_output_token_seconds",
                "Time per output token of a request in seconds.",
                &self.time_per_output_token,
            ),
            ("e2e_request_latency_seconds", "End to end request latency in seconds.", &self.e2e),
            ("request_queue_time_seconds", "Time spent in WAITING phase for request.", &self.queue),
            ("request_inference_time_seconds", "Time spent in RUNNING phase for request.", &self.inference),
            ("request_prefill_time_seconds", "Time spent in PREFILL phase for request.", &self.prefill),
            ("request_decode_time_seconds", "Time spent in DECODE phase for request.", &self.decode),
            ("request_num_preemptions", "How often a request was preempted.", &self.request_preemptions),
        ] {
            page.histogram(name, help, histogram);
        }
        page.text
    }
}

struct Page {
    text: String,
    model: String,
}

impl Page {
    fn head(&mut self, name: &str, help: &str, kind: &str) {
        self.write(format_args!("# HELP vllm:{name} {help}\n# TYPE vllm:{name} {kind}\n"));
    }

    fn gauge(&mut self, name: &str, help: &str, value: f64) {
        self.head(name, help, "gauge");
        self.sample(name, "", value);
    }

    /// `extra` is further labels, each with its comma.
    fn sample(&mut self, name: &str, extra: &str, value: f64) {
        let model = std::mem::take(&mut self.model);
        self.write(format_args!("vllm:{name}{{engine=\"0\",{extra}model_name=\"{model}\"}} {value:?}\n"));
        self.model = model;
    }

    fn histogram(&mut self, name: &str, help: &str, histogram: &Histogram) {
        self.head(name, help, "histogram");
        let mut below = 0;
        let bucket = format!("{name}_bucket");
        for (bound, count) in histogram.bounds.iter().zip(&histogram.counts) {
            below += count;
            self.sample(&bucket, &format!("le=\"{bound:?}\","), below as f64);
        }
        self.sample(&bucket, "le=\"+Inf\",", histogram.count as f64);
        self.sample(&format!("{name}_count"), "", histogram.count as f64);
        self.sample(&format!("{name}_sum"), "", histogram.sum);
    }

    fn write(&mut self, text: std::fmt::Arguments<'_>) {
        // Writing to a String cannot fail.
        let _ = self.text.write_fmt(text);
    }
}

fn escape_label(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn page_has_the_names_labels_and_cumulative_buckets_of_vllm() {
        let mut metrics = Metrics { generation_tokens: 7, ..Metrics::default() };
        for seconds in [0.0005, 0.03, 0.03, 5000.0] {
            metrics.time_to_first_token.observe(seconds);
        }
        metrics.finished(&Life {
            arrival: Nanos(0),
            scheduled: Nanos::from_millis(100),
            first: Nanos::from_millis(300),
            last: Nanos::from_millis(1300),
            prompt: 500,
            generated: 11,
            target: 11,
            preemptions: 0,
            finish: Finish::Length,
        });
        let page = metrics.page("a\"b");
        for line in [
            "# TYPE vllm:time_to_first_token_seconds histogram",
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="a\"b"} 1.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="0.04",model_name="a\"b"} 3.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="2560.0",model_name="a\"b"} 3.0"#,
            r#"vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf",model_name="a\"b"} 4.0"#,
            r#"vllm:generation_tokens_total{engine="0",model_name="a\"b"} 7.0"#,
            r#"vllm:request_success_total{engine="0",finished_reason="length",model_name="a\"b"} 1.0"#,
            r#"vllm:request_queue_time_seconds_sum{engine="0",model_name="a\"b"} 0.1"#,
            r#"vllm:request_time_per_output_token_seconds_sum{engine="0",model_name="a\"b"} 0.1"#,
            r#"vllm:num_requests_running{engine="0",model_name="a\"b"} 0.0"#,
        ] {
            assert!(page.lines().any(|l| l == line), "{line}\nis missing in\n{page}");
        }
    }
}
