//! Connections that cannot be had, and names that are told.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, TcpListener};
use std::time::Duration;

use ttft_model::{ErrorClass, HttpVersion, Resolve};
use ttft_wire::{ConnectOptions, Target, WireError};

use crate::client::{Client, options, run};
use crate::server::Server;

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

fn failure(client: &Client, url: &str) -> WireError {
    let target = Target::parse(url).unwrap();
    run(async { client.send(&target).await.0.err().unwrap() })
}

fn unused_port() -> u16 {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap().local_addr().unwrap().port()
}

#[test]
fn nobody_listens() {
    let port = unused_port();
    for http in [HttpVersion::H1, HttpVersion::H2] {
        for scheme in ["http", "https"] {
            let error = failure(&Client::new(options(http)), &format!("{scheme}://127.0.0.1:{port}/"));
            assert_eq!(error.class, ErrorClass::ConnectRefused, "{error}");
            let expected = format!("cannot connect to 127.0.0.1:{port}: connection refused");
            assert_eq!(error.message, expected);
        }
    }
}

#[test]
fn a_name_that_does_not_exist() {
    // Reserved for this purpose (RFC 6761).
    let error = failure(&Client::h1(), "http://name.invalid:1/");
    assert_eq!(error.class, ErrorClass::Dns, "{error}");
    assert!(error.message.starts_with("cannot resolve `name.invalid`: "), "{error}");
}

#[test]
fn urls_with_ports_that_are_none() {
    for url in ["http://h:65536/", "http://h:-1/", "http://h:x/", "http://h:99999999999/"] {
        assert!(Target::parse(url).is_err(), "{url}");
    }
    // No service may be there, but it is a port.
    let error = failure(&Client::h1(), "http://127.0.0.1:0/");
    assert!(matches!(error.class, ErrorClass::ConnectRefused | ErrorClass::Client), "{error}");
}

#[test]
fn a_name_is_resolved_once() {
    let server = Server::answering(ANSWER);
    run(async {
        let client = Client::h1();
        let target = Target::parse(&format!("http://localhost:{}/", server.addr.port())).unwrap();
        let first = client.exchange(&target).await.1;
        assert!(first.dns_done.is_some() && first.dns_done <= first.tcp_done, "{first:?}");
        client.pool.clear();
        let second = client.exchange(&target).await.1;
        assert!(second.dns_done.is_none() && second.tcp_done.is_some(), "{second:?}");
    });
}

#[test]
fn an_address_can_be_told() {
    let server = Server::start(|mut talk, _| {
        while let Some(request) = talk.request()? {
            assert!(request.contains("\r\nhost: api.example:"), "{request}");
            talk.write(ANSWER)?;
        }
        Ok(())
    });
    let port = server.addr.port();
    let told = |host: &str, port| Resolve { host: host.to_owned(), port, addr: server.addr.ip() };
    run(async {
        let client = Client::resolving(options(HttpVersion::H1), &[told("API.example", port)]);
        let target = Target::parse(&format!("http://Api.Example:{port}/")).unwrap();
        let sending = client.exchange(&target).await.1;
        assert!(sending.dns_done.is_none() && sending.tcp_done.is_some());
    });
    // For that port only.
    let client = Client::resolving(options(HttpVersion::H1), &[told("name.invalid", port ^ 1)]);
    assert_eq!(failure(&client, &format!("http://name.invalid:{port}/")).class, ErrorClass::Dns);
}

#[test]
fn ipv6_works_where_there_is_any() {
    let answer = |mut talk: crate::server::Talk, _: usize| {
        while let Some(request) = talk.request()? {
            assert!(request.contains("\r\nhost: [::1]:"), "{request}");
            talk.write(ANSWER)?;
        }
        Ok(())
    };
    let Ok(server) = Server::start_on(IpAddr::V6(Ipv6Addr::LOCALHOST), answer) else { return };
    run(async {
        let client = Client::h1();
        let (response, sending) = client.send(&server.target()).await;
        let response = response.unwrap();
        crate::client::assert_stamped(response.head);
        assert!(sending.dns_done.is_none());
        let (device, acked) = response.transmit_stamps();
        assert!(cfg!(not(target_os = "linux")) || device.is_some() && acked.is_some());
    });
}

#[test]
fn of_several_addresses_the_next_one_is_tried() {
    // `localhost` is often ::1 and 127.0.0.1; whichever it is, one of them listens.
    let server = Server::answering(ANSWER);
    run(async {
        let target = Target::parse(&format!("http://localhost:{}/", server.addr.port())).unwrap();
        assert_eq!(Client::h1().exchange(&target).await.0, b"ok");
    });
}

#[test]
fn a_handshake_without_an_answer_times_out() {
    let silent = Server::start(|mut talk, _| {
        while talk.fill()? > 0 {}
        Ok(())
    });
    let short = |http| ConnectOptions { timeout: Duration::from_millis(150), ..options(http) };
    for http in [HttpVersion::H1, HttpVersion::H2] {
        let url = format!("https://{}/", silent.addr);
        let error = failure(&Client::new(short(http)), &url);
        assert_eq!(error.class, ErrorClass::ConnectTimeout, "{error}");
        assert_eq!(error.message, format!("no connection to {} within 0.15 s", silent.addr));
    }
}

#[test]
fn a_full_accept_queue_times_out() {
    // Nobody accepts: once the queue is full the kernel drops what asks to connect.
    let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    socket.bind(&std::net::SocketAddr::from((Ipv4Addr::LOCALHOST, 0)).into()).unwrap();
    socket.listen(0).unwrap();
    let addr = socket.local_addr().unwrap().as_socket().unwrap();
    let waiting: Vec<_> =
        (0..16).map(|_| std::net::TcpStream::connect_timeout(&addr, Duration::from_millis(50))).collect();
    if waiting.iter().all(Result::is_ok) {
        return; // A kernel with another idea of a full queue.
    }
    let client =
        Client::new(ConnectOptions { timeout: Duration::from_millis(150), ..options(HttpVersion::H1) });
    let error = failure(&client, &format!("http://{addr}/"));
    assert_eq!(error.class, ErrorClass::ConnectTimeout, "{error}");
}
