//! HTTP/1.1: hyper on one connection, driven inside the request's own task so that the last read of the socket is
//! the read that completed the bytes at hand.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::Body;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper_util::rt::TokioIo;

use crate::connect::Established;
use crate::io::Io;
use crate::stamped::Tap;
use crate::{Chunk, WireError};

/// hyper's read buffer never grows over this; small reads keep stamps fine, and events may be any size.
const READ_BUFFER: usize = 64 * 1024;

/// One HTTP/1.1 connection.
pub(crate) struct H1 {
    sender: http1::SendRequest<Full<Bytes>>,
    driver: Option<http1::Connection<TokioIo<Io>, Full<Bytes>>>,
    pub(crate) tap: Rc<Tap>,
    pub(crate) id: u64,
    pub(crate) tls: bool,
}

impl H1 {
    pub(crate) async fn handshake(made: Established) -> Result<Self, WireError> {
        let (sender, driver) = http1::Builder::new()
            .max_buf_size(READ_BUFFER)
            .handshake(TokioIo::new(made.io))
            .await
            .map_err(|e| WireError::exchange(&e))?;
        Ok(Self { sender, driver: Some(driver), tap: made.tap, id: made.id, tls: made.tls })
    }

    /// Drives the connection; false once it is over.
    fn drive(&mut self, cx: &mut Context<'_>) -> Result<bool, hyper::Error> {
        let Some(driver) = &mut self.driver else { return Ok(false) };
        match Pin::new(driver).poll(cx) {
            Poll::Pending => Ok(true),
            Poll::Ready(result) => {
                self.driver = None;
                result.map(|()| false)
            }
        }
    }

    /// Whether an idle connection is still good, as far as is known without asking the peer.
    pub(crate) fn is_alive(&mut self, cx: &mut Context<'_>) -> bool {
        matches!(self.drive(cx), Ok(true)) && !self.sender.is_closed() && self.sender.is_ready()
    }

    /// Sends a request and waits for the response head.
    pub(crate) async fn send(
        &mut self,
        request: http::Request<Full<Bytes>>,
    ) -> Result<http::Response<Incoming>, hyper::Error> {
        let mut answer = std::pin::pin!(self.sender.send_request(request));
        let driver = &mut self.driver;
        poll_fn(|cx| {
            let mut driven = Ok(());
            if let Some(live) = driver
                && let Poll::Ready(result) = Pin::new(live).poll(cx)
            {
                *driver = None;
                driven = result;
            }
            // An answer that came before the connection broke is an answer.
            match (answer.as_mut().poll(cx), driven) {
                (Poll::Pending, Err(error)) => Poll::Ready(Err(error)),
                (polled, _) => polled,
            }
        })
        .await
    }

    /// The next body bytes, or `None` at the body's end.
    pub(crate) async fn chunk(&mut self, body: &mut Incoming) -> Option<Result<Chunk, hyper::Error>> {
        poll_fn(|cx| self.poll_chunk(body, cx)).await
    }

    pub(crate) fn poll_chunk(
        &mut self,
        body: &mut Incoming,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Chunk, hyper::Error>>> {
        // An error of the connection reaches the body too, after the bytes that came before it.
        let driven = self.drive(cx);
        loop {
            return match Pin::new(&mut *body).poll_frame(cx) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        let (read, stamp) = self.tap.last_read();
                        Poll::Ready(Some(Ok(Chunk { bytes, read, stamp })))
                    }
                    // Trailers carry nothing that we measure.
                    Err(_) => continue,
                },
                Poll::Ready(Some(Err(error))) => Poll::Ready(Some(Err(error))),
                Poll::Ready(None) => Poll::Ready(None),
                Poll::Pending => match driven {
                    Err(error) => Poll::Ready(Some(Err(error))),
                    Ok(_) => Poll::Pending,
                },
            };
        }
    }
}
