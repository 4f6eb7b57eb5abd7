//! Where the servers of the parent are: a list, or a node in etcd that is followed.
//!
//! As long as etcd is away, or knows of nobody, what it said last counts. Who of them is asked, the session
//! decides.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::EtcdNode;
use doorward_etcd::directory::Servers;
use doorward_etcd::follow::{Follow, Followed, Range};
use doorward_etcd::layout::NodeKeys;
use doorward_session::address::Address;
use tokio::sync::watch;

/// How often etcd is looked at although it tells nothing. Servers are few.
const LOOK: Duration = Duration::from_secs(3);

/// How long the first word of etcd is waited for before the lack of addresses is a problem.
const FIRST_WORD: Duration = Duration::from_secs(3);

/// Where the servers of the parent are, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ParentSource {
    /// Given one by one, `host:port`.
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
    /// As configured, for people.
    pub(super) fn configured(&self) -> Vec<String> {
        let node = self.node.iter().map(ToString::to_string);
        node.chain(self.given.iter().cloned()).collect()
    }
}

/// What is known of where the servers are: all, in the order in which to try them, and who is named as the
/// master, with its epoch.
pub(super) type Known = (Arc<[Address]>, Option<(Address, u64)>);

/// Follows where the servers are.
pub(super) struct Addresses {
    given: Vec<String>,
    node: Option<NodeInEtcd>,
}

/// A node in etcd.
struct NodeInEtcd {
    name: String,
    keys: NodeKeys,
    followed: watch::Receiver<Followed>,
    _follow: Follow,
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses")
            .field("given", &self.given)
            .finish_non_exhaustive()
    }
}

impl Addresses {
    /// Begins to follow etcd, if it is in use. Must be called within a tokio runtime.
    pub(super) fn new(source: ParentSource) -> Self {
        let node = source.node.map(|place| {
            let keys = place.keys();
            let range = Range::Prefix(keys.prefix().to_owned());
            let follow = Follow::start(Arc::clone(&place.etcd.config), range, LOOK);
            NodeInEtcd {
                name: place.to_string(),
                keys,
                followed: follow.receiver(),
                _follow: follow,
            }
        });
        Self {
            given: source.given,
            node,
        }
    }

    /// Those that were given.
    pub(super) fn given(&self) -> Arc<[Address]> {
        parsed(self.given.iter().map(String::as_str))
    }

    /// Waits until etcd has said something, but not for long.
    pub(super) async fn ready(&mut self) {
        if let Some(node) = &mut self.node {
            let said = |followed: &Followed| followed.view.is_some() || followed.problem.is_some();
            let _said_or_not = tokio::time::timeout(FIRST_WORD, node.followed.wait_for(said)).await;
        }
    }

    /// Waits until etcd says something else. Cancel safe.
    pub(super) async fn changed(&mut self) {
        let Some(node) = &mut self.node else {
            return std::future::pending().await;
        };
        if node.followed.changed().await.is_err() {
            // Nobody follows any more, which is when the server ends.
            std::future::pending().await
        }
    }

    /// What etcd says now. None: nothing, or of nobody.
    pub(super) fn newest(&mut self) -> Option<Known> {
        let node = self.node.as_mut()?;
        let followed = node.followed.borrow_and_update();
        let servers = Servers::of_view(&node.keys, followed.view.as_ref()?);
        if servers.addresses().is_empty() {
            return None;
        }
        let all = servers.addresses_and(self.given.iter().map(String::as_str));
        let named = servers
            .named()
            .and_then(|(address, epoch)| Some((Address::parse(&address).ok()?, epoch)));
        Some((parsed(all.iter().map(String::as_str)), named))
    }

    /// Why no address is known.
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

/// What is no address is nobody's: flags were checked, and what stands in etcd may be anything.
fn parsed<'a>(texts: impl Iterator<Item = &'a str>) -> Arc<[Address]> {
    texts.filter_map(|text| Address::parse(text).ok()).collect()
}
