//! How etcd is reached: endpoints, TLS, credentials.

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use thiserror::Error;

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Members of one cluster; at least one. Made by [`Endpoint::parse`].
    pub endpoints: Vec<Endpoint>,
    /// TLS, for endpoints with `https`.
    pub tls: Tls,
    /// Who we are to etcd, if it asks.
    pub user: Option<User>,
    /// A call that takes longer has failed.
    pub call_timeout: Duration,
}

impl EtcdConfig {
    /// Endpoints without TLS of our own and without credentials.
    pub fn new(endpoints: Vec<Endpoint>) -> Self {
        Self {
            endpoints,
            tls: Tls::default(),
            user: None,
            call_timeout: Duration::from_millis(1_500),
        }
    }
}

/// One member of a cluster: `http://host:port` or `https://host:port`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Endpoint(String);

impl Endpoint {
    /// `host:port`, `http://host:port` or `https://host:port`.
    ///
    /// # Errors
    ///
    /// If it is none of them; says what to give.
    pub fn parse(text: &str) -> Result<Self, EndpointError> {
        let bad = || EndpointError(text.to_owned());
        let text = text.trim();
        let (scheme, authority) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            Some(_) => return Err(bad()),
            None => ("http", text),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        let is_host = !host.is_empty()
            && host
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || "-._[]:".contains(c));
        if is_port && is_host {
            Ok(Self(format!("{scheme}://{authority}")))
        } else {
            Err(bad())
        }
    }

    /// With its scheme.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether it is on this machine, as far as its name tells: nothing is looked up.
    pub fn is_loopback(&self) -> bool {
        let authority = self.0.split_once("://").map_or("", |(_, rest)| rest);
        is_loopback(authority)
    }

    /// Whether it is reached by TLS.
    pub fn is_tls(&self) -> bool {
        self.0.starts_with("https:")
    }
}

impl fmt::Display for Endpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Whether `host:port` is on the machine that says it, as far as the name tells.
pub fn is_loopback(address: &str) -> bool {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    match host.parse::<IpAddr>() {
        Ok(address) => address.to_canonical().is_loopback(),
        Err(_) => {
            let host = host.trim_end_matches('.').to_ascii_lowercase();
            host == "localhost" || host.ends_with(".localhost")
        }
    }
}

/// A text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "{0:?} is no etcd endpoint; give host:port, http://host:port or https://host:port, as in \
     http://127.0.0.1:2379"
)]
pub struct EndpointError(String);

/// Credentials for etcd's own users.
#[derive(Clone, PartialEq, Eq)]
pub struct User {
    /// The name.
    pub name: String,
    /// The password. Never printed.
    pub password: String,
}

impl fmt::Debug for User {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("User")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// What TLS needs to know, as PEM.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Tls {
    /// CA to verify etcd with.
    pub ca: Option<Vec<u8>>,
    /// Our own certificate and its key, if etcd asks for one.
    pub identity: Option<(Vec<u8>, Vec<u8>)>,
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tls")
            .field("ca", &self.ca.is_some())
            .field("identity", &self.identity.is_some())
            .finish()
    }
}

/// Files for TLS could not be used.
#[derive(Debug, Error)]
pub enum TlsFileError {
    /// One cannot be read.
    #[error("cannot read {path}: {why}")]
    Read {
        /// Which.
        path: PathBuf,
        /// Why.
        why: std::io::Error,
    },
    /// One holds no PEM.
    #[error("{path} holds no PEM: a line -----BEGIN … is missing")]
    NoPem {
        /// Which.
        path: PathBuf,
    },
    /// A certificate without its key, or the other way round.
    #[error("a client certificate and its key are needed both, or neither")]
    HalfIdentity,
}

impl Tls {
    /// Reads the files that are given.
    ///
    /// # Errors
    ///
    /// If one cannot be read or holds no PEM, or if only one of certificate and key is given.
    pub fn read(
        ca: Option<&Path>,
        certificate: Option<&Path>,
        key: Option<&Path>,
    ) -> Result<Self, TlsFileError> {
        let identity = match (certificate, key) {
            (Some(certificate), Some(key)) => Some((pem(certificate)?, pem(key)?)),
            (None, None) => None,
            _ => return Err(TlsFileError::HalfIdentity),
        };
        Ok(Self {
            ca: ca.map(pem).transpose()?,
            identity,
        })
    }
}

fn pem(path: &Path) -> Result<Vec<u8>, TlsFileError> {
    let content = crate::file::read(path).map_err(|why| TlsFileError::Read {
        path: path.to_owned(),
        why,
    })?;
    if String::from_utf8_lossy(&content).contains("-----BEGIN ") {
        Ok(content)
    } else {
        Err(TlsFileError::NoPem {
            path: path.to_owned(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_a_scheme_a_host_and_a_port() {
        for (text, endpoint) in [
            ("127.0.0.1:2379", "http://127.0.0.1:2379"),
            (" etcd-0.example:2379 ", "http://etcd-0.example:2379"),
            ("http://h:1/", "http://h:1"),
            ("https://h:1", "https://h:1"),
            ("[::1]:2379", "http://[::1]:2379"),
        ] {
            assert_eq!(Endpoint::parse(text).unwrap().as_str(), endpoint);
        }
        for bad in [
            "",
            "h",
            "h:",
            "h:0",
            "h:99999",
            "ftp://h:1",
            "h:1/x",
            "a b:1",
            ":1",
        ] {
            let error = Endpoint::parse(bad).unwrap_err().to_string();
            assert!(error.contains("give host:port"), "{bad}: {error}");
        }
    }

    #[test]
    fn loopback_is_known_by_its_name_and_by_its_addresses() {
        for here in [
            "127.0.0.1:1",
            "127.9.9.9:1",
            "[::1]:1",
            "[::ffff:127.0.0.1]:1",
            "localhost:1",
            "LOCALHOST.:1",
            "etcd.localhost:1",
        ] {
            assert!(is_loopback(here), "{here}");
        }
        for elsewhere in [
            "10.0.0.1:1",
            "[fe80::1]:1",
            "etcd-0:1",
            "localhost.example:1",
        ] {
            assert!(!is_loopback(elsewhere), "{elsewhere}");
        }
        assert!(Endpoint::parse("https://[::1]:2379").unwrap().is_loopback());
        assert!(!Endpoint::parse("10.0.0.1:2379").unwrap().is_loopback());
    }

    #[test]
    fn passwords_and_keys_are_never_printed() {
        let user = User {
            name: "ann".to_owned(),
            password: "secret".to_owned(),
        };
        let tls = Tls {
            ca: None,
            identity: Some((b"secret".to_vec(), b"secret".to_vec())),
        };
        let printed = format!("{user:?} {tls:?}");
        assert!(
            !printed.contains("secret") && !printed.contains("115"),
            "{printed}"
        );
    }

    #[test]
    fn files_for_tls_are_named_when_they_cannot_be_used() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        std::fs::write(at("ca"), "-----BEGIN CERTIFICATE-----").unwrap();
        std::fs::write(at("text"), "hello").unwrap();
        assert!(Tls::read(Some(&at("ca")), None, None).unwrap().ca.is_some());
        for (ca, certificate, problem) in [
            (Some("none"), None, "none: No such file"),
            (Some("text"), None, "text holds no PEM"),
            (Some("ca"), Some("ca"), "both, or neither"),
        ] {
            let (ca, certificate) = (ca.map(at), certificate.map(at));
            let error = Tls::read(ca.as_deref(), certificate.as_deref(), None).unwrap_err();
            assert!(error.to_string().contains(problem), "{error}");
        }
    }
}
