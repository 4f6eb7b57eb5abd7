//! Revocation lists, as they are checked when they are read.
//!
//! Each list needs the signature of its authority, which is one of those in force, or has its certificate in the file of
//! the lists. A new file has to have a list, as new or newer, of each authority that had one: else revoked callers would
//! come back. A list that is too old counts on.

use std::path::Path;

use rustls::CertRevocationListError;
use rustls::client::VerifierBuilderError;
use rustls_pki_types::{CertificateDer, CertificateRevocationListDer};
use x509_parser::prelude::{ASN1Time, CertificateRevocationList, FromDer, X509Certificate};

use crate::{TlsError, causes, pem, provider};

/// Longest time, in seconds, that a list may begin ahead of this clock. All correct lists would be older than one of next
/// year.
const AHEAD_MAX: i64 = 300;

/// A list in force.
#[derive(Debug)]
pub(crate) struct List {
    /// Name of its authority, in DER and for people.
    issuer: (Vec<u8>, String),
    /// Time of the list, since the Unix epoch in seconds.
    updated: i64,
    /// Whether its authority has its certificate beside the list, and would be forgotten with it.
    is_between: bool,
}

/// Lists for the verifier, and what a later file is compared with.
pub(crate) type Lists = (Vec<CertificateRevocationListDer<'static>>, Vec<List>);

/// Reads the lists of these authorities.
///
/// # Errors
///
/// If a list is invalid or not of these authorities, or an authority's list would be lost or older than in `former`.
pub(crate) fn read(
    path: &Path,
    authorities: &[CertificateDer<'static>],
    former: &[List],
) -> Result<Lists, TlsError> {
    let refuse = |problem: String| TlsError::content(path, problem);
    let (ders, between) = pem::open(path, |file| {
        let ders: Vec<CertificateRevocationListDer<'static>> =
            pem::all(file, "revocation list (X509 CRL)")?;
        Ok((ders, pem::chain(file).unwrap_or_default()))
    })?;
    let issuers = authorities.iter().chain(&between);
    let issuers = issuers.filter_map(|it| Some(X509Certificate::from_der(it).ok()?.1));
    let issuers: Vec<X509Certificate<'_>> = issuers.collect();
    let lists = ders.iter().map(|der| List::new(der, &issuers));
    let mut lists = lists.collect::<Result<Vec<List>, _>>().map_err(refuse)?;
    let authorities = authorities.iter();
    let authorities = authorities.filter_map(|it| Some(X509Certificate::from_der(it).ok()?.1));
    let names = authorities.map(|it| it.subject().as_raw().to_vec());
    let names: Vec<_> = names.collect();
    for list in &mut lists {
        list.is_between = !names.contains(&list.issuer.0);
    }
    for former in former {
        let (issuer, updated) = (&former.issuer, &former.updated);
        let mut same = lists.iter().filter(|it| it.issuer == *issuer);
        let is_authority = || issuers.iter().any(|it| it.subject().as_raw() == issuer.0);
        let is_needed = former.is_between || is_authority();
        if is_needed && !same.any(|it| it.updated >= *updated) {
            let name = &issuer.1;
            return Err(refuse(format!(
                "its list of {name} is missing, or older than the one in force; an empty list revokes nothing"
            )));
        }
    }
    Ok((ders, lists))
}

impl List {
    fn new(der: &[u8], issuers: &[X509Certificate<'_>]) -> Result<Self, String> {
        let list = CertificateRevocationList::from_der(der);
        let (_, list) = list.map_err(|_| "a list is broken, or no X.509 list".to_owned())?;
        let name = list.issuer();
        let is_named = |it: &&X509Certificate<'_>| it.subject().as_raw() == name.as_raw();
        let named = || issuers.iter().filter(is_named);
        if named().next().is_none() {
            return Err(format!(
                "{name} is no authority of --tls-client-ca, and its certificate is not beside its list"
            ));
        }
        let id = list.signature_algorithm.algorithm.as_bytes();
        let algorithms = provider().signature_verification_algorithms.all;
        let mut ids = algorithms.iter().map(|it| it.signature_alg_id());
        // An identifier in DER begins with two bytes, and its parameters follow.
        if !ids.any(|it| it.get(2..).is_some_and(|it| it.starts_with(id))) {
            return Err(format!("a list of {name}: {}", causes::signature()));
        }
        // The verifier finds a list by its name, and refuses all if it has another key.
        if !named().all(|it| list.verify_signature(it.public_key()).is_ok()) {
            return Err(format!(
                "a list has a wrong signature: not that of each {name}"
            ));
        }
        let updated = list.last_update().timestamp();
        if updated > ASN1Time::now().timestamp() + AHEAD_MAX {
            return Err(format!(
                "a list of {name} begins more than five minutes ahead; look at the clocks"
            ));
        }
        Ok(Self {
            issuer: (name.as_raw().to_vec(), name.to_string()),
            updated,
            is_between: false,
        })
    }
}

/// Returns the reason why the verifier does not take a list.
pub(crate) fn words(problem: &VerifierBuilderError) -> String {
    use CertRevocationListError as Problem;
    let VerifierBuilderError::InvalidCrl(problem) = problem else {
        return "it has no authority".to_owned();
    };
    let kind = match problem {
        Problem::UnsupportedCrlVersion => "of another version",
        Problem::UnsupportedCriticalExtension => "one with a critical extension",
        Problem::UnsupportedDeltaCrl => "a delta list",
        Problem::UnsupportedIndirectCrl => "one of other authorities' certificates",
        Problem::UnsupportedRevocationReason => "one with an unknown reason",
        _ => "broken, or of some reasons or points only",
    };
    format!("a list is {kind}; taken are whole lists of X.509 version 2")
}
