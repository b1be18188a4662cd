//! The stamped transport: DNS, TCP, TLS, HTTP/1.1 and HTTP/2.
