//! The transport over real sockets, against servers that speak raw bytes.

#![allow(clippy::unwrap_used, reason = "a test stops where something is not as it must be")]

mod client;
mod connect;
mod frames;
mod h1_body;
mod h1_reuse;
mod h2;
mod h2_library;
mod server;
mod tls;
mod tls_server;
mod upload;
