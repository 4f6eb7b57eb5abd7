//! Groups over several machines: each process is a candidate of one node.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use doorward_etcd::NodeAddress;
use doorward_etcd::config::Endpoint;
use doorward_server::app::ServerConfig;
use doorward_server::flags::LimitFlags;
use doorward_server::transports::election::ElectionConfig;

use crate::error::JoinError;
use crate::folder::FILES;
use crate::serving::Seat;

/// Time without a server after the one that serves was killed.
const TTL: Duration = Duration::from_secs(3);

/// Returns the seat of a candidate, its server, and the address of the group for clients.
///
/// # Errors
///
/// If the address of etcd is invalid, or that of this machine is not known.
pub(crate) async fn by_etcd(
    hosts: &str,
    own: Option<IpAddr>,
    group: &str,
) -> Result<(Seat, ServerConfig, String), JoinError> {
    let (endpoints, query) = hosts.split_once('?').unwrap_or((hosts, ""));
    let endpoints = endpoints.replace("http://", "");
    let query = match query {
        "" => String::new(),
        query => format!("?{query}"),
    };
    let address = format!("etcd://{endpoints}/{group}{query}");
    let place = NodeAddress::parse(&address).and_then(|node| node.place(None));
    let place = place.map_err(|it| JoinError::BadEtcd(it.to_string()))?;
    let own = match own {
        Some(own) => own,
        None => own_address(&endpoints).await.ok_or_else(|| {
            let advice = "give the one at which others reach it with `address`";
            let problem =
                format!("no address of this machine on its way to etcd at {endpoints} is known");
            JoinError::BadEtcd(format!("{problem}; {advice}"))
        })?,
    };
    let server = ServerConfig {
        listen: SocketAddr::new(own, 0).into(),
        bounds: LimitFlags::default().of_door(FILES),
        election: Some(ElectionConfig {
            etcd: (*place.etcd.config).clone(),
            prefix: place.etcd.prefix,
            ttl: TTL,
        }),
        ..ServerConfig::default()
    };
    Ok((Seat::Election, server, address))
}

/// Returns the address of this machine on its way to etcd, where other processes reach it. Loopback only if etcd is there,
/// too, by its name.
async fn own_address(endpoints: &str) -> Option<IpAddr> {
    for endpoint in endpoints.split(',') {
        let is_here = Endpoint::parse(endpoint).is_ok_and(|it| it.is_loopback());
        let Ok(found) = tokio::net::lookup_host(endpoint).await else {
            continue;
        };
        for remote in found {
            let unspecified: IpAddr = match remote {
                SocketAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
                SocketAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
            };
            // To connect a socket of UDP sends nothing.
            let way = || {
                let socket = UdpSocket::bind((unspecified, 0))?;
                socket.connect(remote)?;
                socket.local_addr()
            };
            if let Ok(own) = way()
                && (is_here || !own.ip().is_loopback())
            {
                return Some(own.ip());
            }
        }
    }
    None
}
