//! Surveys of small files, of every trap, and of the recorded cases.

use std::io::Write;

use serde_json::{Value, json};

use super::*;

fn of(text: impl AsRef<[u8]>) -> Value {
    of_format(text, None)
}

fn of_format(text: impl AsRef<[u8]>, asked: Option<Format>) -> Value {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_ref()).unwrap();
    serde_json::to_value(survey(file.path(), asked).unwrap_or_else(|e| panic!("{e}"))).unwrap()
}

fn problem(survey: &Value, kind: &str) -> Value {
    let problems = survey["problems"].as_array().unwrap();
    problems.iter().find(|problem| problem["kind"] == kind).cloned().unwrap_or_default()
}

#[test]
fn every_case() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/cases");
    let mut count = 0;
    for case in std::fs::read_dir(cases).unwrap() {
        let case = case.unwrap().path();
        let expect: Value =
            serde_json::from_slice(&std::fs::read(case.join("expect.json")).unwrap()).unwrap();
        let input = std::fs::read_dir(&case).unwrap().map(|entry| entry.unwrap().path());
        let input =
            input.into_iter().find(|path| path.file_stem().is_some_and(|stem| stem == "input")).unwrap();
        let found = serde_json::to_value(survey(&input, None).unwrap()).unwrap();
        assert_eq!(found["format"], expect["format"], "{}", case.display());
        for (name, wanted) in expect["must"].as_object().unwrap() {
            let tolerance = expect["tolerance"][name].as_f64().unwrap_or(0.0);
            assert!(
                is_near(&found[name], wanted, tolerance),
                "{}: {name} is {}",
                case.display(),
                found[name]
            );
        }
        count += 1;
    }
    assert!(count > 0);
}

fn is_near(found: &Value, wanted: &Value, tolerance: f64) -> bool {
    match (found, wanted) {
        (Value::Array(found), Value::Array(wanted)) => {
            found.len() == wanted.len() && found.iter().zip(wanted).all(|(f, w)| is_near(f, w, tolerance))
        }
        _ => match (found.as_f64(), wanted.as_f64()) {
            (Some(found), Some(wanted)) => (found - wanted).abs() <= tolerance,
            _ => found == wanted,
        },
    }
}

const AZURE: &str = "TIMESTAMP,ContextTokens,GeneratedTokens";

#[test]
fn azure_of_both_years_with_any_line_end() {
    for (lines, offsets) in [
        (&["2023-11-16 18:17:03.9799500,4,1", "2023-11-16 18:17:03.9799501,5,2"][..], json!([0.0, 0.0001])),
        (&["2024-05-10 00:00:00.009930+00:00,4,1", "2024-05-10 00:00:01+00:00,5,2"], json!([0.0, 990.07])),
    ] {
        for end in ["\r\n", "\n"] {
            for last in ["", end] {
                let text = format!("{AZURE}{end}{}{last}", lines.join(end));
                let found = of(text);
                assert_eq!(found["offsets_ms"], offsets);
                assert_eq!(found["input_tokens"], json!([4, 5]));
                assert_eq!((&found["kind"], &found["timestamp_unit"]), (&json!("trace"), &json!("calendar")));
                assert_eq!(found["problems"], json!([]));
            }
        }
    }
}

#[test]
fn unsorted_times_are_put_in_order_and_told() {
    let found =
        of(format!("{AZURE}\n2023-01-01 00:00:02,1,1\n2023-01-01 00:00:01,2,2\n2023-01-01 00:00:04,0,0\n"));
    assert_eq!(found["offsets_ms"], json!([0.0, 1000.0, 3000.0]));
    assert_eq!(found["input_tokens"], json!([2, 1, 0]));
    assert_eq!(found["arrivals"]["sorted"], json!(false));
    assert_eq!(problem(&found, "unsorted_times")["lines"], json!([3]));
    assert_eq!(problem(&found, "empty_prompt")["lines"], json!([4]));
    assert_eq!(problem(&found, "no_output")["lines"], json!([4]));
    assert_eq!(found["arrivals"]["largest_gap_ms"], json!(2000.0));
}

#[test]
fn bad_lines_are_counted_and_named() {
    let found = of(format!("{AZURE}\n2023-01-01 00:00:02,1,1\nnoise\n2023-01-01 00:00:03,x,1\n"));
    assert_eq!((&found["requests"], &found["unreadable"]), (&json!(1), &json!(2)));
    assert_eq!(problem(&found, "unreadable")["lines"], json!([3, 4]));
}

#[test]
fn burstgpt_of_both_layouts() {
    let old = of("Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                  5,ChatGPT,472,18,490,Conversation log\n5,ChatGPT,10,0,10,API log\n118,GPT-4,417,276,693,API log");
    assert_eq!((&old["format"], &old["timestamp_unit"]), (&json!("burstgpt"), &json!("s")));
    assert_eq!(old["offsets_ms"], json!([0.0, 0.0, 113_000.0]));
    assert_eq!(old["output_tokens"], json!([18, 0, 276]));
    assert_eq!((&old["failed"], &old["turns"]["sessions"]), (&json!(1), &Value::Null));
    assert_eq!(problem(&old, "failed_requests")["lines"], json!([3]));
    assert_eq!(old["arrivals"]["max_burst"], json!(2));

    let new =
        of("Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens,Log Type\n\
                  19440110.0,a,43,GPT-4,906,446,1352,Conversation log\n\
                  19440161.5,a,2,ChatGPT,36,29,65,Conversation log\n19440162.0,,2,ChatGPT,3,2,5,API log\n");
    assert_eq!(new["offsets_ms"], json!([0.0, 51_500.0, 52_000.0]));
    assert_eq!((&new["failed"], &new["turns"]["sessions"]), (&json!(0), &json!(1)));
    assert_eq!(new["turns"]["requests_per_session"]["max"], json!(2.0));
}

#[test]
fn mooncake_with_its_bursts_and_blocks() {
    let line = |time: &str, input: u32, blocks: &str| {
        format!(
            "{{\"timestamp\": {time}, \"input_length\": {input}, \"output_length\": 5, \"hash_ids\": [{blocks}]}}\n"
        )
    };
    let found = of([
        line("0", 1024, "1,2"),
        line("0", 1030, "1,2,3"),
        line("3000", 512, "7"),
        line("5999", 1030, "1,9,3"),
    ]
    .concat());
    assert_eq!((&found["format"], &found["timestamp_unit"]), (&json!("mooncake"), &json!("ms")));
    let arrivals = &found["arrivals"];
    assert_eq!((&arrivals["distinct_timestamps"], &arrivals["max_burst"]), (&json!(3), &json!(2)));
    assert_eq!(arrivals["equal_timestamps_share"], json!(0.5));
    assert!(!problem(&found, "equal_timestamps").is_null());
    let prefixes = &found["prefixes"];
    assert_eq!((&prefixes["block_size"], &prefixes["blocks"]), (&json!(512), &json!(9)));
    // Two of the second request, one of the last: its block 3 comes behind one that is new.
    assert_eq!((&prefixes["hit_share"], &prefixes["requests_with_a_hit"]), (&json!(3.0 / 9.0), &json!(2)));

    let seconds = (0..9).map(|i| line(&format!("{}", f64::from(i) * 0.2), 600, "1")).collect::<String>();
    let found = of(&seconds);
    assert_eq!((&found["timestamp_unit"], &found["offsets_ms"]), (&Value::Null, &Value::Null));
    assert!(problem(&found, "unclear_unit")["text"].as_str().unwrap().contains("5000"));
    assert_eq!(problem(&found, "blocks_of_another_size")["count"], json!(9));
    assert_eq!(found["prefixes"]["block_size"], json!(1024));
    let told = of_format(&seconds, Some(Format::GuideLlm));
    assert_eq!(told["arrivals"]["span_ms"], json!(1600.0));
}

#[test]
fn conversations_and_prompts() {
    let found = of(r#"[
        {"id": "a", "conversations": [{"from": "human", "value": "one two"}, {"from": "gpt", "value": "x"}]},
        {"id": "a", "conversations": []},
        {"id": "b", "conversations": [{"from": "gpt", "value": "x"}]},
        {"id": "c", "conversations": [{"from": "gpt", "value": "x"}, {"from": "human", "value": "a b c d"}]}
    ]"#);
    assert_eq!((&found["format"], &found["kind"]), (&json!("sharegpt"), &json!("prompts")));
    assert_eq!((&found["requests"], &found["container"]), (&json!(4), &json!("json")));
    assert_eq!(found["lengths"]["prompt_words"]["mean"], json!(3.0));
    assert_eq!(found["lengths"]["input_tokens"], Value::Null, "words are no tokens");
    for (kind, line) in
        [("duplicate_ids", 3), ("empty_conversation", 3), ("no_question", 4), ("begins_with_answer", 5)]
    {
        assert_eq!(problem(&found, kind)["lines"], json!([line]), "{kind}");
    }
    let text = of("one\ntwo words\n");
    assert_eq!(
        (&text["format"], &text["requests"], &text["arrivals"]),
        (&json!("text"), &json!(2), &Value::Null)
    );
}

#[test]
fn a_mix_of_timed_and_untimed_is_told() {
    let found = of(
        "{\"timestamp\": 0, \"input_length\": 1}\n{\"input_length\": 2}\n{\"timestamp\": 500, \"input_length\": 3}",
    );
    assert_eq!(found["offsets_ms"], json!([0.0, 500.0, null]));
    assert_eq!(found["input_tokens"], json!([1, 3, 2]));
    assert_eq!(problem(&found, "missing_timestamps")["count"], json!(1));
}
