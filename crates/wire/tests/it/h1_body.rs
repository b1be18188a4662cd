//! HTTP/1.1 answers: every framing, every cut, and a stamp for each read.

use std::io;

use ttft_model::ErrorClass;

use crate::client::{Client, all_chunks, assert_stamped, joined, run};
use crate::server::{Server, gate};

const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";

/// The body of an answer that comes in these writes, after which the server closes.
fn body_of(pieces: Vec<Vec<u8>>) -> Result<Vec<u8>, ttft_wire::WireError> {
    let server = Server::start(move |mut talk, _| {
        talk.request()?;
        for piece in &pieces {
            talk.write(piece)?;
        }
        talk.close()
    });
    run(async {
        let client = Client::h1();
        let mut response = client.send(&server.target()).await.0?;
        all_chunks(&mut response).await.map(|chunks| joined(&chunks))
    })
}

fn class_of(answer: &[u8]) -> ErrorClass {
    body_of(vec![answer.to_vec()]).unwrap_err().class
}

#[test]
fn the_request_is_what_a_server_expects() {
    let server = Server::start(|mut talk, _| {
        let request = talk.request()?.unwrap();
        talk.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{request}", request.len()))
    });
    let body = run(async { Client::h1().exchange(&server.target()).await.0 });
    let text = String::from_utf8(body).unwrap();
    assert!(text.starts_with("post /v1/x?y=z http/1.1\r\n"), "{text}");
    assert!(text.contains(&format!("host: {}\r\n", server.addr)), "{text}");
    assert!(text.contains("content-length: 9\r\n") && text.ends_with("\r\n\r\n{\"ask\":1}"), "{text}");
}

#[test]
fn one_byte_a_write_gives_the_whole_body() {
    let answer = [CHUNKED, b"5\r\nhello\r\n1;x=y\r\n \r\nA\r\n0123456789\r\n0\r\n\r\n"].concat();
    let pieces = answer.iter().map(|byte| vec![*byte]).collect();
    assert_eq!(body_of(pieces).unwrap(), b"hello 0123456789");
}

#[test]
fn every_cut_in_two_gives_the_whole_body() {
    let answer = [CHUNKED, b"3\r\nabc\r\n4\r\ndefg\r\n0\r\n\r\n"].concat();
    let pieces = |at: usize| vec![answer[..at].to_vec(), answer[at..].to_vec()];
    for at in (1..answer.len()).step_by(3) {
        assert_eq!(body_of(pieces(at)).unwrap(), b"abcdefg", "cut at {at}");
    }
}

#[test]
fn all_framings_end_properly() {
    for answer in [
        &b"HTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody"[..],
        b"HTTP/1.0 200 OK\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nbody",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nx-sum: 7\r\n\r\n",
        b"HTTP/1.1 103 Early Hints\r\nlink: <x>\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 4\r\n\r\nbody",
    ] {
        let text = String::from_utf8_lossy(answer);
        assert_eq!(body_of(vec![answer.to_vec()]).unwrap(), b"body", "{text}");
    }
    assert_eq!(body_of(vec![b"HTTP/1.1 204 No Content\r\n\r\n".to_vec()]).unwrap(), b"");
}

#[test]
fn a_large_body_comes_whole() {
    const CHUNK: usize = 100_000;
    const CHUNKS: usize = 210;
    let server = Server::start(|mut talk, _| {
        talk.request()?;
        talk.write(CHUNKED)?;
        for i in 0..CHUNKS {
            talk.write([format!("{CHUNK:x}\r\n").as_bytes(), &vec![i as u8; CHUNK], b"\r\n"].concat())?;
        }
        talk.write("0\r\n\r\n")?;
        talk.request().map(|_| ())
    });
    run(async {
        let client = Client::h1();
        let mut response = client.send(&server.target()).await.0.unwrap();
        let body = joined(&all_chunks(&mut response).await.unwrap());
        assert_eq!(body.len(), CHUNK * CHUNKS);
        assert!(body.chunks(CHUNK).enumerate().all(|(i, chunk)| chunk.iter().all(|byte| *byte == i as u8)));
        response.recycle().await;
        assert_eq!(client.pool.idle(), 1);
    });
}

#[test]
fn a_broken_answer_has_its_class() {
    let expected = [
        (&b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhel"[..], ErrorClass::Reset),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n", ErrorClass::Reset),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nhello", ErrorClass::Reset),
        (b"HTTP/1.1 200 OK\r\ncontent-le", ErrorClass::Reset),
        (b"", ErrorClass::Reset),
        (b"SSH-2.0-OpenSSH_9.9\r\n\r\n", ErrorClass::Malformed),
        (b"HTTP/1.1 two hundred\r\n\r\n", ErrorClass::Malformed),
        (b"HTTP/1.1 200 OK\r\na b: c\r\n\r\n", ErrorClass::Malformed),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nxyz\r\nhello\r\n", ErrorClass::Malformed),
    ];
    for (answer, class) in expected {
        assert_eq!(class_of(answer), class, "{}", String::from_utf8_lossy(answer));
    }
    let endless_head = [b"HTTP/1.1 200 OK\r\nx: ".to_vec(), vec![b'y'; 1 << 20]].concat();
    assert_eq!(class_of(&endless_head), ErrorClass::Malformed);
}

#[test]
fn a_reset_in_the_body_is_a_reset_after_the_bytes_before_it() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.request()?;
        talk.write([CHUNKED, b"5\r\nhello\r\n"].concat())?;
        gate.wait();
        talk.reset();
        Ok(())
    });
    run(async {
        let mut response = Client::h1().send(&server.target()).await.0.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap().bytes, "hello");
        go.send(()).unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap_err().class, ErrorClass::Reset);
    });
}

#[test]
fn chunks_of_one_segment_share_its_stamp_and_others_do_not() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.request()?;
        talk.write(CHUNKED)?;
        for segment in ["1\r\na\r\n1\r\nb\r\n1\r\nc\r\n", "1\r\nd\r\n", "1\r\ne\r\n1\r\nf\r\n0\r\n\r\n"] {
            gate.wait();
            talk.write(segment)?;
        }
        Ok(())
    });
    run(async {
        let before = ttft_kernel::mono_now();
        let (response, sending) = Client::h1().send(&server.target()).await;
        let mut response = response.unwrap();
        assert_stamped(response.head);
        let mut chunks = Vec::new();
        for count in [3, 1, 2] {
            go.send(()).unwrap();
            for _ in 0..count {
                chunks.push(response.chunk().await.unwrap().unwrap());
            }
        }
        assert!(response.chunk().await.is_none());
        assert_eq!(joined(&chunks), b"abcdef");

        let reads: Vec<u64> = chunks.iter().map(|chunk| chunk.read).collect();
        assert!(reads[0] == reads[1] && reads[1] == reads[2] && reads[4] == reads[5], "{reads:?}");
        assert!(reads[2] < reads[3] && reads[3] < reads[4], "{reads:?}");
        assert_eq!((chunks[0].stamp, chunks[4].stamp), (chunks[2].stamp, chunks[5].stamp));
        let mut last = response.head;
        for chunk in [&chunks[0], &chunks[3], &chunks[4]] {
            assert_stamped(chunk.stamp);
            assert!(last.at() < chunk.stamp.at() && last.user < chunk.stamp.user);
            last = chunk.stamp;
        }
        let (first, sent) = (sending.sent_first.unwrap(), sending.sent.unwrap());
        assert!(before <= sending.connected.unwrap() && sending.connected.unwrap() <= first);
        assert!(first <= sent && sent <= response.head.at());
        assert!(response.lag_max() >= chunks[0].stamp.lag());
        assert!(response.tcp_facts().is_some() || cfg!(not(target_os = "linux")));
    });
}

#[test]
fn a_segment_larger_than_a_read_is_one_arrival() {
    // The first read has room for less; both reads hold bytes of one segment.
    const LONG: usize = 30_000;
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.request()?;
        talk.write(format!("HTTP/1.1 200 OK\r\ncontent-length: {LONG}\r\n\r\n"))?;
        gate.wait();
        talk.write(vec![7; LONG])?;
        talk.close()
    });
    run(async {
        let mut response = Client::h1().send(&server.target()).await.0.unwrap();
        go.send(()).unwrap();
        let chunks = all_chunks(&mut response).await.unwrap();
        assert!(chunks.len() > 1, "the body took one read");
        for pair in chunks.windows(2) {
            let same_segment = pair[0].stamp.kernel == pair[1].stamp.kernel && pair[0].stamp.kernel.is_some();
            assert_eq!(pair[0].read == pair[1].read, same_segment, "{pair:?}");
        }
    });
}

#[test]
fn the_head_is_stamped_by_the_read_that_completed_it() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| -> io::Result<()> {
        talk.request()?;
        talk.write("HTTP/1.1 100 Continue\r\n\r\n")?;
        talk.write("HTTP/1.1 200 OK\r\ncontent-")?;
        gate.wait();
        talk.write("length: 1\r\n\r\nx")?;
        talk.close()
    });
    run(async {
        let client = Client::h1();
        let target = server.target();
        let sent = client.send(&target);
        let mut sent = std::pin::pin!(sent);
        // Long enough for the first part; the stamp must be later than this, however long it really took.
        let early = tokio::time::timeout(std::time::Duration::from_millis(30), sent.as_mut()).await;
        assert!(early.is_err());
        let told = ttft_kernel::mono_now();
        go.send(()).unwrap();
        let mut response = sent.await.0.unwrap();
        assert!(response.head.at() >= told);
        let chunk = response.chunk().await.unwrap().unwrap();
        assert_eq!((chunk.stamp, &chunk.bytes[..]), (response.head, &b"x"[..]));
    });
}
