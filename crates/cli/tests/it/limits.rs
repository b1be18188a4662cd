//! A disk that fills up, and a machine that gives too few files.

use crate::home::{Done, Home, finish, wait_for};
use crate::sim::Sim;

fn limited(home: &Home, limit: &str, line: &str) -> Done {
    finish(home.command_after(limit).args(line.split_whitespace()).spawn().unwrap())
}

#[test]
fn a_disk_that_fills_up_stops_the_run_and_keeps_what_it_took() {
    let home = Home::new();
    let sim = Sim::serve(&home, "--profile instant --truth truth.jsonl");
    // Files of at most 6 MiB (in blocks of 512 bytes): over the reserve of 4, under what the run would write.
    let flags = "-c 8 -n 1000000 --warmup 0 --max-tokens 256 --ignore-eos --prompt hello --out out";
    let done = limited(&home, "ulimit -f 12288", &format!("run {} {flags}", sim.url)).expect(3);
    assert!(done.err.contains("stopping: ") && done.err.contains("free some space in out"), "{done}");
    let summary = home.summary("out");
    assert_eq!(summary["run"]["interrupted"], true);
    assert!(!summary["run"]["stopped_by"].as_str().unwrap().contains("signal"), "{}", summary["run"]);
    assert_eq!(home.ttft("report out --json").expect(0).json(), summary);

    // What was not taken is counted to the last row.
    let requests = &summary["stages"][0]["requests"];
    assert_eq!(requests["sent"], requests["ok"]);
    let kept = requests["ok"].as_u64().unwrap();
    let lost = done.err.split_once(" records could not be written to out/requests.arrow");
    let lost: u64 = lost.unwrap_or_else(|| panic!("{done}")).0.rsplit(' ').next().unwrap().parse().unwrap();
    assert!(kept > 100, "{requests}");
    let answered = || home.read("truth.jsonl").lines().count() as u64;
    wait_for("the server's record", || (answered() == kept + lost).then_some(()));
}

#[test]
fn a_disk_without_room_for_a_run_is_told_before_it() {
    let home = Home::new();
    let sim = Sim::serve(&home, "--profile instant --truth truth.jsonl");
    let run = format!("run {} -c 1 -n 10 --model m --out out", sim.url);
    let done = limited(&home, "ulimit -f 1", &run).expect(3);
    assert!(done.err.contains("error: cannot ") && done.err.contains("File too large"), "{done}");
    assert_eq!(home.read("truth.jsonl"), "", "nothing was sent");
}

#[test]
fn too_few_files_are_told_before_the_run() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let run = format!("run {} -c 500 -n 500 --out out", sim.url);
    let done = limited(&home, "ulimit -n 100", &run).expect(3);
    for word in ["500 connections need 564 open files", "may have 100", "ulimit -Hn"] {
        assert!(done.err.contains(word), "{word}: {done}");
    }
    assert!(!home.path("out").exists());
}

#[test]
fn a_low_soft_limit_is_raised() {
    let home = Home::new();
    let sim = Sim::start(&home, "");
    let run = format!("run {} -c 120 -n 240 --warmup 0 --max-tokens 2 --out out", sim.url);
    limited(&home, "ulimit -S -n 100", &run).expect(0);
    assert_eq!(home.stage("out")["requests"]["ok"], 240);
}

#[test]
fn files_that_run_out_in_an_open_loop_are_the_clients_own_failure() {
    let home = Home::new();
    let sim = Sim::start(&home, "--fault slow-headers=1000");
    let flags = "--rate 400 --arrival constant -n 200 --warmup 0 --max-tokens 2 --out out";
    let done = limited(&home, "ulimit -n 80", &format!("run {} {flags}", sim.url));
    assert!(home.path("out/summary.json").exists(), "{done}");
    let stage = home.stage("out");
    assert!(stage["requests"]["errors"]["client"].as_u64().unwrap() > 20, "{}", stage["requests"]);
    assert_eq!(stage["client"]["verdict"], "invalid");
    assert!(done.out.contains("too many open files") && done.out.contains("ulimit -n"), "{done}");
}
