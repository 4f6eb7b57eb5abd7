//! Causes for which a certificate is refused, in words.

use rustls::{CertificateError, Error};
use webpki::Error as Problem;

/// Kinds of the keys of others whose signatures ring verifies.
pub(crate) const KINDS: &str = "RSA of 2048 to 8192 bits, ECDSA P-256 or P-384, and Ed25519";

const ENDED: &str = "it has ended";
const EARLY: &str = "it does not begin yet";
const OTHER_SIDE: &str = "its extended key usage is for another side";
pub(crate) const BROKEN: &str = "it is broken, or no X.509 certificate";

/// Returns the cause of a failed handshake, if a certificate is it. `trusted`: the authorities. The text has no time, so
/// that the log can tell it once.
pub(crate) fn of(error: &Error, trusted: &str) -> Option<String> {
    let Error::InvalidCertificate(problem) = error else {
        return None;
    };
    let cause = match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => ENDED,
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => EARLY,
        CertificateError::Revoked => "it is revoked, or one between it and its authority",
        CertificateError::UnknownIssuer => {
            return Some(format!("no authority {trusted} signed it"));
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            OTHER_SIDE
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            return Some(problem.to_string());
        }
        CertificateError::BadSignature => "another authority of that name signed it",
        CertificateError::Other(other) => {
            let known = other.0.downcast_ref();
            return Some(known.map_or_else(|| BROKEN.to_owned(), words));
        }
        CertificateError::BadEncoding => BROKEN,
        _ => return Some(signature()),
    };
    Some(cause.to_owned())
}

/// Returns a problem that a verifier has with a certificate.
pub(crate) fn words(problem: &Problem) -> String {
    let words = match problem {
        Problem::CertExpired { .. } | Problem::InvalidCertValidity => ENDED,
        Problem::CertNotValidYet { .. } => EARLY,
        Problem::RequiredEkuNotFoundContext(_) => OTHER_SIDE,
        Problem::UnsupportedCertVersion => "it is not of X.509 version 3",
        Problem::CaUsedAsEndEntity => "it is that of an authority, as self-signed ones often are",
        Problem::EndEntityUsedAsCa => "a certificate that is not that of an authority signed it",
        Problem::PathLenConstraintViolated => "its chain is longer than an authority in it allows",
        Problem::NameConstraintViolation => "an authority of its chain may not sign its names",
        Problem::UnsupportedSignatureAlgorithmContext(_)
        | Problem::UnsupportedSignatureAlgorithmForPublicKeyContext(_) => return signature(),
        Problem::UnsupportedCriticalExtension => {
            "it has a critical extension that is not taken; taken are key usage, alternative names, basic and name constraints, distribution points and extended key usage"
        }
        Problem::MaximumPathDepthExceeded
        | Problem::MaximumPathBuildCallsExceeded
        | Problem::MaximumSignatureChecksExceeded => "its chain is too long",
        _ => BROKEN,
    };
    words.to_owned()
}

pub(crate) fn signature() -> String {
    format!(
        "its signature is of a kind that is not taken; taken are SHA-256 and SHA-384, by RSA also SHA-512, with keys of {KINDS}"
    )
}
