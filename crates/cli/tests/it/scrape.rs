//! Metrics pages scraped beside a run: what is kept of them, and that a bad one disturbs nothing.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};

use crate::home::{Done, Home, finish, signal, wait_for};
use crate::raw_server::{answer, events, serve};
use crate::sim::Sim;

const QUICK: &str = "-n 12 --warmup 3 --max-tokens 4";

/// The lines of a file of scrapes behind its first one.
fn scrapes(home: &Home, name: &str) -> Vec<Value> {
    let text = home.read(name);
    let mut lines = text.lines();
    assert_eq!(lines.next(), Some("{\"schema\":\"ttft.scrapes/1\"}"));
    lines.map(|line| serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"))).collect()
}

fn sample(path: &str) -> String {
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../engines").join(path)).unwrap()
}

/// What a stage's source told in the summary.
fn source(home: &Home, folder: &str, stage: usize, at: usize) -> Value {
    home.summary(folder)["stages"][stage]["server"]["sources"][at].clone()
}

fn is_same_again(home: &Home, folder: &str) {
    assert_eq!(home.ttft(&format!("report {folder} --json")).expect(0).json(), home.summary(folder));
}

/// Serves connection by connection whatever `talk` does with it, after its request was read.
fn serve_raw(talk: impl Fn(&mut TcpStream) -> std::io::Result<()> + Clone + Send + 'static) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let talk = talk.clone();
            std::thread::spawn(move || {
                let mut room = [0; 4096];
                let _ = stream.read(&mut room).and_then(|_| talk(&mut stream));
            });
        }
    });
    url
}

#[test]
fn the_window_of_a_stage_holds_its_requests_and_no_other() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let done = home.ttft(&format!("run {} -c 1,3 {QUICK} --out out", sim.url)).expect(0);
    assert!(done.err.contains(&format!("server metrics from {}/metrics (vLLM", sim.url)), "{done}");
    let summary = home.summary("out");
    assert_eq!(summary["run"]["engine"], "vllm");
    for stage in 0..2 {
        let of = source(&home, "out", stage, 0);
        assert_eq!(of["window"]["requests_finished_ok"], 12.0, "{of}");
        assert_eq!(of["window"]["ttft"]["count"], 12, "{of}");
        assert_eq!(of["window"]["generation_tokens"], 48.0, "{of}");
        assert_eq!((&of["reset_detected"], &of["missed"]), (&json!(false), &json!(0)), "{of}");
    }
    let lines = scrapes(&home, "out/server.jsonl");
    let edges: Vec<_> = lines.iter().filter(|line| line["kind"] != "sample").collect();
    let names: Vec<_> = edges.iter().map(|line| (line["kind"].as_str().unwrap(), &line["stage"])).collect();
    let (none, zero, one) = (Value::Null, json!(0), json!(1));
    assert_eq!(
        names,
        [("begin", &none), ("end", &none), ("begin", &zero), ("end", &zero), ("begin", &one), ("end", &one)]
    );
    // The page itself is kept where it is needed.
    assert!(edges[2..].iter().all(|line| line["page_gz"].is_string()), "{names:?}");
    assert!(lines.iter().filter(|line| line["kind"] == "sample").all(|line| line["page_gz"].is_null()));

    // The edges lie around the stage, on its own axis.
    let facts: Value = serde_json::from_str(&home.read("out/run.json")).unwrap();
    let at = |line: &Value, name: &str| line[name].as_i64().unwrap();
    for (stage, pair) in facts["stages"].as_array().unwrap().iter().zip(edges[2..].chunks(2)) {
        assert!(at(pair[0], "at_ns") + at(pair[0], "duration_ns") <= at(stage, "start"));
        assert!(at(pair[1], "at_ns") >= at(stage, "end"));
    }
    is_same_again(&home, "out");
}

#[test]
fn a_server_that_counts_late_is_asked_again_at_the_end_of_a_stage() {
    let home = Home::new();
    // What has ended by now, and what had at the last look, which is what the page tells.
    let counts = Arc::new(Mutex::new((0, 0)));
    let shared = counts.clone();
    let url = serve(move |asked| {
        let mut counts = shared.lock().unwrap();
        if asked.is_post() {
            counts.0 += 1;
            return events(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"]);
        }
        let (ended, told) = *counts;
        counts.1 = ended;
        let page = "# TYPE vllm:request_success_total counter\nvllm:request_success_total";
        answer("200 OK", "", &format!("{page}{{engine=\"0\",finished_reason=\"stop\"}} {told}\n"))
    });
    home.ttft(&format!("run {url} --model m -c 2,1 -n 7 --warmup 3 --out out")).expect(0);
    for stage in 0..2 {
        let of = source(&home, "out", stage, 0);
        assert_eq!(of["window"]["requests_finished_ok"], 7.0, "{of}");
    }
    assert_eq!(counts.lock().unwrap().0, 17);
}

#[test]
fn levels_are_sampled_while_a_stage_runs() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    home.ttft(&format!("run {} -c 3 -d 2500ms --warmup 0 --max-tokens 100 --out out", sim.url)).expect(0);
    let of = source(&home, "out", 0, 0);
    assert!(of["scrapes"].as_u64().unwrap() >= 2, "{of}");
    assert!(of["levels"]["running"]["max"].as_f64().unwrap() >= 1.0, "{of}");
}

#[test]
fn the_built_in_engine_is_scraped_too_and_a_plan_repeats_it() {
    let home = Home::new();
    home.ttft(&format!("run sim:instant -c 2 {QUICK} --out out")).expect(0);
    assert_eq!(source(&home, "out", 0, 0)["engine"], "vllm");
    home.ttft("run --plan out/plan.toml --out again").expect(0);
    assert_eq!(source(&home, "again", 0, 0)["engine"], "vllm");
    home.ttft("run --plan out/plan.toml --no-server-metrics --out without").expect(0);
    assert_eq!(home.summary("without")["stages"][0]["server"]["sources"], json!([]));
    assert!(!home.path("without/server.jsonl").exists());
    assert!(home.read("without/plan.toml").contains("find = false"));
}

#[test]
fn nothing_is_asked_when_it_is_switched_off() {
    let home = Home::new();
    let asked = Arc::new(AtomicUsize::new(0));
    let counter = asked.clone();
    let url = serve(move |asked| {
        counter.fetch_add(usize::from(!asked.is_post()), Ordering::SeqCst);
        events(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"])
    });
    home.ttft(&format!("run {url} --model m -c 1 -n 3 --warmup 0 --no-server-metrics --out out")).expect(0);
    assert_eq!(asked.load(Ordering::SeqCst), 0);
    let done = home.ttft(&format!("run {url} --model m -c 1 -n 3 --warmup 0 --out found")).expect(0);
    assert!(asked.load(Ordering::SeqCst) > 0 && !done.err.contains("server metrics from"), "{done}");
    assert!(!home.path("found/server.jsonl").exists(), "what is found must be of an engine that is known");
}

/// Runs beside a metrics server, whatever that is like; the load is as it should be.
#[track_caller]
fn run_beside(home: &Home, metrics: &str) -> Done {
    let sim = Sim::start(home, "");
    let flags = format!("-c 2 -n 12 --warmup 0 --max-tokens 4 --server-metrics {metrics} --out out");
    let done = home.ttft(&format!("run {} {flags}", sim.url)).expect(0);
    assert_eq!(home.stage("out")["requests"]["ok"], 12, "{done}");
    is_same_again(home, "out");
    done
}

#[track_caller]
fn leaves_a_gap(metrics: &str, class: &str, words: &str) {
    let home = Home::new();
    let done = run_beside(&home, metrics);
    assert!(done.err.contains("no metrics from http") && done.err.contains(words), "{done}");
    let lines = scrapes(&home, "out/server.jsonl");
    assert!(!lines.is_empty());
    for line in &lines {
        // An edge that was missed since the source still hung is that.
        assert!(line["error"]["class"] == class || line["error"]["class"] == "late", "{line}");
        assert_eq!(line["values"], json!({}), "a gap, no zero: {line}");
    }
    let of = source(&home, "out", 0, 0);
    assert!(of["missed"].as_u64().unwrap() >= 1, "{of}");
    assert_eq!((&of["window"], &of["levels"], &of["engine"]), (&json!({}), &json!({}), &Value::Null), "{of}");
}

#[test]
fn what_is_no_page_leaves_a_gap() {
    let page = |status: &'static str, body: &'static str| serve(move |_| answer(status, "", body));
    leaves_a_gap(&page("200 OK", "<html><title>Log in</title>"), "html", "HTML (`Log in`)");
    leaves_a_gap(&page("200 OK", r#"{"detail":"nothing"}"#), "json", "JSON");
    leaves_a_gap(&page("200 OK", ""), "empty", "empty");
    leaves_a_gap(&page("401 Unauthorized", "key?"), "http_auth", "401");
    leaves_a_gap(&page("404 Not Found", ""), "http_not_found", "404");
    leaves_a_gap("http://127.0.0.1:1/metrics", "connect_refused", "refused");
}

#[test]
fn a_server_that_hangs_or_dribbles_or_floods_leaves_a_gap() {
    let hangs = serve_raw(|_| {
        loop {
            std::thread::park();
        }
    });
    leaves_a_gap(&hangs, "timeout_total", "in time");
    // 200 MB, a byte at a time.
    let dribbles = serve_raw(|stream| {
        stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 200000000\r\n\r\n")?;
        loop {
            stream.write_all(b"#")?;
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
    });
    leaves_a_gap(&dribbles, "timeout_total", "in time");
    let packed = flooded();
    let floods = serve_raw(move |stream| {
        let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", packed.len());
        stream.write_all(head.as_bytes())?;
        stream.write_all(&packed)
    });
    leaves_a_gap(&floods, "too_large", "larger than 16 MiB");
}

/// A small answer that unpacks to more than is read.
fn flooded() -> Vec<u8> {
    gzip(&vec![b'#'; (16 << 20) + 1])
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(bytes).unwrap();
    packer.finish().unwrap()
}

#[test]
fn a_packed_page_is_read() {
    let home = Home::new();
    let packed = gzip(sample("vllm/samples/0.32-run.1.prom").as_bytes());
    let url = serve_raw(move |stream| {
        let head =
            format!("HTTP/1.1 200 OK\r\ncontent-encoding: gzip\r\ncontent-length: {}\r\n\r\n", packed.len());
        stream.write_all(head.as_bytes())?;
        stream.write_all(&packed)
    });
    run_beside(&home, &url);
    let of = source(&home, "out", 0, 0);
    assert_eq!((&of["engine"], &of["missed"]), (&json!("vllm"), &json!(0)), "{of}");
    assert_eq!(of["window"]["requests_finished_ok"], 0.0, "the page never changes: {of}");
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_gaps_from_then_on() {
    let home = Home::new();
    let sim = Sim::start(&home, "--truth truth.jsonl");
    let metrics = Sim::start(&home, "");
    let flags = "-c 2 -d 10m --warmup 0 --max-tokens 40 --ignore-eos --out out";
    let line = format!("run {} --server-metrics {} {flags}", sim.url, metrics.url);
    let run = home.command().args(line.split_whitespace()).spawn().unwrap();
    let kinds = |error: bool| {
        let text = std::fs::read_to_string(home.path("out/server.jsonl")).unwrap_or_default();
        text.lines().filter(|line| line.contains("\"error\":{") == error).count()
    };
    wait_for("scrapes", || (kinds(false) >= 4).then_some(()));
    drop(metrics);
    wait_for("gaps", || (kinds(true) >= 2).then_some(()));
    signal(run.id(), "INT");
    finish(run).expect(130);
    let of = source(&home, "out", 0, 0);
    assert!(of["missed"].as_u64().unwrap() >= 2 && of["scrapes"].as_u64().unwrap() >= 1, "{of}");
    assert_eq!((&of["window"], &of["reset_detected"]), (&json!({}), &Value::Null), "{of}");
    assert_eq!(home.stage("out")["requests"]["failed"], 0);
    is_same_again(&home, "out");
}

#[test]
fn kill_9_keeps_the_scrapes() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let flags = "-c 2 -d 10m --warmup 0 --max-tokens 40 --ignore-eos --out out";
    let line = format!("run {} {flags}", sim.url);
    let run = home.command().args(line.split_whitespace()).spawn().unwrap();
    wait_for("scrapes", || {
        let text = std::fs::read_to_string(home.path("out/server.jsonl")).unwrap_or_default();
        (text.lines().filter(|line| line.contains("\"kind\":\"sample\"")).count() >= 3).then_some(())
    });
    signal(run.id(), "KILL");
    finish(run);
    let summary = home.ttft("report out --json").expect(0).json();
    let of = &summary["stages"][0]["server"]["sources"][0];
    assert!(of["scrapes"].as_u64().unwrap() >= 1, "{of}");
    assert_eq!((&of["window"], &summary["run"]["engine"]), (&json!({}), &json!("vllm")), "{of}");

    // Half a line at its end is told of, and passed over.
    let bytes = std::fs::read(home.path("out/server.jsonl")).unwrap();
    std::fs::write(home.path("out/server.jsonl"), &bytes[..bytes.len() - 9]).unwrap();
    let report = home.ttft("report out").expect(0);
    assert!(report.err.contains("out/server.jsonl: 1 unreadable lines are passed over"), "{report}");
}

#[test]
fn a_key_goes_only_to_a_page_of_the_same_server_that_asks_for_one() {
    const SECRET: &str = "sk-sEcReT-0123456789";
    let home = Home::new();
    let page = sample("vllm/samples/0.32-run.1.prom");
    let told = format!("{page}x_total{{key=\"{SECRET}\"}} 1\n");
    let keys = Arc::new(Mutex::new(Vec::new()));
    let seen = keys.clone();
    let endpoint = serve(move |asked| {
        let key = asked.header("authorization").unwrap_or("none").to_owned();
        if asked.is_post() {
            return events(&[r#"{"choices":[{"delta":{"content":"a"},"finish_reason":"stop"}]}"#, "[DONE]"]);
        }
        seen.lock().unwrap().push(key.clone());
        if key == "none" { answer("401 Unauthorized", "", "") } else { answer("200 OK", "", &told) }
    });
    let elsewhere = serve(|asked| {
        assert_eq!(asked.header("authorization"), None);
        answer("401 Unauthorized", "", "")
    });
    let mut command = home.command();
    let flags = format!("--server-metrics {endpoint} --server-metrics {elsewhere} --out out");
    command.env("OPENAI_API_KEY", SECRET);
    command.args(format!("run {endpoint} --model m -c 1 -n 3 --warmup 0 {flags}").split_whitespace());
    let done = finish(command.spawn().unwrap()).expect(0);
    let keys = keys.lock().unwrap();
    assert_eq!(keys[..2], ["none".to_owned(), format!("Bearer {SECRET}")], "asked for first");
    assert!(keys[2..].iter().all(|key| key != "none"), "and known from then on: {keys:?}");
    for at in 0..2 {
        let of = source(&home, "out", 0, at);
        let is_endpoint = of["source"].as_str().unwrap().starts_with(&endpoint);
        assert_eq!(of["engine"], if is_endpoint { json!("vllm") } else { Value::Null }, "{of}");
    }
    for entry in std::fs::read_dir(home.path("out")).unwrap() {
        let bytes = std::fs::read(entry.unwrap().path()).unwrap();
        assert!(!bytes.windows(SECRET.len()).any(|window| window == SECRET.as_bytes()));
    }
    assert!(!done.err.contains(SECRET) && !done.out.contains(SECRET), "{done}");
    // It is not in what is packed, either.
    let lines = scrapes(&home, "out/server.jsonl");
    let packed = lines.iter().find_map(|line| line["page_gz"].as_str()).unwrap();
    let page = unpacked(packed);
    assert!(page.contains("x_total{key=\"<redacted>\"} 1") && !page.contains(SECRET));
}

fn unpacked(text: &str) -> String {
    use base64::Engine;
    let bytes = base64::prelude::BASE64_STANDARD.decode(text).unwrap();
    let mut page = String::new();
    flate2::read::GzDecoder::new(&bytes[..]).read_to_string(&mut page).unwrap();
    page
}

#[test]
fn secrets_in_a_url_are_used_and_not_kept() {
    let home = Home::new();
    let page = sample("vllm/samples/0.32-run.1.prom");
    let asked = Arc::new(Mutex::new(BTreeSet::new()));
    let seen = asked.clone();
    let url = serve(move |asked| {
        seen.lock().unwrap().insert(asked.head.lines().next().unwrap_or_default().to_owned());
        answer("200 OK", "", &page)
    });
    run_beside(&home, &format!("{url}/metrics?token=hunter2hunter2"));
    assert!(asked.lock().unwrap().iter().all(|line| line.contains("token=hunter2hunter2")));
    for name in ["plan.toml", "run.json", "server.jsonl", "summary.json"] {
        let text = home.read(&format!("out/{name}"));
        assert!(!text.contains("hunter2") && text.contains("token=<redacted>"), "{name}");
    }
}

#[test]
fn accelerators_have_a_file_of_their_own() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let (page, table) =
        (sample("dcgm-exporter/samples/two-hosts.prom"), sample("nvidia-smi/samples/query.csv"));
    let exporter = serve(move |_| answer("200 OK", "", &page));
    // A program of that name on the path stands for the real one.
    std::fs::create_dir(home.path("bin")).unwrap();
    home.write("table.csv", &table);
    let script = format!("#!/bin/sh\nexec cat {}\n", home.path("table.csv").display());
    home.write("bin/nvidia-smi", &script);
    std::fs::set_permissions(home.path("bin/nvidia-smi"), std::fs::Permissions::from_mode(0o755)).unwrap();
    let path = format!("{}:{}", home.path("bin").display(), std::env::var("PATH").unwrap());
    let flags = format!("--gpu-metrics {exporter} --gpu-metrics nvidia-smi --out out");
    let mut command = home.command();
    command.env("PATH", path).args(format!("run {} -c 1 {QUICK} {flags}", sim.url).split_whitespace());
    finish(command.spawn().unwrap()).expect(0);
    let engines: BTreeSet<_> = scrapes(&home, "out/gpu.jsonl")
        .iter()
        .map(|line| line["engine"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(engines, BTreeSet::from(["dcgm-exporter".to_owned(), "nvidia-smi".to_owned()]));
    let roles: Vec<_> = (0..3).map(|at| source(&home, "out", 0, at)["role"].clone()).collect();
    assert_eq!(roles, ["engine", "accelerator", "accelerator"]);
    assert_eq!(home.summary("out")["run"]["engine"], "vllm", "the engine is no accelerator");
}

#[test]
fn what_names_no_page_is_an_error_of_usage() {
    let home = Home::new();
    for flags in [
        "--server-metrics page.prom",
        "--server-metrics nvidia-smi",
        "--gpu-metrics -",
        "--server-metrics http://",
    ] {
        let done = home.ttft(&format!("run sim:instant {flags}")).expect(2);
        assert!(done.err.starts_with("error: "), "{done}");
    }
    home.ttft("run sim:instant --server-metrics http://h --no-server-metrics").expect(2);
}

#[test]
fn a_disk_that_takes_no_more_scrapes_stops_the_run_in_order() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    // A page that hardly shrinks: each stage adds some megabytes to the file.
    let page = sample("vllm/samples/0.32-run.1.prom") + &noise(3 << 20);
    let url = serve(move |_| answer("200 OK", "", &page));
    let flags = format!("-c 1,1,1,1,1,1 -n 3 --warmup 0 --max-tokens 2 --server-metrics {url} --out out");
    let mut command = home.command_after("ulimit -f 12288");
    command.args(format!("run {} {flags}", sim.url).split_whitespace());
    let done = finish(command.spawn().unwrap()).expect(3);
    assert!(done.err.contains("stopping: ") && done.err.contains("free some space in out"), "{done}");
    assert!(done.err.contains("records could not be written to out/server.jsonl"), "{done}");
    let summary = home.summary("out");
    assert_eq!(summary["stages"][0]["server"]["sources"][0]["engine"], "vllm", "{summary}");
    assert!(scrapes(&home, "out/server.jsonl").len() > 2, "whole lines only");
    is_same_again(&home, "out");
}

/// A few samples with labels that no packer can guess.
fn noise(len: usize) -> String {
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut text = String::new();
    while text.len() < len {
        text += "noise{x=\"";
        for _ in 0..256 {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            let _ = write!(text, "{state:016x}");
        }
        text += "\"} 1\n";
    }
    text
}
