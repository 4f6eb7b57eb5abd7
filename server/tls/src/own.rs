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

use crate::{TlsError, causes, pem, provider};

/// Kinds of a program's own key that ring takes.
const KINDS: &str =
    "RSA of 2048, 3072 or 4096 bits with the exponent 65537, ECDSA P-256 or P-384, and Ed25519";

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
    let chain = pem::open(certificate, pem::chain)?;
    let private = pem::open(key, pem::key)?;
    of((certificate, chain), (key, private), usage, former)
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
    let pair = CertifiedKey::from_der(chain, private, &provider());
    let pair = pair.map_err(|error| {
        let problem = match error {
            Error::InconsistentKeys(_) => format!("the key is not that of {certificate:?}"),
            _ => format!(
                "the key is cut, has no public part, or is of a kind that is not taken; taken are {KINDS}"
            ),
        };
        TlsError::content(key, problem)
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
    let now = UnixTime::now();
    let (problem, is_parsed) = match EndEntityCert::try_from(first) {
        Ok(it) => {
            let verified = it.verify_for_usage(algorithms, &issuers, &[], now, usage, None, None);
            (verified.err()?, true)
        }
        Err(problem) => (problem, false),
    };
    let words = match &problem {
        // A self-signed one; and an authority that is not in the file.
        Problem::CaUsedAsEndEntity => return None,
        Problem::UnknownIssuer if rest.is_empty() => return None,
        Problem::UnknownIssuer | Problem::InvalidSignatureForPublicKey => {
            "no certificate that follows in it has signed the first one".to_owned()
        }
        _ => causes::words(&problem),
    };
    let always = !is_parsed || matches!(problem, Problem::RequiredEkuNotFoundContext(_));
    Some((format!("the certificate is invalid: {words}"), always))
}
