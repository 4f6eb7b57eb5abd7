//! Addresses of the node's servers, as given: addresses of servers, and perhaps one of a node in etcd.
//!
//! The [`MasterFinder`] decides their order, and the time to read etcd.
//!
//! [`MasterFinder`]: doorward_session::master_finder::MasterFinder

use std::sync::Arc;
use std::time::Duration;

use doorward_session::address::{ADDRESS_BYTES_MAX, Address, ipv6_advice, missing_port};
use tonic::transport::Endpoint;

use crate::error::ConnectError;
use doorward_session::visible;

#[cfg(feature = "etcd")]
mod directory;

#[cfg(feature = "etcd")]
pub(crate) use directory::Directory;

/// Largest size of an answer's headers and trailers, in bytes.
const HEADER_BYTES_MAX: u32 = 16 * 1024;

/// Parses a server's address: `host:port`, with or without a scheme, or `unix:/PATH`. `is_tls`: connections use TLS.
fn parse(text: &str, is_tls: bool) -> Result<Address, ConnectError> {
    if text.len() > ADDRESS_BYTES_MAX {
        let problem = format!("it is longer than {ADDRESS_BYTES_MAX} bytes");
        return Err(bad(text, &problem));
    }
    if text.starts_with("etcd://") {
        return Err(bad(text, "this program was built without the feature etcd"));
    }
    if text.starts_with("unix:/") {
        let socket = Address::of_socket(text).filter(|_| !is_tls);
        return socket.ok_or_else(|| bad(text, "a Unix socket is unix:/PATH, without TLS"));
    }
    let https = text.strip_prefix("https://");
    if is_tls && text.starts_with("http://") {
        return Err(bad(text, "this client uses TLS, which needs https"));
    }
    if !is_tls && https.is_some() {
        return Err(bad(
            text,
            "https needs `ClientBuilder::tls`, with the feature tls",
        ));
    }
    let endpoint = parse_endpoint(https.unwrap_or(text))?;
    Address::parse(&authority(&endpoint)).map_err(|error| bad(text, &format!("it {error}")))
}

/// Returns the endpoint of a server.
///
/// # Errors
///
/// If the scheme is not http, the port is missing, or a character is invalid.
pub(crate) fn endpoint(address: &Address, timeout: Duration) -> Result<Endpoint, ConnectError> {
    let text = address.as_str();
    let endpoint = match address.is_socket() {
        true => Endpoint::from_shared(text.to_owned()).map_err(|it| bad(text, &it.to_string()))?,
        false => parse_endpoint(text)?,
    };
    Ok(endpoint
        .connect_timeout(timeout)
        .http2_max_header_list_size(HEADER_BYTES_MAX)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(Duration::from_secs(5))
        .keep_alive_while_idle(true)
        .tcp_nodelay(true))
}

fn parse_endpoint(text: &str) -> Result<Endpoint, ConnectError> {
    if let Some(advice) = ipv6_advice(text) {
        return Err(bad(text, advice));
    }
    let uri = if text.contains("://") {
        text.to_owned()
    } else {
        format!("http://{text}")
    };
    let endpoint = Endpoint::from_shared(uri).map_err(|error| bad(text, &error.to_string()))?;
    match (endpoint.uri().scheme_str(), endpoint.uri().port()) {
        (Some("http"), Some(_)) => Ok(endpoint),
        (Some("http"), None) => Err(bad(
            text,
            &format!("it {}", missing_port(&authority(&endpoint))),
        )),
        _ => Err(bad(text, "the scheme must be http")),
    }
}

/// Returns the endpoint's host and port.
fn authority(endpoint: &Endpoint) -> String {
    let authority = endpoint.uri().authority();
    authority.map(ToString::to_string).unwrap_or_default()
}

fn bad(address: &str, problem: &str) -> ConnectError {
    ConnectError::BadAddress {
        address: visible::cut(address).into_owned(),
        problem: problem.to_owned(),
    }
}

/// Addresses of the servers.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// The given addresses.
    pub(crate) given: Arc<[Address]>,
    /// The node in etcd, whose servers come first.
    #[cfg(feature = "etcd")]
    pub(crate) directory: Option<Directory>,
}

impl Addresses {
    /// Parses the given addresses.
    ///
    /// # Errors
    ///
    /// If one is invalid, or there is none.
    pub(crate) fn parse(given: &[String], is_tls: bool) -> Result<Self, ConnectError> {
        let given: Arc<[Address]> = given
            .iter()
            .map(|text| parse(text, is_tls))
            .collect::<Result<_, _>>()?;
        if given.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        Ok(Self {
            given,
            #[cfg(feature = "etcd")]
            directory: None,
        })
    }

    /// Parses the given addresses, of which one may be that of a node in etcd. `elsewhere` counts if that address names
    /// no etcd hosts.
    ///
    /// # Errors
    ///
    /// If one is invalid, or names a file that cannot be used, or there is none.
    #[cfg(feature = "etcd")]
    pub(crate) fn parse_with_etcd(
        given: &[String],
        elsewhere: Option<&doorward_etcd::Etcd>,
        timeout: Duration,
        is_tls: bool,
    ) -> Result<Self, ConnectError> {
        use doorward_etcd::{NodeAddress, address};

        let (nodes, servers): (Vec<&String>, Vec<&String>) =
            given.iter().partition(|text| address::is_meant(text));
        let node = match nodes.as_slice() {
            [] => return Self::parse(given, is_tls),
            [node] => node,
            _ => {
                let problem = "more than one node in etcd is given; a client has one node";
                return Err(ConnectError::BadNodeAddress(problem.to_owned()));
            }
        };
        let place = NodeAddress::parse(node).and_then(|address| address.place(elsewhere));
        let place = place.map_err(|error| ConnectError::BadNodeAddress(error.to_string()))?;
        let given: Result<Arc<[Address]>, _> = servers
            .into_iter()
            .map(|text| parse(text, is_tls))
            .collect();
        let given = given?;
        let directory = Directory::new(place, Arc::clone(&given), timeout);
        Ok(Self {
            given,
            directory: Some(directory),
        })
    }
}
