//! Names of callers, by their certificates.

use std::fmt;
use std::sync::Arc;

use x509_parser::extensions::GeneralName;
use x509_parser::prelude::{FromDer, X509Certificate};

/// Largest length of a name, in bytes.
const NAME_BYTES_MAX: usize = 256;

/// Name of a caller that proved it: `spiffe://…`, `dns:NAME`, `cn:NAME` or `token:NAME`. Cheap to clone.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identity(Arc<str>);

impl Identity {
    /// Returns the identity of the holder of a token.
    #[cfg(feature = "server")]
    pub(crate) fn of_token(name: &str) -> Self {
        Self(format!("token:{name}").into())
    }

    /// Returns the identity of the holder of a certificate: its SPIFFE URI, else its first DNS name, else its common
    /// name.
    ///
    /// # Errors
    ///
    /// If it has none of these, a very long one, or several SPIFFE URIs, in words.
    pub fn of_certificate(der: &[u8]) -> Result<Self, &'static str> {
        let certificate = X509Certificate::from_der(der);
        let (_, certificate) = certificate.map_err(|_| "it is no valid X.509 certificate")?;
        let names = certificate.subject_alternative_name();
        let names = names.map_err(|_| "its alternative names are invalid, or there twice")?;
        let names = names.map_or(&[][..], |it| &it.value.general_names[..]);
        let mut spiffe = names.iter().filter_map(|name| match name {
            GeneralName::URI(uri) if uri.starts_with("spiffe://") => Some((*uri).to_owned()),
            _ => None,
        });
        let first = spiffe.next();
        if spiffe.next().is_some() {
            return Err("it has several SPIFFE URIs; give it one");
        }
        let dns = || {
            names.iter().find_map(|name| match name {
                GeneralName::DNSName(name) => Some(format!("dns:{}", name.to_ascii_lowercase())),
                _ => None,
            })
        };
        let common = || {
            let name = certificate.subject().iter_common_name().next()?;
            Some(format!("cn:{}", name.as_str().ok()?))
        };
        let name = first.or_else(dns).or_else(common);
        let name = name.ok_or("it has no SPIFFE URI, DNS name or common name")?;
        Self::parse(&name).ok_or("its name is too long, or has a control character or a #")
    }

    /// Returns the identity with that text. None: it is empty, too long, or has a control character or a `#`.
    pub fn parse(text: &str) -> Option<Self> {
        let is_usable =
            !text.is_empty() && text.len() <= NAME_BYTES_MAX && !text.contains(is_reserved);
        is_usable.then(|| Self(text.into()))
    }

    /// Returns its text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// Returns whether no identity has this character. A `#` separates an identity from the names of its programs.
fn is_reserved(character: char) -> bool {
    character.is_control() || character == '#'
}

impl fmt::Display for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
