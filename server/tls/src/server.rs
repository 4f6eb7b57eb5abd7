//! TLS of a server's connections.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_files::Reloading;
use rustls::ServerConfig;
use rustls::server::danger::ClientCertVerifier;
use rustls::server::{NoServerSessionStorage, WebPkiClientVerifier};
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls_pki_types::{CertificateDer, UnixTime};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use webpki::KeyUsage;
use x509_parser::prelude::{ASN1Time, FromDer, X509Certificate};

use crate::client::VERSIONS;
use crate::identity::Identity;
use crate::revocation::{self, List};
use crate::{TlsError, causes, own, pem, provider};

/// First byte of a TLS connection: a record with a handshake (RFC 8446, section 5.1).
const HANDSHAKE: u8 = 0x16;

/// Longest wait for a refused caller to close its connection, and the bytes that it may send until then.
const LINGER: Duration = Duration::from_secs(1);
const LINGER_BYTES_MAX: u64 = 64 * 1024;

/// Files of a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ServerFiles {
    /// Certificate with its chain.
    pub certificate: PathBuf,
    /// Its key.
    pub key: PathBuf,
    /// Authorities that sign the certificates of callers. None: callers have none.
    pub client_ca: Option<PathBuf>,
    /// Revocation lists of those authorities.
    pub revoked: Option<PathBuf>,
}

/// Protocol of a port, as it is agreed on in the handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// gRPC.
    Http2,
    /// Pages.
    Http1,
    /// No protocol is agreed on.
    Other,
}

/// TLS of a server.
#[derive(Debug)]
pub struct ServerTls(Reloading<Configs>);

/// A caller's certificate.
#[derive(Debug)]
pub struct Certificate {
    /// Its identity.
    pub identity: Identity,
    /// It, and what the caller sent beside it.
    chain: Vec<CertificateDer<'static>>,
    /// Number of the files that it was last verified with.
    verified: AtomicU64,
}

#[derive(Debug)]
struct Configs {
    /// Number of times that files were read before.
    number: u64,
    own: Arc<CertifiedKey>,
    /// None: callers have no certificates.
    callers: Option<Arc<dyn ClientCertVerifier>>,
    lists: Vec<List>,
    http2: Arc<ServerConfig>,
    http1: Arc<ServerConfig>,
    other: Arc<ServerConfig>,
}

impl ServerTls {
    /// Reads the files.
    ///
    /// # Errors
    ///
    /// If a file is missing or invalid, or the certificate does not fit the key.
    pub fn open(files: ServerFiles) -> Result<Self, TlsError> {
        let mut paths = vec![files.certificate.clone(), files.key.clone()];
        paths.extend(files.client_ca.clone());
        paths.extend(files.revoked.clone());
        let read = move |current: Option<&Configs>| read(&files, current);
        Ok(Self(Reloading::open("certificates", paths, read)?))
    }

    /// Returns the reason why changed files are not in force, if they are not.
    pub fn problem(&self) -> Option<String> {
        self.0.problem()
    }

    /// Returns whether a caller's certificate is still valid with the files in force. It may have ended since.
    pub fn is_valid(&self, certificate: &Certificate) -> bool {
        let configs = self.0.current();
        if certificate.verified.swap(configs.number, Ordering::Relaxed) == configs.number {
            return true;
        }
        let chain = certificate.chain.split_first();
        let chain = chain.zip(configs.callers.as_ref());
        chain.is_some_and(|((first, others), callers)| {
            let verified = callers.verify_client_cert(first, others, UnixTime::now());
            verified.is_ok()
        })
    }

    /// Reads the files again if they have changed. See [`Reloading::refresh`].
    ///
    /// # Errors
    ///
    /// If the new files are invalid.
    pub fn refresh(&self) -> Result<bool, String> {
        self.0.refresh()
    }

    /// Returns the files.
    pub fn files(&self) -> &[PathBuf] {
        self.0.files()
    }

    /// Waits for the first byte of a connection. Returns whether it begins a TLS handshake.
    ///
    /// # Errors
    ///
    /// If the connection ends before.
    pub async fn is_tls(socket: &TcpStream) -> io::Result<bool> {
        let mut first = [0];
        match socket.peek(&mut first).await? {
            0 => Err(io::ErrorKind::UnexpectedEof.into()),
            _ => Ok(first == [HANDSHAKE]),
        }
    }

    /// Accepts a connection. Returns it with the certificate of a caller that has one.
    ///
    /// # Errors
    ///
    /// If the handshake fails, for instance because a certificate of the caller is invalid.
    pub async fn accept(
        &self,
        socket: TcpStream,
        protocol: Protocol,
    ) -> io::Result<(TlsStream<TcpStream>, Option<Certificate>)> {
        let configs = self.0.current();
        let config = match protocol {
            Protocol::Http2 => &configs.http2,
            Protocol::Http1 => &configs.http1,
            Protocol::Other => &configs.other,
        };
        let accepting = TlsAcceptor::from(Arc::clone(config)).accept(socket);
        let stream = match accepting.into_fallible().await {
            Ok(stream) => stream,
            Err((error, socket)) => {
                linger(socket).await;
                return Err(with_cause(error));
            }
        };
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = chain.first().map(|first| {
            Ok(Certificate {
                identity: Identity::of_certificate(first)?,
                chain: chain.to_vec(),
                verified: configs.number.into(),
            })
        });
        let certificate = certificate.transpose().map_err(|problem: &str| {
            io::Error::other(format!("the certificate is invalid: {problem}"))
        })?;
        Ok((stream, certificate))
    }
}

/// Returns the error of a handshake, with the usual cause if a certificate is invalid.
fn with_cause(error: io::Error) -> io::Error {
    let tls = error.get_ref().and_then(|it| it.downcast_ref());
    match tls.and_then(|it| causes::of(it, "of --tls-client-ca")) {
        Some(cause) => io::Error::new(error.kind(), format!("the certificate is invalid: {cause}")),
        None => error,
    }
}

/// Closes a connection whose caller has yet to read why. A socket that closes with unread bytes resets the connection,
/// and then the caller may lose the reason.
pub async fn linger(mut socket: TcpStream) {
    let rest = async {
        socket.shutdown().await?;
        let mut rest = socket.take(LINGER_BYTES_MAX);
        tokio::io::copy(&mut rest, &mut tokio::io::sink()).await
    };
    // The connection ends in any case.
    let _ = tokio::time::timeout(LINGER, rest).await;
}

fn read(files: &ServerFiles, current: Option<&Configs>) -> Result<Configs, TlsError> {
    let builder = ServerConfig::builder_with_provider(provider())
        .with_protocol_versions(VERSIONS)
        .map_err(|error| TlsError::content(&files.certificate, error))?;
    let paths = (&*files.certificate, &*files.key);
    let former = current.map(|it| &*it.own.cert);
    let own = own::read(paths, KeyUsage::server_auth(), former)?;
    let (mut callers, mut lists) = (None, Vec::new());
    let builder = match &files.client_ca {
        None => builder.with_no_client_auth(),
        Some(authority) => {
            let (authorities, roots) = pem::open(authority, pem::roots)?;
            let mut verifier =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider())
                    // The door refuses calls of a caller that needs a certificate and has none. Probes need none.
                    .allow_unauthenticated();
            if let Some(revoked) = &files.revoked {
                let former = current.map_or(&[][..], |it| &it.lists);
                let (ders, checked) = revocation::read(revoked, &authorities, former)?;
                lists = checked;
                // An authority without a list revokes nothing.
                verifier = verifier.with_crls(ders).allow_unknown_revocation_status();
            }
            let verifier = verifier.build();
            let verifier = verifier.map_err(|error| {
                let path = files.revoked.as_ref().unwrap_or(authority);
                TlsError::content(path, revocation::words(&error))
            })?;
            builder.with_client_cert_verifier(Arc::clone(callers.insert(verifier)))
        }
    };
    let resolver = SingleCertAndKey::from(Arc::clone(&own));
    let mut config = builder.with_cert_resolver(Arc::new(resolver));
    // A resumed session would not verify the caller's certificate again.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    let with = |protocols: &[&[u8]]| {
        let mut config = config.clone();
        config.alpn_protocols = protocols.iter().map(|it| it.to_vec()).collect();
        Arc::new(config)
    };
    Ok(Configs {
        number: current.map_or(0, |it| it.number + 1),
        own,
        callers,
        lists,
        http2: with(&[b"h2"]),
        http1: with(&[b"http/1.1"]),
        other: with(&[]),
    })
}

/// Returns the begin and the end of the certificate in a file that ends first, since the Unix epoch.
///
/// # Errors
///
/// If the file is missing or invalid.
pub fn validity(path: &Path) -> Result<(Duration, Duration), TlsError> {
    let mut first = (0, u64::MAX);
    for certificate in pem::open(path, pem::chain)? {
        let (_, certificate) = X509Certificate::from_der(&certificate)
            .map_err(|_| TlsError::content(path, causes::BROKEN))?;
        let seconds = |time: ASN1Time| u64::try_from(time.timestamp()).unwrap_or(0);
        let validity = certificate.validity();
        let end = seconds(validity.not_after);
        if end < first.1 {
            first = (seconds(validity.not_before), end);
        }
    }
    Ok((Duration::from_secs(first.0), Duration::from_secs(first.1)))
}
