//! The directory: servers of a node that etcd lists, read when the client has to find a server.
//!
//! No connection to etcd stays open. The client reads it no more often than its backoff allows.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::directory::{self, Servers};
use doorward_etcd::{EtcdConfig, EtcdNode};
use doorward_session::address::Address;
use doorward_session::master_finder::{MasterFinder, in_order};
use tracing::{debug, info};

/// Longest wait for etcd.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A node in etcd.
#[derive(Debug)]
pub(crate) struct Directory {
    place: EtcdNode,
    /// Addresses that were given in addition.
    given: Arc<[Address]>,
    /// Timeout of calls to servers.
    timeout: Duration,
}

impl Directory {
    pub(super) fn new(place: EtcdNode, given: Arc<[Address]>, timeout: Duration) -> Self {
        let mut directory = Self {
            place,
            given,
            timeout,
        };
        // Each member of etcd gets an equal part of the time, so that one that hangs does no harm.
        let config = &directory.place.etcd.config;
        let members = u32::try_from(config.endpoints.len()).unwrap_or(u32::MAX);
        let call_timeout = config
            .call_timeout
            .min(directory.wait_max() / members.max(1));
        directory.place.etcd.config = Arc::new(EtcdConfig {
            call_timeout,
            ..EtcdConfig::clone(config)
        });
        directory
    }

    /// Returns the longest wait for etcd, well below the time of a call.
    fn wait_max(&self) -> Duration {
        WAIT_MAX.min(self.timeout / 2)
    }

    /// Reads etcd, and updates the finder.
    ///
    /// # Errors
    ///
    /// If etcd does not answer, or lists no server.
    pub(crate) async fn look_up(&self, finder: &mut MasterFinder) -> Result<(), String> {
        let (config, keys) = (&self.place.etcd.config, self.place.keys());
        let answer = tokio::time::timeout(self.wait_max(), directory::resolve(config, &keys));
        let found = match answer.await {
            Ok(Ok(servers)) => self.hand_over(&servers, finder),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("etcd did not answer within {:?}", self.wait_max())),
        };
        if let Err(problem) = &found {
            debug!(problem, "cannot read the servers of the node from etcd");
        }
        found
    }

    fn hand_over(&self, servers: &Servers, finder: &mut MasterFinder) -> Result<(), String> {
        let node = &self.place;
        let master = servers
            .named()
            .and_then(|(address, epoch)| Some((parse(&address)?, epoch)));
        let named = master.as_ref().map(|(address, _)| address);
        let there: Vec<Address> = servers
            .servers
            .iter()
            .filter_map(|server| parse(&server.address))
            .collect();
        if there.is_empty() && named.is_none() {
            return Err(format!("etcd lists no server of {node}"));
        }
        let known = in_order(named, &there, self.given.iter());
        let address = named.cloned();
        if finder.handle_addresses(known, master)
            && let Some(master) = address
        {
            info!(%node, %master, "etcd names the master");
        }
        Ok(())
    }
}

/// Parses an address from etcd, which may be anything.
fn parse(address: &str) -> Option<Address> {
    let parsed = super::parse(address, false);
    if let Err(error) = &parsed {
        debug!(%error, "ignoring an invalid address in etcd");
    }
    parsed.ok()
}
