//! Connections to servers by TLS.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doorward_files::Reloading;
use http::Uri;
use hyper_util::rt::TokioIo;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, SupportedProtocolVersion};
use rustls_pki_types::{CertificateDer, ServerName};
use tokio::net::TcpStream;
use tokio::task::spawn_blocking;
use tokio_rustls::TlsConnector;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::service::Interceptor;
use tonic::transport::Endpoint;
use tonic::{Request, Status};
use webpki::KeyUsage;

use crate::alerting::{Alerting, LastAlert};
use crate::pem::PemFile;
use crate::{TlsError, causes, own, pem, provider};

/// Versions of TLS.
pub(crate) const VERSIONS: &[&SupportedProtocolVersion] =
    &[&rustls::version::TLS13, &rustls::version::TLS12];

/// Files of a client.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientFiles {
    /// Authorities that sign the certificates of servers.
    pub ca: PathBuf,
    /// Own certificate and its key, for servers that ask for one.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Token for servers that ask for one: the only line of the file.
    pub token: Option<PathBuf>,
}

/// TLS of a client. Cheap to clone.
#[derive(Clone, Debug)]
pub struct ClientTls {
    credentials: Reloading<Credentials>,
    last_alert: LastAlert,
}

/// Contents of the files.
#[derive(Debug)]
struct Credentials {
    config: Arc<ClientConfig>,
    own: Option<Arc<CertifiedKey>>,
    bearer: Option<MetadataValue<Ascii>>,
}

impl ClientTls {
    /// Reads the files. They are read again before a connection is made, if they have changed.
    ///
    /// # Errors
    ///
    /// If a file is missing or invalid.
    pub fn open(files: ClientFiles) -> Result<Self, TlsError> {
        let mut paths = vec![files.ca.clone()];
        if let Some((certificate, key)) = &files.identity {
            paths.extend([certificate.clone(), key.clone()]);
        }
        paths.extend(files.token.clone());
        let read = move |current: Option<&Credentials>| {
            let own = current.and_then(|it| it.own.as_ref());
            let former = own.map(|it| &*it.cert);
            Credentials::read(&files, former)
        };
        Ok(Self {
            credentials: Reloading::open("certificates", paths, read)?,
            last_alert: LastAlert::default(),
        })
    }

    /// Returns the reason for which a server has refused the last connection, if it has.
    pub(crate) fn refusal(&self) -> Option<String> {
        self.last_alert.get()
    }
}

impl Credentials {
    /// Reads the files. `former`: the chain in force.
    fn read(files: &ClientFiles, former: Option<&[CertificateDer<'_>]>) -> Result<Self, TlsError> {
        let builder = ClientConfig::builder_with_provider(provider())
            .with_protocol_versions(VERSIONS)
            .map_err(|error| TlsError::content(&files.ca, error))?
            .with_root_certificates(pem::open(&files.ca, pem::roots)?.1);
        let own = files.identity.as_ref().map(|(certificate, key)| {
            own::read((certificate, key), KeyUsage::client_auth(), former)
        });
        let own = own.transpose()?;
        let mut config = match own.clone() {
            None => builder.with_no_client_auth(),
            Some(own) => builder.with_client_cert_resolver(Arc::new(SingleCertAndKey::from(own))),
        };
        config.alpn_protocols = vec![b"h2".to_vec()];
        let bearer = files.token.as_deref().map(bearer).transpose()?;
        Ok(Self {
            config: Arc::new(config),
            own,
            bearer,
        })
    }
}

/// Checks files that another library uses for connections, so that their problems have our words: authorities, and an
/// own certificate with its key. `former`: the content of the certificate in force.
///
/// # Errors
///
/// The same as those of [`ClientTls::open`].
pub fn check(
    ca: Option<PemFile<'_>>,
    identity: Option<(PemFile<'_>, PemFile<'_>)>,
    former: Option<&[u8]>,
) -> Result<(), TlsError> {
    ca.map(pem::roots).transpose()?;
    let Some((certificate, key)) = identity else {
        return Ok(());
    };
    let former = former.and_then(|bytes| {
        let file = PemFile {
            bytes,
            ..certificate
        };
        pem::chain(file).ok()
    });
    let chain = (certificate.path, pem::chain(certificate)?);
    let key = (key.path, pem::key(key)?);
    own::of(chain, key, KeyUsage::client_auth(), former.as_deref()).map(drop)
}

fn bearer(path: &Path) -> Result<MetadataValue<Ascii>, TlsError> {
    let text = doorward_files::read_to_string(path);
    let text = text.map_err(|error| TlsError::read(path, error))?;
    let value = MetadataValue::try_from(format!("Bearer {}", text.trim()));
    let is_one_word = !text.trim().is_empty() && !text.trim().contains(char::is_whitespace);
    match value {
        Ok(mut value) if is_one_word => {
            value.set_sensitive(true);
            Ok(value)
        }
        _ => Err(TlsError::content(path, "a token is one line of ASCII")),
    }
}

/// Returns the endpoint with the scheme of requests by TLS. The connector does the TLS, so tonic must not.
pub(crate) fn encrypted(endpoint: &Endpoint) -> Endpoint {
    let mut parts = endpoint.uri().clone().into_parts();
    parts.scheme = Some(http::uri::Scheme::HTTPS);
    match Uri::from_parts(parts) {
        Ok(origin) => endpoint.clone().origin(origin),
        Err(_) => endpoint.clone(),
    }
}

/// Adds the token to each call.
#[derive(Clone, Debug)]
pub struct Bearer(pub(crate) Option<ClientTls>);

impl Interceptor for Bearer {
    fn call(&mut self, mut request: Request<()>) -> Result<Request<()>, Status> {
        if let Some(tls) = &self.0
            && let Some(bearer) = &tls.credentials.current().bearer
        {
            let metadata = request.metadata_mut();
            metadata.insert("authorization", bearer.clone());
        }
        Ok(request)
    }
}

/// Connects a channel to a server.
pub(crate) async fn connect(tls: ClientTls, server: Uri) -> io::Result<TokioIo<Alerting>> {
    tls.last_alert.clear();
    let host = server.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let last = tls.last_alert.clone();
    let refreshed = move || {
        // The log says why the files are not in force.
        let _ = tls.credentials.refresh();
        tls.credentials.current()
    };
    let credentials = spawn_blocking(refreshed).await.map_err(io::Error::other)?;
    let name = ServerName::try_from(host.to_owned()).map_err(io::Error::other)?;
    let socket = TcpStream::connect((host, server.port_u16().unwrap_or(443))).await?;
    socket.set_nodelay(true)?;
    let connector = TlsConnector::from(Arc::clone(&credentials.config));
    let connected = connector.connect(name, socket).await;
    Ok(TokioIo::new(Alerting {
        stream: connected.map_err(explained)?,
        last,
        has_read: false,
    }))
}

/// Returns the error of a handshake with its usual cause.
fn explained(error: io::Error) -> io::Error {
    let tls = error.get_ref();
    let tls = tls.and_then(|it| it.downcast_ref::<rustls::Error>());
    use io::ErrorKind::{ConnectionReset, UnexpectedEof};
    let is_cut = matches!(error.kind(), ConnectionReset | UnexpectedEof);
    if is_cut || matches!(tls, Some(rustls::Error::InvalidMessage(_))) {
        return io::Error::other(
            "the server does not answer by TLS, or closed the connection; is it a port without TLS?",
        );
    }
    match tls.and_then(|it| causes::of(it, "that this program trusts")) {
        Some(cause) => io::Error::other(format!("the server's certificate is invalid: {cause}")),
        None => error,
    }
}
