//! `ttft metrics`: pages from files and servers, good, bad and hostile.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use serde_json::{Value, json};
use ttft_sources::differences;

use crate::home::{Home, finish, signal, wait_for};
use crate::raw_server::{answer, serve};
use crate::sim::Sim;

/// The pages of the crate that reads them: there is one copy.
fn pages(of: &str) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(of)).unwrap();
    let mut found: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    found.sort();
    found
}

fn words(paths: &[PathBuf]) -> Vec<&str> {
    paths.iter().map(|path| path.to_str().unwrap()).collect()
}

fn is_expectation(path: &Path) -> bool {
    path.to_str().unwrap().ends_with("expect.json")
}

fn expectation(path: &Path) -> Value {
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// Serves answers, one a connection, the last again and again. Bytes, so that they may be packed.
fn serve_bytes(answers: Vec<Vec<u8>>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let answers = Arc::new(Mutex::new(VecDeque::from(answers)));
    std::thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut seen = Vec::new();
            let mut room = [0; 4096];
            while !seen.windows(4).any(|end| end == b"\r\n\r\n") {
                let n = stream.read(&mut room).unwrap_or(0);
                if n == 0 {
                    break;
                }
                seen.extend_from_slice(&room[..n]);
            }
            let mut answers = answers.lock().unwrap();
            let answer = if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() };
            let _ = stream.write_all(&answer.unwrap_or_default());
        }
    });
    url
}

fn ok(headers: &str, body: &[u8]) -> Vec<u8> {
    let head =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n{headers}\r\n", body.len());
    [head.as_bytes(), body].concat()
}

const PAGE: &str = "# TYPE vllm:num_requests_running gauge\nvllm:num_requests_running{model_name=\"m\"} 3\n\
                    # TYPE vllm:generation_tokens_total counter\nvllm:generation_tokens_total{model_name=\"m\"} 500\n";

#[test]
fn every_case() {
    let home = Home::new();
    let cases = pages("crates/sources/testdata/cases");
    assert!(cases.len() >= 4);
    for case in cases {
        let files: Vec<_> =
            pages(case.to_str().unwrap()).into_iter().filter(|path| !is_expectation(path)).collect();
        let read = home.ttft_with("metrics --json", &words(&files)).expect(0).json();
        let found = differences(&read, &expectation(&case.join("expect.json")));
        assert!(found.is_empty(), "{}: {found:#?}", case.display());
        if let [before, after] = words(&files).as_slice() {
            let read = home.ttft_with("metrics --json", &[after, "--from", before]).expect(0).json();
            let found = differences(&read, &expectation(&case.join("expect.json")));
            assert!(found.is_empty(), "--from {}: {found:#?}", case.display());
        }
    }
}

#[test]
fn every_sample_of_every_engine() {
    let home = Home::new();
    let mut tested = 0;
    for engine in pages("engines") {
        let all = pages(engine.join("samples").to_str().unwrap());
        for expect in all.iter().filter(|path| is_expectation(path)) {
            let name = expect.file_name().unwrap().to_str().unwrap().strip_suffix("expect.json").unwrap();
            let files: Vec<_> = all
                .iter()
                .filter(|path| {
                    path.file_name().unwrap().to_str().unwrap().starts_with(name) && !is_expectation(path)
                })
                .cloned()
                .collect();
            let read = home.ttft_with("metrics --json", &words(&files)).expect(0).json();
            let found = differences(&read, &expectation(expect));
            assert!(found.is_empty(), "{}: {found:#?}", expect.display());
            tested += 1;
        }
    }
    assert!(tested >= 20);
}

/// A table with what differs between places left out.
fn table(home: &Home, line: &str, files: &[&str]) -> String {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let files: Vec<_> = files.iter().map(|file| root.join(file)).collect();
    let text = home.ttft_with(line, &words(&files)).expect(0).out;
    text.replace(root.to_str().unwrap(), "…")
}

#[test]
fn tables() {
    let home = Home::new();
    let samples = "engines/vllm/samples";
    let run = [&*format!("{samples}/0.32-run.1.prom"), &*format!("{samples}/0.32-run.2.prom")];
    insta::assert_snapshot!("metrics_two_scrapes", table(&home, "metrics", &run));
    let case = |name: &str, file: &str| format!("crates/sources/testdata/cases/{name}/{file}");
    let tail = case("015-histogram-tail-beyond-last-bucket", "input.prom");
    insta::assert_snapshot!("metrics_censored", table(&home, "metrics", &[&tail]));
    let reset = "017-counter-reset-between-scrapes";
    let scrapes = [case(reset, "input.scrape-0s.prom"), case(reset, "input.scrape-60s.prom")];
    insta::assert_snapshot!("metrics_restart", table(&home, "metrics", &[&scrapes[0], &scrapes[1]]));
    insta::assert_snapshot!(
        "metrics_gpus",
        table(&home, "metrics", &["engines/dcgm-exporter/samples/two-hosts.prom"])
    );
}

#[test]
fn a_server_its_redirect_and_a_packed_page() {
    let home = Home::new();
    let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    packer.write_all(PAGE.as_bytes()).unwrap();
    let packed = ok("content-encoding: gzip\r\n", &packer.finish().unwrap());
    let redirect = b"HTTP/1.1 307 Temporary Redirect\r\nlocation: /metrics/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let url = serve_bytes(vec![redirect.to_vec(), packed]);
    let read = home.ttft(&format!("metrics {url} --json")).expect(0).json();
    assert_eq!((&read["engine"], &read["running"]), (&"vllm".into(), &3.into()));
    assert_eq!(read["source"], format!("{url}/metrics"));
}

#[test]
fn the_simulated_engine_counts_what_was_asked() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let page = home.ttft(&format!("metrics {} --json", sim.url)).expect(0).json();
    assert_eq!((&page["engine"], &page["ttft"]["count"]), (&"vllm".into(), &0.into()));
    assert_eq!(page["ttft"]["mean_s"], Value::Null, "nothing is no mean of zero");
    home.ttft(&format!("run {}/v1 -c 1 -n 5 --warmup 0 --max-tokens 8 --ignore-eos --out r", sim.url))
        .expect(0);
    let page = home.ttft(&format!("metrics {}/v1 --json", sim.url)).expect(0).json();
    let client = home.stage("r")["latency_ms"]["ttft"]["mean"].as_f64().unwrap() / 1e3;
    let server = page["ttft"]["mean_s"].as_f64().unwrap();
    assert!(
        0.0 < server && server <= client,
        "the client sees what the server does, and its way: {server} {client}"
    );
    assert!(page["requests_finished_ok"].as_u64().unwrap() >= 5);
}

#[test]
fn several_sources_are_no_window() {
    let home = Home::new();
    home.write("vllm.prom", PAGE);
    home.write("gpu.prom", "DCGM_FI_DEV_GPU_UTIL{gpu=\"0\"} 50\n");
    let url = serve_bytes(vec![ok("", PAGE.as_bytes())]);
    let read = home.ttft(&format!("metrics {url} gpu.prom --json")).expect(0).json();
    assert_eq!(read["sources"][0]["engine"], "vllm");
    assert_eq!(read["sources"][1]["gpu_util_percent"], 50);
    // Nor are two files of different engines.
    let read = home.ttft("metrics vllm.prom gpu.prom --json").expect(0).json();
    assert_eq!(read["sources"][1]["engine"], "dcgm-exporter");
    home.write("page.html", "<html>");
    let done = home.ttft("metrics vllm.prom --from page.html").expect(3);
    assert!(done.err.contains("page.html: the page is HTML"), "{done}");
    // One that fails does not take the others with it.
    let done = home.ttft("metrics vllm.prom http://127.0.0.1:9 gpu.prom --json").expect(0);
    assert!(done.json()["sources"][1]["error"].as_str().unwrap().contains("127.0.0.1:9"), "{done}");
    assert!(done.err.contains("error: http://127.0.0.1:9/metrics"), "{done}");
}

#[test]
fn what_is_no_page() {
    let home = Home::new();
    home.write("empty", "");
    home.write("page.html", "<!doctype html><title>Sign\u{7}in</title>");
    home.write("other.json", "{\"detail\":\"Not Found\"}");
    home.write("noise", "\u{1b}[31m what?\n");
    home.write("cut.gz", "\u{1f}\u{8b}");
    for (file, format, words) in [
        ("empty", json!("empty"), "the page is empty"),
        ("page.html", json!("html"), "HTML"),
        ("other.json", json!("json"), "JSON"),
        ("noise", json!("unknown"), "line 1"),
    ] {
        let done = home.ttft(&format!("metrics {file} --json")).expect(3);
        let read = done.json();
        assert_eq!((&read["format"], &read["is_prometheus"]), (&format, &json!(false)), "{file}");
        assert_eq!((&read["engine"], &read["ttft"]), (&Value::Null, &Value::Null), "{file}");
        assert!(done.err.contains(words) && read["error"].as_str().unwrap().contains(words), "{done}");
        assert!(!done.err.contains(['\u{7}', '\u{1b}']), "{done}");
    }
    assert!(home.ttft("metrics missing.prom").expect(2).err.contains("missing.prom"));
    assert!(home.ttft("metrics ftp://h/metrics").expect(2).err.contains("ftp"));
}

#[test]
fn a_page_that_is_too_large() {
    let home = Home::new();
    let file = std::fs::File::create(home.path("large.prom")).unwrap();
    file.set_len(200 << 20).unwrap();
    let done = home.ttft("metrics large.prom").expect(3);
    assert!(done.err.contains("the page is larger than 64 MiB"), "{done}");
}

#[test]
fn servers_that_refuse() {
    let home = Home::new();
    for (status, words) in [
        ("401 Unauthorized", "--api-key-env"),
        ("404 Not Found", "/prometheus/metrics"),
        ("501 Not Implemented", "it answers 501 to /metrics: no \\x1b metrics"),
    ] {
        let url = serve(move |_| answer(status, "", "no \u{1b} metrics"));
        let done = home.ttft(&format!("metrics {url}")).expect(3);
        assert!(done.err.contains(words), "{done}");
    }
    let url = serve(|_| answer("302 Found", "location: /again\r\n", ""));
    assert!(home.ttft(&format!("metrics {url}")).expect(3).err.contains("redirects more than"), "a loop");
}

#[test]
fn a_page_that_comes_by_the_byte() {
    let home = Home::new();
    // Says more than it sends, and never ends.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    std::thread::spawn(move || {
        let kept: Vec<_> = listener
            .incoming()
            .flatten()
            .map(|mut stream| {
                let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\nx");
                stream
            })
            .collect();
        drop(kept);
    });
    let done = home.ttft(&format!("metrics {url} --timeout 300ms")).expect(3);
    assert!(done.err.contains("in time"), "{done}");
}

#[test]
fn keys_are_sent_only_when_named_and_never_shown() {
    let home = Home::new();
    let url = serve(|asked| {
        let body =
            format!("vllm:num_requests_running{{key=\"{}\"}} 1\n", asked.header("authorization").is_some());
        answer(
            "200 OK",
            "",
            if asked.header("authorization") == Some("Bearer s3cret") { PAGE } else { &body },
        )
    });
    let mut command = home.command();
    command.args(["metrics", &url, "--json"]).env("OPENAI_API_KEY", "s3cret");
    let done = finish(command.spawn().unwrap()).expect(0);
    assert_eq!(done.json()["running"], 1, "no key was named");
    let mut command = home.command();
    command.args(["metrics", &url, "--json", "--api-key-env", "KEY"]).env("KEY", "s3cret");
    let done = finish(command.spawn().unwrap()).expect(0);
    assert_eq!(done.json()["running"], 3);
    let with_user = url.replace("http://", "http://me:s3cret@");
    let done = home.ttft(&format!("metrics {with_user}"));
    assert!(!done.out.contains("s3cret") && !done.err.contains("s3cret"), "{done}");
}

#[test]
fn an_engine_of_ones_own() {
    let home = Home::new();
    home.write(
        "mine.toml",
        "name = \"mine\"\ntitle = \"My engine\"\nrole = \"engine\"\ndetect = [\"mine_\"]\n\
         [metrics]\nttft = [{ series = \"mine_first_ms\", unit = \"milli\" }]\nrunning = [\"mine_busy\"]\n",
    );
    home.write("page.prom", "mine_busy 2\nmine_first_ms_sum 500\nmine_first_ms_count 10\n");
    assert_eq!(home.ttft("metrics page.prom --json").expect(0).json()["engine"], Value::Null);
    let read = home.ttft("metrics page.prom --engine mine.toml --json").expect(0).json();
    assert_eq!((&read["engine"], &read["running"]), (&"mine".into(), &2.into()));
    assert_eq!(read["ttft"]["mean_s"], 0.05);
    home.write("bad.toml", "name = \"mine\"\ntitle = 5\n");
    assert!(home.ttft("metrics page.prom --engine bad.toml").expect(2).err.contains("bad.toml, line 2"));
}

#[test]
fn hostile_pages_are_shown_as_text() {
    let home = Home::new();
    let evil = "\u{1b}]0;pwned\u{7}\u{202e}";
    home.write("page.prom", &format!("DCGM_FI_DEV_GPU_UTIL{{Hostname=\"{evil}\"}} 50\nbroken {evil}\n"));
    for line in
        ["metrics page.prom", "metrics page.prom --json", "metrics page.prom --watch --scrapes 2 --json"]
    {
        let done = home.ttft(line).expect(0);
        for text in [&done.out, &done.err] {
            let wild = text.chars().find(|c| (c.is_control() && *c != '\n') || *c == '\u{202e}');
            assert_eq!(wild, None, "{line}: {text:?}");
        }
    }
}

#[test]
fn watching() {
    let home = Home::new();
    let later = PAGE.replace("500", "740");
    let failed = b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".to_vec();
    let url = serve_bytes(vec![ok("", PAGE.as_bytes()), failed, ok("", later.as_bytes())]);
    let done = home.ttft(&format!("metrics {url} --watch --scrapes 3 --json")).expect(0);
    let lines: Vec<Value> = done.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(lines.len(), 3, "{done}");
    assert_eq!(lines[1]["generation_tokens"], Value::Null, "a gap, no zero");
    assert_eq!(lines[2]["generation_tokens_window"], 240, "since the last page that there was");
    assert!(lines[2]["window_s"].as_f64().unwrap() > 1.0);
}

#[test]
fn watching_ends_with_an_interrupt() {
    let home = Home::new();
    let url = serve_bytes(vec![ok("", PAGE.as_bytes())]);
    let out = home.path("out");
    let mut command = home.command();
    let child = command
        .args(["metrics", &url, "--watch"])
        .stdout(std::fs::File::create(&out).unwrap())
        .spawn()
        .unwrap();
    wait_for("the first table", || std::fs::read_to_string(&out).unwrap().contains("running").then_some(()));
    signal(child.id(), "INT");
    finish(child).expect(130);
}
