//! Paths, event shapes, errors and HTTP itself.

use std::io::Write;

use ttft_sim::{Profile, Sim, SimOptions};

use crate::client::{CHAT, ask, ask_raw, chat, connect, get, options, post, read, timed};

fn start() -> Sim {
    Sim::start(options()).unwrap()
}

#[test]
fn a_chat_stream_has_the_shape_of_vllm() {
    let sim = start();
    let response = ask(&sim, "/v1/chat/completions", "x-request-id: abc-1\r\n", CHAT);
    assert_eq!(response.status(), 200);
    assert_eq!(response.header("content-type"), Some("text/event-stream; charset=utf-8"));
    assert_eq!(response.header("x-request-id"), Some("abc-1"));
    assert!(response.whole);
    let data = response.data();
    let (created, rest) = data[0].split_once(r#""created":"#).unwrap().1.split_once(',').unwrap();
    let start = format!(
        r#"{{"id":"chatcmpl-abc-1","object":"chat.completion.chunk","created":{created},"model":"m","choices":["#
    );
    assert!(created.parse::<u64>().unwrap() > 1_700_000_000);
    assert_eq!(
        rest,
        r#""model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":null,"prompt_text":null}"#
    );
    assert_eq!(data.len(), 1 + 5 + 1 + 1);
    for (i, event) in data[1..6].iter().enumerate() {
        let rest = event.strip_prefix(&start).unwrap();
        let word = rest.strip_prefix(r#"{"index":0,"delta":{"content":" "#).unwrap();
        let (word, rest) = word.split_once('"').unwrap();
        assert!(!word.is_empty());
        let finish = if i == 4 { r#""length","stop_reason":null"# } else { "null" };
        assert_eq!(rest, format!(r#"}},"logprobs":null,"finish_reason":{finish},"token_ids":null}}]}}"#));
    }
    assert_eq!(
        data[6].strip_prefix(&start).unwrap(),
        r#"],"usage":{"prompt_tokens":8,"total_tokens":13,"completion_tokens":5},"system_fingerprint":"ttft-sim"}"#
    );
    assert_eq!(data[7], "[DONE]");
}

#[test]
fn a_completion_stream_has_the_shape_of_vllm() {
    let body = r#"{"model":"m","prompt":"one two","stream":true,"max_tokens":2,"ignore_eos":true}"#;
    let response = ask(&start(), "/gw/v1/completions", "", body);
    let events = response.events();
    assert_eq!((events.len(), response.words()), (2, 2));
    assert!(events[0]["id"].as_str().unwrap().starts_with("cmpl-"));
    assert_eq!(events[0]["object"], "text_completion");
    assert!(events[0]["choices"][0]["finish_reason"].is_null());
    assert_eq!(events[1]["choices"][0]["finish_reason"], "length");
    assert_eq!(response.data().last().unwrap(), "[DONE]");
}

#[test]
fn whole_answers_agree_with_streams() {
    let sim = start();
    let streamed: String = chat(&sim)
        .events()
        .iter()
        .filter_map(|e| e["choices"][0]["delta"]["content"].as_str().map(str::to_owned))
        .collect();
    let response =
        ask(&sim, "/v1/chat/completions", "", &CHAT.replace("\"stream\":true", "\"stream\":false"));
    let answer = response.json();
    assert_eq!(response.header("content-type"), Some("application/json"));
    assert_eq!(answer["object"], "chat.completion");
    assert_eq!(answer["choices"][0]["message"]["content"], streamed.as_str());
    assert_eq!(answer["choices"][0]["finish_reason"], "length");
    assert_eq!(answer["usage"]["completion_tokens"], 5);
    let response =
        ask(&sim, "/v1/completions", "", r#"{"prompt":["a b","c"],"n":2,"max_tokens":3,"ignore_eos":true}"#);
    let answer = response.json();
    assert_eq!(answer["choices"].as_array().unwrap().len(), 4);
    assert_eq!(answer["choices"][3]["index"], 3);
    assert_eq!(
        (&answer["usage"]["prompt_tokens"], &answer["usage"]["completion_tokens"]),
        (&3.into(), &12.into())
    );
}

#[test]
fn several_choices_each_have_a_role_and_an_end() {
    let body = CHAT.replace("\"stream\":true", "\"stream\":true,\"n\":2");
    let events = ask(&start(), "/v1/chat/completions", "", &body).events();
    for index in [0, 1] {
        let own: Vec<_> = events.iter().filter(|e| e["choices"][0]["index"] == index).collect();
        assert_eq!(own.len(), 6);
        assert_eq!(own[0]["choices"][0]["delta"]["role"], "assistant");
        assert_eq!(own[5]["choices"][0]["finish_reason"], "length");
    }
    assert_eq!(events.last().unwrap()["usage"]["completion_tokens"], 10);
}

#[test]
fn lengths_follow_the_model_unless_told_otherwise() {
    let profile = "about='x'\nmax_model_len=100\noutput={median=7,sigma=0}\ntimed={ttft_ms=0,itl_ms=0}";
    let sim = Sim::start(SimOptions::new(Profile::parse("x", profile).unwrap())).unwrap();
    for (fields, words, finish) in [
        ("", 7, "stop"),
        (",\"max_tokens\":5", 5, "length"),
        (",\"max_completion_tokens\":4,\"max_tokens\":null", 4, "length"),
        (",\"max_tokens\":20,\"min_tokens\":9", 9, "stop"),
        (",\"max_tokens\":20,\"ignore_eos\":true", 20, "length"),
    ] {
        let body = format!(r#"{{"prompt":"x","stream":true{fields}}}"#);
        let response = ask(&sim, "/v1/completions", "", &body);
        assert_eq!(response.words(), words, "{fields}");
        assert_eq!(response.events().last().unwrap()["choices"][0]["finish_reason"], finish, "{fields}");
    }
}

#[test]
fn running_usage_counts_up() {
    let body =
        CHAT.replace("\"include_usage\":true", "\"include_usage\":true,\"continuous_usage_stats\":true");
    let events = ask(&start(), "/v1/chat/completions", "", &body).events();
    let counts: Vec<_> = events.iter().map(|e| e["usage"]["completion_tokens"].as_u64().unwrap()).collect();
    assert_eq!(counts, [0, 1, 2, 3, 4, 5, 5]);
}

#[test]
fn per_request_metrics_add_up() {
    let sim = Sim::start(SimOptions { per_request_metrics: true, ..timed(20.0, 2.0) }).unwrap();
    let usage = chat(&sim).events().pop().unwrap();
    let metric = |name: &str| usage["metrics"][name].as_f64().unwrap();
    assert!((metric("time_to_first_token_ms") - 20.0).abs() < 1e-6, "{usage}");
    assert!((metric("generation_time_ms") - 8.0).abs() < 1e-6, "{usage}");
    assert!((metric("mean_itl_ms") - 2.0).abs() < 1e-6, "{usage}");
    assert!(metric("queue_time_ms").abs() < 1e-6, "{usage}");
}

#[test]
fn cached_tokens_are_told() {
    let profile = "about='x'\nmax_model_len=400\noutput={median=7,sigma=0}\n[batching]\nmax_num_seqs=4\n\
        max_num_batched_tokens=100\nblock_size=4\nnum_blocks=200\nprefix_cache=true\nstep_ms=0.1\nprefill_ms=0\n\
        decode_ms_per_seq=0";
    let sim = Sim::start(SimOptions::new(Profile::parse("x", profile).unwrap())).unwrap();
    let body = CHAT.replace("hello there", "one two three four five six seven");
    for cached in [0, 12] {
        let usage = ask(&sim, "/v1/chat/completions", "", &body).events().pop().unwrap();
        assert_eq!(usage["usage"]["prompt_tokens"], 13);
        assert_eq!(usage["usage"]["prompt_tokens_details"]["cached_tokens"], cached);
    }
    let page = get(&sim, "/metrics").text();
    assert!(page.contains("vllm:prefix_cache_hits_total{engine=\"0\",model_name=\"sim\"} 12.0"), "{page}");
}

#[test]
fn pages_answer() {
    let sim = Sim::start(SimOptions { models: vec!["a".into(), "b".into()], ..options() }).unwrap();
    assert_eq!(get(&sim, "/health").status(), 200);
    assert!(get(&sim, "/version").json()["version"].is_string());
    let models = get(&sim, "/v1/models").json();
    assert_eq!((&models["data"][0]["id"], &models["data"][1]["id"]), (&"a".into(), &"b".into()));
    assert_eq!(ask(&sim, "/tokenize", "", r#"{"prompt":"a b c"}"#).json()["count"], 3);
    ask(&sim, "/v1/chat/completions", "", &CHAT.replace("\"m\"", "\"a\""));
    let page = get(&sim, "/metrics");
    assert!(page.header("content-type").unwrap().starts_with("text/plain; version="));
    for line in [
        "vllm:generation_tokens_total{engine=\"0\",model_name=\"a\"} 5.0",
        "vllm:time_to_first_token_seconds_count{engine=\"0\",model_name=\"a\"} 1.0",
        "vllm:inter_token_latency_seconds_count{engine=\"0\",model_name=\"a\"} 4.0",
        "vllm:request_success_total{engine=\"0\",finished_reason=\"length\",model_name=\"a\"} 1.0",
    ] {
        assert!(page.text().contains(line), "{line}");
    }
}

#[test]
fn wrong_requests_are_refused_as_vllm_does() {
    let profile = "about='x'\nmax_model_len=50\noutput={median=7,sigma=0}\ntimed={ttft_ms=0,itl_ms=0}";
    let sim = Sim::start(SimOptions {
        models: vec!["m".into()],
        api_key: Some("secret".into()),
        ..SimOptions::new(Profile::parse("x", profile).unwrap())
    })
    .unwrap();
    let long = CHAT.replace("hello", &"word ".repeat(50));
    for (body, status, kind, param) in [
        (CHAT.replace("\"m\"", "\"other\""), 404, "NotFoundError", "model"),
        (long, 400, "BadRequestError", "input_tokens"),
        (CHAT.replace(":5", ":0"), 400, "BadRequestError", "max_tokens"),
        (CHAT.replace(":5", ":5000"), 400, "BadRequestError", "max_tokens"),
        ("{".to_owned(), 400, "Bad Request", "body"),
        (r#"{"model":"m"}"#.to_owned(), 400, "Bad Request", "body.messages"),
        (CHAT.replace("\"stream\":true", "\"n\":0"), 400, "BadRequestError", "n"),
    ] {
        let response = ask(&sim, "/v1/chat/completions", "authorization: Bearer secret\r\n", &body);
        let error = response.json()["error"].clone();
        assert_eq!((response.status(), &error["type"]), (status, &kind.into()), "{body}");
        assert_eq!((&error["code"], &error["param"]), (&status.into(), &param.into()), "{body}");
        assert!(error["message"].is_string());
    }
    for headers in ["", "authorization: Bearer wrong\r\n"] {
        let response = ask(&sim, "/v1/chat/completions", headers, CHAT);
        assert_eq!((response.status(), response.json()), (401, serde_json::json!({"error": "Unauthorized"})));
    }
    assert_eq!(get(&sim, "/v1/models").status(), 401);
    assert_eq!(get(&sim, "/metrics").status(), 200);
    assert_eq!(get(&sim, "/nope").json()["detail"], "Not Found");
    assert_eq!(get(&sim, "/v1/chat/completions").status(), 405);
}

#[test]
fn connections_are_kept_and_requests_may_be_sent_ahead() {
    let sim = start();
    let mut socket = connect(&sim);
    let request = post("/v1/chat/completions", "", CHAT);
    socket.write_all(format!("{request}{request}\r\n{request}").as_bytes()).unwrap();
    let mut spare = Vec::new();
    for _ in 0..3 {
        let response = read(&mut socket, &mut spare);
        assert!(response.whole && response.words() == 5);
    }
    for byte in request.as_bytes() {
        socket.write_all(&[*byte]).unwrap();
    }
    assert!(read(&mut socket, &mut spare).whole);
    socket.write_all(post("/v1/chat/completions", "connection: close\r\n", CHAT).as_bytes()).unwrap();
    let last = read(&mut socket, &mut spare);
    assert_eq!((last.whole, last.header("connection")), (true, Some("close")));
    assert!(read(&mut socket, &mut spare).head.is_empty(), "closed");
    assert_eq!(sim.stop().unwrap().ok, 5);
}

#[test]
fn bodies_come_in_chunks_or_after_a_go_ahead() {
    let sim = start();
    let (one, two) = CHAT.split_at(30);
    let chunked = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ntransfer-encoding: chunked\r\n\r\n{:x}\r\n{one}\r\n{:x}\r\n{two}\r\n0\r\n\r\n",
        one.len(),
        two.len()
    );
    assert_eq!(ask_raw(&sim, &chunked).words(), 5);
    let mut socket = connect(&sim);
    let request = post("/v1/chat/completions", "expect: 100-continue\r\n", CHAT);
    let (head, body) = request.split_at(request.len() - CHAT.len());
    socket.write_all(head.as_bytes()).unwrap();
    let mut spare = Vec::new();
    assert_eq!(read(&mut socket, &mut spare).status(), 100);
    socket.write_all(body.as_bytes()).unwrap();
    assert_eq!(read(&mut socket, &mut spare).words(), 5);
}

#[test]
fn http_1_0_ends_with_the_connection_and_nonsense_is_refused() {
    let sim = start();
    let old = post("/v1/chat/completions", "", CHAT).replace("HTTP/1.1", "HTTP/1.0");
    let response = ask_raw(&sim, &old);
    assert!(response.header("transfer-encoding").is_none());
    assert_eq!(response.words(), 5);
    assert_eq!(ask_raw(&sim, "what is this\r\n\r\n").status(), 400);
}

#[test]
fn a_request_larger_than_any_buffer_is_read() {
    let sim = start();
    let body = CHAT.replace("hello", &"word ".repeat(60_000));
    let usage = ask(&sim, "/v1/chat/completions", "", &body).events().pop().unwrap();
    assert_eq!(usage["usage"]["prompt_tokens"], 60_000 + 1 + 6);
}

#[test]
fn an_answer_larger_than_the_socket_waits_for_its_reader() {
    let sim = start();
    let body = CHAT.replace(":5", ":60000");
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", &body).as_bytes()).unwrap();
    // Another client is served while the first does not read.
    assert_eq!(chat(&sim).words(), 5);
    let response = read(&mut socket, &mut Vec::new());
    assert!(response.whole);
    assert_eq!(response.words(), 60_000);
}

#[test]
fn a_client_that_leaves_ends_its_request() {
    let sim = Sim::start(timed(0.0, 1_000_000.0)).unwrap();
    let mut socket = connect(&sim);
    socket.write_all(post("/v1/chat/completions", "", CHAT).as_bytes()).unwrap();
    let mut first = [0; 1];
    std::io::Read::read_exact(&mut socket, &mut first).unwrap();
    let running = |count| {
        let line = format!("vllm:num_requests_running{{engine=\"0\",model_name=\"sim\"}} {count}.0");
        get(&sim, "/metrics").text().contains(&line)
    };
    assert!(running(1));
    drop(socket);
    while !running(0) {}
    assert!(get(&sim, "/metrics").text().contains("finished_reason=\"abort\",model_name=\"sim\"} 1.0"));
    assert_eq!(sim.stop().unwrap().aborted, 1);
}
