//! Groups over several machines: each process is a candidate of one node.

use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use doorward_etcd::NodeAddress;
use doorward_server::app::ServerConfig;
use doorward_server::transports::election::ElectionConfig;

use crate::error::JoinError;
use crate::serving::Seat;

/// Time without a server after the one that serves was killed.
const TTL: Duration = Duration::from_secs(3);

/// Returns the seat of a candidate, its server, and the address of the group for clients.
///
/// # Errors
///
/// If the address of etcd is invalid.
pub(crate) fn by_etcd(hosts: &str, group: &str) -> Result<(Seat, ServerConfig, String), JoinError> {
    let bad = |problem: String| JoinError::BadEtcd {
        address: hosts.to_owned(),
        problem,
    };
    let (endpoints, query) = hosts.split_once('?').unwrap_or((hosts, ""));
    let endpoints = endpoints.replace("http://", "");
    let query = match query {
        "" => String::new(),
        query => format!("?{query}"),
    };
    let address = format!("etcd://{endpoints}/{group}{query}");
    let node: NodeAddress = address.parse().map_err(|it| bad(format!("{it}")))?;
    let etcd = node.place(None).map_err(|it| bad(it.to_string()))?.etcd;
    let server = ServerConfig {
        listen: SocketAddr::new(own_address(&endpoints), 0).into(),
        election: Some(ElectionConfig {
            etcd: (*etcd.config).clone(),
            prefix: etcd.prefix,
            ttl: TTL,
            able: None,
            templates_history: None,
        }),
        ..ServerConfig::default()
    };
    Ok((Seat::Election, server, address))
}

/// Returns the address of this machine on its way to etcd, where other processes reach it.
fn own_address(endpoints: &str) -> IpAddr {
    let way = || {
        let first = endpoints.split(',').next()?;
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).ok()?;
        // Nothing is sent.
        socket.connect(first).ok()?;
        Some(socket.local_addr().ok()?.ip())
    };
    way().unwrap_or(Ipv4Addr::LOCALHOST.into())
}
