//! From exec to the first byte of the first request at a listener of our own.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::Path;

use clap::Args as ClapArgs;
use serde::Serialize;
use ttft_kernel::mono_now;
use ttft_model::Nanos;

use crate::CLIENT_CPU;
use crate::pinned::Pinned;
use crate::quiet::Patience;
use crate::report::Report;
use crate::spread::Spread;
use crate::table::{Table, figure};
use crate::ttft::LoadTest;

/// What `start` takes.
#[derive(Debug, ClapArgs)]
pub(crate) struct Args {
    /// Starts
    #[arg(long, value_name = "N", default_value_t = 20)]
    times: u32,
}

/// Time since exec, in microseconds.
#[derive(Debug, Serialize)]
struct Figures {
    connected: Spread,
    first_byte: Spread,
}

/// Starts the client so many times.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let folder = tempfile::tempdir()?;
    patience.wait()?;
    let mut starts = Vec::new();
    for n in 0..args.times {
        starts.push(once(&listener, &folder.path().join(n.to_string()))?);
    }
    let figures = Figures {
        connected: Spread::of(starts.iter().map(|start| start.0.0)),
        first_byte: Spread::of(starts.iter().map(|start| start.1.0)),
    };
    let mut table = Table::new(&["since exec, ms", "n", "min", "p50", "p95", "max"]);
    for (name, spread) in [("connected", &figures.connected), ("first request byte", &figures.first_byte)] {
        let of = [spread.min, spread.p50, spread.p95, spread.max].map(|us| figure(us.map(|us| us / 1e3), 1));
        table.row([name.to_owned(), spread.n.to_string()].into_iter().chain(of));
    }
    Report::new("start: from exec to the first request on the wire", table.text(), &figures)
}

/// One start: until connected, and until the first byte.
fn once(listener: &TcpListener, out: &Path) -> anyhow::Result<(Nanos, Nanos)> {
    let test = LoadTest { streams: 1, requests: Some(1), tokens: 1, ..LoadTest::default() };
    let command = test.command(&format!("http://{}", listener.local_addr()?), out)?;
    let mut client = Pinned::start(command, CLIENT_CPU)?;
    let (mut stream, _) = listener.accept()?;
    let connected = mono_now() - client.at;
    let mut request = [0; 1 << 14];
    let _ = stream.read(&mut request)?;
    let first_byte = mono_now() - client.at;
    stream.write_all(ANSWER)?;
    drop(stream);
    client.wait()?;
    Ok((connected, first_byte))
}

/// One token, and the end.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n\
    data: [DONE]\n\n";
