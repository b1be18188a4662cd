//! Texts that users see first, as they are: a change of theirs is meant, or it is a mistake.

use crate::home::Home;
use crate::sim::Sim;

#[test]
fn help() {
    let home = Home::new();
    for (name, line) in
        [("ttft", "--help"), ("run", "run --help"), ("check", "check --help"), ("find", "find --help")]
    {
        insta::assert_snapshot!(format!("help_{name}"), home.ttft(line).expect(0).out);
    }
}

#[test]
fn version() {
    let home = Home::new();
    assert_eq!(home.ttft("--version").expect(0).out, concat!("ttft ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn summary() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let flags = "-c 1 -n 8 --warmup 2 --max-tokens 8 --ignore-eos --slo ttft_p50<60s --slo error_rate<1%";
    let done = home.ttft(&format!("run {} {flags}", sim.url)).expect(0);
    insta::assert_snapshot!("summary", shape(&done.out));
}

/// A summary without what differs from run to run: numbers, widths, and how busy this machine happens to be.
fn shape(text: &str) -> String {
    let mut lines = Vec::new();
    let (mut of_client, mut of_oddity) = (false, false);
    for line in text.lines() {
        // The opinion on the client, and on what held TTFT up, goes up to the next empty line; single oddities begin with a
        // dash.
        let begins = line.starts_with("client ") || line.starts_with("why TTFT ");
        of_client = (of_client && !line.is_empty()) || begins;
        of_oddity = line.starts_with("- ") || (of_oddity && line.starts_with("  "));
        // So does how smoothly the stream ran, in words.
        if of_client || of_oddity || line.contains("fluidity") {
            continue;
        }
        // An interval whose ends look the same is not shown.
        let words = line.split_whitespace().filter(|word| !(word.starts_with('[') && word.ends_with(']')));
        lines.push(words.map(without_numbers).collect::<Vec<_>>().join(" "));
    }
    lines.dedup();
    lines.join("\n")
}

/// Every number as `#`.
fn without_numbers(word: &str) -> String {
    let mut shape = String::new();
    for c in word.chars().filter(|c| *c != '~') {
        match c {
            '0'..='9' | '.' | ',' if shape.ends_with('#') => {}
            '0'..='9' | '∞' => shape.push('#'),
            other => shape.push(other),
        }
    }
    shape
}
