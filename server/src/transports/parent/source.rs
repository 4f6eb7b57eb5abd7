//! The addresses of the parent's servers, as configured.

use std::sync::Arc;

use doorward_etcd::EtcdNode;
use doorward_session::address::Address;

/// Addresses of the parent's servers, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentSource {
    /// Addresses that were given one by one, `host:port`.
    pub given: Vec<String>,
    /// The parent's node in etcd.
    pub node: Option<EtcdNode>,
}

impl From<Vec<String>> for ParentSource {
    fn from(given: Vec<String>) -> Self {
        Self { given, node: None }
    }
}

impl ParentSource {
    /// Returns the addresses that are known at the start: none, if they are in etcd.
    pub(super) fn known_at_start(&self) -> Arc<[Address]> {
        match self.node {
            Some(_) => Arc::default(),
            None => parsed(&self.given),
        }
    }

    /// Returns the configuration, for people.
    pub(super) fn configured(&self) -> Vec<String> {
        let node = self.node.iter().map(ToString::to_string);
        node.chain(self.given.iter().cloned()).collect()
    }
}

/// Returns the valid addresses. Flags were checked before.
pub(super) fn parsed(texts: &[String]) -> Arc<[Address]> {
    let addresses = texts.iter().filter_map(|text| Address::parse(text).ok());
    addresses.collect()
}
