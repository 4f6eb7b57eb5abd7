//! The ports of a server, and their sockets.

use std::fmt;
use std::net::SocketAddr;
use std::num::NonZeroU32;

use doorward_door::listening;
use tokio::net::TcpListener;

use crate::app::{ServerConfig, ServerError};

/// A part of a server that has a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Port {
    /// gRPC.
    Grpc,
    /// Pages and metrics.
    Http,
    /// Redis clients.
    Redis,
    /// gRPC without TLS, for Doorman's clients.
    Doorman,
}

impl Port {
    pub(super) const fn flag(self) -> &'static str {
        match self {
            Self::Grpc => "--listen",
            Self::Http => "--http-listen",
            Self::Redis => "--redis-listen",
            Self::Doorman => "--plain-listen",
        }
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
    pub(super) grpc: (TcpListener, SocketAddr),
    pub(super) http: Option<(TcpListener, SocketAddr)>,
    pub(super) redis: Option<(TcpListener, SocketAddr)>,
    pub(super) doorman: Option<(TcpListener, SocketAddr)>,
}

impl Sockets {
    pub(super) fn open(config: &ServerConfig) -> Result<Self, ServerError> {
        let open = |port, address| listen(port, address, config.listen_backlog);
        let http = config.http_listen.map(|it| open(Port::Http, it));
        let redis = config.doors.redis_listen.map(|it| open(Port::Redis, it));
        let plain = config.security.plain_listen;
        let doorman = plain.map(|it| open(Port::Doorman, it));
        Ok(Self {
            grpc: open(Port::Grpc, config.listen)?,
            http: http.transpose()?,
            redis: redis.transpose()?,
            doorman: doorman.transpose()?,
        })
    }
}

impl Sockets {
    /// Returns the addresses of the ports that serve all callers.
    pub(super) fn addresses(&self) -> Vec<SocketAddr> {
        let others = [&self.http, &self.redis].into_iter().flatten();
        let others = others.map(|(_, address)| *address);
        others.chain([self.grpc.1]).collect()
    }
}

fn listen(
    port: Port,
    address: SocketAddr,
    backlog: NonZeroU32,
) -> Result<(TcpListener, SocketAddr), ServerError> {
    listening::listen(address, backlog).map_err(|source| ServerError::Listen {
        port,
        address,
        source,
    })
}
