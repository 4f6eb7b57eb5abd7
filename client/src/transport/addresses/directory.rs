//! What etcd knows of the servers of a node, asked now and then.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::directory::{self, Servers};
use doorward_etcd::{Config, Place};
use tracing::{debug, info};

use super::Address;

/// The longest that etcd is waited for.
const WAIT_MAX: Duration = Duration::from_secs(2);

/// A node in etcd.
#[derive(Debug)]
pub(super) struct Directory {
    place: Place,
    /// Those that were given beside it.
    given: Vec<Address>,
    /// Of calls to servers.
    timeout: Duration,
    /// The master that was named last, and its epoch.
    master: Option<(String, u64)>,
    /// Addresses that were left since etcd was asked, as long as all of them only had no master.
    /// None: it is to be asked.
    masterless: Option<usize>,
}

/// What etcd answered.
#[derive(Debug)]
pub(super) struct Found {
    /// In the order in which they are to be tried; never none.
    pub(super) addresses: Vec<Address>,
    /// Whether the first of them is a master that was not named before.
    pub(super) is_new_master: bool,
}

impl Directory {
    pub(super) fn new(place: Place, given: Vec<Address>, timeout: Duration) -> Self {
        let mut directory = Self {
            place,
            given,
            timeout,
            master: None,
            masterless: None,
        };
        // Each member of etcd has its part of the time, so that one that hangs is survived.
        let config = &directory.place.etcd.config;
        let members = u32::try_from(config.endpoints.len()).unwrap_or(u32::MAX);
        let call_timeout = config
            .call_timeout
            .min(directory.wait_max() / members.max(1));
        directory.place.etcd.config = Arc::new(Config {
            call_timeout,
            ..Config::clone(config)
        });
        directory
    }

    /// Well below the time that a call has.
    fn wait_max(&self) -> Duration {
        WAIT_MAX.min(self.timeout / 2)
    }

    /// A server that was asked was of no use.
    pub(super) fn note_failure(&mut self, is_masterless: bool) {
        self.masterless = match self.masterless {
            Some(left) if is_masterless => Some(left + 1),
            _ => None,
        };
    }

    /// Next time, etcd is asked in any case.
    pub(super) fn forget(&mut self) {
        self.masterless = None;
    }

    /// Asks etcd. None: so many addresses are known, and one of them is to be asked before.
    pub(super) async fn look_up(&mut self, known: usize) -> Option<Result<Found, String>> {
        if self.masterless.is_some_and(|left| left < known) {
            return None;
        }
        let (config, keys) = (&self.place.etcd.config, self.place.keys());
        let answer = tokio::time::timeout(self.wait_max(), directory::resolve(config, &keys));
        let found = match answer.await {
            Ok(Ok(servers)) => self.found(&servers),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("etcd did not answer within {:?}", self.wait_max())),
        };
        if let Err(problem) = &found {
            debug!(problem, "where the servers are is not known anew");
        }
        Some(found)
    }

    fn found(&mut self, servers: &Servers) -> Result<Found, String> {
        let node = &self.place;
        let nobody = || format!("no server of this node is there: {node}");
        if servers.addresses().is_empty() {
            return Err(nobody());
        }
        let mut addresses: Vec<Address> = Vec::new();
        for text in servers.addresses_and(self.given.iter().map(|given| given.name.as_str())) {
            match Address::parse(&text, self.timeout) {
                Ok(address) => addresses.push(address),
                Err(error) => debug!(%error, "what etcd says is passed over"),
            }
        }
        if addresses.is_empty() {
            return Err(nobody());
        }
        let master = servers.named();
        let is_new_master = master.is_some() && master != self.master;
        if is_new_master {
            let address = master.as_ref().map(|(address, _)| address);
            info!(%node, master = address, "etcd names the master");
        }
        self.master = master;
        self.masterless = Some(0);
        Ok(Found {
            addresses,
            is_new_master,
        })
    }
}
