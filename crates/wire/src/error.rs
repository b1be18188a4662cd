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
    pub(crate) fn exchange(error: &(dyn std::error::Error + 'static)) -> Self {
        Self::new(class_of_chain(error), chain(error))
    }

    /// The same when the peer closed before it had the whole request.
    pub(crate) fn sending(error: &(dyn std::error::Error + 'static)) -> Self {
        let message = format!("the server closed while the request was being written: {}", chain(error));
        Self::new(ErrorClass::Send, message)
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
        if let Some(class) = class_of(error) {
            return class;
        }
        next = error.source();
    }
    ErrorClass::Reset
}

fn class_of(error: &(dyn std::error::Error + 'static)) -> Option<ErrorClass> {
    if let Some(io) = error.downcast_ref::<io::Error>() {
        return class_of_io(io);
    }
    if let Some(h2) = error.downcast_ref::<h2::Error>() {
        return match h2.get_io() {
            Some(io) => class_of_io(io),
            // The library ends what breaks the protocol.
            None => h2.is_library().then_some(ErrorClass::Malformed),
        };
    }
    error.downcast_ref::<hyper::Error>().filter(|e| e.is_parse()).map(|_| ErrorClass::Malformed)
}

fn class_of_io(error: &io::Error) -> Option<ErrorClass> {
    if error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()).is_some() {
        return Some(ErrorClass::Tls);
    }
    match error.kind() {
        // Chunk sizes that are none, for instance.
        io::ErrorKind::InvalidData | io::ErrorKind::InvalidInput => Some(ErrorClass::Malformed),
        _ => is_exhaustion(error).then_some(ErrorClass::Client),
    }
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
