//! Where the servers of a node are, and which of them is the master.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_session::address::Address;
pub use doorward_session::candidate::records::{
    LeaseLengths, Master, Registration, Role, StepDown, TermRecord, TreePlace,
};
use doorward_session::master_finder::in_order;
use etcd_client::{Client, Compare, CompareOp, GetOptions, PutOptions, Txn, TxnOp};
use serde::Deserialize;

use crate::config::EtcdConfig;
use crate::connection::EtcdConnection;
use crate::error::Error;
use crate::follow::{KeyEntry, RangeView};
use crate::layout::NodeKeys;

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
            let master: Master = parse(entry)?;
            let epoch = created.saturating_add(master.epoch_offset);
            Some((master, epoch))
        });
        let prefix = keys.servers();
        let entries = view.entries.iter();
        let registered = entries.filter(|(key, _)| key.starts_with(&prefix));
        Self {
            master,
            term: view.entries.get(&keys.term()).and_then(parse),
            servers: registered.filter_map(|(_, entry)| parse(entry)).collect(),
        }
    }

    /// Returns the addresses to ask, in turn: the master's, those of the others, and those in `given`. Values that are no
    /// addresses do not count: other programs wrote them.
    pub fn addresses(&self, given: &[Address]) -> Arc<[Address]> {
        let parse = |address: &str| Address::parse(address).ok();
        let master = self.master.as_ref();
        let master = master.and_then(|(master, _)| parse(&master.address));
        let servers = self.servers.iter().filter_map(|it| parse(&it.address));
        in_order(master.as_ref(), &servers.collect::<Vec<_>>(), given)
    }

    /// Where the master is, and its epoch. Another one than before: a mastership that is new.
    pub fn named(&self) -> Option<(String, u64)> {
        let master = self.master.as_ref();
        master.map(|(master, epoch)| (master.address.to_string(), *epoch))
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
    let nodes = servers.filter(|(_, servers)| *servers != Servers::default());
    Ok(nodes.collect())
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
    /// Its last master may believe in its mastership for the length of this term yet, so nothing was done. Wait for
    /// that long, and forget the term as it is then.
    MayBeBelieved(TermRecord),
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
        return Ok(Forgotten::MayBeBelieved(term));
    }
    // All is as it was looked at, or nothing is done.
    let guards = [
        Compare::create_revision(keys.master(), CompareOp::Equal, 0),
        Compare::create_revision(servers, CompareOp::Equal, 0).with_prefix(),
        Compare::mod_revision(keys.term(), CompareOp::Equal, entry.mod_revision),
    ];
    let delete = TxnOp::delete(keys.term(), None);
    let txn = Txn::new().when(guards).and_then([delete]);
    let mut connection = EtcdConnection::new(Arc::clone(config));
    Ok(match connection.txn("forget", txn).await?.succeeded() {
        true => Forgotten::Done,
        false => Forgotten::InUse,
    })
}

/// Reads all keys that begin so, at whichever endpoint answers.
async fn look(config: &Arc<EtcdConfig>, prefix: &str) -> Result<RangeView, Error> {
    let mut connection = EtcdConnection::new(Arc::clone(config));
    let mut attempts = connection.endpoints().max(1);
    loop {
        let all = GetOptions::new().with_prefix();
        let answer = connection.get("get", prefix, Some(all)).await;
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

/// Result of a request that the master of a node steps down.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SteppedDown {
    /// Another server is the master, with this epoch.
    Done {
        /// The master.
        master: Master,
        /// Its epoch.
        epoch: u64,
        /// The master before.
        before: Master,
    },
    /// The node has no master.
    NoMaster,
    /// This master has no other server beside it: nothing was done.
    IsAlone(Master),
    /// No other server has become the master in time. This one may be of the previous release.
    Late(Master),
}

/// Time between two looks for the new master.
const LOOK: Duration = Duration::from_millis(50);

/// Asks the master of a node to step down, and waits until another server is the master, for `patience` at most. The
/// request ends then.
///
/// # Errors
///
/// If none of the endpoints answers, or etcd says no. The master may step down all the same.
pub async fn step_down(
    config: &Arc<EtcdConfig>,
    keys: &NodeKeys,
    patience: Duration,
) -> Result<SteppedDown, Error> {
    let servers = resolve(config, keys).await?;
    let Some((before, epoch)) = servers.master else {
        return Ok(SteppedDown::NoMaster);
    };
    let mut servers = servers.servers.iter();
    if servers.all(|it| it.address == before.address) {
        return Ok(SteppedDown::IsAlone(before));
    }
    let mut connection = EtcdConnection::new(Arc::clone(config));
    let seconds = patience.as_secs().saturating_add(1);
    let ttl = i64::try_from(seconds).unwrap_or(i64::MAX);
    let grant = async |client: &mut Client| client.lease_grant(ttl, None).await;
    let lease = connection.call("grant a lease", grant).await?.id();
    // A number as data can always be written.
    let request = serde_json::to_vec(&StepDown { epoch }).unwrap_or_default();
    let (key, options) = (keys.step_down(), PutOptions::new().with_lease(lease));
    let put = async |client: &mut Client| client.put(key, request, Some(options)).await;
    connection.call("ask to step down", put).await?;
    let successor = async {
        loop {
            tokio::time::sleep(LOOK).await;
            let master = resolve(config, keys).await?.master;
            if let Some(found) = master.filter(|(_, found)| *found != epoch) {
                return Ok::<_, Error>(found);
            }
        }
    };
    let result = match tokio::time::timeout(patience, successor).await {
        Ok(found) => found.map(|(master, epoch)| SteppedDown::Done {
            master,
            epoch,
            before,
        }),
        Err(_) => Ok(SteppedDown::Late(before)),
    };
    // If this fails, the lease ends by itself.
    let revoke = async |client: &mut Client| client.lease_revoke(lease).await;
    let _ = connection.call("revoke a lease", revoke).await;
    result
}
