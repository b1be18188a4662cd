//! Kept connections: used again, found closed, drained, dropped.

use std::io;

use ttft_model::ErrorClass;
use ttft_wire::{Connector, Pool, Resolver, open};

use crate::client::{Client, all_chunks, options, run};
use crate::server::{Server, gate};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[test]
fn a_kept_connection_is_used_again() {
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client::h1();
        let first = client.exchange(&server.target()).await.1;
        assert!(!first.connection.reused && first.tcp_done.is_some() && first.connected >= first.tcp_done);
        for _ in 0..20 {
            let next = client.exchange(&server.target()).await.1;
            assert_eq!((next.connection.id, next.connection.reused), (first.connection.id, true));
            assert!(next.tcp_done.is_none() && next.sent_first > first.sent && !next.connection.resent);
        }
        assert_eq!((server.accepted(), client.pool.idle()), (1, 1));
    });
}

#[test]
fn a_connection_opened_ahead_is_taken() {
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client::h1();
        open(&client.connector, &client.pool, &server.target()).await.unwrap();
        assert_eq!(client.pool.idle(), 1);
        let sending = client.exchange(&server.target()).await.1;
        assert!(sending.connection.reused && sending.tcp_done.is_none());
        assert_eq!(server.accepted(), 1);
        client.pool.clear();
        assert_eq!(client.pool.idle(), 0);
        assert!(!client.exchange(&server.target()).await.1.connection.reused);
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn a_server_that_closes_after_each_answer_makes_no_error() {
    // It promises to keep the connection, and closes it.
    let server = Server::start(|mut talk, _| {
        talk.request()?;
        talk.write(ANSWER)?;
        talk.close()
    });
    run(async {
        let client = Client::h1();
        for _ in 0..50 {
            let (body, sending) = client.exchange(&server.target()).await;
            assert_eq!(body, b"ok");
            assert!(!sending.connection.reused, "{:?}", sending.connection);
        }
        assert_eq!(server.accepted(), 50);
    });
}

#[test]
fn a_connection_that_says_close_is_not_kept() {
    let server = Server::answering(b"HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok");
    run(async {
        let client = Client::h1();
        client.exchange(&server.target()).await;
        assert_eq!(client.pool.idle(), 0);
    });
}

#[test]
fn a_connection_closed_without_an_answer_is_replaced_once() {
    let server = Server::start(|mut talk, number| {
        talk.request()?;
        talk.write(ANSWER)?;
        // The second request of the first connection is read, and not answered.
        if number == 0 {
            talk.request()?;
            return Ok(());
        }
        talk.request().map(|_| ())
    });
    run(async {
        let client = Client::h1();
        let first = client.exchange(&server.target()).await.1.connection;
        let second = client.exchange(&server.target()).await.1.connection;
        assert!(!first.resent && second.resent && !second.reused && second.id != first.id, "{second:?}");
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn it_is_not_replaced_twice() {
    let server = Server::start(|mut talk, number| {
        talk.request()?;
        if number == 0 {
            talk.write(ANSWER)?;
            talk.request()?;
        }
        Ok(())
    });
    run(async {
        let client = Client::h1();
        client.exchange(&server.target()).await;
        let (result, sending) = client.send(&server.target()).await;
        assert_eq!(result.err().unwrap().class, ErrorClass::Reset);
        assert!(sending.connection.resent && sending.sent.is_some());
        assert_eq!(server.accepted(), 2);
    });
}

#[test]
fn half_a_head_on_a_kept_connection_is_an_answer() {
    let server = Server::start(|mut talk, _| {
        talk.request()?;
        talk.write(ANSWER)?;
        talk.request()?;
        talk.write("HTTP/1.1 200 OK\r\nconte")?;
        talk.close()
    });
    run(async {
        let client = Client::h1();
        client.exchange(&server.target()).await;
        let (result, sending) = client.send(&server.target()).await;
        assert_eq!(result.err().unwrap().class, ErrorClass::Reset);
        assert!(sending.connection.reused && !sending.connection.resent);
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn words_that_nobody_asked_for_are_no_answer() {
    // A server may say why it closes an idle connection; the next request must not take that for its answer.
    let (told, said) = std::sync::mpsc::channel();
    let server = Server::start(move |mut talk, number| {
        while talk.request()?.is_some() {
            talk.write(ANSWER)?;
            if number == 0 {
                talk.write("HTTP/1.1 408 Request Timeout\r\nconnection: close\r\ncontent-length: 0\r\n\r\n")?;
                told.send(()).unwrap();
                return talk.close();
            }
        }
        Ok(())
    });
    run(async {
        let client = Client::h1();
        client.exchange(&server.target()).await;
        said.recv().unwrap();
        let (response, sending) = client.send(&server.target()).await;
        assert_eq!(response.unwrap().status, 200);
        assert_ne!(sending.connection.id, 0, "the connection was still used: {:?}", sending.connection);
    });
}

#[test]
fn a_fresh_connection_closed_at_once_is_a_reset() {
    let server = Server::start(|talk, _| talk.close());
    run(async {
        let (result, sending) = Client::h1().send(&server.target()).await;
        assert_eq!(result.err().unwrap().class, ErrorClass::Reset);
        assert!(!sending.connection.resent && !sending.connection.reused);
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn an_answer_given_up_closes_its_connection() {
    let (told, closed) = std::sync::mpsc::channel();
    let server = Server::start(move |mut talk, _| {
        talk.request()?;
        talk.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n1\r\na\r\n")?;
        let got = talk.fill();
        told.send(matches!(got, Ok(0)) || got.is_err()).unwrap();
        Ok(())
    });
    run(async {
        let client = Client::h1();
        let mut response = client.send(&server.target()).await.0.unwrap();
        response.chunk().await.unwrap().unwrap();
        drop(response);
        assert_eq!(client.pool.idle(), 0);
    });
    assert!(closed.recv_timeout(std::time::Duration::from_secs(20)).unwrap());
}

/// A server whose body ends when the gate opens, a second time never.
fn slow_to_end(gate: crate::server::Gate) -> impl Fn(crate::server::Talk, usize) -> io::Result<()> {
    move |mut talk, _| {
        while talk.request()?.is_some() {
            talk.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n[END]\r\n")?;
            gate.wait();
            talk.write("3\r\nabc\r\n0\r\n\r\n")?;
        }
        Ok(())
    }
}

#[test]
fn the_rest_of_a_body_is_waited_for_a_little() {
    let (go, gate) = gate();
    let server = Server::start(slow_to_end(gate));
    run(async {
        let client = Client::h1();
        for _ in 0..3 {
            let mut response = client.send(&server.target()).await.0.unwrap();
            response.chunk().await.unwrap().unwrap();
            go.send(()).unwrap();
            let over = response.recycle().await;
            assert!(over <= ttft_kernel::mono_now());
            // On a machine that stood still, the rest came too late for the wait and is read in the background.
            while client.pool.idle() == 0 {
                tokio::task::yield_now().await;
            }
        }
        assert_eq!(server.accepted(), 1);
    });
}

#[test]
fn the_rest_of_a_slow_body_is_read_in_the_background() {
    let (go, gate) = gate();
    let server = Server::start(slow_to_end(gate));
    run(async {
        let client = Client::h1();
        let mut response = client.send(&server.target()).await.0.unwrap();
        response.chunk().await.unwrap().unwrap();
        response.recycle().await;
        assert_eq!(client.pool.idle(), 0);
        go.send(()).unwrap();
        while client.pool.idle() == 0 {
            tokio::task::yield_now().await;
        }
    });
}

#[test]
fn a_body_that_never_ends_loses_its_connection() {
    let (told, closed) = std::sync::mpsc::channel();
    let server = Server::start(move |mut talk, number| {
        while talk.request()?.is_some() {
            talk.write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\n[END]\r\n")?;
            // Bytes without end must not keep the wait alive.
            while number == 0 && talk.write("1\r\nx\r\n").is_ok() {}
            told.send(number).unwrap();
        }
        Ok(())
    });
    run(async {
        let client = Client::h1();
        let mut response = client.send(&server.target()).await.0.unwrap();
        response.chunk().await.unwrap().unwrap();
        response.recycle().await;
        while closed.try_recv() != Ok(0) {
            tokio::time::timeout(std::time::Duration::from_millis(5), std::future::pending::<()>())
                .await
                .unwrap_err();
        }
        assert_eq!(client.pool.idle(), 0);
        assert!(!client.send(&server.target()).await.1.connection.reused);
    });
}

#[test]
fn a_discarding_pool_never_keeps() {
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client { pool: Pool::discarding(), ..Client::h1() };
        let mut ids = Vec::new();
        for _ in 0..5 {
            let sending = client.exchange(&server.target()).await.1;
            assert!(!sending.connection.reused);
            ids.push(sending.connection.id);
        }
        assert_eq!((ids, server.accepted()), (vec![0, 1, 2, 3, 4], 5));
    });
}

#[test]
fn connection_ids_differ_over_workers() {
    let server = Server::answering(ANSWER);
    run(async {
        let mut ids = Vec::new();
        for worker in 0..3 {
            let connector =
                Connector::new(options(ttft_model::HttpVersion::H1), Resolver::default(), worker, 3);
            let client = Client { connector, pool: Pool::discarding() };
            for _ in 0..3 {
                ids.push(client.exchange(&server.target()).await.1.connection.id);
            }
        }
        ids.sort_unstable();
        assert_eq!(ids, (0..9).collect::<Vec<_>>());
    });
}

#[test]
fn one_connection_each_for_requests_side_by_side() {
    let (go, gate) = gate();
    let server = Server::start(move |mut talk, _| {
        while talk.request()?.is_some() {
            gate.wait();
            talk.write(ANSWER)?;
        }
        Ok(())
    });
    run(async {
        let client = Client::h1();
        let target = server.target();
        let ask = async {
            let mut response = client.send(&target).await.0.unwrap();
            all_chunks(&mut response).await.unwrap();
            response.recycle().await;
        };
        let ask_too = client.exchange(&target);
        let open_gate = async {
            while server.accepted() < 2 {
                tokio::task::yield_now().await;
            }
            go.send(()).unwrap();
            go.send(()).unwrap();
        };
        tokio::join!(ask, ask_too, open_gate);
        assert_eq!(client.pool.idle(), 2);
    });
}
