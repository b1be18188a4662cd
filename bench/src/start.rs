//! From exec to the first byte of the first request at a listener of our own.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};

use anyhow::{Context, ensure};
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
    /// Of the first request, which may be one that counts the prompt's tokens.
    first_byte: Spread,
    /// Of the request that the load test is about, the last one.
    load_first_byte: Spread,
}

/// When a connection was taken, and when its first byte was read.
#[derive(Clone, Copy)]
struct Seen {
    connected: Nanos,
    first_byte: Nanos,
}

/// Starts the client so many times.
pub(crate) fn run(args: &Args, patience: &mut Patience) -> anyhow::Result<Report> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}", listener.local_addr()?);
    let (sender, receiver) = channel();
    std::thread::spawn(move || serve(&listener, &sender));
    let folder = tempfile::tempdir()?;
    patience.wait()?;
    let mut starts = Vec::new();
    for n in 0..args.times {
        starts.push(once(&url, &receiver, &folder.path().join(n.to_string()))?);
    }
    let of = |what: fn(&(Seen, Seen)) -> Nanos| Spread::of(starts.iter().map(|start| what(start).0));
    let figures = Figures {
        connected: of(|(first, _)| first.connected),
        first_byte: of(|(first, _)| first.first_byte),
        load_first_byte: of(|(_, last)| last.first_byte),
    };
    let mut table = Table::new(&["since exec, ms", "n", "min", "p50", "p95", "max"]);
    for (name, spread) in [
        ("connected", &figures.connected),
        ("first request byte", &figures.first_byte),
        ("first byte of the load", &figures.load_first_byte),
    ] {
        let of = [spread.min, spread.p50, spread.p95, spread.max].map(|us| figure(us.map(|us| us / 1e3), 1));
        table.row([name.to_owned(), spread.n.to_string()].into_iter().chain(of));
    }
    Report::new("start: from exec to the first request on the wire", table.text(), &figures)
}

/// One start: the first and the last connection, as times since exec.
fn once(url: &str, seen: &Receiver<Seen>, out: &Path) -> anyhow::Result<(Seen, Seen)> {
    let test = LoadTest { streams: 1, requests: Some(1), tokens: 1, ..LoadTest::default() };
    let mut client = Pinned::start(test.command(url, out)?, CLIENT_CPU)?;
    let (status, _) = client.wait()?;
    ensure!(status.success(), "ttft run ended with {status}");
    let since =
        |seen: Seen| Seen { connected: seen.connected - client.at, first_byte: seen.first_byte - client.at };
    let first = seen.try_recv().context("no request came")?;
    let last = seen.try_iter().last().unwrap_or(first);
    Ok((since(first), since(last)))
}

/// Answers each connection's first request, one after the other.
fn serve(listener: &TcpListener, sender: &Sender<Seen>) {
    for stream in listener.incoming() {
        // A connection that fails shows itself as a start without a request.
        let _ = stream.and_then(|stream| answer(stream, sender));
    }
}

fn answer(mut stream: TcpStream, sender: &Sender<Seen>) -> io::Result<()> {
    let connected = mono_now();
    let mut request = [0; 1 << 14];
    if stream.read(&mut request)? == 0 {
        return Ok(());
    }
    // The receiver lives as long as the benchmark.
    let _ = sender.send(Seen { connected, first_byte: mono_now() });
    stream.write_all(ANSWER)?;
    // A socket that is closed with bytes unread resets the connection, and the answer with it.
    stream.shutdown(Shutdown::Write)?;
    io::copy(&mut stream, &mut io::sink())?;
    Ok(())
}

/// One token, and the end.
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n\
    data: {\"choices\":[{\"index\":0,\"delta\":{\"content\":\"a\"},\"finish_reason\":\"length\"}]}\n\n\
    data: [DONE]\n\n";
