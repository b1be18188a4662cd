//! TLS: what is trusted, what is refused and why, and stamps through it.

use std::io::Write;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ttft_kernel::{mono_now, thread_cpu_now};
use ttft_model::{ErrorClass, HttpVersion, Resolve};
use ttft_wire::{ConnectOptions, TlsOptions, WireError, tls_config};

use crate::client::{Client, all_chunks, assert_stamped, joined, options, run};
use crate::server::{Server, gate};
use crate::tls_server::{Authority, start};
use crate::upload::{assert_transmit_stamps, read_slowly};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn answering(config: Arc<rustls::ServerConfig>) -> Server {
    start(config, |mut talk, _| {
        while talk.request()?.is_some() {
            talk.write(ANSWER)?;
        }
        Ok(())
    })
}

fn client_of(options: ConnectOptions, server: &Server, host: &str) -> Client {
    let addr = Ipv4Addr::LOCALHOST.into();
    Client::resolving(options, &[Resolve { host: host.to_owned(), port: server.addr.port(), addr }])
}

fn refusal(options: ConnectOptions, server: &Server, host: &str) -> WireError {
    let client = client_of(options, server, host);
    let error = run(async { client.send(&server.https(host)).await.0.err().unwrap() });
    assert_eq!(error.class, ErrorClass::Tls, "{error}");
    assert!(error.message.starts_with(&format!("no TLS with {host}:{}: ", server.addr.port())), "{error}");
    error
}

#[test]
fn a_given_authority_is_trusted_and_connections_are_kept() {
    let authority = Authority::new();
    let server = answering(authority.server(&[b"http/1.1"], false));
    run(async {
        let client = client_of(authority.trusted(HttpVersion::H1), &server, "localhost");
        let first = client.exchange(&server.https("localhost")).await.1;
        assert!(first.connection.tls && first.tls_done > first.tcp_done && first.sent_first > first.tls_done);
        let second = client.exchange(&server.https("localhost")).await.1;
        assert!(second.connection.reused && second.tls_done.is_none());
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn an_unknown_issuer_is_named() {
    let (ours, theirs) = (Authority::new(), Authority::named("another"));
    let server = answering(theirs.server(&[], false));
    let error = refusal(ours.trusted(HttpVersion::H1), &server, "localhost");
    assert!(error.message.contains("UnknownIssuer"), "{error}");
    let system = tls_config(&TlsOptions { insecure: false, ca: None, http: HttpVersion::H1 }).unwrap();
    refusal(ConnectOptions { tls: system, ..options(HttpVersion::H1) }, &server, "localhost");
}

#[test]
fn another_name_is_refused() {
    let authority = Authority::new();
    let server = answering(authority.server(&[], false));
    let error = refusal(authority.trusted(HttpVersion::H1), &server, "other.example");
    assert!(error.message.contains("not valid for name") && error.message.contains("localhost"), "{error}");
}

#[test]
fn an_expired_certificate_is_refused() {
    let authority = Authority::new();
    let server = answering(authority.server(&[], true));
    let error = refusal(authority.trusted(HttpVersion::H1), &server, "localhost");
    assert!(error.message.contains("expired"), "{error}");
}

#[test]
fn insecure_accepts_anything() {
    let authority = Authority::new();
    for expired in [false, true] {
        let server = answering(authority.server(&[], expired));
        run(async {
            let client = client_of(options(HttpVersion::H1), &server, "other.example");
            assert_eq!(client.exchange(&server.https("other.example")).await.0, b"ok");
        });
    }
}

#[test]
fn a_plain_port_is_recognised() {
    let server = Server::start(|mut talk, _| {
        talk.fill()?;
        talk.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
        talk.close()
    });
    let error = refusal(options(HttpVersion::H1), &server, "localhost");
    assert!(error.message.ends_with("does this port speak plain http?"), "{error}");
}

#[test]
fn a_server_that_closes_in_the_handshake_is_refused() {
    let server = Server::start(|mut talk, _| {
        talk.fill()?;
        talk.close()
    });
    refusal(options(HttpVersion::H1), &server, "localhost");
}

#[test]
fn a_server_without_http2_is_told_so() {
    let authority = Authority::new();
    for alpn in [&[][..], &[&b"http/1.1"[..]]] {
        let server = answering(authority.server(alpn, false));
        let error = refusal(authority.trusted(HttpVersion::H2), &server, "localhost");
        let said = error.message.to_ascii_lowercase();
        assert!(said.contains("http/2") && said.contains("--http 1.1"), "{error}");
    }
}

#[test]
fn files_of_roots_that_hold_none() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("empty.pem");
    std::fs::write(&file, "no certificate here\n").unwrap();
    for ca in [file, folder.path().join("missing.pem")] {
        let options = TlsOptions { insecure: false, ca: Some(ca.clone()), http: HttpVersion::H1 };
        let error = tls_config(&options).unwrap_err().to_string();
        assert!(error.contains(ca.to_str().unwrap()), "{error}");
    }
}

#[test]
fn reads_through_tls_are_stamped() {
    let authority = Authority::new();
    let (go, gate) = gate();
    let server = start(authority.server(&[], false), move |mut talk, _| {
        talk.request()?;
        talk.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n")?;
        for _ in 0..3 {
            gate.wait();
            // Two records in one segment.
            talk.socket.conn.writer().write_all(b"1\r\na\r\n")?;
            talk.socket.conn.writer().write_all(b"1\r\nb\r\n")?;
            talk.socket.flush()?;
        }
        talk.write("0\r\n\r\n")
    });
    run(async {
        let client = client_of(authority.trusted(HttpVersion::H1), &server, "localhost");
        let (response, sending) = client.send(&server.https("localhost")).await;
        let mut response = response.unwrap();
        assert_stamped(response.head);
        assert!(sending.sent.unwrap() <= response.head.at());
        assert_transmit_stamps(
            sending.sent_first.unwrap(),
            sending.sent.unwrap(),
            response.transmit_stamps(),
        );
        let mut last = response.head;
        for _ in 0..3 {
            go.send(()).unwrap();
            let mut text = Vec::new();
            while text.len() < 2 {
                let chunk = response.chunk().await.unwrap().unwrap();
                assert_stamped(chunk.stamp);
                assert!(chunk.stamp.at() >= last.at());
                assert_eq!(chunk.stamp.at() > last.at(), text.is_empty(), "one segment, one stamp");
                text.extend_from_slice(&chunk.bytes);
                last = chunk.stamp;
            }
            assert_eq!(text, b"ab");
        }
        assert!(response.chunk().await.is_none());
    });
}

#[test]
fn a_close_without_notice_is_no_proper_end() {
    let authority = Authority::new();
    for head in [
        "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 50\r\n\r\nhello",
        "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello",
    ] {
        let server = start(authority.server(&[], false), move |mut talk, _| {
            talk.request()?;
            talk.write(head)
        });
        run(async {
            let client = client_of(authority.trusted(HttpVersion::H1), &server, "localhost");
            let mut response = client.send(&server.https("localhost")).await.0.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap().bytes, "hello");
            let error = response.chunk().await.unwrap().unwrap_err();
            assert_eq!(error.class, ErrorClass::Reset, "{head} {error}");
        });
    }
}

#[test]
fn a_close_with_notice_ends_a_body_without_length() {
    let authority = Authority::new();
    let server = start(authority.server(&[], false), |mut talk, _| {
        talk.request()?;
        talk.write("HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nhello")?;
        talk.socket.conn.send_close_notify();
        talk.socket.flush()
    });
    run(async {
        let client = client_of(authority.trusted(HttpVersion::H1), &server, "localhost");
        let mut response = client.send(&server.https("localhost")).await.0.unwrap();
        assert_eq!(joined(&all_chunks(&mut response).await.unwrap()), b"hello");
    });
}

#[test]
fn a_large_request_through_tls_arrives_whole_and_costs_little_cpu() {
    const LARGE: usize = 30_000_000;
    let authority = Authority::new();
    let server = start(authority.server(&[], false), |mut talk, _| {
        talk.head()?;
        let right = read_slowly(&mut talk, LARGE, 9)?;
        talk.write(if right { ANSWER } else { b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n" })
    });
    run(async {
        let client = client_of(authority.trusted(HttpVersion::H1), &server, "localhost");
        let (wall, cpu) = (mono_now(), thread_cpu_now());
        let (response, sending) = client.send_body(&server.https("localhost"), vec![9; LARGE].into()).await;
        let (wall, cpu) = (mono_now() - wall, thread_cpu_now() - cpu);
        let response = response.unwrap();
        assert_eq!(response.status, 200);
        assert!(sending.sent_first < sending.sent && sending.sent.unwrap() < response.head.at());
        assert!(cpu.0 < wall.0 / 4 * 3, "{cpu:?} of CPU in {wall:?}");
        assert_transmit_stamps(
            sending.sent_first.unwrap(),
            sending.sent.unwrap(),
            response.transmit_stamps(),
        );
    });
}
