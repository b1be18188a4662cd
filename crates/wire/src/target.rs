//! Where a request goes: a URL taken apart once.

use std::net::IpAddr;

use http::uri::{Authority, PathAndQuery, Uri};
use url::{Host, Url};

/// One endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// Host name, or the address as text without brackets.
    pub host: String,
    /// The address, when the host is one.
    pub literal: Option<IpAddr>,
    /// Port.
    pub port: u16,
    /// Path and query.
    pub path: PathAndQuery,
    /// What `host:` says.
    pub authority: Authority,
}

/// A URL that no request can go to. The text never repeats the URL whole: it may hold a password.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// Not a URL at all.
    #[error("not a URL ({0}); write it as http://HOST:PORT or https://HOST/PATH")]
    NotUrl(String),
    /// Another scheme.
    #[error("cannot speak `{0}`; use http:// or https://")]
    Scheme(String),
    /// No host.
    #[error("the URL names no host; write it as http://HOST:PORT")]
    NoHost,
}

impl Target {
    /// Takes a URL apart.
    pub fn parse(text: &str) -> Result<Self, TargetError> {
        let url = Url::parse(text).map_err(|e| TargetError::NotUrl(e.to_string()))?;
        let tls = match url.scheme() {
            "http" => false,
            "https" => true,
            other => return Err(TargetError::Scheme(other.to_owned())),
        };
        let (host, literal) = match url.host().ok_or(TargetError::NoHost)? {
            Host::Domain(name) => (name.to_owned(), None),
            Host::Ipv4(addr) => (addr.to_string(), Some(IpAddr::V4(addr))),
            Host::Ipv6(addr) => (addr.to_string(), Some(IpAddr::V6(addr))),
        };
        let port = url.port_or_known_default().unwrap_or(if tls { 443 } else { 80 });
        let bracketed = url.host_str().unwrap_or_default();
        let authority = match url.port() {
            Some(port) => format!("{bracketed}:{port}"),
            None => bracketed.to_owned(),
        };
        let path = match url.query() {
            Some(query) => format!("{}?{query}", url.path()),
            None => url.path().to_owned(),
        };
        let not_url = |e: &dyn std::fmt::Display| TargetError::NotUrl(e.to_string());
        Ok(Self {
            tls,
            host,
            literal,
            port,
            path: PathAndQuery::try_from(path).map_err(|e| not_url(&e))?,
            authority: Authority::try_from(authority).map_err(|e| not_url(&e))?,
        })
    }

    /// The same server, another path.
    #[must_use]
    pub fn with_path(&self, path: PathAndQuery) -> Self {
        Self { path, ..self.clone() }
    }

    /// `host:port`, for messages.
    pub fn peer(&self) -> String {
        format!("{}:{}", self.authority.host(), self.port)
    }

    /// The whole URI, as HTTP/2 wants it.
    pub(crate) fn absolute_uri(&self) -> Uri {
        let mut parts = http::uri::Parts::default();
        parts.scheme = Some(if self.tls { http::uri::Scheme::HTTPS } else { http::uri::Scheme::HTTP });
        parts.authority = Some(self.authority.clone());
        parts.path_and_query = Some(self.path.clone());
        Uri::from_parts(parts).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn takes_urls_apart() {
        let target = Target::parse("https://[::1]:8443/v1/chat?a=b").unwrap();
        assert!(target.tls);
        assert_eq!((target.host.as_str(), target.port, target.path.as_str()), ("::1", 8443, "/v1/chat?a=b"));
        assert_eq!(target.authority.as_str(), "[::1]:8443");
        let target = Target::parse("http://gateway.example").unwrap();
        assert_eq!((target.port, target.peer().as_str(), target.literal), (80, "gateway.example:80", None));
    }

    #[test]
    fn refuses_what_is_none() {
        assert!(matches!(Target::parse("localhost"), Err(TargetError::NotUrl(_))));
        assert!(matches!(Target::parse("ftp://host/"), Err(TargetError::Scheme(_))));
        assert!(matches!(Target::parse("http://"), Err(TargetError::NotUrl(_))));
    }

    #[test]
    fn a_password_in_the_url_stays_out_of_messages_and_requests() {
        let target = Target::parse("http://user:hunter2@host:1/").unwrap();
        assert!(!format!("{target:?}{}", target.absolute_uri()).contains("hunter2"));
        assert!(!Target::parse("ftp://user:hunter2@host/").unwrap_err().to_string().contains("hunter2"));
    }
}
