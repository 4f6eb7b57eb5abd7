//! The addresses of the parent's servers: a list, or a node in etcd that is followed.
//!
//! While etcd is away or lists no server, its last list counts. The session chooses the server to ask.

use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::EtcdNode;
use doorward_etcd::directory::Servers;
use doorward_etcd::follow::{Followed, Range};
use doorward_etcd::layout::NodeKeys;
use doorward_session::address::Address;
use tokio::sync::watch;

/// Interval between two reads of etcd while no change is reported. The servers are few.
const LOOK: Duration = Duration::from_secs(3);

/// Wait for the first answer of etcd, before the lack of addresses counts as a problem.
const FIRST_WORD: Duration = Duration::from_secs(3);

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

/// All addresses in the order in which to try them, and the named master with its epoch.
pub(super) type Known = (Arc<[Address]>, Option<(Address, u64)>);

/// Follows the addresses of the servers.
pub(super) struct Addresses {
    given: Arc<[Address]>,
    node: Option<NodeInEtcd>,
}

/// A node in etcd.
struct NodeInEtcd {
    name: String,
    keys: NodeKeys,
    followed: watch::Receiver<Followed>,
}

impl Addresses {
    /// Begins to follow etcd, if it is in use. Must be called within a tokio runtime.
    pub(super) fn new(source: ParentSource) -> Self {
        let node = source.node.map(|place| {
            let keys = place.keys();
            let range = Range::Prefix(keys.prefix().to_owned());
            NodeInEtcd {
                name: place.to_string(),
                keys,
                followed: Followed::start(Arc::clone(&place.etcd.config), range, LOOK),
            }
        });
        Self {
            given: parsed(&source.given),
            node,
        }
    }

    /// Waits for the first answer of etcd, at most [`FIRST_WORD`]. Returns the addresses that are known then.
    pub(super) async fn first(&mut self) -> Known {
        if let Some(node) = &mut self.node {
            let said = |followed: &Followed| followed.view.is_some() || followed.problem.is_some();
            let _said_or_not = tokio::time::timeout(FIRST_WORD, node.followed.wait_for(said)).await;
        }
        let given = Arc::clone(&self.given);
        self.newest().unwrap_or((given, None))
    }

    /// Waits until etcd reports a change. Cancel safe.
    pub(super) async fn changed(&mut self) {
        let Some(node) = &mut self.node else {
            return std::future::pending().await;
        };
        if node.followed.changed().await.is_err() {
            // The follower has ended, which happens when the server ends.
            std::future::pending().await
        }
    }

    /// Returns the present addresses in etcd. None: etcd has not answered, or lists no server.
    pub(super) fn newest(&mut self) -> Option<Known> {
        let node = self.node.as_mut()?;
        let followed = node.followed.borrow_and_update();
        let servers = Servers::of_view(&node.keys, followed.view.as_ref()?);
        if servers.addresses(&[]).is_empty() {
            return None;
        }
        let named = servers.named();
        let named = named.and_then(|(it, epoch)| Some((Address::parse(&it).ok()?, epoch)));
        Some((servers.addresses(&self.given), named))
    }

    /// Returns the reason why no address is known.
    pub(super) fn nobody(&self) -> String {
        let Some(node) = &self.node else {
            return "no address is configured".to_owned();
        };
        let name = &node.name;
        match &node.followed.borrow().problem {
            Some(problem) => format!("where {name} is, is not known: {problem}"),
            None => format!("no server of {name} is there"),
        }
    }
}

/// Returns the valid addresses. Flags were checked before.
fn parsed(texts: &[String]) -> Arc<[Address]> {
    let addresses = texts.iter().filter_map(|text| Address::parse(text).ok());
    addresses.collect()
}
