//! Starts that are a mistake: each would work, but not as the operator wants. The server refuses them, and tells the
//! remedy.
//!
//! - A shell in which an operator works has [`ENDPOINTS`] for the command line. A server that is started there for a
//!   trial would become a candidate of production. So servers have a variable of their own, and a server with only the
//!   other one refuses to start.
//! - Other servers and clients find a candidate under the address that it writes to etcd. An address on loopback means
//!   another machine to every reader elsewhere; so does an address that means any.

use std::ffi::OsStr;
use std::net::SocketAddr;

use doorward_etcd::config::{Endpoint, is_loopback};
use doorward_etcd::flags::{ENDPOINTS, EtcdFlags, SERVER_ENDPOINTS};

/// Whether the endpoints are those of a server. `of_command_line` is the value of [`ENDPOINTS`].
///
/// # Errors
///
/// If only the command line has any.
pub fn check_endpoints(flags: &EtcdFlags, of_command_line: Option<&OsStr>) -> Result<(), String> {
    let has_others = of_command_line.is_some_and(|value| !value.is_empty());
    if flags.endpoints.is_empty() && has_others {
        return Err(format!(
            "{ENDPOINTS} is set, which is for the command line; to make this server a candidate that is elected in \
             that etcd, set {SERVER_ENDPOINTS} (or give --etcd-endpoints); to start one of its own, unset {ENDPOINTS}"
        ));
    }
    Ok(())
}

/// Whether others find a candidate under the address that it advertises, or else listens on.
///
/// # Errors
///
/// If they do not.
pub fn check_address(
    advertise: Option<&str>,
    listen: SocketAddr,
    endpoints: &[Endpoint],
) -> Result<(), String> {
    let address = advertise.map_or_else(|| listen.to_string(), str::to_owned);
    let anywhere = address.parse::<SocketAddr>();
    if anywhere.is_ok_and(|address| address.ip().is_unspecified()) {
        return Err(format!(
            "candidates tell each other and their clients where they are, and {address} is anywhere: give --advertise \
             with an address that they reach"
        ));
    }
    let elsewhere = endpoints.iter().find(|endpoint| !endpoint.is_loopback());
    match elsewhere {
        Some(endpoint) if is_loopback(&address) => Err(format!(
            "{address} is on loopback, where only this machine reaches it, and etcd is elsewhere, at {endpoint}: \
             candidates and clients on other machines would be sent to themselves; give --advertise with an address \
             that they reach, and --listen to serve there"
        )),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests;
