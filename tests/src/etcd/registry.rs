//! Entries of servers in etcd, written by hand: their registrations, and the master.

use doorward_etcd::layout::{DEFAULT_PREFIX, NodeKeys};

use crate::etcd::Etcd;

impl Etcd {
    /// Returns the address of a node in this etcd, without credentials.
    pub fn node(&self, node: &str) -> String {
        let members = (0..self.len()).map(|member| self.address(member));
        format!("etcd://{}/{node}", members.collect::<Vec<_>>().join(","))
    }

    /// Registers a server.
    pub async fn register(&self, node: &str, address: &str) {
        let value = format!(
            r#"{{"node":"{node}","address":"{address}","server":"{address}","role":"root",
                "level":0,"version":"0.1.0"}}"#
        );
        self.put(&keys(node).server(address), value).await;
    }

    /// Removes the registration of a server.
    pub async fn unregister(&self, node: &str, address: &str) {
        self.delete(&keys(node).server(address)).await;
    }

    /// Makes a server the master.
    pub async fn elect(&self, node: &str, address: &str) {
        let value = format!(r#"{{"address":"{address}","server":"{address}"}}"#);
        self.delete(&keys(node).master()).await;
        self.put(&keys(node).master(), value).await;
    }

    /// Removes the master of an epoch.
    pub async fn depose(&self, node: &str, address: &str, epoch: u64) {
        let value = format!(
            r#"{{"epoch":{epoch},"address":"{address}","server":"{address}","length_ms":5000,
                "resigned":true}}"#
        );
        self.put(&keys(node).term(), value).await;
        self.delete(&keys(node).master()).await;
    }
}

fn keys(node: &str) -> NodeKeys {
    NodeKeys::new(DEFAULT_PREFIX, node)
}
