//! What can go wrong between us and an answer, classed as users see it.

use std::io;

use ttft_model::ErrorClass;

/// A failure of the transport.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct WireError {
    /// Its class.
    pub class: ErrorClass,
    /// What happened, for people.
    pub message: String,
}

impl WireError {
    pub(crate) fn new(class: ErrorClass, message: impl Into<String>) -> Self {
        Self { class, message: message.into() }
    }

    /// A failure to make a connection to `peer`.
    pub(crate) fn connect(peer: &str, error: &io::Error) -> Self {
        let class = match error.kind() {
            io::ErrorKind::ConnectionRefused => ErrorClass::ConnectRefused,
            io::ErrorKind::AddrNotAvailable => ErrorClass::Client,
            io::ErrorKind::ConnectionReset => ErrorClass::Reset,
            // Unreachable networks and hosts show themselves like a timeout that did not need to be waited for.
            _ if is_exhaustion(error) => ErrorClass::Client,
            _ => ErrorClass::ConnectTimeout,
        };
        Self::new(class, format!("cannot connect to {peer}: {}", plain(error)))
    }

    /// A failure while the request was written or the answer read.
    pub(crate) fn exchange(error: &(dyn std::error::Error + 'static), answered: bool) -> Self {
        let class = if answered { ErrorClass::Reset } else { class_of_chain(error) };
        Self::new(class, chain(error))
    }
}

/// Out of file descriptors, memory or ports.
fn is_exhaustion(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(EMFILE | ENFILE | ENOBUFS | ENOMEM | EADDRNOTAVAIL | EAGAIN))
}

// Numbers of Linux; on other systems an exhaustion is merely classed less exactly.
const ENOMEM: i32 = 12;
const EAGAIN: i32 = 11;
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
const EADDRNOTAVAIL: i32 = 99;
const ENOBUFS: i32 = 105;

fn class_of_chain(error: &(dyn std::error::Error + 'static)) -> ErrorClass {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(io) = error.downcast_ref::<io::Error>() {
            if io.kind() == io::ErrorKind::BrokenPipe {
                return ErrorClass::Send;
            }
            if is_exhaustion(io) {
                return ErrorClass::Client;
            }
        }
        if error.downcast_ref::<hyper::Error>().is_some_and(hyper::Error::is_parse) {
            return ErrorClass::Malformed;
        }
        next = error.source();
    }
    ErrorClass::Reset
}

/// An error and its causes in one line, none of them twice.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        next = cause.source();
    }
    text
}

/// The system's words without its number.
fn plain(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_lowercase(),
        None => text,
    }
}
