//! The stamped transport: one request out, stamped bytes in.
//!
//! DNS, TCP, TLS, HTTP/1.1 and HTTP/2 over sockets whose every read carries the kernel's receive stamp. Knows
//! nothing of streams of events or of load: bytes and instants are all it gives.
//!
//! Everything here lives on one thread: connections, pools and stamps are shared by `Rc` within a worker and never
//! cross to another.

#![forbid(unsafe_code)]

mod connect;
mod error;
mod exchange;
mod frame_tap;
mod h1;
mod h2_client;
mod io;
mod pool;
mod ports;
mod resolve;
mod stamped;
mod target;
mod tls;

pub use connect::{ConnectOptions, Connector};
pub use error::WireError;
pub use exchange::{Chunk, Request, Response, Sending, open, send};
pub use pool::Pool;
pub use resolve::Resolver;
pub use target::{Target, TargetError};
pub use tls::{TlsError, TlsOptions, tls_config};
