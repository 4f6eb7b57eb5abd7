//! Where the servers of the node are: as given, or as etcd has them.
//!
//! Addresses are tried in turn, the next one after each failure. With a node in etcd among them, the
//! master that etcd names comes first, then the node's other servers, then the addresses that were
//! given. etcd is asked when the client has to find a server anew, as often as the client's backoff
//! lets it try, and no connection to it stays open. It is not asked after a server that said that
//! there is no master: the servers follow etcd themselves, so the others of them are asked first. As
//! long as etcd does not answer, or knows of nobody, what it said last counts.

use std::time::Duration;

use tonic::transport::Endpoint;

use crate::error::ConnectError;
use crate::visible;

#[cfg(feature = "etcd")]
mod directory;

#[cfg(feature = "etcd")]
use directory::Directory;

/// The longest address, in bytes: a host name has 253, and scheme and port come on top.
const ADDRESS_BYTES_MAX: usize = 300;

/// The headers and trailers that an answer may have, in bytes.
const HEADER_BYTES_MAX: u32 = 16 * 1024;

/// A server, and what to call it.
#[derive(Clone, Debug)]
pub(crate) struct Address {
    pub(crate) endpoint: Endpoint,
    pub(crate) name: String,
}

impl Address {
    /// `host:port`, with or without `http://`.
    pub(crate) fn parse(text: &str, timeout: Duration) -> Result<Self, ConnectError> {
        let bad = |problem: &str| ConnectError::BadAddress {
            address: visible::cut(text).into_owned(),
            problem: problem.to_owned(),
        };
        if text.len() > ADDRESS_BYTES_MAX {
            return Err(bad(&format!("it is longer than {ADDRESS_BYTES_MAX} bytes")));
        }
        if text.starts_with("etcd://") {
            return Err(bad("this program was built without the feature etcd"));
        }
        let uri = if text.contains("://") {
            text.to_owned()
        } else {
            format!("http://{text}")
        };
        let endpoint = Endpoint::from_shared(uri).map_err(|error| bad(&error.to_string()))?;
        match (endpoint.uri().scheme_str(), endpoint.uri().port()) {
            (Some("http"), Some(_)) => {}
            (Some("http"), None) => return Err(bad("it has no port")),
            _ => return Err(bad("only http is spoken")),
        }
        let name = endpoint.uri().authority().map(ToString::to_string);
        Ok(Self {
            name: name.unwrap_or_default(),
            endpoint: endpoint
                .connect_timeout(timeout)
                .http2_max_header_list_size(HEADER_BYTES_MAX)
                .http2_keep_alive_interval(Duration::from_secs(10))
                .keep_alive_timeout(Duration::from_secs(5))
                .keep_alive_while_idle(true)
                .tcp_nodelay(true),
        })
    }
}

/// Addresses in turn.
#[derive(Debug)]
pub(crate) struct Addresses {
    /// In the order in which they are tried.
    known: Vec<Address>,
    turn: usize,
    #[cfg(feature = "etcd")]
    directory: Option<Directory>,
}

impl Addresses {
    /// Those that were given.
    ///
    /// # Errors
    ///
    /// If one does not parse, or there is none.
    pub(crate) fn parse(given: &[String], timeout: Duration) -> Result<Self, ConnectError> {
        let given: Result<Vec<Address>, ConnectError> = given
            .iter()
            .map(|text| Address::parse(text, timeout))
            .collect();
        let known = given?;
        if known.is_empty() {
            return Err(ConnectError::NoAddress);
        }
        Ok(Self {
            known,
            turn: 0,
            #[cfg(feature = "etcd")]
            directory: None,
        })
    }

    /// Those that were given, among which there may be one of a node in etcd. `elsewhere` counts if
    /// it does not say where etcd is.
    ///
    /// # Errors
    ///
    /// If one does not parse, or names a file that cannot be used, or there is none.
    #[cfg(feature = "etcd")]
    pub(crate) fn parse_with_etcd(
        given: &[String],
        elsewhere: Option<&doorward_etcd::Etcd>,
        timeout: Duration,
    ) -> Result<Self, ConnectError> {
        use doorward_etcd::{NodeAddress, address};

        let (nodes, given): (Vec<&String>, Vec<&String>) =
            given.iter().partition(|text| address::is_meant(text));
        let node = match nodes.as_slice() {
            [] => {
                let given: Vec<String> = given.into_iter().cloned().collect();
                return Self::parse(&given, timeout);
            }
            [node] => node,
            _ => {
                let problem = "more than one node in etcd is given; a client has one node";
                return Err(ConnectError::BadNodeAddress(problem.to_owned()));
            }
        };
        let place = NodeAddress::parse(node).and_then(|address| address.place(elsewhere));
        let place = place.map_err(|error| ConnectError::BadNodeAddress(error.to_string()))?;
        let given: Result<Vec<Address>, ConnectError> = given
            .into_iter()
            .map(|text| Address::parse(text, timeout))
            .collect();
        let given = given?;
        Ok(Self {
            known: given.clone(),
            turn: 0,
            directory: Some(Directory::new(place, given, timeout)),
        })
    }

    /// The address whose turn it is.
    ///
    /// # Errors
    ///
    /// If none is known; says why.
    #[cfg_attr(
        not(feature = "etcd"),
        expect(clippy::unused_async, reason = "only etcd is waited for")
    )]
    pub(crate) async fn next(&mut self) -> Result<Address, String> {
        #[cfg(feature = "etcd")]
        self.look_up().await?;
        let address = self.known.get(self.turn).or(self.known.first());
        address
            .cloned()
            .ok_or_else(|| "no address is known".to_owned())
    }

    /// Asks etcd, if that is due.
    #[cfg(feature = "etcd")]
    async fn look_up(&mut self) -> Result<(), String> {
        let Some(directory) = &mut self.directory else {
            return Ok(());
        };
        match directory.look_up(self.known.len()).await {
            Some(Ok(found)) => {
                self.known = found.addresses;
                self.turn = if found.is_new_master {
                    0
                } else {
                    self.turn % self.known.len().max(1)
                };
                Ok(())
            }
            Some(Err(problem)) if self.known.is_empty() => Err(problem),
            Some(Err(_)) | None => Ok(()),
        }
    }

    /// The one whose turn it was is of no use: next time, the next one.
    pub(crate) fn leave(&mut self, is_masterless: bool) {
        self.turn = (self.turn + 1) % self.known.len().max(1);
        #[cfg(feature = "etcd")]
        if let Some(directory) = &mut self.directory {
            directory.note_failure(is_masterless);
        }
        #[cfg(not(feature = "etcd"))]
        let _ = is_masterless;
    }

    /// A master was found. By the time that it is of no use any more, what is known may be old.
    pub(crate) fn settle(&mut self) {
        #[cfg(feature = "etcd")]
        if let Some(directory) = &mut self.directory {
            directory.forget();
        }
    }
}
