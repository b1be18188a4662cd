//! Servers with TLS, and certificates made for each test.

use std::io;
use std::path::PathBuf;
use std::sync::Arc;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use tempfile::TempDir;
use ttft_model::HttpVersion;
use ttft_wire::{ConnectOptions, TlsOptions, tls_config};

use crate::client::options;
use crate::server::{Server, Talk};

pub(crate) type TlsTalk = Talk<StreamOwned<ServerConnection, std::net::TcpStream>>;

/// An authority of our own, its certificate in a file.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pub file: PathBuf,
    _folder: TempDir,
}

impl Authority {
    pub(crate) fn new() -> Self {
        Self::named("an authority for tests")
    }

    pub(crate) fn named(name: &str) -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        let key = KeyPair::generate().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("ca.pem");
        std::fs::write(&file, params.self_signed(&key).unwrap().pem()).unwrap();
        Self { issuer: Issuer::new(params, key), file, _folder: folder }
    }

    /// Settings of a server whose certificate is for `localhost`.
    pub(crate) fn server(&self, alpn: &[&[u8]], expired: bool) -> Arc<ServerConfig> {
        let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        if expired {
            params.not_before = rcgen::date_time_ymd(2019, 1, 1);
            params.not_after = rcgen::date_time_ymd(2020, 1, 1);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(vec![certificate.der().clone()], key)
            .unwrap();
        config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
        Arc::new(config)
    }

    /// A client that trusts this authority.
    pub(crate) fn trusted(&self, http: HttpVersion) -> ConnectOptions {
        let tls = TlsOptions { insecure: false, ca: Some(self.file.clone()), http };
        ConnectOptions { tls: tls_config(&tls).unwrap(), ..options(http) }
    }
}

/// A server with TLS; the handshake happens with the first read or write.
pub(crate) fn start(
    config: Arc<ServerConfig>,
    handle: impl Fn(TlsTalk, usize) -> io::Result<()> + Send + Sync + 'static,
) -> Server {
    Server::start(move |talk, number| {
        let tls = ServerConnection::new(config.clone()).unwrap();
        handle(Talk { socket: StreamOwned::new(tls, talk.socket), unread: talk.unread }, number)
    })
}
