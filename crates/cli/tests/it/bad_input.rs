//! Command lines and files that are wrong: each has one message that says what is right, and exit code 2.

use crate::home::Home;
use crate::sim::Sim;

#[track_caller]
fn refused(home: &Home, line: &str, more: &[&str], words: &[&str]) {
    let done = home.ttft_with(line, more).expect(2);
    assert_eq!(done.out, "", "{done}");
    assert!(done.err.starts_with("error: ") && !done.err.contains("\nerror: "), "one message: {done}");
    let said = done.err.split_whitespace().collect::<Vec<_>>().join(" ");
    for word in words {
        assert!(said.contains(word), "{word:?} in {done}");
    }
    assert!(!home.path("runs").exists(), "{done}");
}

#[test]
fn urls_that_are_none() {
    let home = Home::new();
    refused(&home, "run rnu", &[], &["`rnu` is not a URL", "http://localhost:8000"]);
    refused(&home, "run http://host:port", &[], &["invalid port number", "write it as http://HOST:PORT"]);
    refused(&home, "check", &["http://"], &["is not a URL"]);
    refused(&home, "check ftp://host", &[], &["cannot speak `ftp`", "use http:// or https://"]);
    refused(&home, "run sim:nope", &[], &["no profile `nope`", "default, fixed, instant"]);
}

#[test]
fn flags_that_are_unknown_or_do_not_fit_together() {
    let home = Home::new();
    refused(&home, "run --concurency 3", &[], &["unexpected argument '--concurency'", "'--concurrency'"]);
    refused(&home, "rnu", &[], &["unrecognized subcommand 'rnu'"]);
    refused(&home, "run -c 1 --rate 3", &[], &["--concurrency", "cannot be used with", "--rate"]);
    refused(&home, "run --prompt a --dataset b", &[], &["--prompt", "cannot be used with", "--dataset"]);
    refused(&home, "run --prompt-tokens 5 --dataset b", &[], &["--prompt-tokens", "--dataset"]);
    refused(&home, "run -c 2 --max-in-flight 3", &[], &["--max-in-flight", "--concurrency"]);
    refused(&home, "run --max-in-flight 3", &[], &["--max-in-flight: goes with --rate and --trace"]);
    refused(&home, "run --arrival constant", &[], &["--arrival: goes with --rate"]);
    refused(&home, "run --rate 2 --ramp-up 3s", &[], &["--ramp-up", "cannot be used with"]);
    refused(&home, "run --api-key-env A --api-key-file b", &[], &["--api-key-env", "--api-key-file"]);
}

#[test]
fn values_that_are_none() {
    let home = Home::new();
    refused(&home, "run -n x", &[], &["`x` is not a count", "`200`, `4k` or `1M`"]);
    refused(&home, "run -n 0", &[], &["'--requests <N>': it is 1 or more"]);
    refused(&home, "run -c 0", &[], &["'--concurrency <N,…>': it is 1 or more"]);
    refused(&home, "run -c 5000000000", &[], &["`stages.0.concurrency`", "5000000000"]);
    refused(&home, "run --max-tokens 0", &[], &["`max_tokens` 0 asks for no answer"]);
    refused(&home, "run -d 5parsecs", &[], &["not a length of time", "`500ms`"]);
    refused(&home, "run -d 0s", &[], &["`duration` 0 would send nothing"]);
    for rate in ["0", "-1", "x", "nan", "inf"] {
        refused(&home, "run --rate", &[rate], &["requests a second, above 0"]);
    }
    refused(&home, "run --rate 2 --arrival gamma:0", &[], &["gamma:SHAPE"]);
    refused(&home, "run --http 3", &[], &["there are 1.1 and 2"]);
    refused(&home, "run --resolve host:1", &[], &["HOST:PORT:ADDR"]);
    refused(&home, "run --dialect nope", &[], &["no dialect `nope`", "openai-chat"]);
    refused(&home, "run --dialect nope.toml", &[], &["cannot read nope.toml"]);
    refused(&home, "run --ca nope.pem https://host", &[], &["nope.pem"]);
    refused(&home, "run --api-key-file nope", &[], &["cannot read the API key from nope"]);
    refused(&home, "run --api-key-env NOPE_KEY", &[], &["no variable `NOPE_KEY`"]);
}

#[test]
fn objectives_that_are_none_name_the_nearest() {
    let home = Home::new();
    let slo = |text, words| refused(&home, "run --slo", &[text], words);
    slo("tftt_p95<2s", &["no metric is called `tftt_p95`", "did you mean `ttft`"]);
    slo("ttft_p96<2s", &["`p96` is no statistic of `ttft`", "p95"]);
    slo("ttft_p95", &["has no comparison", "`ttft_p95<2s`"]);
    slo("ttft_p95<fast", &["`fast` is not a length of time"]);
    slo("itl<2ms", &["itl"]);
    slo("ttft_p95<0s", &["nothing can keep it"]);
    let both = ["ttft_p95<2s", "--slo", "ttft_p50>3s"];
    refused(&home, "run --slo", &both, &["`ttft_p50>3s` and `ttft_p95<2s`: no run can keep both"]);
}

#[test]
fn bodies_and_headers() {
    let home = Home::new();
    refused(&home, "run --body-json", &["{x"], &["the extra body is not a JSON object", "column"]);
    refused(&home, "run --body-json", &["[1]"], &["write it as {\"field\": value}"]);
    refused(&home, "run --header", &["nocolon"], &["--header number 1 has no colon", "`Name: value`"]);
    refused(&home, "run --header", &["bad name: x"], &["`bad name` is no header name"]);
    refused(&home, "run --header", &["x: a\nb"], &["value of header `x`", "a line end?"]);
}

#[test]
fn data_sets() {
    let home = Home::new();
    refused(&home, "run --dataset nope.txt", &[], &["cannot read nope.txt"]);
    home.write("empty.txt", "\n \n");
    refused(&home, "run --dataset empty.txt", &[], &["empty.txt holds no prompt"]);
    home.write("bad.jsonl", "{\"prompt\":\"a\"}\n{\"reply\":\"b\"}\n");
    refused(&home, "run --dataset bad.jsonl", &[], &["bad.jsonl, line 2", "`prompt`, `messages`"]);
    home.write("broken.jsonl", "{\"prompt\":");
    refused(&home, "run --dataset broken.jsonl", &[], &["broken.jsonl, line 1"]);
    std::fs::write(home.path("latin1.txt"), b"caf\xe9").unwrap();
    refused(&home, "run --dataset latin1.txt", &[], &["latin1.txt", "UTF-8"]);
}

#[test]
fn folders_that_are_not_empty_are_not_touched() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    std::fs::create_dir(home.path("full")).unwrap();
    home.write("full/mine", "precious");
    let run = |out: &str| home.ttft(&format!("run {} -n 2 -c 1 --max-tokens 2 --out {out}", sim.url));
    let done = run("full").expect(2);
    assert!(done.err.contains("full is not empty: name a new or an empty folder"), "{done}");
    assert_eq!(std::fs::read_dir(home.path("full")).unwrap().count(), 1);
    // An empty one and a deep new one are fine.
    std::fs::create_dir(home.path("empty")).unwrap();
    run("empty").expect(0);
    run("deep/er").expect(0);
    let file = run("full/mine").expect(3);
    assert!(file.err.contains("full/mine"), "{file}");
    assert_eq!(home.read("full/mine"), "precious");
}

#[test]
fn runs_that_are_none() {
    let home = Home::new();
    std::fs::create_dir(home.path("empty")).unwrap();
    refused(&home, "report nope", &[], &["nope is no run folder", "run.json"]);
    refused(&home, "report empty", &[], &["empty is no run folder"]);
    home.write("empty/run.json", "{}");
    refused(&home, "report empty", &[], &["empty/run.json is no run that this version of ttft can read"]);
    home.write("empty/run.json", "{\"schema\":\"ttft.run/99\"}");
    refused(&home, "report empty", &[], &["schema `ttft.run/99`", "use a newer ttft"]);
}

#[test]
fn faults_and_profiles_of_the_simulated_engine() {
    let home = Home::new();
    refused(&home, "sim --port 0 --fault nope", &[], &["no fault `nope`", "cut=K"]);
    refused(&home, "sim --port 0 --fault cut", &[], &["write it as cut=K"]);
    refused(&home, "sim --port 0 --profile nope", &[], &["no profile `nope`"]);
    let help = home.ttft("sim --fault help").expect(0);
    assert!(help.out.contains("cut=K ") && help.out.contains("closes after K tokens"), "{help}");
    // A port that is taken.
    let sim = Sim::start(&home, "");
    let port = sim.url.rsplit(':').next().unwrap();
    let taken = home.ttft(&format!("sim --port {port}")).expect(3);
    assert!(taken.err.contains("in use") && taken.err.contains(port), "{taken}");
}

#[test]
fn what_a_dialect_cannot_send() {
    let home = Home::new();
    let image = "{\"type\": \"image_url\", \"image_url\": {\"url\": \"https://x.test/a.png\"}}";
    let row = |content: &str| format!("{{\"messages\": [{{\"role\": \"user\", \"content\": {content}}}]}}\n");
    home.write("seen.jsonl", &(row("\"Hi\"") + &row(&format!("[{image}]"))));
    let line = "run http://127.0.0.1:1/v1 --dataset seen.jsonl --model m --dialect";
    refused(&home, line, &["qianfan-v1"], &["prompt 2 cannot be sent", "qianfan-v1 cannot send images"]);
    refused(&home, line, &["ollama-chat"], &["prompt 2", "images by http URL (give them as data: URLs)"]);
    let body = "{\"tool_choice\": \"none\"}";
    let line = "run http://127.0.0.1:1 --model m --dialect bedrock-converse --body-json";
    refused(&home, line, &[body], &["the extra body cannot be sent", "the tool choice `none`"]);
}
