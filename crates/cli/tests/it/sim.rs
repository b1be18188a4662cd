//! The simulated engine in a process of its own.

use std::io::{BufRead, BufReader};
use std::process::{Child, ChildStderr, Command};

use crate::home::Home;

/// A server that ends with its test.
pub(crate) struct Sim {
    pub(crate) url: String,
    child: Child,
    /// Kept open: what the server says later has a reader.
    _err: BufReader<ChildStderr>,
}

impl Sim {
    /// First token after 20 ms, the others 2 ms apart, and the flags in `line`.
    pub(crate) fn start(home: &Home, line: &str) -> Self {
        Self::serve(home, &format!("--profile fixed --ttft-ms 20 --itl-ms 2 {line}"))
    }

    /// With just the flags in `line`.
    pub(crate) fn serve(home: &Home, line: &str) -> Self {
        Self::serve_at(home, "0", line)
    }

    /// At that port.
    pub(crate) fn serve_at(home: &Home, port: &str, line: &str) -> Self {
        Self::by(home.command(), port, line)
    }

    /// By that command, which runs the binary in some way.
    pub(crate) fn by(mut command: Command, port: &str, line: &str) -> Self {
        let mut child = command.args(["sim", "--port", port]).args(line.split_whitespace()).spawn().unwrap();
        let mut err = BufReader::new(child.stderr.take().unwrap());
        let mut said = String::new();
        err.read_line(&mut said).unwrap();
        let url = said.trim().strip_prefix("listening on ").unwrap_or_else(|| panic!("{said}")).to_owned();
        Self { url, child, _err: err }
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
