//! The client under test: `ttft run` as its users start it.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, ensure};
use ttft_judge::{StageSummary, Summary};
use ttft_model::Nanos;
use ttft_store::{StoredRun, read_run};

use crate::CLIENT_CPU;
use crate::cpu::{Cpu, of_children};
use crate::pinned::Pinned;

/// A closed-loop load test.
#[derive(Debug, Clone, Default)]
pub(crate) struct LoadTest {
    pub(crate) streams: u64,
    pub(crate) requests: Option<u64>,
    pub(crate) seconds: Option<u64>,
    pub(crate) tokens: u64,
    /// A connection for each request.
    pub(crate) new_connections: bool,
}

impl LoadTest {
    /// The command line against that URL, with results in `out`.
    pub(crate) fn command(&self, url: &str, out: &Path) -> anyhow::Result<Command> {
        let mut command = Command::new(binary()?);
        command.args(["run", url, "--model", "sim", "--ignore-eos", "--prompt-tokens", "100"]);
        command.args(["--warmup", "0", "--workers", "1"]);
        command.args(["--concurrency", &self.streams.to_string(), "--max-tokens", &self.tokens.to_string()]);
        if let Some(requests) = self.requests {
            command.args(["--requests", &requests.to_string()]);
        }
        if let Some(seconds) = self.seconds {
            command.args(["--duration", &format!("{seconds}s")]);
        }
        if self.new_connections {
            command.args(["--connections", "new"]);
        }
        command.arg("--out").arg(out);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        Ok(command)
    }

    /// Runs it on the client's core to its end.
    pub(crate) fn run(&self, url: &str, out: &Path) -> anyhow::Result<Finished> {
        let cpu = of_children()?;
        let mut command = self.command(url, out)?;
        let log = out.with_extension("log");
        command.stderr(File::create(&log)?);
        let mut client = Pinned::start(command, CLIENT_CPU)?;
        let said = || std::fs::read_to_string(&log).unwrap_or_default();
        let (status, ended) = client.wait().with_context(|| format!("ttft run: {}", said()))?;
        ensure!(status.success(), "ttft run ended with {status}: {}", said());
        Ok(Finished { wall: ended - client.at, cpu: of_children()? - cpu, folder: out.to_owned() })
    }
}

/// A load test that has ended.
pub(crate) struct Finished {
    /// From exec to exit.
    pub(crate) wall: Nanos,
    /// CPU time of the whole process.
    pub(crate) cpu: Cpu,
    folder: PathBuf,
}

impl Finished {
    /// Its only stage.
    pub(crate) fn stage(&self) -> anyhow::Result<StageSummary> {
        stage(&self.folder)
    }

    /// Its record.
    pub(crate) fn run(&self) -> anyhow::Result<StoredRun> {
        Ok(read_run(&self.folder)?)
    }

    /// CPU time of the worker alone, without start-up, record and summary.
    pub(crate) fn worker_cpu(&self) -> anyhow::Result<Nanos> {
        Ok(Nanos(self.run()?.run.stages.iter().flat_map(|stage| &stage.worker_cpu_ns).sum()))
    }
}

/// The only stage of the run in that folder.
pub(crate) fn stage(folder: &Path) -> anyhow::Result<StageSummary> {
    let path = folder.join("summary.json");
    let text = std::fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
    let summary: Summary = serde_json::from_slice(&text)?;
    summary.stages.into_iter().next().context("the summary has no stage")
}

/// The program, which is built beside this one.
pub(crate) fn binary() -> anyhow::Result<PathBuf> {
    let path = std::env::current_exe()?.with_file_name("ttft");
    ensure!(path.exists(), "{} is not there: build it with `cargo build --release -p ttft`", path.display());
    Ok(path)
}
