//! TLS settings, made once for a run.

use std::path::PathBuf;
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, aws_lc_rs};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use ttft_model::HttpVersion;

/// What to trust and what to speak.
#[derive(Debug, Clone)]
pub struct TlsOptions {
    /// Accept any certificate.
    pub insecure: bool,
    /// A PEM file of roots, in addition to the system's.
    pub ca: Option<PathBuf>,
    /// Protocol to ask for by ALPN.
    pub http: HttpVersion,
}

/// TLS could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The file of roots holds none.
    #[error("no certificate can be read from {path}: {why}")]
    Roots {
        /// The file.
        path: PathBuf,
        /// Why not.
        why: String,
    },
    /// The library refused its settings.
    #[error("cannot set up TLS: {0}")]
    Setup(#[from] rustls::Error),
}

/// Settings for all connections of a run. System roots are used, or Mozilla's where the system has none.
pub fn tls_config(options: &TlsOptions) -> Result<Arc<ClientConfig>, TlsError> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
    let mut config = if options.insecure {
        builder
            .dangerous()
            .with_custom_certificate_verifier(Arc::new(AcceptAny(provider)))
            .with_no_client_auth()
    } else {
        builder.with_root_certificates(roots(options)?).with_no_client_auth()
    };
    config.alpn_protocols = match options.http {
        HttpVersion::H1 => vec![b"http/1.1".to_vec()],
        HttpVersion::H2 => vec![b"h2".to_vec()],
    };
    Ok(Arc::new(config))
}

fn roots(options: &TlsOptions) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    // Certificates that cannot be read do not matter as long as others can.
    store.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    if store.is_empty() {
        store.extend(webpki_roots::TLS_SERVER_ROOTS.iter().cloned());
    }
    if let Some(path) = &options.ca {
        let fail = |why: String| TlsError::Roots { path: path.clone(), why };
        let certificates: Vec<CertificateDer<'static>> = CertificateDer::pem_file_iter(path)
            .and_then(Iterator::collect)
            .map_err(|e| fail(e.to_string()))?;
        let (added, _) = store.add_parsable_certificates(certificates);
        if added == 0 {
            return Err(fail("it holds no usable certificate".to_owned()));
        }
    }
    Ok(store)
}

/// Accepts any certificate: `--insecure`.
#[derive(Debug)]
struct AcceptAny(Arc<CryptoProvider>);

impl ServerCertVerifier for AcceptAny {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls12_signature(
            message,
            cert,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        rustls::crypto::verify_tls13_signature(
            message,
            cert,
            signature,
            &self.0.signature_verification_algorithms,
        )
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
