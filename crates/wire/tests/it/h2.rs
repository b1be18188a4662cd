//! HTTP/2 against frames made by hand: stamps of each stream, and ends of all kinds.

use ttft_model::ErrorClass;
use ttft_wire::{ConnectOptions, Response};

use crate::client::{Client, all_chunks, assert_stamped, joined, options, run};
use crate::frames::{
    DATA, END_STREAM, RST_STREAM, data, early_hints, end, frame, go_away, head, head_in_two, padded, reset,
    trailers,
};
use crate::server::{Server, gate};

const REFUSED_STREAM: u32 = 7;
const INTERNAL_ERROR: u32 = 2;

/// The next `count` chunks.
async fn chunks(response: &mut Response, count: usize) -> Vec<ttft_wire::Chunk> {
    let mut chunks = Vec::new();
    for _ in 0..count {
        chunks.push(response.chunk().await.unwrap().unwrap());
    }
    chunks
}

/// What is written in answer to a stream, one write each.
type Segments = fn(u32) -> Vec<Vec<u8>>;

/// A server that sends these segments in answer to each request.
fn answering(segments: Segments) -> Server {
    Server::start(move |mut talk, _| {
        talk.greet(100)?;
        while let Some(stream) = talk.stream()? {
            for segment in segments(stream) {
                talk.write(segment)?;
            }
        }
        Ok(())
    })
}

#[test]
fn bodies_of_all_shapes_come_whole() {
    let shapes: [Segments; 6] = [
        |s| vec![head(s), data(s, b"bo"), data(s, b"dy"), end(s)],
        |s| vec![head_in_two(s), frame(0, 1, s, b"body")],
        |s| vec![[early_hints(s), head(s), padded(s, b"bo", 9), padded(s, b"dy", 0), end(s)].concat()],
        |s| vec![head(s), data(s, b""), data(s, b"body"), data(s, b""), trailers(s)],
        |s| vec![head(s), padded(s, b"", 255), padded(s, b"body", 255), end(s)],
        |s| [head(s), data(s, b"body"), end(s)].concat().iter().map(|byte| vec![*byte]).collect(),
    ];
    for (number, shape) in shapes.into_iter().enumerate() {
        let server = answering(shape);
        run(async {
            let client = Client::h2();
            for _ in 0..3 {
                assert_eq!(client.exchange(&server.target()).await.0, b"body", "shape {number}");
            }
            assert_eq!(server.accepted(), 1);
        });
    }
}

#[test]
fn each_stream_has_the_stamps_of_its_own_frames() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.greet(100)?;
        let (a, b) = (talk.stream()?.unwrap(), talk.stream()?.unwrap());
        talk.write(head(a))?;
        gate.wait();
        talk.write(head(b))?;
        let segments = [
            vec![data(a, b"a1")],
            vec![padded(b, b"b1", 20), data(a, b"a2")],
            vec![data(b, b"b2"), data(b, b"b3"), data(a, b""), data(a, b"a3")],
            vec![end(a), end(b)],
        ];
        for frames in segments {
            gate.wait();
            talk.write(frames.concat())?;
        }
        talk.stream().map(|_| ())
    });
    run(async {
        let client = Client::h2();
        let target = server.target();
        let before = ttft_kernel::mono_now();
        ttft_wire::open(&client.connector, &client.pool, &target).await.unwrap();
        let first = async {
            let answer = client.send(&target).await;
            go.send(()).unwrap();
            answer
        };
        let ((a, sending_a), (b, sending_b)) = tokio::join!(first, client.send(&target));
        let (mut a, mut b) = (a.unwrap(), b.unwrap());
        assert!(a.head.at() < b.head.at(), "each head has its own segment's stamp");
        assert_stamped(a.head);
        let (first, sent) = (sending_a.sent_first.unwrap(), sending_a.sent.unwrap());
        assert!(before <= first && first <= sent && sent <= a.head.at());
        assert!(sending_b.sent.unwrap() <= b.head.at());
        assert_eq!(a.transmit_stamps(), (None, None));

        go.send(()).unwrap();
        let mut of_a = chunks(&mut a, 1).await;
        go.send(()).unwrap();
        of_a.extend(chunks(&mut a, 1).await);
        go.send(()).unwrap();
        of_a.extend(chunks(&mut a, 1).await);
        go.send(()).unwrap();
        // The other stream is looked at only now: its stamps are of the arrival all the same.
        let of_b = chunks(&mut b, 3).await;
        assert_eq!((joined(&of_a), joined(&of_b)), (b"a1a2a3".to_vec(), b"b1b2b3".to_vec()));
        let (a2, a3) = (&of_a[1], of_a.last().unwrap());
        assert_eq!((a2.read, a2.stamp), (of_b[0].read, of_b[0].stamp));
        assert_eq!((a3.read, a3.stamp), (of_b[1].read, of_b[1].stamp));
        assert_eq!((a3.read, a3.stamp), (of_b[2].read, of_b[2].stamp));
        for pair in [[&of_a[0], a2], [a2, a3]] {
            assert!(pair[0].read < pair[1].read && pair[0].stamp.at() < pair[1].stamp.at());
            assert_stamped(pair[1].stamp);
        }
        assert!(a.lag_max().is_some() || cfg!(not(target_os = "linux")));
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn the_head_after_early_hints_has_its_own_stamp() {
    let server = Server::start(|mut talk, _| {
        talk.greet(100)?;
        let stream = talk.stream()?.unwrap();
        talk.write(early_hints(stream))?;
        std::thread::sleep(std::time::Duration::from_millis(40));
        let head_at = ttft_kernel::mono_now();
        talk.write(head(stream))?;
        talk.write(data(stream, head_at.0.to_string().as_bytes()))?;
        talk.write(end(stream))?;
        talk.stream().map(|_| ())
    });
    run(async {
        let mut response = Client::h2().send(&server.target()).await.0.unwrap();
        let text = joined(&all_chunks(&mut response).await.unwrap());
        let head_at: i64 = String::from_utf8(text).unwrap().parse().unwrap();
        assert!(response.head.at().0 >= head_at);
    });
}

#[test]
fn a_stream_understood_before_its_end_is_not_reset() {
    // Servers count resets, and close on clients that send many.
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        talk.greet(100)?;
        let mut resets = 0;
        while let Some((kind, flags, stream)) = talk.next_frame()? {
            resets += u32::from(kind == RST_STREAM);
            if kind == DATA && flags & END_STREAM != 0 {
                talk.write([head(stream), data(stream, resets.to_string().as_bytes())].concat())?;
                gate.wait();
                talk.write(end(stream))?;
            }
        }
        Ok(())
    });
    run(async {
        let client = Client::h2();
        for _ in 0..5 {
            let mut response = client.send(&server.target()).await.0.unwrap();
            assert_eq!(response.chunk().await.unwrap().unwrap().bytes, "0");
            go.send(()).unwrap();
            response.recycle().await;
        }
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn a_stream_that_is_reset_ends_alone() {
    let server = Server::start(|mut talk, _| {
        talk.greet(100)?;
        for number in 0.. {
            let Some(s) = talk.stream()? else { break };
            let rest = if number == 0 { reset(s, INTERNAL_ERROR) } else { end(s) };
            talk.write([head(s), data(s, b"hello"), rest].concat())?;
        }
        Ok(())
    });
    run(async {
        let client = Client::h2();
        let mut response = client.send(&server.target()).await.0.unwrap();
        let error = all_chunks(&mut response).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Reset, "{error}");
        drop(response);
        let (body, sending) = client.exchange(&server.target()).await;
        assert_eq!((body.as_slice(), sending.connection.reused), (&b"hello"[..], true));
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn a_connection_cut_in_a_body_is_a_reset() {
    let server = Server::start(|mut talk, _| {
        talk.greet(100)?;
        let stream = talk.stream()?.unwrap();
        talk.write([head(stream), data(stream, b"hello")].concat())?;
        talk.close()
    });
    run(async {
        let mut response = Client::h2().send(&server.target()).await.0.unwrap();
        let error = all_chunks(&mut response).await.unwrap_err();
        assert_eq!(error.class, ErrorClass::Reset, "{error}");
    });
}

#[test]
fn after_go_away_a_new_connection_is_made_once() {
    let (told, said) = std::sync::mpsc::channel();
    let server = Server::start(move |mut talk, number| {
        talk.greet(100)?;
        while let Some(stream) = talk.stream()? {
            talk.write([head(stream), data(stream, b"x")].concat())?;
            if number == 0 {
                // It goes on with this stream, and takes no more.
                talk.write(go_away(stream))?;
                told.send(()).unwrap();
            } else {
                talk.write(end(stream))?;
            }
        }
        Ok(())
    });
    run(async {
        let client = Client::h2();
        let mut old = client.send(&server.target()).await.0.unwrap();
        assert_eq!(old.chunk().await.unwrap().unwrap().bytes, "x");
        said.recv().unwrap();
        let mut ids = Vec::new();
        for _ in 0..10 {
            let (body, sending) = client.exchange(&server.target()).await;
            assert_eq!(body, b"x");
            ids.push(sending.connection.id);
        }
        // Nine more used what the first made.
        assert!(ids.iter().all(|id| *id == ids[0]) && ids[0] != 0, "{ids:?}");
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn a_refused_stream_is_sent_again_elsewhere() {
    let server = Server::start(|mut talk, connection| {
        talk.greet(100)?;
        for number in 0.. {
            let Some(s) = talk.stream()? else { break };
            let answer = if connection == 0 && number == 1 {
                reset(s, REFUSED_STREAM)
            } else {
                [head(s), data(s, b"x"), end(s)].concat()
            };
            talk.write(answer)?;
        }
        Ok(())
    });
    run(async {
        let client = Client::h2();
        assert!(!client.exchange(&server.target()).await.1.connection.resent);
        let second = client.exchange(&server.target()).await.1.connection;
        assert!(second.resent && second.id == 1, "{second:?}");
    });
}

#[test]
fn a_connection_closed_between_requests_makes_no_error() {
    let server = Server::start(|mut talk, _| {
        talk.greet(100)?;
        let stream = talk.stream()?.unwrap();
        talk.write([head(stream), data(stream, b"x"), end(stream)].concat())?;
        talk.close()
    });
    run(async {
        let client = Client::h2();
        for _ in 0..20 {
            assert_eq!(client.exchange(&server.target()).await.0, b"x");
        }
        assert_eq!(server.accepted(), 20);
    });
}

#[test]
fn no_more_streams_share_a_connection_than_allowed() {
    let server = Server::start(|mut talk, _| {
        talk.greet(100)?;
        while let Some(stream) = talk.stream()? {
            talk.write(head(stream))?;
        }
        Ok(())
    });
    run(async {
        let client =
            Client::new(ConnectOptions { streams_per_connection: 2, ..options(ttft_model::HttpVersion::H2) });
        let mut open = Vec::new();
        for _ in 0..5 {
            open.push(client.send(&server.target()).await.0.unwrap());
        }
        assert_eq!((server.accepted(), client.pool.shared()), (3, 3));
        // One place is left, and an answer given up makes another.
        drop(open.swap_remove(0));
        for connections in [3, 3, 4] {
            open.push(client.send(&server.target()).await.0.unwrap());
            assert_eq!(server.accepted(), connections);
        }
    });
}

#[test]
fn a_server_that_speaks_http1_is_malformed() {
    let server = Server::start(|mut talk, _| {
        talk.fill()?;
        talk.write("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n")?;
        talk.close()
    });
    run(async {
        let error = Client::h2().send(&server.target()).await.0.err().unwrap();
        assert_eq!(error.class, ErrorClass::Malformed, "{error}");
    });
}

#[test]
fn a_thousand_requests_do_not_tire_a_connection() {
    let server = answering(|s| vec![[head(s), data(s, b"x"), end(s)].concat()]);
    run(async {
        let client = Client::h2();
        for _ in 0..3_000 {
            assert_eq!(client.exchange(&server.target()).await.0, b"x");
        }
        assert_eq!(server.accepted(), 1);
    });
}
