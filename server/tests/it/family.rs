//! A server in the middle of a tree, without sockets. A test hands the messages of its parent and its children to its
//! node by direct calls.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::{BandDemand, DemandCurve, ServerDemand, Subclients};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{
    Ask, BudgetWord, GetCapacity, GetServerCapacity, Has, RefusalReason, ServerAsk, Via,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_replica::{ChildMessage, FromParent, ParentConfig, ReplicaConfig};
use doorward_server::app::Server;
use doorward_server::clock::{self, Clock};
use doorward_server::replica_handle::ReplicaHandle;
use doorward_server::status::{ParentLink, ParentNews, ServerState};

use doorward_session::address::Address;
use doorward_session::close_reason::ConnectionEnd;

use crate::running::{self, templates_with};

/// The server `eu`, whose parent is `root`.
pub(crate) struct Family {
    pub(crate) eu: Arc<ServerState>,
    root: Node,
}

/// Report of a child server on a resource.
#[derive(Clone, Copy)]
pub(crate) struct Word {
    pub(crate) wants: f64,
    pub(crate) clients: f64,
    pub(crate) outstanding: Option<f64>,
    pub(crate) learning: bool,
    /// Whether the child sends a demand curve. If not, it sends counts and sums only.
    pub(crate) curve: bool,
}

/// Report of a server of the newest kind.
pub(crate) const WORD: Word = Word {
    wants: 40.0,
    clients: 4.0,
    outstanding: Some(0.0),
    learning: false,
    curve: true,
};

fn amount(value: f64) -> Amount {
    Amount::new(value).unwrap()
}

pub(crate) fn request(child: &str, resource: &str, word: Word) -> GetServerCapacity {
    let demand = ServerDemand::new(vec![BandDemand {
        priority: 0,
        clients: word.clients,
        wants: amount(word.wants),
        curve: if word.curve {
            DemandCurve::of_equals(amount(word.wants), word.clients)
        } else {
            DemandCurve::default()
        },
    }]);
    GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        epoch: None,
        server: HolderName::new(child).unwrap(),
        sequence: None,
        height: 1,
        address: None,
        asks: vec![ServerAsk {
            budget: None,
            unreported: Amount::ZERO,
            reported: Vec::new(),
            resource: ResourceId::new(resource).unwrap(),
            demand: Arc::new(demand),
            has: None,
            outstanding: word.outstanding.map(|has| Has::untimed(amount(has))),
            learning: word.learning,
        }],
    }
}

impl Family {
    /// Creates a family whose root has 100 of every resource under `fair/`.
    pub(crate) fn new() -> Self {
        let config = |name: &str| Config {
            name: name.to_owned(),
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let mut root = Node::new(config("root"), templates_with(100.0));
        root.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
        let eu = Arc::new(ReplicaHandle::new(
            ReplicaConfig {
                parent: Some(ParentConfig {
                    addresses: [Address::parse("root-0:6970").unwrap()].into(),
                    round: Duration::ZERO,
                    slow_round: Duration::ZERO,
                }),
                ..config("eu").into()
            },
            Templates::default(),
            Clock::start(),
        ));
        eu.change(|node, now| node.handle_mastership(Mastership::Master { epoch: Some(2) }, now));
        let eu = ServerState::new(
            "eu".to_owned(),
            "eu:6970".to_owned(),
            "nowhere".to_owned(),
            eu,
        );
        let family = Self {
            eu: Arc::new(eu),
            root,
        };
        family.hear([
            FromParent::Connected,
            FromParent::Discovered(Mastership::Master { epoch: Some(1) }),
            FromParent::Opened,
        ]);
        family.post(ParentLink::Stream, None);
        family
    }

    /// Passes events of the connection to the parent in.
    fn hear<const N: usize>(&self, events: [FromParent; N]) {
        let node = self.eu.node();
        let work = || {
            while node
                .input(|it, now| it.advance(now, Duration::ZERO))
                .is_pending()
            {}
        };
        for event in events {
            work();
            node.input(|replica, _| {
                let on = replica.parent_session().unwrap().connection();
                replica.handle_parent(on, event);
            });
        }
        work();
    }

    /// Sets the state of the link to the parent.
    pub(crate) fn post(&self, link: ParentLink, problem: Option<&str>) {
        if link == ParentLink::Down {
            // It tries once more at once.
            self.hear([
                FromParent::Closed(ConnectionEnd::Failed),
                FromParent::Closed(ConnectionEnd::Unreachable),
            ]);
        }
        self.eu.set_parent(ParentNews {
            addresses: vec!["root-0:6970".to_owned(), "root-1:6970".to_owned()],
            address: "root-0:6970".to_owned(),
            link,
            since: clock::wall(),
            problem: problem.map(str::to_owned),
        });
    }

    /// Opens the streams of that many child servers.
    pub(crate) fn child_streams(&self, open: usize) {
        for child in 0..open {
            let request = GetServerCapacity {
                asks: Vec::new(),
                ..request(&format!("child-{child}"), "fair/x", WORD)
            };
            self.eu.node().input(|replica, now| {
                let number = replica.handle_stream_opened(now);
                let hello = ChildMessage::Request(request);
                replica.handle_stream_message(number, hello, now);
            });
        }
    }

    /// Lets `eu` ask its parent for everything that is due.
    pub(crate) fn ask_up(&mut self) {
        let asked = |node: &mut Node, now| node.poll_upstream_request(1, now);
        while let Some(request) = self.eu.node().change(asked) {
            let now = self.eu.node().clock().now();
            let answer = self
                .root
                .handle_get_server_capacity(&request, Via::Stream, now);
            let Ok(Outcome::Served(reply)) = answer else {
                panic!("the root is the master of its node");
            };
            self.eu
                .node()
                .change(|node, now| node.handle_upstream_reply(&reply, now));
        }
    }

    /// Sends a request of a child server to `eu`. Then `eu` asks its parent until the child gets an answer.
    pub(crate) fn child_asks(&mut self, child: &str, resource: &str, word: Word) {
        let request = request(child, resource, word);
        for _ in 0..3 {
            let asks =
                |node: &mut Node, now| node.handle_get_server_capacity(&request, Via::Stream, now);
            let Ok(Outcome::Served(reply)) = self.eu.node().change(asks) else {
                panic!("eu is the master of its node");
            };
            if !reply
                .refused
                .iter()
                .any(|r| r.reason == RefusalReason::NotReady)
            {
                return;
            }
            self.ask_up();
        }
        panic!("{child} is not answered");
    }

    /// Sends one request of a client to `eu`, whatever the answer is.
    pub(crate) fn client_asks(&self, client: &str, resource: &str, wants: f64) {
        self.ask_of_client(client, resource, wants, None);
    }

    /// A client needs some of a budget.
    pub(crate) fn client_needs(&self, client: &str, budget: &str, need: f64) {
        let word = BudgetWord {
            holder_book: 1,
            granter_book: None,
            window: None,
            taken: 0,
            least: 1,
            closes: false,
        };
        self.ask_of_client(client, budget, need, Some(word));
    }

    fn ask_of_client(&self, client: &str, resource: &str, wants: f64, budget: Option<BudgetWord>) {
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: HolderName::new(client).unwrap(),
            sequence: budget.map(|_| 1),
            asks: vec![Ask {
                budget,
                resource: ResourceId::new(resource).unwrap(),
                priority: 0,
                weight: Subclients::ONE,
                wants: amount(wants),
                has: None,
            }],
        };
        let asks = |node: &mut Node, now| node.handle_get_capacity(&request, now);
        assert!(matches!(self.eu.node().change(asks), Outcome::Served(_)));
    }
}

/// Starts a root whose child `eu` has asked for `fair/x`.
pub(crate) async fn root_with_a_child() -> Server {
    let server = running::start().await;
    let asks = request("eu", "fair/x", WORD);
    let node = server.state().node();
    let answer = node.change(|node, now| node.handle_get_server_capacity(&asks, Via::Poll, now));
    assert!(answer.is_ok());
    server
}
