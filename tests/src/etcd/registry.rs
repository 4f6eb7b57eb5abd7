//! What servers write into etcd, written by hand: their registrations, and the master.

use doorward_etcd::layout::{DEFAULT_PREFIX, NodeKeys};

use crate::etcd::Etcd;

impl Etcd {
    /// The address of a node here. What it takes to be let in is left out.
    pub fn node(&self, node: &str) -> String {
        let members = (0..self.len()).map(|member| self.address(member));
        format!("etcd://{}/{node}", members.collect::<Vec<_>>().join(","))
    }

    /// A server says that it is there.
    pub async fn register(&self, node: &str, address: &str) {
        let value = format!(
            r#"{{"node":"{node}","address":"{address}","server":"{address}","role":"root",
                "level":0,"version":"0.1.0"}}"#
        );
        self.put(&keys(node).server(address), value).await;
    }

    /// A server is not there any more.
    pub async fn unregister(&self, node: &str, address: &str) {
        self.delete(&keys(node).server(address)).await;
    }

    /// A server is the master from now on.
    pub async fn elect(&self, node: &str, address: &str) {
        let value = format!(r#"{{"address":"{address}","server":"{address}"}}"#);
        self.delete(&keys(node).master()).await;
        self.put(&keys(node).master(), value).await;
    }

    /// There is no master any more; it was that of an epoch.
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
