//! Where the servers of a node are, and which of them is the master.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use etcd_client::{Client, Compare, CompareOp, GetOptions, Txn, TxnOp};
use serde::{Deserialize, Serialize};

use crate::config::EtcdConfig;
use crate::connection::EtcdConnection;
use crate::error::Error;
use crate::follow::{KeyEntry, RangeView};
use crate::layout::NodeKeys;

/// The value of a node's master key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MasterKey {
    /// The master.
    #[serde(flatten)]
    pub master: Master,
    /// Its epoch is the revision at which the key came to be, and this. Not 0 only after etcd was set
    /// up anew, or restored from a backup: its revisions go back then, and epochs must not.
    #[serde(default)]
    pub epoch_offset: u64,
}

/// The master of a node.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Master {
    /// Its address, `host:port`.
    pub address: String,
    /// Which process it is: another one each time a server starts.
    pub server: String,
}

/// The value of a node's term key: a mastership, as its master last confirmed it. The key stays when the mastership
/// is over, so that a successor knows until which time its predecessor may believe in it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TermRecord {
    /// The epoch: see [`MasterKey::epoch_offset`].
    pub epoch: u64,
    /// The master's address.
    pub address: String,
    /// Which process it is.
    pub server: String,
    /// Longest time for which the master may believe in it without another confirmation.
    pub length_ms: u64,
    /// The master has given it up, and decides nothing any more.
    pub resigned: bool,
    /// Lengths of the leases that may be out. Only the root has it: below it the parent tells how long
    /// leases last that it granted. Absent: a server of an older version wrote it, or one with a
    /// parent. Such a server passes it over, and leaves it out of what it writes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub leases: Option<LeaseLengths>,
    /// The master wrote the node's key `outstanding` together with this term. That key ends later than the mastership
    /// and all leases that are out: if it is gone, a server that has just started neither waits nor learns. Absent,
    /// or false: a server of the previous release wrote the term, or leases last longer than a year. Then nothing is
    /// known by that key. The previous release passes this field and that key over, waits and learns, and leaves the
    /// field out of what it writes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub outstanding: bool,
}

/// Lengths of leases that a master may have granted, for a successor with other templates, or one that learns while
/// leases of former templates last.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LeaseLengths {
    /// Which lease lengths are in force: the same text for the same templates, whatever else they say.
    pub templates: String,
    /// Longest lease length.
    pub longest_ms: u64,
    /// Longest rest of leases from former templates that gave longer ones. Absent, or 0: there are none.
    #[serde(default)]
    pub older_ms: u64,
}

/// A server's place in the tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Role {
    /// It has no parent.
    Root,
    /// It has a parent, and child servers.
    Regional,
    /// It has a parent, and no child servers.
    Leaf,
}

impl Role {
    /// `root`, `regional` or `leaf`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Root => "root",
            Self::Regional => "regional",
            Self::Leaf => "leaf",
        }
    }
}

/// A server's entry about itself, under its own key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Registration {
    /// Its node.
    pub node: String,
    /// Where it serves gRPC, `host:port`.
    pub address: String,
    /// Where its pages are, if they are anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub http_address: Option<String>,
    /// Which process it is.
    pub server: String,
    /// Its place in the tree, as far as it knows.
    pub role: Role,
    /// Number of nodes above its own; absent as long as the server does not know it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub level: Option<u32>,
    /// The highest epoch of the node that it has seen: should etcd be restored from a backup, a master
    /// that does not remember it finds it here. Absent: it has seen none, or is of an older version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub highest_epoch: Option<u64>,
    /// Its version.
    pub version: String,
}

/// The servers of a node, as etcd has them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Servers {
    /// The master, and its epoch.
    pub master: Option<(Master, u64)>,
    /// Its last mastership, if there ever was one.
    pub term: Option<TermRecord>,
    /// All registered servers, by address.
    pub servers: Vec<Registration>,
}

impl Servers {
    /// Reads the values of a node's keys. It skips values that it cannot parse: other programs wrote them.
    pub fn of_view(keys: &NodeKeys, view: &RangeView) -> Self {
        let master = view.entries.get(&keys.master()).and_then(|entry| {
            let created = u64::try_from(entry.create_revision).ok()?;
            let MasterKey {
                master,
                epoch_offset,
            } = parse(entry)?;
            Some((master, created.saturating_add(epoch_offset)))
        });
        let prefix = keys.servers();
        let registered = view
            .entries
            .iter()
            .filter(|(key, _)| key.starts_with(&prefix));
        Self {
            master,
            term: view.entries.get(&keys.term()).and_then(parse),
            servers: registered.filter_map(|(_, entry)| parse(entry)).collect(),
        }
    }

    /// Where to ask: the master first, then the others.
    pub fn addresses(&self) -> Vec<String> {
        let master = self.master.iter().map(|(master, _)| &master.address);
        let mut addresses: Vec<String> = Vec::with_capacity(self.servers.len() + 1);
        for address in master.chain(self.servers.iter().map(|server| &server.address)) {
            if !addresses.contains(address) {
                addresses.push(address.clone());
            }
        }
        addresses
    }

    /// Returns the addresses to ask, in turn: [`Self::addresses`], then the additional ones in `given`.
    pub fn addresses_and<'a>(&self, given: impl IntoIterator<Item = &'a str>) -> Vec<String> {
        let mut addresses = self.addresses();
        for address in given {
            if !addresses.iter().any(|known| known == address) {
                addresses.push(address.to_owned());
            }
        }
        addresses
    }

    /// Where the pages of the server at that address are, if it says so.
    pub fn pages_of(&self, address: &str) -> Option<String> {
        let mut servers = self.servers.iter();
        let server = servers.find(|server| server.address == address)?;
        server.http_address.clone()
    }

    /// Where the master is, and its epoch. Another one than before: a mastership that is new.
    pub fn named(&self) -> Option<(String, u64)> {
        let master = self.master.as_ref();
        master.map(|(master, epoch)| (master.address.clone(), *epoch))
    }
}

fn parse<T: for<'a> Deserialize<'a>>(entry: &KeyEntry) -> Option<T> {
    serde_json::from_slice(&entry.value).ok()
}

/// Asks once for the servers of a node.
///
/// # Errors
///
/// If none of the endpoints answers.
pub async fn resolve(config: &Arc<EtcdConfig>, keys: &NodeKeys) -> Result<Servers, Error> {
    let view = look(config, keys.prefix()).await?;
    Ok(Servers::of_view(keys, &view))
}

/// Asks once for the servers of all nodes under a prefix, by the node's name.
///
/// # Errors
///
/// If none of the endpoints answers.
pub async fn resolve_all(
    config: &Arc<EtcdConfig>,
    prefix: &str,
) -> Result<BTreeMap<String, Servers>, Error> {
    let under = format!("{}/", prefix.trim_end_matches('/'));
    let view = look(config, &under).await?;
    let mut views: BTreeMap<String, RangeView> = BTreeMap::new();
    for (key, entry) in view.entries {
        let node = key.strip_prefix(&under).and_then(|key| key.split_once('/'));
        if let Some((node, _)) = node {
            let node = name_of(node);
            views.entry(node).or_default().entries.insert(key, entry);
        }
    }
    let servers = views.into_iter().map(|(node, view)| {
        let servers = Servers::of_view(&NodeKeys::new(prefix, &node), &view);
        (node, servers)
    });
    // A node without any key of ours is no node.
    Ok(servers
        .filter(|(_, servers)| *servers != Servers::default())
        .collect())
}

/// Result of forgetting a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Forgotten {
    /// Nothing of it is left.
    Done,
    /// There is nothing of it.
    Unknown,
    /// It has a server or a master: nothing was done.
    InUse,
    /// Its last master may believe in its mastership for so long yet: nothing was done. Wait, and
    /// forget the term as it is then.
    MayBeBelieved(Duration, TermRecord),
}

/// Removes what is left of a node that has no server and no master: its last term. `over` is a term that is known to
/// be over, although its master did not resign.
///
/// # Errors
///
/// If none of the endpoints answers, or etcd says no. It may have been done then.
pub async fn forget(
    config: &Arc<EtcdConfig>,
    keys: &NodeKeys,
    over: Option<&TermRecord>,
) -> Result<Forgotten, Error> {
    let view = look(config, keys.prefix()).await?;
    let servers = keys.servers();
    let is_used = |key: &String| *key == keys.master() || key.starts_with(&servers);
    if view.entries.keys().any(is_used) {
        return Ok(Forgotten::InUse);
    }
    let Some(entry) = view.entries.get(&keys.term()) else {
        return Ok(Forgotten::Unknown);
    };
    // Another program wrote a value that cannot be parsed: no list of nodes has it, either.
    let Some(term) = parse::<TermRecord>(entry) else {
        return Ok(Forgotten::Unknown);
    };
    if !term.resigned && over != Some(&term) {
        let length = Duration::from_millis(term.length_ms);
        return Ok(Forgotten::MayBeBelieved(length, term));
    }
    // All is as it was looked at, or nothing is done.
    let guards = [
        Compare::create_revision(keys.master(), CompareOp::Equal, 0),
        Compare::create_revision(servers, CompareOp::Equal, 0).with_prefix(),
        Compare::mod_revision(keys.term(), CompareOp::Equal, entry.mod_revision),
    ];
    let txn = Txn::new()
        .when(guards)
        .and_then([TxnOp::delete(keys.term(), None)]);
    let mut connection = EtcdConnection::new(Arc::clone(config));
    let answer = connection
        .call("forget", async move |client: &mut Client| {
            client.txn(txn).await
        })
        .await?;
    Ok(if answer.succeeded() {
        Forgotten::Done
    } else {
        Forgotten::InUse
    })
}

/// Reads all keys that begin so, at whichever endpoint answers.
async fn look(config: &Arc<EtcdConfig>, prefix: &str) -> Result<RangeView, Error> {
    let mut connection = EtcdConnection::new(Arc::clone(config));
    let mut attempts = connection.endpoints().max(1);
    loop {
        let prefix = prefix.to_owned();
        let answer = connection
            .call("get", async move |client: &mut Client| {
                client
                    .get(prefix, Some(GetOptions::new().with_prefix()))
                    .await
            })
            .await;
        attempts -= 1;
        match answer {
            Ok(answer) => return Ok(RangeView::of_answer(&answer)),
            Err(error) if attempts == 0 => return Err(error),
            Err(_) => {}
        }
    }
}

/// The name of a node as it stands in keys, read back.
fn name_of(key: &str) -> String {
    key.replace("%2F", "/").replace("%25", "%")
}

#[cfg(test)]
mod tests;
