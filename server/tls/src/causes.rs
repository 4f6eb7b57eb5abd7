//! Causes for which the certificate of the other side is refused, in words.

use rustls::{CertificateError, Error};

use crate::keys::OTHERS;

/// Returns the cause of a failed handshake, if a certificate is it. `trusted`: the authorities. The text has no time, so
/// that the log can tell it once.
pub(crate) fn of(error: &Error, trusted: &str) -> Option<String> {
    let Error::InvalidCertificate(problem) = error else {
        return None;
    };
    let cause = match problem {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => "it has ended",
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "it does not begin yet"
        }
        CertificateError::Revoked => "it is revoked, or one between it and its authority",
        CertificateError::UnknownIssuer => {
            return Some(format!("no authority {trusted} signed it"));
        }
        CertificateError::InvalidPurpose | CertificateError::InvalidPurposeContext { .. } => {
            "its extended key usage is for another side"
        }
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            return Some(problem.to_string());
        }
        CertificateError::Other(_) => "it may be self-signed",
        _ => {
            return Some(format!(
                "{problem}: another authority of that name signed it, or a key is not taken; taken are {OTHERS}"
            ));
        }
    };
    Some(cause.to_owned())
}
