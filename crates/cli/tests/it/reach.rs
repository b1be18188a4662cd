//! Endpoints that cannot be reached, and those that refuse.

use crate::home::{Done, Home};
use crate::sim::Sim;

/// Nothing ever listens there.
const CLOSED: &str = "http://127.0.0.1:1";

#[track_caller]
fn tells(done: Done, code: i32, words: &[&str]) {
    let done = done.expect(code);
    let said = format!("{}{}", done.out, done.err).split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "{word:?} in {done}");
    }
}

#[test]
fn a_port_that_refuses() {
    let home = Home::new();
    let words =
        ["cannot connect to 127.0.0.1:1: connection refused", "start the server, or check host and port"];
    tells(home.ttft(&format!("run {CLOSED}")), 3, &words);
    assert!(!home.path("runs").exists(), "there is nothing to keep");
    tells(home.ttft(&format!("check {CLOSED}")), 3, &words);
    // With a model there is a record of it; a whole minute of it would tell nothing more.
    let run = home.ttft(&format!("run {CLOSED} --model m -c 2 -d 1m --out out"));
    tells(run, 3, &[words[0], words[1], "every warm-up request failed with connect_refused: cannot"]);
    let summary = home.summary("out");
    assert_eq!(summary["run"]["interrupted"], true);
    assert!(summary["run"]["duration_s"].as_f64().unwrap() < 50.0);
    // Who insists gets all of it.
    tells(home.ttft(&format!("run {CLOSED} --model m -n 5 -c 1 --warmup 0")), 3, &["5 of 5 requests failed"]);
}

#[test]
fn a_name_that_does_not_resolve() {
    let home = Home::new();
    let url = "http://no-such-host.invalid:8000";
    let words = ["cannot resolve `no-such-host.invalid`", "check the spelling of the host", "--resolve"];
    tells(home.ttft(&format!("run {url}")), 3, &words);
    tells(home.ttft(&format!("check {url}")), 3, &words);
    tells(home.ttft(&format!("run {url} --model m -n 2 --warmup 0 -c 1")), 3, &["2 × dns"]);
    // The address can be given by hand.
    let sim = Sim::start(&home, "");
    let port = sim.url.rsplit(':').next().unwrap();
    let resolve = format!("--resolve no-such-host.invalid:{port}:127.0.0.1");
    let run = format!("run http://no-such-host.invalid:{port} {resolve} -n 2 -c 1 --max-tokens 2");
    tells(home.ttft(&run), 0, &["2 of 2 requests ok"]);
}

#[test]
fn tls_to_a_port_that_speaks_none() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let url = sim.url.replace("http://", "https://");
    let words = ["no TLS with", "does this port speak plain http?"];
    tells(home.ttft(&format!("run {url}")), 3, &words);
    tells(home.ttft(&format!("check {url}")), 3, &words);
    tells(home.ttft(&format!("run {url} --model m -n 2 -c 1 --warmup 0")), 3, &["2 × tls"]);
}

#[test]
fn http_2_to_a_server_that_does_not_speak_it() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let run = format!("run {} --http 2 --model m -n 2 -c 1 --warmup 0", sim.url);
    tells(home.ttft(&run), 3, &["2 of 2 requests failed"]);
}

#[test]
fn a_model_that_is_not_there() {
    let home = Home::new();
    let sim = Sim::start(&home, "--model a --model b");
    let words = ["http_not_found", "The model `nope` does not exist", "--model"];
    tells(home.ttft(&format!("run {} --model nope -n 4 -c 1", sim.url)), 3, &words);
    let words = ["BAD the endpoint does not list the model `nope`", "it lists a, b", "HTTP 404"];
    tells(home.ttft(&format!("check {} --model nope", sim.url)), 3, &words);
    // Without a name the first of the list is taken, and told.
    tells(home.ttft(&format!("run {} -n 2 -c 1 --max-tokens 2", sim.url)), 0, &["model a,"]);
}

#[test]
fn a_key_that_is_refused() {
    let home = Home::new();
    let sim = Sim::start(&home, "--api-key right-key");
    let remedy = ["401", "set the key in OPENAI_API_KEY"];
    tells(home.ttft(&format!("run {}", sim.url)), 3, &remedy);
    tells(home.ttft(&format!("check {}", sim.url)), 3, &remedy);
    let run = home.ttft(&format!("run {} --model m -n 4 -c 1", sim.url));
    tells(
        run,
        3,
        &["every warm-up request failed with http_auth: Unauthorized; set the key in OPENAI_API_KEY"],
    );

    home.write("key", "right-key\n");
    let run = format!("run {} -n 2 -c 1 --max-tokens 2 --api-key-file key", sim.url);
    tells(home.ttft(&run), 0, &["2 of 2 requests ok"]);
    tells(home.ttft(&format!("check {} --api-key-file key", sim.url)), 0, &["the key was not refused"]);
}

#[test]
fn an_address_without_an_api() {
    let home = Home::new();
    let url = crate::raw_server::serve(|_| crate::raw_server::answer("404 Not Found", "", "nothing here"));
    tells(
        home.ttft(&format!("run {url}")),
        3,
        &["name a model with --model", "it answers 404 to /v1/models"],
    );
    let words = ["http_not_found", "check the path of the URL"];
    tells(home.ttft(&format!("run {url} --model m -n 2 -c 1")), 3, &words);
}

#[test]
fn a_list_of_models_that_never_comes() {
    let home = Home::new();
    let url = crate::raw_server::serve(|asked| {
        while !asked.is_post() {
            std::thread::park();
        }
        crate::raw_server::answer("204 No Content", "", "")
    });
    let run = home.ttft(&format!("run {url} --timeout-connect 300ms"));
    tells(run, 3, &["name a model with --model", "list of models cannot be had", "no answer from"]);
}
