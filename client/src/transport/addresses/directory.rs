//! What etcd knows of the servers of a node, asked when the client has to find a server anew.
//!
//! No connection to etcd stays open, and it is asked as often as the client's backoff lets it try.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::directory::{self, Servers};
use doorward_etcd::{EtcdConfig, EtcdNode};
use doorward_session::address::Address;
use doorward_session::master_finder::{MasterFinder, in_order};
use tracing::{debug, info};

/// The longest that etcd is waited for.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A node in etcd.
#[derive(Debug)]
pub(crate) struct Directory {
    place: EtcdNode,
    /// Those that were given beside it.
    given: Arc<[Address]>,
    /// Of calls to servers.
    timeout: Duration,
}

impl Directory {
    pub(super) fn new(place: EtcdNode, given: Arc<[Address]>, timeout: Duration) -> Self {
        let mut directory = Self {
            place,
            given,
            timeout,
        };
        // Each member of etcd has its part of the time, so that one that hangs is survived.
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

    /// Well below the time that a call has.
    fn wait_max(&self) -> Duration {
        WAIT_MAX.min(self.timeout / 2)
    }

    /// Asks etcd, and hands the finder what it says.
    ///
    /// # Errors
    ///
    /// If etcd does not answer, or knows of nobody.
    pub(crate) async fn look_up(&self, finder: &mut MasterFinder) -> Result<(), String> {
        let (config, keys) = (&self.place.etcd.config, self.place.keys());
        let answer = tokio::time::timeout(self.wait_max(), directory::resolve(config, &keys));
        let found = match answer.await {
            Ok(Ok(servers)) => self.hand_over(&servers, finder),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("etcd did not answer within {:?}", self.wait_max())),
        };
        if let Err(problem) = &found {
            debug!(problem, "where the servers are is not known anew");
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
            return Err(format!("no server of this node is there: {node}"));
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

/// Anything may stand in etcd.
fn parse(address: &str) -> Option<Address> {
    let parsed = super::parse(address);
    if let Err(error) = &parsed {
        debug!(%error, "what etcd says is passed over");
    }
    parsed.ok()
}
