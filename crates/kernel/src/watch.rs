//! Descriptors that an event loop watches. A safe door to tokio's registration, for the three kinds that we have.

use std::io;
use std::net::TcpStream;
use std::os::fd::AsRawFd;
use std::rc::Rc;

pub use tokio::io::Interest;
pub use tokio::io::unix::AsyncFd;

/// A descriptor's owner that keeps it open, and the same, for as long as it lives.
pub trait Owner: AsRawFd + sealed::Sealed {}

impl Owner for TcpStream {}
impl Owner for Rc<TcpStream> {}
#[cfg(target_os = "linux")]
impl Owner for crate::Timer {}

mod sealed {
    pub trait Sealed {}
    impl Sealed for std::net::TcpStream {}
    impl Sealed for std::rc::Rc<std::net::TcpStream> {}
    #[cfg(target_os = "linux")]
    impl Sealed for crate::Timer {}
}

/// Watches a descriptor in the current event loop, for reading or for writing only.
///
/// # Panics
///
/// Outside an event loop.
pub fn watch<T: Owner>(owner: T, interest: Interest) -> io::Result<AsyncFd<T>> {
    // SAFETY: each `Owner` owns its descriptor, alone or by count, closes it only when dropped, and always returns
    // that one; the trait is sealed, so there are no others. The `AsyncFd` takes the owner.
    unsafe { AsyncFd::register_with_interest(owner, interest) }.map_err(Into::into)
}
