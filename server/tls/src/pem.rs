//! Certificates, keys and revocation lists in PEM files.

use std::fs;
use std::path::Path;

use rustls::RootCertStore;
use rustls_pki_types::pem::{self, PemObject};
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;
use crate::keys::{OTHERS, kind};

/// A file that was read.
#[derive(Clone, Copy, Debug)]
pub struct PemFile<'a> {
    /// Its path, for errors.
    pub path: &'a Path,
    /// Its content.
    pub bytes: &'a [u8],
}

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Returns all objects of one kind in a file. `kind` names them, for people.
pub(crate) fn all<T: PemObject>(path: &Path, kind: &str) -> Result<Vec<T>, TlsError> {
    let bytes = &read(path)?;
    all_of(PemFile { path, bytes }, kind)
}

/// Does the same with a file that was read.
fn all_of<T: PemObject>(file: PemFile<'_>, kind: &str) -> Result<Vec<T>, TlsError> {
    let PemFile { path, bytes } = file;
    let found: Result<Vec<T>, _> = T::pem_slice_iter(bytes).collect();
    let error = match found {
        Ok(found) if !found.is_empty() => return Ok(found),
        Ok(_) => String::new(),
        // Its text has the marker as numbers.
        Err(pem::Error::MissingSectionEnd { .. }) => " (a line -----END is missing)".to_owned(),
        Err(error) => format!(" ({error})"),
    };
    let text = String::from_utf8_lossy(bytes);
    let labels = text.lines().filter_map(|line| {
        let label = line.trim().strip_prefix("-----BEGIN ")?;
        label.strip_suffix("-----")
    });
    let labels = Vec::from_iter(labels).join(", ");
    let problem = match labels.as_str() {
        "" if bytes.is_empty() => "it is empty".to_owned(),
        "" => "it is not PEM".to_owned(),
        _ if text.contains("ENCRYPTED") => "give the key without a passphrase".to_owned(),
        labels => format!("it has {labels}"),
    };
    let problem = format!("there is no {kind} in it that can be read{error}: {problem}");
    Err(TlsError::content(path, problem))
}

/// Returns a certificate with its chain.
pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all(path, "certificate")
}

/// Does the same with a file that was read.
pub(crate) fn chain_of(file: PemFile<'_>) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all_of(file, "certificate")
}

/// Returns a private key.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = &read(path)?;
    key_of(PemFile { path, bytes })
}

/// Does the same with a file that was read.
pub(crate) fn key_of(file: PemFile<'_>) -> Result<PrivateKeyDer<'static>, TlsError> {
    let mut keys = all_of(file, "private key")?;
    match keys.pop() {
        Some(key) if keys.is_empty() => Ok(key),
        _ => Err(TlsError::content(
            file.path,
            "give one private key, not several",
        )),
    }
}

/// Returns the certificate authorities of a file, and a store that trusts them.
pub(crate) fn roots(
    path: &Path,
) -> Result<(Vec<CertificateDer<'static>>, RootCertStore), TlsError> {
    let (authorities, mut roots) = (chain(path)?, RootCertStore::empty());
    for authority in &authorities {
        let added = roots.add(authority.clone());
        added.map_err(|_| TlsError::content(path, "it has an invalid X.509 certificate"))?;
    }
    for anchor in &roots.roots {
        if let (kind, false) = kind(&anchor.subject_public_key_info) {
            let problem = format!("an authority has a key of {kind}; taken are {OTHERS}");
            return Err(TlsError::content(path, problem));
        }
    }
    Ok((authorities, roots))
}
