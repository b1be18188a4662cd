//! The commented plan file that `ttft init` writes.

/// Every key with what it does; those that are commented out stand with their defaults.
pub const TEMPLATE: &str = include_str!("template.toml");
