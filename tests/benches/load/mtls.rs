//! Mutual TLS of all connections of a run, with the flag `--mtls`.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

use doorward_tests::certificates::Authority;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Certificate, Identity, ServerTlsConfig};

/// Certificates of this run. Empty: connections are plain.
static RUN: OnceLock<Run> = OnceLock::new();

struct Run {
    folder: TempDir,
    client: TlsConnector,
}

/// Switches TLS on, for all connections from now on.
pub(crate) fn switch_on() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let pair = authority.certify("load", &["localhost", "127.0.0.1"]);
    for (name, text) in [
        ("ca.pem", &authority.certificate),
        ("tls.crt", &pair.certificate),
        ("tls.key", &pair.key),
    ] {
        fs::write(folder.path().join(name), text).unwrap();
    }
    let mut roots = RootCertStore::empty();
    let der = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    roots.add(der(&authority.certificate)).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let key = PrivateKeyDer::from_pem_slice(pair.key.as_bytes()).unwrap();
    let config = config.with_client_auth_cert(vec![der(&pair.certificate)], key);
    let mut config = config.unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let client = TlsConnector::from(Arc::new(config));
    assert!(RUN.set(Run { folder, client }).is_ok(), "once");
}

/// Returns the folder of the certificates, if TLS is on.
pub(crate) fn folder() -> Option<&'static Path> {
    RUN.get().map(|run| run.folder.path())
}

/// Returns flags for a server.
pub(crate) fn flags() -> Vec<String> {
    let Some(folder) = folder() else {
        return Vec::new();
    };
    let flag = |(flag, name)| format!("--{flag}={}", folder.join(name).display());
    [
        ("tls-cert", "tls.crt"),
        ("tls-key", "tls.key"),
        ("tls-client-ca", "ca.pem"),
    ]
    .map(flag)
    .into()
}

/// Does the handshake of a connection. None: TLS is off.
pub(crate) async fn connect(
    stream: TcpStream,
) -> Result<io::Result<TlsStream<TcpStream>>, TcpStream> {
    let Some(run) = RUN.get() else {
        return Err(stream);
    };
    let name = ServerName::try_from("localhost").unwrap();
    Ok(run.client.connect(name, stream).await)
}

/// Returns the configuration of an echo, from the folder of the certificates.
pub(crate) fn of_echo(folder: &Path) -> ServerTlsConfig {
    let read = |name: &str| fs::read(PathBuf::from(folder).join(name)).unwrap();
    ServerTlsConfig::new()
        .identity(Identity::from_pem(read("tls.crt"), read("tls.key")))
        .client_ca_root(Certificate::from_pem(read("ca.pem")))
}
