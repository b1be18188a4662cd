//! HTTP/2 against the library's own server: limits of the server, flow control, TLS.

use std::future::poll_fn;
use std::net::{Ipv4Addr, SocketAddr};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use bytes::Bytes;
use h2::RecvStream;
use h2::server::SendResponse;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio::runtime::{Builder, LocalOptions};
use tokio_rustls::TlsAcceptor;
use ttft_model::{HttpVersion, Resolve};
use ttft_wire::Target;

use crate::client::{Client, all_chunks, assert_stamped, options, run};
use crate::tls_server::Authority;

const UPLOAD: usize = 8_000_000;
const LARGE: usize = 20_000_000;

/// Answers each request with the length of its body, and counts how many it works on at once.
struct Library {
    addr: SocketAddr,
    most: Arc<AtomicUsize>,
}

impl Library {
    fn start(streams: u32, tls: Option<Arc<rustls::ServerConfig>>) -> Self {
        let (told, addr) = std::sync::mpsc::channel();
        let most = Arc::new(AtomicUsize::new(0));
        let counter = most.clone();
        std::thread::spawn(move || {
            let runtime =
                Builder::new_current_thread().enable_all().build_local(LocalOptions::default()).unwrap();
            runtime.block_on(async move {
                let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
                told.send(listener.local_addr().unwrap()).unwrap();
                let acceptor = tls.map(TlsAcceptor::from);
                loop {
                    let (socket, _) = listener.accept().await.unwrap();
                    socket.set_nodelay(true).unwrap();
                    let (acceptor, counter) = (acceptor.clone(), counter.clone());
                    tokio::task::spawn_local(async move {
                        match acceptor {
                            None => serve(socket, streams, counter).await,
                            Some(acceptor) => {
                                let Ok(socket) = acceptor.accept(socket).await else { return };
                                serve(socket, streams, counter).await;
                            }
                        }
                    });
                }
            });
        });
        Self { addr: addr.recv().unwrap(), most }
    }

    fn target(&self) -> Target {
        Target::parse(&format!("http://{}/v1", self.addr)).unwrap()
    }
}

async fn serve(socket: impl AsyncRead + AsyncWrite + Unpin, streams: u32, most: Arc<AtomicUsize>) {
    let handshake = h2::server::Builder::new()
        .max_concurrent_streams(streams)
        .initial_window_size(10_000)
        .initial_connection_window_size(70_000)
        .handshake(socket);
    let Ok(mut connection) = handshake.await else { return };
    let now = Rc::new(AtomicUsize::new(0));
    while let Some(Ok((request, respond))) = poll_fn(|cx| connection.poll_accept(cx)).await {
        most.fetch_max(now.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
        let now = now.clone();
        tokio::task::spawn_local(async move {
            let large = request.uri().path() == "/large";
            let length = read_all(request.into_body()).await;
            now.fetch_sub(1, Ordering::SeqCst);
            let body = if large { vec![7; LARGE].into() } else { length.to_string().into() };
            answer(respond, body);
        });
    }
}

async fn read_all(mut body: RecvStream) -> usize {
    let mut length = 0;
    while let Some(Ok(bytes)) = body.data().await {
        length += bytes.len();
        let _ = body.flow_control().release_capacity(bytes.len());
    }
    length
}

fn answer(mut respond: SendResponse<Bytes>, body: Bytes) {
    // A client that has gone needs none.
    let Ok(mut stream) = respond.send_response(http::Response::new(()), false) else { return };
    let _ = stream.send_data(body, true);
}

#[test]
fn more_requests_than_the_server_allows_wait() {
    let server = Library::start(2, None);
    run(async {
        let client = Rc::new(Client::h2());
        let target = server.target();
        // Once it has answered, its limit is known.
        client.exchange(&target).await;
        let asking: Vec<_> = (0..30)
            .map(|_| {
                let (client, target) = (client.clone(), target.clone());
                tokio::task::spawn_local(async move { client.exchange(&target).await.1.connection })
            })
            .collect();
        for one in asking {
            let connection = one.await.unwrap();
            assert!(connection.id == 0 && !connection.resent, "{connection:?}");
        }
        assert!(server.most.load(Ordering::SeqCst) <= 2);
    });
}

#[test]
fn a_limit_learned_too_late_makes_no_error() {
    let server = Library::start(1, None);
    run(async {
        let client = Rc::new(Client::h2());
        let target = server.target();
        ttft_wire::open(&client.connector, &client.pool, &target).await.unwrap();
        let asking: Vec<_> = (0..10)
            .map(|_| {
                let (client, target) = (client.clone(), target.clone());
                tokio::task::spawn_local(async move { client.exchange(&target).await.0 })
            })
            .collect();
        for one in asking {
            assert_eq!(one.await.unwrap(), b"9");
        }
    });
}

#[test]
fn a_large_request_follows_the_servers_windows() {
    let server = Library::start(10, None);
    run(async {
        let (response, sending) = Client::h2().send_body(&server.target(), vec![7; UPLOAD].into()).await;
        let mut response = response.unwrap();
        assert_eq!(response.chunk().await.unwrap().unwrap().bytes, UPLOAD.to_string());
        assert!(sending.sent_first < sending.sent && sending.sent.unwrap() <= response.head.at());
    });
}

#[test]
fn a_large_answer_comes_whole_with_a_stamp_for_each_frame() {
    let server = Library::start(10, None);
    run(async {
        let target = Target::parse(&format!("http://{}/large", server.addr)).unwrap();
        let mut response = Client::h2().send(&target).await.0.unwrap();
        let mut last = response.head;
        let (mut length, mut read) = (0, 0);
        for chunk in all_chunks(&mut response).await.unwrap() {
            assert!(chunk.bytes.iter().all(|byte| *byte == 7));
            length += chunk.bytes.len();
            assert_stamped(chunk.stamp);
            assert!(chunk.read >= read && chunk.stamp.at() >= last.at());
            (read, last) = (chunk.read, chunk.stamp);
        }
        assert_eq!(length, LARGE);
    });
}

#[test]
fn over_tls_it_is_negotiated_and_stamped() {
    let authority = Authority::new();
    let server = Library::start(10, Some(authority.server(&[b"h2", b"http/1.1"], false)));
    run(async {
        let port = server.addr.port();
        let resolve = Resolve { host: "localhost".to_owned(), port, addr: server.addr.ip() };
        let client = Client::resolving(authority.trusted(HttpVersion::H2), &[resolve]);
        let target = Target::parse(&format!("https://localhost:{port}/v1")).unwrap();
        for number in 0..5 {
            let (response, sending) = client.send(&target).await;
            let mut response = response.unwrap();
            let connection = sending.connection;
            assert!(connection.tls && connection.http == 2 && connection.id == 0);
            assert_eq!(connection.reused, number > 0);
            assert_stamped(response.head);
            let chunk = response.chunk().await.unwrap().unwrap();
            assert_stamped(chunk.stamp);
            assert_eq!(chunk.bytes, "9");
        }
    });
}

#[test]
fn a_pool_that_keeps_none_makes_a_connection_each() {
    let server = Library::start(10, None);
    run(async {
        let client = Client { pool: ttft_wire::Pool::discarding(), ..Client::new(options(HttpVersion::H2)) };
        for number in 0..5 {
            let sending = client.exchange(&server.target()).await.1;
            assert_eq!((sending.connection.id, sending.connection.reused), (number, false));
        }
        assert_eq!(client.pool.shared(), 0);
    });
}
