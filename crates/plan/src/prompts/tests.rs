//! Prompts that were written, counted and compared.

use std::io::Write;

use super::*;
use ttft_model::{Calibration, Pick, Prefixes, Session};

fn load(prompt: &Prompt, calibration: Calibration) -> Result<Prompts, DatasetError> {
    let output = Some(Lengths::Recorded);
    Prompts::load(&Workload { prompt: prompt.clone(), calibration, output, ..Workload::default() }, 7)
}

fn tokens(tokens: u32) -> Prompts {
    load(&Prompt::Tokens(tokens), Calibration::None).unwrap()
}

fn file(text: &str) -> (tempfile::NamedTempFile, String) {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    let path = file.path().display().to_string();
    (file, path)
}

fn written(prompts: &Prompts, number: u64, salt: Option<&str>) -> String {
    let mut text = String::new();
    assert!(prompts.write(number, salt, &mut text).is_none());
    text
}

fn count(text: &str) -> usize {
    text.split_whitespace().count()
}

#[test]
fn words_have_the_asked_length_with_and_without_salt() {
    let prompts = tokens(40);
    assert_eq!(count(&written(&prompts, 0, None)), 40);
    assert_eq!(count(&written(&prompts, 0, Some("0199"))), 40);
    assert!(written(&prompts, 0, Some("0199")).starts_with("[0199] "));
    assert_eq!(written(&prompts, 3, None), written(&prompts, 3, None));
    assert_ne!(written(&prompts, 3, None), written(&prompts, 4, None));
    assert_eq!(written(&tokens(0), 0, None), "");
    let drawn = load(&Prompt::Lengths("uniform:10:20".parse().unwrap()), Calibration::None).unwrap();
    let counts: Vec<usize> = (0..50).map(|number| count(&written(&drawn, number, None))).collect();
    assert!(counts.iter().all(|n| (10..=20).contains(n)) && counts.iter().any(|n| *n != counts[0]));
}

#[test]
fn a_calibration_scales_the_words() {
    let calibration = Calibration::Measured { tokens_per_word: 2.0, overhead: 20.0 };
    let prompts = load(&Prompt::Tokens(500), calibration).unwrap();
    assert_eq!(count(&written(&prompts, 0, None)), 240);
    assert_eq!(count(&written(&load(&Prompt::Tokens(5), calibration).unwrap(), 0, None)), 1);
}

#[test]
fn reads_files_in_turn() {
    let (_file, path) = file(
        "{\"prompt\":\"one\",\"output_tokens\":9}\r\n\n{\"messages\":[{\"role\":\"user\",\"content\":\"two\"}]}",
    );
    let prompts = load(&Prompt::File(path), Calibration::None).unwrap();
    assert_eq!(written(&prompts, 2, None), "one");
    assert!(prompts.write(1, None, &mut String::new()).is_some_and(|messages| messages.is_array()));
    assert_eq!(prompts.output_tokens(2, 0), Some(9));
    assert_eq!(prompts.output_tokens(1, 0), None);

    let (_file, path) = file("{\"prompt\":\"one\"}\n{\"text\":1}");
    let error = load(&Prompt::File(path), Calibration::None).unwrap_err();
    assert!(error.to_string().contains("line 2"), "{error}");
    let (_file, path) =
        file("[{\"conversations\":[]},{\"conversations\":[{\"from\":\"human\",\"value\":\"q\"}]}]");
    assert_eq!(written(&load(&Prompt::File(path), Calibration::None).unwrap(), 5, None), "q");
    let (_file, path) = file("{\"input_length\":1}");
    assert!(load(&Prompt::File(path), Calibration::None).unwrap_err().to_string().contains("--trace"));
}

#[test]
fn equal_blocks_are_equal_words() {
    let row = |time: u32, input: u32, blocks: &str| {
        format!(
            "{{\"timestamp\":{time},\"input_length\":{input},\"output_length\":{time},\"hash_ids\":[{blocks}]}}\n"
        )
    };
    let (_file, path) = file(
        &[row(0, 1100, "1,2,3"), row(500, 1060, "1,2,4"), row(900, 600, "5,2"), row(950, 0, "")].concat(),
    );
    for calibration in [Calibration::None, Calibration::Measured { tokens_per_word: 1.7, overhead: 11.0 }] {
        let prompts = load(&Prompt::Trace { path: path.clone(), format: None }, calibration).unwrap();
        let [first, second, third] = [0, 1, 2].map(|number| written(&prompts, number, None));
        let shared = first.split(' ').zip(second.split(' ')).take_while(|(a, b)| a == b).count();
        let wanted = Gauge::of(calibration, None);
        let (two_blocks, words) = (wanted.part(1024) as usize, wanted.room(1100) as usize);
        assert!((two_blocks..two_blocks + 3).contains(&shared), "{shared} of {two_blocks}");
        assert_eq!(count(&first), words);
        assert_ne!(first[..40], third[..40]);
        assert_eq!(count(&written(&prompts, 3, None)), 1, "never empty");
        assert_eq!(written(&prompts, 4, None), first, "in turn");
        let other = written(&prompts.in_words_of(1), 0, None);
        assert!(count(&other) == words && other != first);
        assert_eq!(prompts.output_tokens(0, 0), Some(1), "0 is asked as 1");
        assert_eq!(prompts.output_tokens(2, 0), Some(900));
    }
}

#[test]
fn prefixes_are_shared_and_come_on_top() {
    let prefix = Some(Prefixes { groups: 3, tokens: 50, pick: Pick::Uniform });
    let workload = Workload { prompt: Prompt::Tokens(20), prefix, ..Workload::default() };
    let prompts = Prompts::load(&workload, 7).unwrap();
    let front = |text: &str| text.split(' ').take(50).collect::<Vec<_>>().join(" ");
    let texts: Vec<String> = (0..30).map(|number| written(&prompts, number, Some("part"))).collect();
    let mut fronts: Vec<String> = texts.iter().map(|text| front(text)).collect();
    fronts.sort_unstable();
    fronts.dedup();
    assert_eq!(fronts.len(), 3);
    assert!(texts.iter().all(|text| count(text) == 70 && text.starts_with("[part] ")));
    let mut whole = texts.clone();
    whole.sort_unstable();
    whole.dedup();
    assert_eq!(whole.len(), 30, "what is behind them is each one's own");
    let other = written(&prompts.in_words_of(1), 0, Some("part"));
    assert!(count(&other) == 70 && front(&other) != front(&texts[0]));
    assert_eq!(prompts.longest(9), Longest { tokens: 70, is_certain: true });

    let text = Workload { prompt: Prompt::Text("why?".to_owned()), ..workload };
    let text = written(&Prompts::load(&text, 7).unwrap(), 0, None);
    assert!(count(&text) == 51 && text.ends_with(" why?"), "{text}");
}

#[test]
fn a_tokenizer_makes_lengths_exact() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/testdata/tokenizer/tokenizer.json");
    let counter = Counter::load(Path::new(path)).unwrap();
    let rows = "{\"timestamp\":0,\"input_length\":1100,\"output_length\":1,\"hash_ids\":[1,2,3]}\n";
    let (_file, trace) = file(&rows.repeat(2));
    let calibration = Calibration::Measured { tokens_per_word: 1.3, overhead: 9.0 };
    for prompt in [
        Prompt::Tokens(300),
        Prompt::Lengths("uniform:100:900".parse().unwrap()),
        Prompt::Trace { path: trace, format: None },
    ] {
        let workload = Workload {
            prompt,
            calibration,
            tokenizer: Some(path.to_owned()),
            prefix: Some(Prefixes { groups: 2, tokens: 64, pick: Pick::Zipf(1.0) }),
            ..Workload::default()
        };
        let prompts = Prompts::load(&workload, 3).unwrap();
        for number in 0..20 {
            let asked = match &prompts.source {
                Source::Words(draws) => draws.draw(Side::Input, 3 ^ OF_PROMPTS, number).unwrap(),
                _ => 1100,
            };
            for salt in [None, Some("0199c0de-7a5b-7e91-8f3d-26c4b7d0a5f1")] {
                let text = written(&prompts, number, salt);
                assert_eq!(counter.count(&text), Ok(64 + asked - 9), "{text}");
            }
        }
    }
}

#[test]
fn lengths_of_a_file_come_in_pairs() {
    let (_file, path) = file("input_tokens,output_tokens\n10,1\n20,2\n30,3\n");
    let lengths: Lengths = format!("empirical:{path}").parse().unwrap();
    for output in [lengths.clone(), Lengths::Recorded] {
        let prompt = Prompt::Lengths(lengths.clone());
        let workload = Workload { prompt, output: Some(output), ..Workload::default() };
        let prompts = Prompts::load(&workload, 7).unwrap();
        assert_eq!(prompts.most_output(), Some(3));
        for number in 0..50 {
            let tokens = count(&written(&prompts, number, None)) as u32;
            assert_eq!(prompts.output_tokens(number, 0), Some(tokens / 10));
        }
    }
    let workload = Workload { output: Some(lengths), ..Workload::default() };
    let drawn = Prompts::load(&workload, 7).unwrap();
    assert!((0..50).all(|number| drawn.output_tokens(number, 0).is_some_and(|tokens| tokens <= 3)));
}

#[test]
fn sessions_have_turns() {
    let session = |turns: &str| Some(Session { turns: turns.parse().unwrap(), think_time: None });
    let made =
        Workload { prompt: Prompt::Tokens(12), session: session("uniform:2:4"), ..Workload::default() };
    let made = Prompts::load(&made, 7).unwrap();
    let counts: Vec<u32> = (0..40).filter_map(|number| made.turns(number)).collect();
    assert!(counts.iter().min() == Some(&2) && counts.iter().max() == Some(&4));
    let said = |turn| made.turn(5, turn, Some("s"), &mut String::new())[0]["content"].to_string();
    assert!(said(0).starts_with("\"[s] ") && !said(1).contains("[s]"));
    assert_eq!((count(&said(0)), count(&said(1))), (12, 12));
    assert!(said(1) != said(2) && said(1) == said(1));
    assert_eq!(made.longest(10), Longest { tokens: 4 * 12 + 3 * 10, is_certain: true });

    let (_file, path) = file(
        r#"[{"conversations":[{"from":"human","value":"a"},{"from":"gpt","value":"b"},{"from":"human","value":"c"}]},
        {"conversations":[{"from":"human","value":"d"}]}]"#,
    );
    for (turns, expect) in [("recorded", 2), ("1", 1), ("9", 2)] {
        let workload =
            Workload { prompt: Prompt::File(path.clone()), session: session(turns), ..Workload::default() };
        let listed = Prompts::load(&workload, 7).unwrap();
        assert_eq!(
            (listed.turns(0), listed.turns(1), listed.turns(2)),
            (Some(expect), Some(1), Some(expect))
        );
        let said = |turn| listed.turn(0, turn, Some("s"), &mut String::new())[0]["content"].clone();
        assert_eq!((said(0), said(1)), ("[s] a".into(), "c".into()));
    }
}

/// A hundred thousand of them would fill gigabytes: none is held beside the one that is being written.
#[test]
fn prompts_are_made_in_the_room_of_one() {
    let prompts = tokens(4_000);
    let mut text = String::new();
    for number in 0..300 {
        assert!(prompts.write(number, None, &mut text).is_none());
    }
    assert!(text.capacity() < 64 << 10, "{}", text.capacity());
}
