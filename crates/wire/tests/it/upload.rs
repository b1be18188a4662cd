//! Requests on their way out: large ones, refused ones, and their transmit stamps.

use std::io::{self, Read};
use std::time::Duration;

use bytes::Bytes;
use ttft_kernel::{mono_now, thread_cpu_now};
use ttft_model::{ErrorClass, Nanos};

use crate::client::{Client, all_chunks, joined, run};
use crate::server::{Server, Talk, gate};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";
const LARGE: usize = 30_000_000;

/// Reads a body of `length` bytes, with a rest after each read; tells whether all its bytes are `fill`.
pub(crate) fn read_slowly(
    talk: &mut Talk<impl io::Read + io::Write>,
    length: usize,
    fill: u8,
) -> io::Result<bool> {
    let mut right = talk.unread.drain(..).collect::<Vec<_>>();
    let mut got = right.len();
    right.retain(|byte| *byte != fill);
    let mut buffer = vec![0; 128 * 1024];
    while got < length {
        let read = talk.socket.read(&mut buffer)?;
        if read == 0 {
            return Ok(false);
        }
        got += read;
        right.extend(buffer[..read].iter().filter(|byte| **byte != fill));
        std::thread::sleep(Duration::from_millis(1));
    }
    Ok(right.is_empty() && got == length)
}

#[test]
fn a_large_request_to_a_slow_reader_arrives_whole_and_costs_no_cpu() {
    let server = Server::start(|mut talk, _| {
        assert!(talk.head()?.unwrap().contains(&format!("content-length: {LARGE}\r\n")));
        let right = read_slowly(&mut talk, LARGE, 7)?;
        talk.write(if right { ANSWER } else { b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n" })
    });
    run(async {
        let client = Client::h1();
        let (wall, cpu) = (mono_now(), thread_cpu_now());
        let (response, sending) = client.send_body(&server.target(), vec![7; LARGE].into()).await;
        let (wall, cpu) = (mono_now() - wall, thread_cpu_now() - cpu);
        let response = response.unwrap();
        assert_eq!(response.status, 200);
        let (first, sent) = (sending.sent_first.unwrap(), sending.sent.unwrap());
        assert!(first < sent && sent < response.head.at());
        assert!(cpu.0 < wall.0 / 2, "{cpu:?} of CPU in {wall:?}");
        assert_transmit_stamps(first, sent, response.transmit_stamps());
    });
}

pub(crate) fn assert_transmit_stamps(
    first: Nanos,
    sent: Nanos,
    (device, acked): (Option<Nanos>, Option<Nanos>),
) {
    if cfg!(not(target_os = "linux")) {
        return;
    }
    let (device, acked) = (device.expect("a device stamp"), acked.expect("an acknowledgement's stamp"));
    let slack = Nanos(1_000);
    assert!(
        first <= sent && sent <= device + slack && device <= acked + slack,
        "{sent:?} {device:?} {acked:?}"
    );
    assert!(acked <= mono_now());
}

#[test]
fn transmit_stamps_belong_to_each_request_of_a_connection() {
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client::h1();
        let mut last = Nanos::ZERO;
        for _ in 0..100 {
            let (response, sending) = client.send(&server.target()).await;
            let mut response = response.unwrap();
            let stamps = response.transmit_stamps();
            assert_transmit_stamps(sending.sent_first.unwrap(), sending.sent.unwrap(), stamps);
            assert!(last < sending.sent_first.unwrap());
            last = stamps.1.unwrap_or(last);
            all_chunks(&mut response).await.unwrap();
            response.recycle().await;
        }
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn requests_whose_stamps_nobody_takes_do_not_fill_the_connection() {
    // Stamps count against the receive buffer; thousands of them must not close the window.
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client::h1();
        for _ in 0..3_000 {
            client.exchange(&server.target()).await;
        }
        let (response, sending) = client.send(&server.target()).await;
        let stamps = response.unwrap().transmit_stamps();
        assert_transmit_stamps(sending.sent_first.unwrap(), sending.sent.unwrap(), stamps);
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn an_answer_before_the_request_was_read_is_an_answer() {
    let server = Server::start(|mut talk, _| {
        talk.head()?;
        talk.write("HTTP/1.1 413 Too Large\r\nconnection: close\r\ncontent-length: 5\r\n\r\nlarge")
        // Closed with most of the request unread: the client gets a reset behind the answer.
    });
    run(async {
        for _ in 0..20 {
            let client = Client::h1();
            let (response, sending) = client.send_body(&server.target(), vec![7; LARGE].into()).await;
            let mut response = response.unwrap();
            assert_eq!(response.status, 413);
            assert_eq!(joined(&all_chunks(&mut response).await.unwrap()), b"large");
            assert!(sending.sent_first.is_some());
            response.recycle().await;
            assert_eq!(client.pool.idle(), 0);
        }
    });
}

#[test]
fn a_server_that_keeps_open_after_an_early_answer_gets_no_second_request_there() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.head()?;
        talk.write("HTTP/1.1 413 Too Large\r\ncontent-length: 0\r\n\r\n")?;
        gate.wait();
        Ok(())
    });
    run(async {
        let client = Client::h1();
        let (response, _) = client.send_body(&server.target(), vec![7; LARGE].into()).await;
        let mut response = response.unwrap();
        assert_eq!((response.status, all_chunks(&mut response).await.unwrap().len()), (413, 0));
        response.recycle().await;
        assert_eq!(client.pool.idle(), 0);
        go.send(()).unwrap();
    });
}

#[test]
fn a_server_that_closes_while_it_is_written_to_is_a_failure_to_send() {
    let server = Server::start(|mut talk, _| {
        talk.head()?;
        talk.socket.read_exact(&mut vec![0; 100_000])
    });
    run(async {
        let (result, sending) = Client::h1().send_body(&server.target(), Bytes::from(vec![7; LARGE])).await;
        let error = result.err().unwrap();
        assert_eq!(error.class, ErrorClass::Send, "{error}");
        assert!(error.message.contains("while the request was being written"), "{error}");
        assert!(sending.sent_first.is_some() && !sending.connection.resent);
    });
}
