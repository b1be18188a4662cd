//! Connections at rest.

use std::cell::RefCell;
use std::rc::Rc;
use std::task::{Context, Waker};

use crate::h1::H1;
use crate::h2_client::H2;

/// The idle connections of a worker, or of one user. Last in, first out: the warmest is taken first.
#[derive(Default)]
pub struct Pool {
    idle: RefCell<Vec<H1>>,
    shared: RefCell<Vec<Rc<H2>>>,
    keeps: bool,
}

impl Pool {
    /// A pool that keeps connections for the next request.
    pub fn keeping() -> Rc<Self> {
        Rc::new(Self { keeps: true, ..Self::default() })
    }

    /// A pool that keeps none: every request gets a connection of its own.
    pub fn discarding() -> Rc<Self> {
        Rc::new(Self::default())
    }

    /// How many connections rest here.
    pub fn idle(&self) -> usize {
        self.idle.borrow().len()
    }

    /// How many HTTP/2 connections are open here.
    pub fn shared(&self) -> usize {
        self.shared.borrow().len()
    }

    /// Closes what rests here.
    pub fn clear(&self) {
        self.idle.borrow_mut().clear();
        self.shared.borrow_mut().clear();
    }

    /// An idle connection that is not known to be closed.
    pub(crate) async fn take(&self) -> Option<H1> {
        loop {
            let mut connection = self.idle.borrow_mut().pop()?;
            if connection.tap.has_unread() {
                // The server has closed, or said something unasked. The event loop must hear of it first, or the next
                // request would take those words for its answer.
                tokio::task::yield_now().await;
            }
            if connection.is_alive(&mut Context::from_waker(Waker::noop())) {
                return Some(connection);
            }
        }
    }

    /// Puts a connection to rest if it is fit for another request.
    pub(crate) fn give(&self, mut connection: H1) {
        if self.keeps && connection.is_alive(&mut Context::from_waker(Waker::noop())) {
            self.idle.borrow_mut().push(connection);
        }
    }

    /// A shared connection with room for one more stream.
    pub(crate) fn share(&self, streams: u32) -> Option<Rc<H2>> {
        let mut shared = self.shared.borrow_mut();
        shared.retain(|connection| !connection.is_over());
        shared.iter().find(|connection| connection.has_room(streams)).cloned()
    }

    /// Offers a new connection to later requests.
    pub(crate) fn offer(&self, connection: &Rc<H2>) {
        if self.keeps {
            self.shared.borrow_mut().push(connection.clone());
        }
    }
}
