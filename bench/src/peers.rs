//! Other load testers at the same work. `bench/peers/install` installs them; one that is not there is left out.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use ttft_model::Nanos;

use crate::CLIENT_CPU;
use crate::cpu::{Cpu, of_children};
use crate::pinned::Pinned;

/// Where the tools leave their figures.
const SGLANG_RESULT: &str = "result.jsonl";
const SERVEBENCH_RESULT: &str = "requests.csv";

/// A closed-loop load for any tool.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    pub(crate) streams: u64,
    pub(crate) requests: u64,
    pub(crate) tokens: u64,
    /// Keep each request's own figures.
    pub(crate) details: bool,
}

/// What one run of a tool took.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cost {
    pub(crate) requests: u64,
    pub(crate) wall: Nanos,
    /// Of all its processes.
    pub(crate) cpu: Cpu,
}

/// A tool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Peer {
    /// The client inside sglang's wheel: Rust, parses the stream.
    Sglang,
    /// Python.
    Servebench,
    /// Rust; any HTTP, does not look into the body.
    Oha,
    /// C; any HTTP, does not look into the body.
    Wrk,
}

impl Peer {
    pub(crate) const ALL: [Self; 4] = [Self::Sglang, Self::Servebench, Self::Oha, Self::Wrk];
    /// How long a tool runs that cannot be given a number of requests.
    const SECONDS: u64 = 5;

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Sglang => "sglang 0.5.23, Rust client",
            Self::Servebench => "servebench 1.1.3",
            Self::Oha => "oha 1.16.0 (no parsing)",
            Self::Wrk => "wrk (no parsing)",
        }
    }

    /// Whether the number of requests can be chosen.
    pub(crate) const fn counts(self) -> bool {
        !matches!(self, Self::Wrk)
    }

    /// How many times fewer requests than ttft it gets, so that its run ends soon.
    pub(crate) const fn slower(self) -> u64 {
        match self {
            Self::Servebench => 10,
            _ => 1,
        }
    }

    pub(crate) fn is_installed(self) -> bool {
        match self {
            Self::Sglang => home("sglang").join("tokenizer.json").exists(),
            Self::Servebench => home("servebench/bin/servebench").exists(),
            Self::Oha => home("oha/bin/oha").exists(),
            Self::Wrk => on_path("wrk"),
        }
    }

    /// Runs it on the client's core to its end, with its files in `folder`.
    pub(crate) fn run(self, load: Load, url: &str, folder: &Path) -> anyhow::Result<Cost> {
        let mut command = self.command(load, url, folder)?;
        let log = folder.join("log");
        let to_log = fs::File::create(&log)?;
        command.current_dir(folder).stdin(Stdio::null());
        command.stderr(to_log.try_clone()?).stdout(to_log);
        let cpu = of_children()?;
        let mut client = Pinned::start(command, CLIENT_CPU)?;
        let (status, ended) = client.wait()?;
        let wall = ended - client.at;
        let said = fs::read_to_string(&log).unwrap_or_default();
        ensure!(status.success(), "{} ended with {status}: {said}", self.name());
        let requests = if self.counts() { load.requests } else { requests_of_wrk(&said)? };
        Ok(Cost { requests, wall, cpu: of_children()? - cpu })
    }

    /// The times to first token in milliseconds that a run with details left in `folder`; `None` of a tool that
    /// does not measure them.
    pub(crate) fn reported_ttft(self, folder: &Path) -> anyhow::Result<Option<Vec<f64>>> {
        match self {
            Self::Sglang => {
                let text = fs::read_to_string(folder.join(SGLANG_RESULT))?;
                let result: serde_json::Value = serde_json::from_str(text.trim_end())?;
                let seconds = result["ttfts"].as_array().context("sglang told no ttfts")?;
                Ok(Some(seconds.iter().filter_map(|s| Some(s.as_f64()? * 1e3)).collect()))
            }
            Self::Servebench => {
                let text = fs::read_to_string(folder.join(SERVEBENCH_RESULT))?;
                let heading = text.lines().next().unwrap_or_default();
                let column =
                    heading.split(',').position(|name| name == "ttft_ms").context("no column ttft_ms")?;
                Ok(Some(
                    text.lines().skip(1).filter_map(|row| row.split(',').nth(column)?.parse().ok()).collect(),
                ))
            }
            Self::Oha | Self::Wrk => Ok(None),
        }
    }

    fn command(self, load: Load, url: &str, folder: &Path) -> anyhow::Result<Command> {
        let chat = format!("{url}/v1/chat/completions");
        let [streams, requests, tokens] =
            [load.streams, load.requests, load.tokens].map(|number| number.to_string());
        let prompt = (0..100).map(|n| format!("w{n}")).collect::<Vec<_>>().join(" ");
        let body = serde_json::json!({
            "model": "sim", "messages": [{"role": "user", "content": prompt}], "max_tokens": load.tokens,
            "ignore_eos": true, "stream": true, "stream_options": {"include_usage": true},
        })
        .to_string();
        let mut command;
        match self {
            Self::Sglang => {
                command = Command::new("python3");
                command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers/sglang.py"));
                command.arg("run").arg(home("sglang"));
                command.args(["--backend", "vllm-chat", "--base-url", url, "--model", "sim"]);
                command.arg("--tokenizer").arg(home("sglang"));
                command.args(["--dataset-name", "random-ids", "--random-input-len", "100"]);
                command.args(["--random-output-len", &tokens, "--random-range-ratio", "1"]);
                command.args(["--num-prompts", &requests, "--max-concurrency", &streams]);
                command.args(["--warmup-requests", "0", "--worker-threads", "1", "--disable-tqdm"]);
                command.args(["--output-file", SGLANG_RESULT]);
                if load.details {
                    command.arg("--output-details");
                }
            }
            Self::Servebench => {
                fs::write(folder.join("prompts.txt"), format!("{prompt}\n"))?;
                command = Command::new(home("servebench/bin/servebench"));
                command.args(["run", "--url", &format!("{url}/v1"), "--model", "sim"]);
                command.args(["--concurrency", &streams, "--num-requests", &requests]);
                command.args(["--prompts", "prompts.txt", "--output-len", &tokens]);
                command.args(["--warmup", "0", "--no-gpu", "--seed", "1", "--out", "result.json"]);
                if load.details {
                    command.args(["--csv-requests", SERVEBENCH_RESULT]);
                }
            }
            Self::Oha => {
                fs::write(folder.join("body.json"), body)?;
                command = Command::new(home("oha/bin/oha"));
                command.args(["--no-tui", "--output-format", "json", "-c", &streams, "-n", &requests]);
                command.args(["-m", "POST", "-T", "application/json", "-D", "body.json", &chat]);
            }
            Self::Wrk => {
                let script = format!(
                    "wrk.method='POST'\nwrk.headers['Content-Type']='application/json'\nwrk.body=[[{body}]]\n"
                );
                fs::write(folder.join("post.lua"), script)?;
                command = Command::new("wrk");
                command.args(["-t", "1", "-c", &streams, "-d", &format!("{}s", Self::SECONDS)]);
                command.args(["--timeout", "60s", "-s", "post.lua", &chat]);
            }
        }
        Ok(command)
    }
}

fn home(peer: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(".venvs").join(peer)
}

fn on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).exists())
}

fn requests_of_wrk(log: &str) -> anyhow::Result<u64> {
    let line = log.lines().find(|line| line.contains(" requests in ")).context("wrk told no requests")?;
    Ok(line.split_whitespace().next().unwrap_or_default().parse()?)
}
