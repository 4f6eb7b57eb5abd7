//! Where the servers of the parent are: a list, or a node in etcd that is followed.
//!
//! Addresses are tried in turn. Of a node in etcd, a master that was not named before comes first,
//! whoever's turn it was; then the node's other servers, then the addresses that were given beside
//! it. As long as etcd is away, or knows of nobody, what it said last counts.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::Place;
use doorward_etcd::directory::Servers;
use doorward_etcd::follow::{Follow, Followed, Range};
use doorward_etcd::layout::NodeKeys;
use doorward_proto::doorman as wire;
use tokio::sync::watch;

/// How often etcd is looked at although it tells nothing. Servers are few.
const LOOK: Duration = Duration::from_secs(3);

/// How long the first word of etcd is waited for before the lack of addresses is a problem.
const FIRST_WORD: Duration = Duration::from_secs(3);

/// Where the servers of the parent are, as configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Given one by one, `host:port`.
    pub given: Vec<String>,
    /// The parent's node in etcd.
    pub node: Option<Place>,
}

impl From<Vec<String>> for Source {
    fn from(given: Vec<String>) -> Self {
        Self { given, node: None }
    }
}

impl Source {
    /// As configured, for people.
    pub(super) fn told(&self) -> Vec<String> {
        let node = self.node.iter().map(ToString::to_string);
        node.chain(self.given.iter().cloned()).collect()
    }
}

/// Addresses in turn.
pub(super) struct Addresses {
    given: Vec<String>,
    node: Option<Node>,
    /// In the order in which they are tried.
    known: Vec<String>,
    turn: usize,
}

/// A node in etcd.
struct Node {
    name: String,
    keys: NodeKeys,
    followed: watch::Receiver<Followed>,
    /// The master that was named last, and its epoch.
    master: Option<(String, u64)>,
    _follow: Follow,
}

impl fmt::Debug for Addresses {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Addresses")
            .field("known", &self.known)
            .field("turn", &self.turn)
            .finish_non_exhaustive()
    }
}

impl Addresses {
    /// Begins to follow etcd, if it is in use. Must be called within a tokio runtime.
    pub(super) fn new(source: Source) -> Self {
        let node = source.node.map(|place| {
            let keys = place.keys();
            let range = Range::Prefix(keys.prefix().to_owned());
            let follow = Follow::start(Arc::clone(&place.etcd.config), range, LOOK);
            Node {
                name: place.to_string(),
                keys,
                followed: follow.receiver(),
                master: None,
                _follow: follow,
            }
        });
        Self {
            known: source.given.clone(),
            given: source.given,
            node,
            turn: 0,
        }
    }

    /// Waits until etcd has said something, but not for long.
    pub(super) async fn ready(&mut self) {
        if let Some(node) = &mut self.node {
            let said = |followed: &Followed| followed.view.is_some() || followed.problem.is_some();
            let _said_or_not = tokio::time::timeout(FIRST_WORD, node.followed.wait_for(said)).await;
        }
    }

    /// The address whose turn it is.
    ///
    /// # Errors
    ///
    /// If none is known; says why.
    pub(super) fn next(&mut self) -> Result<String, String> {
        self.take_in();
        match (self.known.get(self.turn), &self.node) {
            (Some(address), _) => Ok(address.clone()),
            (None, Some(node)) => Err(node.nobody()),
            (None, None) => Err("no address is configured".to_owned()),
        }
    }

    /// The address whose turn it was is of no use: next time, the next one.
    pub(super) fn leave(&mut self) {
        self.turn = (self.turn + 1) % self.known.len().max(1);
    }

    /// How many addresses are known beside the one whose turn it is.
    pub(super) fn others(&self) -> u32 {
        u32::try_from(self.known.len().saturating_sub(1)).unwrap_or(u32::MAX)
    }

    /// Waits until there is somebody to ask whom nobody knew before: a master that was not named,
    /// or the first server at all.
    pub(super) async fn somebody_new(&mut self) {
        let Some(node) = &mut self.node else {
            return std::future::pending().await;
        };
        let (keys, master, is_new) = (&node.keys, &node.master, self.known.is_empty());
        let waiting = node.followed.wait_for(|followed| {
            let servers = servers_of(keys, followed);
            let named = servers.named();
            (named.is_some() && named != *master) || (is_new && !servers.addresses().is_empty())
        });
        if waiting.await.is_err() {
            // Nobody follows any more, which is when the server ends.
            std::future::pending().await
        }
    }

    /// Waits until etcd names a master that was not named before, and that is not at this address.
    /// Returns what that says of the mastership; of its epoch the master will tell itself.
    pub(super) async fn moved_from(&mut self, address: &str) -> wire::Mastership {
        loop {
            self.somebody_new().await;
            self.take_in();
            let master = self.node.as_ref().and_then(|node| node.master.as_ref());
            if let Some((master, _)) = master
                && master != address
            {
                return wire::Mastership {
                    master_address: Some(master.clone()),
                    epoch: None,
                };
            }
        }
    }

    /// What etcd says now.
    fn take_in(&mut self) {
        let Some(node) = &mut self.node else {
            return;
        };
        let servers = servers_of(&node.keys, &node.followed.borrow_and_update());
        if servers.addresses().is_empty() {
            return;
        }
        let known = servers.addresses_and(self.given.iter().map(String::as_str));
        let named = servers.named();
        let is_new_master = named.is_some() && named != node.master;
        node.master = named;
        self.turn = if is_new_master {
            0
        } else {
            self.turn % known.len()
        };
        self.known = known;
    }
}

impl Node {
    /// Why no address is known.
    fn nobody(&self) -> String {
        let name = &self.name;
        match &self.followed.borrow().problem {
            Some(problem) => format!("where {name} is, is not known: {problem}"),
            None => format!("no server of {name} is there"),
        }
    }
}

fn servers_of(keys: &NodeKeys, followed: &Followed) -> Servers {
    let view = followed.view.as_ref();
    view.map(|view| Servers::of_view(keys, view))
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use doorward_clock::Instant;
    use doorward_etcd::config::{Config, Endpoint};
    use doorward_etcd::follow::{Entry, View};
    use futures_util::FutureExt;

    use super::*;

    /// The addresses of a node of which etcd says what the test says.
    struct Fixture {
        addresses: Addresses,
        followed: watch::Sender<Followed>,
        keys: NodeKeys,
    }

    fn fixture(given: &[&str]) -> Fixture {
        let nothing = Followed {
            view: None,
            heard_at: Instant::now(),
            problem: None,
        };
        let (sender, followed) = watch::channel(nothing);
        let keys = NodeKeys::new("/p", "eu");
        // Nobody is there, and nobody asks.
        let config = Arc::new(Config::new(vec![Endpoint::parse("127.0.0.1:1").unwrap()]));
        let follow = Follow::start(config, Range::Key("none".to_owned()), LOOK);
        let node = Node {
            name: "etcd://e:1/eu".to_owned(),
            keys: keys.clone(),
            followed,
            master: None,
            _follow: follow,
        };
        let given: Vec<String> = given.iter().map(|a| (*a).to_owned()).collect();
        Fixture {
            addresses: Addresses {
                known: given.clone(),
                given,
                node: Some(node),
                turn: 0,
            },
            followed: sender,
            keys,
        }
    }

    impl Fixture {
        /// etcd has these servers, and perhaps a master with its epoch.
        fn says(&self, servers: &[&str], master: Option<(&str, i64)>) {
            let entry = |value: String, revision| Entry {
                value: value.into_bytes(),
                create_revision: revision,
                mod_revision: revision,
                lease: 0,
                seen_at: Instant::now(),
            };
            let mut entries = BTreeMap::new();
            for address in servers {
                let value = format!(
                    r#"{{"node":"eu","address":"{address}","server":"s","role":"root","version":"1"}}"#
                );
                entries.insert(self.keys.server(address), entry(value, 1));
            }
            if let Some((address, epoch)) = master {
                let value = format!(r#"{{"address":"{address}","server":"s"}}"#);
                entries.insert(self.keys.master(), entry(value, epoch));
            }
            let view = View {
                entries,
                revision: 1,
            };
            self.followed
                .send_modify(|followed| followed.view = Some(Arc::new(view)));
        }

        /// The addresses that are tried, one failing after the other.
        fn tries(&mut self, count: usize) -> Vec<String> {
            let mut tried = Vec::new();
            for _ in 0..count {
                tried.push(self.addresses.next().unwrap());
                self.addresses.leave();
            }
            tried
        }
    }

    #[tokio::test]
    async fn a_list_is_tried_in_turn() {
        let mut addresses = Addresses::new(vec!["a:1".to_owned(), "b:1".to_owned()].into());
        addresses.ready().await;
        let mut tried = Vec::new();
        for _ in 0..3 {
            tried.push(addresses.next().unwrap());
            addresses.leave();
        }
        assert_eq!(
            (tried, addresses.others()),
            (
                vec!["a:1".to_owned(), "b:1".to_owned(), "a:1".to_owned()],
                1
            )
        );
    }

    #[tokio::test]
    async fn the_master_comes_first_then_the_others_then_what_was_given() {
        let mut fixture = fixture(&["z:1", "a:1"]);
        fixture.says(&["a:1", "b:1"], Some(("b:1", 5)));
        assert_eq!(fixture.tries(4), ["b:1", "a:1", "z:1", "b:1"]);
    }

    #[tokio::test]
    async fn a_new_master_comes_first_whoevers_turn_it_was() {
        let mut fixture = fixture(&[]);
        fixture.says(&["a:1", "b:1", "c:1"], Some(("a:1", 5)));
        assert_eq!(fixture.tries(1), ["a:1"]);
        // That one failed, and etcd does not know yet.
        assert_eq!(fixture.tries(1), ["b:1"]);
        fixture.says(&["b:1", "c:1"], None);
        assert_eq!(fixture.tries(2), ["b:1", "c:1"]);
        fixture.says(&["b:1", "c:1"], Some(("c:1", 9)));
        assert_eq!(fixture.tries(2), ["c:1", "b:1"]);
        // The same server, elected again.
        fixture.says(&["b:1", "c:1"], Some(("c:1", 12)));
        assert_eq!(fixture.tries(1), ["c:1"]);
    }

    #[tokio::test]
    async fn what_is_known_is_kept_while_etcd_knows_nobody() {
        let mut fixture = fixture(&[]);
        let nobody = fixture.addresses.next().unwrap_err();
        assert_eq!(nobody, "no server of etcd://e:1/eu is there");
        fixture.says(&["a:1", "b:1"], Some(("a:1", 5)));
        assert_eq!(fixture.tries(1), ["a:1"]);
        fixture.says(&[], None);
        assert_eq!(fixture.tries(2), ["b:1", "a:1"]);
    }

    #[tokio::test]
    async fn a_wait_ends_when_a_master_is_named() {
        let mut fixture = fixture(&[]);
        for (servers, master, is_new) in [
            (&[][..], None, false),
            (&["a:1", "b:1"][..], None, true),
            (&["a:1", "b:1"][..], Some(("a:1", 5)), true),
            (&["a:1", "b:1"][..], None, false),
            (&["b:1"][..], None, false),
            (&["b:1"][..], Some(("b:1", 9)), true),
        ] {
            fixture.says(servers, master);
            let ended = fixture.addresses.somebody_new().now_or_never();
            assert_eq!(ended.is_some(), is_new, "{servers:?} {master:?}");
            let _taken_in = fixture.addresses.next();
            let again = fixture.addresses.somebody_new().now_or_never();
            assert!(again.is_none(), "{servers:?} {master:?}");
        }
    }

    #[tokio::test]
    async fn a_conversation_ends_when_another_server_becomes_the_master() {
        let mut fixture = fixture(&[]);
        fixture.says(&["a:1", "b:1"], Some(("a:1", 5)));
        for (master, moves) in [
            (Some(("a:1", 5)), None),
            (None, None),
            (Some(("a:1", 9)), None),
            (Some(("b:1", 12)), Some("b:1")),
        ] {
            fixture.says(&["a:1", "b:1"], master);
            let moved = fixture.addresses.moved_from("a:1").now_or_never();
            let to = moved.as_ref().map(wire::Mastership::master_address);
            assert_eq!(to, moves, "{master:?}");
        }
    }
}
