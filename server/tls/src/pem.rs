//! Certificates, keys and revocation lists in PEM files.

use std::path::Path;

use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer, TrustAnchor};

use crate::causes::KINDS;
use crate::{TlsError, provider};

/// A file that was read.
#[derive(Clone, Copy, Debug)]
pub struct PemFile<'a> {
    /// Its path, for errors.
    pub path: &'a Path,
    /// Its content.
    pub bytes: &'a [u8],
}

/// Reads a file, and takes objects from it.
pub(crate) fn open<T>(
    path: &Path,
    take: impl FnOnce(PemFile<'_>) -> Result<T, TlsError>,
) -> Result<T, TlsError> {
    let bytes = &doorward_files::read(path).map_err(|error| TlsError::read(path, error))?;
    take(PemFile { path, bytes })
}

/// Returns all objects of one kind in a file. `kind` names them and their labels, for people.
pub(crate) fn all<T: PemObject>(file: PemFile<'_>, kind: &str) -> Result<Vec<T>, TlsError> {
    let PemFile { path, bytes } = file;
    let found: Result<Vec<T>, _> = T::pem_slice_iter(bytes).collect();
    let error = match found {
        Ok(found) if !found.is_empty() => return Ok(found),
        Ok(_) => "",
        Err(pem::Error::MissingSectionEnd { .. }) => "a line -----END is missing; ",
        Err(pem::Error::IllegalSectionStart { .. }) => {
            "a line -----BEGIN has another end than -----; "
        }
        Err(pem::Error::Base64Decode(_)) => {
            "a part between -----BEGIN and -----END is not base64; "
        }
        Err(_) => "a part is too long; ",
    };
    let text = String::from_utf8_lossy(bytes);
    let labels = text.lines().filter_map(|line| {
        let label = line.trim().strip_prefix("-----BEGIN ")?;
        label.strip_suffix("-----")
    });
    let labels = Vec::from_iter(labels).join(", ");
    let problem = match labels.as_str() {
        "" if bytes.is_empty() => "it is empty".to_owned(),
        "" => format!("{error}it is not PEM"),
        _ if text.contains("ENCRYPTED") => "give the key without a passphrase".to_owned(),
        _ if !text.lines().any(|line| line.starts_with("-----BEGIN ")) => {
            "its lines -----BEGIN are indented".to_owned()
        }
        labels => format!("{error}it has {labels}"),
    };
    let problem = format!("there is no {kind} in it that can be read: {problem}");
    Err(TlsError::content(path, problem))
}

/// Returns a certificate with its chain.
pub(crate) fn chain(file: PemFile<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all(file, "certificate (CERTIFICATE)")
}

/// Returns a private key.
pub(crate) fn key(file: PemFile<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let kind = "private key (PRIVATE KEY, RSA PRIVATE KEY or EC PRIVATE KEY)";
    let mut keys = all(file, kind)?;
    let problem = "give one private key, not several";
    match keys.pop() {
        Some(key) if keys.is_empty() => Ok(key),
        _ => Err(TlsError::content(file.path, problem)),
    }
}

/// Authorities, and a store that trusts them.
type Roots = (Vec<CertificateDer<'static>>, RootCertStore);

/// Returns the certificate authorities of a file.
pub(crate) fn roots(file: PemFile<'_>) -> Result<Roots, TlsError> {
    let (path, authorities) = (file.path, chain(file)?);
    let mut roots = RootCertStore::empty();
    for authority in &authorities {
        let added = roots.add(authority.clone());
        added.map_err(|_| TlsError::content(path, "it has an invalid X.509 certificate"))?;
    }
    let algorithms = provider().signature_verification_algorithms.all;
    let is_taken = |anchor: &TrustAnchor<'_>| {
        // Two bytes precede the identifier of the algorithm.
        let id = anchor.subject_public_key_info.get(2..).unwrap_or_default();
        let mut kinds = algorithms.iter().map(|it| it.public_key_alg_id());
        kinds.any(|kind| id.starts_with(&kind))
    };
    if !roots.roots.iter().all(is_taken) {
        let problem =
            format!("the key of an authority is of a kind that is not taken; taken are {KINDS}");
        return Err(TlsError::content(path, problem));
    }
    Ok((authorities, roots))
}
