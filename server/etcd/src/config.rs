//! How etcd is reached: endpoints, TLS, credentials.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use doorward_session::address::ipv6_advice;
use thiserror::Error;

use crate::credentials::{
    CredentialFiles, Credentials, CredentialsError, ReadCredentials, Tls, User,
};

/// How etcd is reached.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdConfig {
    /// Members of one cluster; at least one. Made by [`Endpoint::parse`].
    pub endpoints: Vec<Endpoint>,
    /// TLS, for endpoints with `https`.
    pub tls: Tls,
    /// Name and password for etcd, if it asks for them.
    pub user: Option<User>,
    /// Files that are read again for each new connection, instead of `tls` and `user`. See [`Self::with_files`].
    pub files: Option<ReadCredentials>,
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
            files: None,
            call_timeout: Duration::from_millis(1_500),
        }
    }

    /// Endpoints, with credentials from files.
    ///
    /// # Errors
    ///
    /// If a file cannot be used.
    pub fn with_files(
        endpoints: Vec<Endpoint>,
        files: CredentialFiles,
    ) -> Result<Self, CredentialsError> {
        let has_files = files != CredentialFiles::default();
        let files = ReadCredentials::open(files)?;
        let Credentials { tls, user } = (*files.current()).clone();
        Ok(Self {
            tls,
            user,
            files: has_files.then_some(files),
            ..Self::new(endpoints)
        })
    }

    /// The credentials for a new connection.
    pub(crate) async fn credentials(&self) -> Arc<Credentials> {
        match &self.files {
            // The rest of the time is for the connection.
            Some(files) => files.again(self.call_timeout / 2).await,
            None => Arc::new(Credentials {
                tls: self.tls.clone(),
                user: self.user.clone(),
            }),
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
        let bad = || EndpointError {
            text: text.to_owned(),
            advice: ipv6_advice(text).unwrap_or(ADVICE),
        };
        let text = text.trim();
        let (scheme, authority) = match text.split_once("://") {
            Some((scheme @ ("http" | "https"), rest)) => (scheme, rest),
            Some(_) => return Err(bad()),
            None => ("http", text),
        };
        let authority = authority.strip_suffix('/').unwrap_or(authority);
        let (host, port) = authority.rsplit_once(':').ok_or_else(bad)?;
        let is_port = port.parse::<u16>().is_ok_and(|port| port > 0);
        let is_ipv6 = |host: &str| host.parse::<Ipv6Addr>().is_ok();
        let is_host = match host.strip_prefix('[').and_then(|it| it.strip_suffix(']')) {
            Some(host) => is_ipv6(host),
            None => {
                let is_valid = |c: char| c.is_ascii_alphanumeric() || "-._".contains(c);
                !host.is_empty() && host.chars().all(is_valid)
            }
        };
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

const ADVICE: &str =
    "give host:port, http://host:port or https://host:port, as in http://127.0.0.1:2379";

/// A text is no endpoint.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{text:?} is no etcd endpoint; {advice}")]
pub struct EndpointError {
    text: String,
    /// Advice on a valid text.
    advice: &'static str,
}

#[cfg(test)]
mod tests;
