//! The server side of the tests: a thread a connection, speaking raw bytes.

use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use ttft_wire::Target;

/// No server waits longer for its client.
const LIMIT: Duration = Duration::from_secs(50);

/// A listener whose connections are handled by threads, until the process ends.
pub(crate) struct Server {
    pub addr: SocketAddr,
    accepted: Arc<AtomicUsize>,
}

impl Server {
    /// `handle` gets each connection with its number, from 0. Errors of the connection end it silently.
    pub(crate) fn start(handle: impl Fn(Talk, usize) -> io::Result<()> + Send + Sync + 'static) -> Self {
        Self::start_on(Ipv4Addr::LOCALHOST.into(), handle).unwrap()
    }

    pub(crate) fn start_on(
        ip: IpAddr,
        handle: impl Fn(Talk, usize) -> io::Result<()> + Send + Sync + 'static,
    ) -> io::Result<Self> {
        let listener = TcpListener::bind((ip, 0))?;
        let addr = listener.local_addr()?;
        let accepted = Arc::new(AtomicUsize::new(0));
        let (counter, handle) = (accepted.clone(), Arc::new(handle));
        std::thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                let number = counter.fetch_add(1, Ordering::SeqCst);
                socket.set_nodelay(true).unwrap();
                socket.set_read_timeout(Some(LIMIT)).unwrap();
                socket.set_write_timeout(Some(LIMIT)).unwrap();
                let handle = handle.clone();
                std::thread::spawn(move || handle(Talk { socket, unread: Vec::new() }, number));
            }
        });
        Ok(Self { addr, accepted })
    }

    /// A server that answers every request alike.
    pub(crate) fn answering(answer: &'static [u8]) -> Self {
        Self::start(move |mut talk, _| {
            while talk.request()?.is_some() {
                talk.write(answer)?;
            }
            Ok(())
        })
    }

    pub(crate) fn target(&self) -> Target {
        Target::parse(&format!("http://{}/v1/x?y=z", self.addr)).unwrap()
    }

    pub(crate) fn https(&self, host: &str) -> Target {
        Target::parse(&format!("https://{host}:{}/v1", self.addr.port())).unwrap()
    }

    /// Connections taken so far.
    pub(crate) fn accepted(&self) -> usize {
        self.accepted.load(Ordering::SeqCst)
    }
}

/// A connection as the server sees it.
pub(crate) struct Talk<S = TcpStream> {
    pub socket: S,
    pub unread: Vec<u8>,
}

impl<S: Read + Write> Talk<S> {
    /// The next request, head and body; `None` when the client has closed.
    pub(crate) fn request(&mut self) -> io::Result<Option<String>> {
        let Some(head) = self.head()? else { return Ok(None) };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        while self.unread.len() < length {
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
        let body: Vec<u8> = self.unread.drain(..length).collect();
        Ok(Some(head + &String::from_utf8(body).unwrap()))
    }

    /// The next request's head alone.
    pub(crate) fn head(&mut self) -> io::Result<Option<String>> {
        loop {
            if let Some(at) = self.unread.windows(4).position(|four| four == b"\r\n\r\n") {
                let head: Vec<u8> = self.unread.drain(..at + 4).collect();
                return Ok(Some(String::from_utf8(head).unwrap().to_ascii_lowercase()));
            }
            if self.fill()? == 0 {
                return Ok(None);
            }
        }
    }

    pub(crate) fn fill(&mut self) -> io::Result<usize> {
        let mut buffer = [0; 16 * 1024];
        let got = self.socket.read(&mut buffer)?;
        self.unread.extend_from_slice(&buffer[..got]);
        Ok(got)
    }

    /// One write, and on an idle loopback one segment.
    pub(crate) fn write(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        self.socket.write_all(bytes.as_ref())?;
        self.socket.flush()
    }
}

impl Talk {
    /// Ends the connection by a reset instead of a proper close.
    pub(crate) fn reset(self) {
        socket2::SockRef::from(&self.socket).set_linger(Some(Duration::ZERO)).unwrap();
    }

    /// Says that nothing more will come, and waits until the client has closed too: a close with bytes unread would
    /// be a reset.
    pub(crate) fn close(mut self) -> io::Result<()> {
        self.socket.shutdown(Shutdown::Write)?;
        while self.fill()? > 0 {}
        Ok(())
    }
}

/// Lets a client tell its server to go on, so that no segment is sent before the last one was read.
pub(crate) fn gate() -> (Sender<()>, Gate) {
    let (open, wait) = channel();
    (open, Gate(Arc::new(std::sync::Mutex::new(wait))))
}

#[derive(Clone)]
pub(crate) struct Gate(Arc<std::sync::Mutex<Receiver<()>>>);

impl Gate {
    pub(crate) fn wait(&self) {
        self.0.lock().unwrap().recv_timeout(LIMIT).expect("the client tells its server to go on");
    }
}
