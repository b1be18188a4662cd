//! An address to use for a host, without asking the resolver.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An address for a host and port. Written `HOST:PORT:ADDR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolve {
    /// Host name, in lower case.
    pub host: String,
    /// Port.
    pub port: u16,
    /// Address.
    pub addr: IpAddr,
}

/// A text that is no such address.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("write it as HOST:PORT:ADDR, for instance gateway.example:443:127.0.0.1")]
pub struct ParseResolveError;

impl FromStr for Resolve {
    type Err = ParseResolveError;

    fn from_str(text: &str) -> Result<Self, ParseResolveError> {
        let mut parts = text.trim().splitn(3, ':');
        let mut next = || parts.next().ok_or(ParseResolveError);
        let (host, port, addr) = (next()?.to_ascii_lowercase(), next()?, next()?.trim_matches(['[', ']']));
        let port = port.parse().map_err(|_| ParseResolveError)?;
        Ok(Self { host, port, addr: addr.parse().map_err(|_| ParseResolveError)? })
    }
}

impl fmt::Display for Resolve {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}:{}", self.host, self.port, self.addr)
    }
}

impl Serialize for Resolve {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Resolve {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_written_as_it_is_read() {
        for text in ["gateway.example:443:127.0.0.1", "h:80:::1"] {
            assert_eq!(text.parse::<Resolve>().unwrap().to_string(), text);
        }
        assert_eq!("H:80:[::1]".parse::<Resolve>().unwrap().to_string(), "h:80:::1");
        for text in ["", "host", "host:1", "host:x:::1", "host:1:name"] {
            assert!(text.parse::<Resolve>().is_err(), "{text}");
        }
    }
}
