//! The ports of a server, and their sockets.

use std::fmt;
use std::net::SocketAddr;

use doorward_door::listener::{Address, Listener};
use doorward_session::named;

use crate::app::{ServerConfig, ServerError};

named! {
    /// A part of a server that has a socket, by its flag.
    Port {
        /// gRPC.
        Grpc = "--listen",
        /// Pages and metrics.
        Http = "--http-listen",
        /// Redis clients.
        Redis = "--redis-listen",
        /// gRPC without TLS, for Doorman's clients.
        Doorman = "--plain-listen",
    }
}

impl fmt::Display for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Grpc => "gRPC",
            Self::Http => "HTTP",
            Self::Redis => "Redis clients",
            Self::Doorman => "Doorman's clients",
        })
    }
}

/// Sockets with their addresses.
pub(super) struct Sockets {
    pub(super) grpc: (Listener, Address),
    pub(super) http: Option<(Listener, Address)>,
    pub(super) redis: Option<(Listener, Address)>,
    pub(super) doorman: Option<(Listener, Address)>,
}

impl Sockets {
    pub(super) fn open(config: &ServerConfig) -> Result<Self, ServerError> {
        let open = |port, address: &Address| {
            let opened = Listener::open(address, config.listen_backlog);
            opened.map_err(|source| ServerError::Listen {
                port,
                address: address.clone(),
                source,
            })
        };
        let at = |port, address: Option<&Address>| address.map(|it| open(port, it)).transpose();
        let plain = config.security.plain_listen.map(Address::from);
        Ok(Self {
            grpc: open(Port::Grpc, &config.listen)?,
            http: at(Port::Http, config.http_listen.as_ref())?,
            redis: at(Port::Redis, config.doors.redis_listen.as_ref())?,
            doorman: at(Port::Doorman, plain.as_ref())?,
        })
    }

    /// Returns the addresses of the ports that serve all callers.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let others = [&self.http, &self.redis].into_iter().flatten();
        let all = others.chain([&self.grpc]);
        all.filter_map(|(_, address)| address.tcp()).collect()
    }
}
