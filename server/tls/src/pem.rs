//! Certificates, keys and revocation lists in PEM files.

use std::fs;
use std::path::Path;

use rustls::RootCertStore;
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};

use crate::TlsError;

fn read(path: &Path) -> Result<Vec<u8>, TlsError> {
    fs::read(path).map_err(|source| TlsError::Read {
        path: path.to_owned(),
        source,
    })
}

/// Returns all objects of one kind in a file. `kind` names them, for people.
pub(crate) fn all<T: PemObject>(path: &Path, kind: &str) -> Result<Vec<T>, TlsError> {
    let bytes = read(path)?;
    let found: Result<Vec<T>, _> = T::pem_slice_iter(&bytes).collect();
    match found {
        Ok(found) if found.is_empty() => Err(TlsError::content(
            path,
            format!("there is no {kind} in it; give a PEM file"),
        )),
        Ok(found) => Ok(found),
        Err(error) => Err(TlsError::content(path, format!("invalid PEM: {error}"))),
    }
}

/// Returns a certificate with its chain.
pub(crate) fn chain(path: &Path) -> Result<Vec<CertificateDer<'static>>, TlsError> {
    all(path, "certificate")
}

/// Returns a private key.
pub(crate) fn key(path: &Path) -> Result<PrivateKeyDer<'static>, TlsError> {
    let bytes = read(path)?;
    PrivateKeyDer::from_pem_slice(&bytes)
        .map_err(|error| TlsError::content(path, format!("there is no private key in it: {error}")))
}

/// Returns the certificate authorities of a file.
pub(crate) fn roots(path: &Path) -> Result<RootCertStore, TlsError> {
    let mut roots = RootCertStore::empty();
    for authority in chain(path)? {
        let added = roots.add(authority);
        added.map_err(|error| TlsError::content(path, format!("not an authority: {error}")))?;
    }
    Ok(roots)
}
