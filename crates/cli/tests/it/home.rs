//! A folder of its own for each test, and the binary run in it with bounded time.

use std::io::Read;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::channel;
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

/// No run of a test comes near this; a slow machine must not reach it either.
const LIMIT: Duration = Duration::from_mins(1);

/// Between two looks at something that will come.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

/// Where a test lives.
pub(crate) struct Home {
    dir: TempDir,
}

/// A program that has ended.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) code: Option<i32>,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Home {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.path(name)).unwrap_or_else(|e| panic!("{name}: {e}"))
    }

    /// The binary, with nothing in its environment that could change what it says.
    pub(crate) fn command(&self) -> Command {
        self.dress(Command::new(env!("CARGO_BIN_EXE_ttft")))
    }

    /// The binary behind shell words such as `ulimit -n 100`.
    pub(crate) fn command_after(&self, shell: &str) -> Command {
        let mut command = Command::new("sh");
        command.args(["-c", &format!("{shell}; exec \"$0\" \"$@\""), env!("CARGO_BIN_EXE_ttft")]);
        self.dress(command)
    }

    fn dress(&self, mut command: Command) -> Command {
        command
            .current_dir(self.dir.path())
            .env_remove("OPENAI_API_KEY")
            .env_remove("NO_COLOR")
            .env("COLUMNS", "100")
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        command
    }

    /// Runs it with the words of `line`, to its end.
    pub(crate) fn ttft(&self, line: &str) -> Done {
        self.ttft_with(line, &[])
    }

    /// Runs it with the words of `line`, and `more` as they are.
    pub(crate) fn ttft_with(&self, line: &str, more: &[&str]) -> Done {
        let mut command = self.command();
        finish(command.args(line.split_whitespace()).args(more).spawn().unwrap())
    }

    /// `summary.json` of a run folder.
    pub(crate) fn summary(&self, folder: &str) -> Value {
        serde_json::from_str(&self.read(&format!("{folder}/summary.json"))).unwrap()
    }

    /// The first stage of it.
    pub(crate) fn stage(&self, folder: &str) -> Value {
        self.summary(folder)["stages"][0].clone()
    }
}

impl Done {
    /// Asserts the exit code, and that nothing panicked.
    #[track_caller]
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self}");
        assert!(!self.err.contains("panicked"), "{self}");
        self
    }

    /// Standard output as the one JSON document that it must be.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|e| panic!("{e}\n{self}"))
    }
}

impl std::fmt::Display for Done {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "exit {:?}\n--- out\n{}\n--- err\n{}", self.code, self.out, self.err)
    }
}

/// Waits for a program's end and takes what it wrote.
#[track_caller]
pub(crate) fn finish(mut child: Child) -> Done {
    let pid = child.id();
    let (mut out, mut err) = (child.stdout.take(), child.stderr.take());
    let (sender, ended) = channel();
    std::thread::spawn(move || {
        let err = std::thread::spawn(move || drained(err.as_mut()));
        let out = drained(out.as_mut());
        let status = child.wait().unwrap();
        let _ = sender.send(Done { code: status.code(), out, err: err.join().unwrap() });
    });
    ended.recv_timeout(LIMIT).unwrap_or_else(|_| {
        signal(pid, "KILL");
        panic!("no end within {LIMIT:?}: {:?}", ended.recv())
    })
}

fn drained(pipe: Option<&mut impl Read>) -> String {
    let mut bytes = Vec::new();
    pipe.map(|pipe| pipe.read_to_end(&mut bytes));
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Sends a signal by its name.
pub(crate) fn signal(pid: u32, name: &str) {
    assert!(Command::new("kill").args([&format!("-{name}"), &pid.to_string()]).status().unwrap().success());
}

/// Looks again and again until there is something.
#[track_caller]
pub(crate) fn wait_for<T>(what: &str, mut look: impl FnMut() -> Option<T>) -> T {
    let looks = LIMIT.as_millis() / LOOK_AGAIN.as_millis();
    for _ in 0..looks {
        if let Some(found) = look() {
            return found;
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    panic!("{what} did not come within {LIMIT:?}")
}
