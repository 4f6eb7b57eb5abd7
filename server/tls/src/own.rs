//! A program's own certificate and key.
//!
//! A certificate that the other side would refuse does not replace one that is in force. At the start there is none to
//! keep: the log then warns of one that has ended or does not begin yet, since it may help later, or some callers. The
//! same warning stands for one in force that has ended meanwhile, and other files beside it still change.

use std::path::Path;
use std::sync::Arc;

use rustls::Error;
use rustls::sign::CertifiedKey;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, UnixTime};
use tracing::warn;
use webpki::{EndEntityCert, KeyUsage, anchor_from_trusted_cert};

use crate::keys::{OWN, kind};
use crate::{TlsError, pem, provider};

/// Reads a certificate for `usage`, and its key. `former`: the chain in force.
///
/// # Errors
///
/// If a file is invalid, the key is of another certificate or of a kind that is not taken, or the certificate is for
/// another use; if it replaces another one, also if it is not valid now.
pub(crate) fn read(
    (certificate, key): (&Path, &Path),
    usage: KeyUsage,
    former: Option<&[CertificateDer<'_>]>,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let chain = pem::chain(certificate)?;
    of((certificate, chain), (key, pem::key(key)?), usage, former)
}

/// Does the same with files that were read.
pub(crate) fn of(
    (certificate, chain): (&Path, Vec<CertificateDer<'static>>),
    (key, private): (&Path, PrivateKeyDer<'static>),
    usage: KeyUsage,
    former: Option<&[CertificateDer<'_>]>,
) -> Result<Arc<CertifiedKey>, TlsError> {
    let replaces = former.is_some_and(|it| it != chain);
    match invalid(&chain, usage) {
        Some((problem, false)) if !replaces => {
            warn!(file = %certificate.display(), problem, "a certificate is not valid");
        }
        Some((problem, _)) => return Err(TlsError::content(certificate, problem)),
        None => {}
    }
    let (kind, _) = kind(private.secret_der());
    let pair = CertifiedKey::from_der(chain, private, &provider());
    let pair = pair.map_err(|error| match error {
        Error::InconsistentKeys(_) => {
            let problem = format!("the key ({kind}) is not that of {certificate:?}");
            TlsError::content(key, problem)
        }
        Error::General(_) => {
            let problem = format!("the key is {kind}, which is not taken; taken are {OWN}");
            TlsError::content(key, problem)
        }
        error => TlsError::content(certificate, error),
    });
    pair.map(Arc::new)
}

/// Returns the reason why a certificate is invalid, if it is, and whether it always is. Only the signatures in the file
/// are verified: the authority of the other side is not known here.
fn invalid(chain: &[CertificateDer<'_>], usage: KeyUsage) -> Option<(String, bool)> {
    use webpki::Error as Problem;
    let (first, rest) = chain.split_first()?;
    let issuers: Vec<_> = rest.iter().flat_map(anchor_from_trusted_cert).collect();
    let algorithms = provider().signature_verification_algorithms.all;
    let verified = EndEntityCert::try_from(first).and_then(|it| {
        let verified = it.verify_for_usage(
            algorithms,
            &issuers,
            &[],
            UnixTime::now(),
            usage,
            None,
            None,
        );
        verified.map(drop)
    });
    let (problem, always) = match verified.err()? {
        // A self-signed one; and an authority that is not in the file.
        Problem::CaUsedAsEndEntity => return None,
        Problem::UnknownIssuer if rest.is_empty() => return None,
        Problem::CertExpired { .. } | Problem::InvalidCertValidity => ("it has ended", false),
        Problem::CertNotValidYet { .. } => ("it does not begin yet", false),
        Problem::UnknownIssuer | Problem::InvalidSignatureForPublicKey => (
            "no certificate that follows in it has signed the first one",
            false,
        ),
        Problem::RequiredEkuNotFoundContext(_) => {
            ("its extended key usage is for another side", true)
        }
        Problem::BadDer | Problem::BadDerTime | Problem::UnsupportedCertVersion => {
            ("it is not of X.509 version 3", true)
        }
        other => return Some((format!("it may be refused: {other}"), false)),
    };
    Some((format!("the certificate is invalid: {problem}"), always))
}
