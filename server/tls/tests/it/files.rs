//! Files of a server and its callers. A file that would make it worse does not replace one that is in force.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use doorward_tests::certificates::{
    Authority, CertificateParams, Certified, SanType, date_time_ymd,
};
use doorward_tls::described;
use doorward_tls::server::{Certificate, Protocol, ServerFiles, ServerTls};
use rustls::crypto::ring;
use rustls::sign::{CertifiedKey, SingleCertAndKey};
use rustls::{ClientConfig, RootCertStore};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use tempfile::TempDir;
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

/// A folder with the files of a server whose certificate is valid.
pub(crate) struct Folder {
    folder: TempDir,
    pub(crate) authority: Authority,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let (folder, authority) = (tempfile::tempdir().unwrap(), Authority::new());
        let files = Self { folder, authority };
        files.write("ca.pem", &files.authority.certificate);
        files.write_pair("server", &files.authority.certify("server", &["localhost"]));
        files
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Replaces a file as a whole.
    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.path("new"), text).unwrap();
        fs::rename(self.path("new"), self.path(name)).unwrap();
    }

    pub(crate) fn write_pair(&self, name: &str, pair: &Certified) {
        self.write(&format!("{name}.pem"), &pair.certificate);
        self.write(&format!("{name}.key"), &pair.key);
    }

    /// Returns the files of the server, with a revocation list if there is one.
    pub(crate) fn server(&self) -> ServerFiles {
        ServerFiles {
            certificate: self.path("server.pem"),
            key: self.path("server.key"),
            client_ca: Some(self.path("ca.pem")),
            revoked: Some(self.path("crl.pem")).filter(|it| it.exists()),
        }
    }
}

/// Returns the problem with the files of a server, if there is one.
pub(crate) fn problem(files: ServerFiles) -> String {
    let opened = ServerTls::open(files);
    opened.map_or_else(|error| described(&error), |_| String::new())
}

/// Connects with a certificate. Returns it as the server sees it.
///
/// # Errors
///
/// The server's reason to refuse it.
pub(crate) async fn connected(
    server: &ServerTls,
    certificate: &str,
    key: &str,
) -> Result<Option<Certificate>, String> {
    let chain = CertificateDer::pem_slice_iter(certificate.as_bytes());
    let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap();
    let authority = server
        .files()
        .iter()
        .find(|it| it.ends_with("ca.pem"))
        .unwrap();
    let mut roots = RootCertStore::empty();
    for authority in CertificateDer::pem_file_iter(authority).unwrap() {
        roots.add(authority.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots)
        // It sends also a certificate that is not that of the key.
        .with_client_cert_resolver(Arc::new(SingleCertAndKey::from(CertifiedKey::new(
            chain.map(Result::unwrap).collect(),
            ring::sign::any_supported_type(&key).unwrap(),
        ))));
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let socket = TcpStream::connect(listener.local_addr().unwrap())
        .await
        .unwrap();
    let name = ServerName::try_from("localhost").unwrap();
    let connecting = TlsConnector::from(Arc::new(config)).connect(name, socket);
    let accepting = async {
        let (socket, _) = listener.accept().await.unwrap();
        server.accept(socket, Protocol::Other).await
    };
    // The client closes its side at the end, so that the server need not wait for it.
    let connecting = async { drop(connecting.await) };
    let ((), accepted) = tokio::join!(connecting, accepting);
    accepted
        .map(|(_, certificate)| certificate)
        .map_err(|error| error.to_string())
}

/// Changes of a certificate, and a part of the reason to refuse it.
pub(crate) type Case = (&'static str, fn(&mut CertificateParams), &'static str);

const INVALID_NOW: [Case; 3] = [
    (
        "expired",
        |it| it.not_after = date_time_ymd(2020, 1, 1),
        "has ended",
    ),
    (
        "ended before it began",
        |it| {
            it.not_before = date_time_ymd(2025, 1, 1);
            it.not_after = date_time_ymd(2020, 1, 1);
        },
        "has ended",
    ),
    (
        "early",
        |it| {
            it.not_before = date_time_ymd(2120, 1, 1);
            it.not_after = date_time_ymd(2121, 1, 1);
        },
        "does not begin yet",
    ),
];

fn for_the_other_side(params: &mut CertificateParams, position: usize) {
    params.extended_key_usages.remove(position);
}

#[test]
fn a_certificate_that_callers_would_refuse_does_not_replace_one_that_is_in_force() {
    let client_only: Case = (
        "client only",
        |it| for_the_other_side(it, 0),
        "for another side",
    );
    for (name, change, expected) in INVALID_NOW.into_iter().chain([client_only]) {
        let files = Folder::new();
        let tls = ServerTls::open(files.server()).unwrap();
        let worse = files.authority.certify_with(name, &["localhost"], change);
        files.write_pair("server", &worse);
        let refused = tls.refresh().unwrap_err();
        assert!(refused.contains(expected), "{name}: {refused}");
        assert_eq!(tls.problem(), Some(refused), "{name}");
        assert_eq!(
            tls.refresh().ok(),
            Some(false),
            "{name}: the reason is told once"
        );
        files.write_pair("server", &files.authority.certify(name, &["localhost"]));
        assert_eq!(tls.refresh().ok(), Some(true), "{name}");
        assert_eq!(tls.problem(), None, "{name}");
    }
}

#[test]
fn other_files_change_beside_a_certificate_in_force_that_has_ended() {
    for (name, change, expected) in INVALID_NOW {
        let files = Folder::new();
        let ended = files.authority.certify_with(name, &["localhost"], change);
        files.write_pair("server", &ended);
        let tls = ServerTls::open(files.server()).unwrap();
        files.write("ca.pem", &Authority::named("another").certificate);
        assert_eq!(tls.refresh().ok(), Some(true), "{name}");
        // Another one that is no better does not replace it.
        let worse = files.authority.certify_with(name, &["localhost"], change);
        files.write_pair("server", &worse);
        let refused = tls.refresh().unwrap_err();
        assert!(refused.contains(expected), "{name}: {refused}");
    }
}

#[test]
fn a_chain_whose_authority_has_not_signed_the_certificate_does_not_replace_one() {
    let files = Folder::new();
    let tls = ServerTls::open(files.server()).unwrap();
    let below = files.authority.below("between", 7);
    let pair = below.certify("server", &["localhost"]);
    let with = |chain: &str| Certified {
        certificate: format!("{}{chain}", pair.certificate),
        key: pair.key.clone(),
    };
    files.write_pair("server", &with(&Authority::named("another").certificate));
    let refused = tls.refresh().unwrap_err();
    assert!(refused.contains("signed the first one"), "{refused}");
    files.write_pair("server", &with(&below.certificate));
    assert_eq!(tls.refresh().ok(), Some(true));
}

#[test]
fn a_server_starts_with_a_certificate_that_may_become_valid_or_replaced_and_not_with_others() {
    for (name, change, _) in INVALID_NOW {
        let files = Folder::new();
        let pair = files.authority.certify_with(name, &["localhost"], change);
        files.write_pair("server", &pair);
        assert_eq!(problem(files.server()), "", "{name}");
    }
    let files = Folder::new();
    let pair = files
        .authority
        .certify_with("client", &[], |it| for_the_other_side(it, 0));
    files.write_pair("server", &pair);
    let problem = problem(files.server());
    assert!(problem.contains("for another side"), "{problem}");
}

#[tokio::test]
async fn a_certificate_with_two_spiffe_identities_is_refused_and_so_is_one_without_a_name() {
    let files = Folder::new();
    let tls = ServerTls::open(files.server()).unwrap();
    let uri = |name: &str| SanType::URI(format!("spiffe://example.com/{name}").try_into().unwrap());
    let two = files.authority.certify_with("two", &[], |params| {
        params.subject_alt_names = vec![uri("a"), uri("b")];
    });
    let one = files
        .authority
        .certify_with("one", &["localhost"], |params| {
            params.subject_alt_names.push(uri("a"));
        });
    let none = files.authority.certify_with("none", &[], |params| {
        params.distinguished_name = Default::default();
    });
    for (name, pair, expected) in [
        ("two", two, Err("several SPIFFE URIs")),
        ("none", none, Err("no SPIFFE URI, DNS name or common name")),
        ("one", one, Ok("spiffe://example.com/a")),
    ] {
        let seen = connected(&tls, &pair.certificate, &pair.key).await;
        let seen = seen.map(|it| it.unwrap().identity.to_string());
        match expected {
            Ok(identity) => assert_eq!(seen.as_deref(), Ok(identity), "{name}"),
            Err(part) => assert!(
                seen.as_ref().unwrap_err().contains(part),
                "{name}: {seen:?}"
            ),
        }
    }
}

/// Returns the path of a file with a certificate and its key.
pub(crate) fn of_kind(kind: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata");
    folder.join(format!("{kind}.pem"))
}
