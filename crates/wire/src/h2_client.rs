//! HTTP/2: the h2 library on one connection that several requests share, each stream with stamps of its own.

use std::cell::{Cell, RefCell};
use std::rc::Rc;

use bytes::Bytes;
use h2::client::{Builder, SendRequest};
use h2::{RecvStream, SendStream};
use ttft_model::Stamp;

use crate::connect::Established;
use crate::frame_tap::{FrameLog, FrameTap};
use crate::stamped::Tap;
use crate::{Chunk, WireError};

/// Windows large enough that no stream ever waits for our permission to send.
const STREAM_WINDOW: u32 = 4 << 20;
const CONNECTION_WINDOW: u32 = 64 << 20;

/// One HTTP/2 connection.
pub(crate) struct H2 {
    sender: SendRequest<Bytes>,
    log: Rc<RefCell<FrameLog>>,
    pub(crate) tap: Rc<Tap>,
    pub(crate) id: u64,
    pub(crate) tls: bool,
    open: Cell<u32>,
    over: Rc<Cell<bool>>,
}

impl H2 {
    pub(crate) async fn handshake(made: Established) -> Result<Rc<Self>, WireError> {
        let log = Rc::new(RefCell::new(FrameLog::default()));
        let io = FrameTap::new(made.io, made.tap.clone(), log.clone());
        let (sender, connection) = Builder::new()
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .handshake(io)
            .await
            .map_err(|e| WireError::exchange(&e))?;
        let over = Rc::new(Cell::new(false));
        let flag = over.clone();
        tokio::task::spawn_local(async move {
            // Its streams are told of the error too, and tell the request.
            let _ = connection.await;
            flag.set(true);
        });
        Ok(Rc::new(Self { sender, log, tap: made.tap, id: made.id, tls: made.tls, open: Cell::new(0), over }))
    }

    /// Whether one more stream may be opened here.
    pub(crate) fn has_room(&self, limit: u32) -> bool {
        !self.over.get() && self.open.get() < limit
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over.get()
    }

    /// Opens no more streams here: the server said so, though it may still answer those that are open.
    pub(crate) fn retire(&self) {
        self.over.set(true);
    }

    /// Sends a request and waits for the response head.
    pub(crate) async fn send(
        self: &Rc<Self>,
        request: http::Request<()>,
        body: Bytes,
    ) -> Result<(http::response::Parts, Stream), h2::Error> {
        let place = Place::take(self.clone());
        let mut sender = self.sender.clone().ready().await?;
        let (answer, mut upload) = sender.send_request(request, body.is_empty())?;
        let id = answer.stream_id().as_u32();
        place.stream.set(id);
        self.log.borrow_mut().open(id);
        if !body.is_empty() {
            upload.send_data(body, true)?;
        }
        let (parts, body) = answer.await?.into_parts();
        Ok((parts, Stream { body, _upload: upload, place }))
    }
}

/// A place among the streams of a connection, given back when dropped.
struct Place {
    connection: Rc<H2>,
    stream: Cell<u32>,
}

impl Place {
    fn take(connection: Rc<H2>) -> Self {
        connection.open.set(connection.open.get() + 1);
        Self { connection, stream: Cell::new(0) }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.connection.open.set(self.connection.open.get() - 1);
        self.connection.log.borrow_mut().close(self.stream.get());
    }
}

/// The answer's side of one stream.
pub(crate) struct Stream {
    body: RecvStream,
    _upload: SendStream<Bytes>,
    place: Place,
}

impl Stream {
    pub(crate) fn connection(&self) -> &H2 {
        &self.place.connection
    }

    fn with_log<T>(&self, read: impl FnOnce(&mut crate::frame_tap::StreamLog) -> T) -> Option<T> {
        self.connection().log.borrow_mut().stream(self.place.stream.get()).map(read)
    }

    /// The stamp of the response head.
    pub(crate) fn head(&self) -> Stamp {
        let known = self.with_log(|log| log.head).flatten();
        known.map_or_else(|| self.connection().tap.last_read().1, |head| head.stamp)
    }

    /// Just before the writes that took the request's first and last byte.
    pub(crate) fn sent(&self) -> (Option<ttft_model::Nanos>, Option<ttft_model::Nanos>) {
        self.with_log(|log| (log.sent_first, log.sent_last)).unwrap_or_default()
    }

    pub(crate) fn lag_max(&self) -> Option<ttft_model::Nanos> {
        self.with_log(|log| log.lag_max).flatten()
    }

    /// The next body bytes, or `None` at the body's end.
    pub(crate) async fn chunk(&mut self) -> Option<Result<Chunk, h2::Error>> {
        let bytes = match self.body.data().await? {
            Ok(bytes) => bytes,
            Err(error) => return Some(Err(error)),
        };
        // The window is far larger than what is unread; a connection that died meanwhile shows itself at the next read.
        let _ = self.body.flow_control().release_capacity(bytes.len());
        let (mut read, mut stamp) = self.connection().tap.last_read();
        let arrival = self.with_log(|log| {
            // Empty frames are not handed out.
            while log.data.front().is_some_and(|first| first.len == 0 && !bytes.is_empty()) {
                log.data.pop_front();
            }
            log.data.pop_front_if(|first| first.len == bytes.len())
        });
        if let Some(arrival) = arrival.flatten() {
            (read, stamp) = (arrival.read, arrival.stamp);
        }
        Some(Ok(Chunk { bytes, read, stamp }))
    }
}
