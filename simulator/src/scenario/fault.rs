//! What goes wrong, and when.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::template::Templates;

use crate::scenario::ClientGroup;

/// Something that goes wrong, or is changed from outside.
#[derive(Clone, Debug)]
pub struct Fault {
    /// When.
    pub when: When,
    /// What: one of these, by weight. One that stands alone is certain.
    pub choices: Vec<(f64, Event)>,
}

/// When something happens.
#[derive(Clone, Debug, PartialEq)]
pub enum When {
    /// Once.
    At(Duration),
    /// Every so often, from and until.
    Every {
        /// From one to the next.
        interval: Duration,
        /// The first.
        from: Duration,
        /// None later than this. Absent: to the end.
        until: Option<Duration>,
    },
    /// By chance: so often per hour on average, from and until.
    Random {
        /// On average.
        per_hour: f64,
        /// None earlier.
        from: Duration,
        /// None later. Absent: to the end.
        until: Option<Duration>,
    },
}

/// How long something lasts: between these two, by chance.
pub type Span = (Duration, Duration);

/// What happens.
#[derive(Clone, Debug)]
pub enum Event {
    /// A node loses its master, and has another one when this is over; all that the server knew is
    /// gone. Absent: as long as an election takes.
    Kill {
        /// Which.
        node: NodeChoice,
        /// For how long there is none.
        length: Option<Span>,
    },
    /// A node's master starts anew: it is back when this is over, and knows nothing. If the node has
    /// other candidates and it takes longer than an election, one of them is master by then.
    Restart {
        /// Which.
        node: NodeChoice,
        /// For how long it is gone.
        length: Span,
    },
    /// All servers of a node stop, its candidates too, and start again when this is over: nobody
    /// remembers anything.
    Stop {
        /// Which.
        node: NodeChoice,
        /// For how long there is none.
        length: Span,
    },
    /// etcd loses what was written: epochs go back, and whoever is the master may find that its key is
    /// not there.
    Etcd {
        /// To what it was so long ago. Absent: it is wiped.
        back: Option<Span>,
        /// For how long nobody reaches it before that. Absent: it happens at once.
        length: Option<Span>,
    },
    /// A node's master hands over to another one at once.
    Elect {
        /// Which.
        node: NodeChoice,
    },
    /// Somebody deletes the key of a node's master in etcd: its term is over, and its process lives on, takes
    /// part in the next election, and may win it. Of nodes with other candidates only; elsewhere nothing
    /// happens.
    Depose {
        /// Which.
        node: NodeChoice,
    },
    /// Elections take that long from now on, of all nodes.
    Elections {
        /// From when a master is gone to when its successor serves.
        take: Span,
        /// When they take as long as before again. Absent: never.
        length: Option<Span>,
    },
    /// A master does nothing for some time, and then goes on where it stopped. If the node has other
    /// candidates and it takes longer than an election, one of them is master by then.
    Freeze {
        /// Which.
        node: NodeChoice,
        /// For how long.
        length: Span,
    },
    /// Servers are cut off from etcd. A master is not confirmed then, and goes on until its term ends. If
    /// that takes longer than an election, one of the other candidates is master by then. Of nodes
    /// with other candidates only; elsewhere nothing happens.
    Isolate {
        /// Which.
        node: NodeChoice,
        /// Which of its servers.
        servers: Servers,
        /// What does not get through.
        way: ToEtcd,
        /// For how long.
        length: Span,
    },
    /// What the servers of a node ask etcd is lost in part, or takes long; so are its answers.
    EtcdLink {
        /// Which.
        node: NodeChoice,
        /// The part that is lost, of questions and of answers.
        loss: f64,
        /// How much longer what is not lost takes.
        late: Span,
        /// For how long.
        length: Span,
    },
    /// Servers of a node that are not its master send whoever asks to one another, not to the master;
    /// one that is alone sends to itself. Of nodes with other candidates only; elsewhere nothing happens.
    RedirectLoop {
        /// Which.
        node: NodeChoice,
        /// For how long.
        length: Span,
    },
    /// Whoever looks for the servers of a node is told of addresses at which nobody is any more, and last of one
    /// of those that there are; of no master. Of nodes with other candidates only; elsewhere nothing happens.
    StaleAddresses {
        /// Which.
        node: NodeChoice,
        /// For how long. Then all are told of.
        length: Span,
    },
    /// Nothing gets through.
    Partition {
        /// Of which node.
        node: NodeChoice,
        /// From whom.
        from: Side,
        /// For how long.
        length: Span,
    },
    /// Clocks run at another speed from now on. 1.01 gains a second in 100.
    Drift {
        /// Whose.
        clock: ClockChoice,
        /// The speed.
        speed: f64,
    },
    /// Clocks jump ahead.
    Jump {
        /// Whose.
        clock: ClockChoice,
        /// By how much.
        by: Duration,
    },
    /// The operator writes other templates.
    Edit {
        /// All of them.
        templates: Templates,
    },
    /// Clients stop without saying goodbye, and start again when this is over.
    Crash {
        /// Which.
        clients: ClientChoice,
        /// For how long. Absent: for ever.
        length: Option<Span>,
    },
    /// Clients finish the work they have begun, release all that they hold, and end; they start again when this
    /// is over.
    Leave {
        /// Which.
        clients: ClientChoice,
        /// For how long. Absent: for ever.
        length: Option<Span>,
    },
    /// Clients finish the work that they have begun with a resource, and release it; they use it again when this
    /// is over.
    Close {
        /// Which.
        clients: ClientChoice,
        /// Which of those they use. Absent: the first.
        resource: Option<ResourceId>,
        /// For how long. Absent: for ever.
        length: Option<Span>,
    },
    /// A second process starts under the name of another one, and both live. Of nodes below the root
    /// without another candidate, and of clients; elsewhere nothing happens.
    Twin {
        /// Whose. Of a node, some of the clients there are connected to the second one.
        of: ClockChoice,
        /// For how long.
        length: Span,
    },
    /// Clients want so much more from now on.
    Surge {
        /// Which.
        clients: ClientChoice,
        /// By how much.
        by: f64,
        /// Of which of the resources that they use. Absent: of the first.
        resource: Option<ResourceId>,
    },
    /// Clients want so much from now on, whatever their curve says.
    Demand {
        /// Which.
        clients: ClientChoice,
        /// How much.
        wants: f64,
        /// Of which of the resources that they use. Absent: of the first.
        resource: Option<ResourceId>,
    },
}

impl Event {
    /// The clients to whom it happens, if it happens to clients.
    pub fn clients(&self) -> Option<&ClientChoice> {
        match self {
            Self::Crash { clients, .. }
            | Self::Leave { clients, .. }
            | Self::Close { clients, .. }
            | Self::Surge { clients, .. }
            | Self::Demand { clients, .. }
            | Self::Drift {
                clock: ClockChoice::Clients(clients),
                ..
            }
            | Self::Jump {
                clock: ClockChoice::Clients(clients),
                ..
            }
            | Self::Twin {
                of: ClockChoice::Clients(clients),
                ..
            } => Some(clients),
            _ => None,
        }
    }
}

/// Which node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodeChoice {
    /// This one, by its place in the scenario.
    Node(usize),
    /// Any, by chance.
    Any,
    /// Any but the root, by chance.
    AnyBelowRoot,
    /// One of these, by chance; by their places in the scenario. At least one.
    AnyOf(Vec<usize>),
}

impl NodeChoice {
    /// The node, if only one can be meant.
    pub fn only(&self) -> Option<usize> {
        match self {
            Self::Node(node) => Some(*node),
            Self::AnyOf(nodes) => match nodes.as_slice() {
                [only] => Some(*only),
                _ => None,
            },
            Self::Any | Self::AnyBelowRoot => None,
        }
    }
}

/// Which clients: so many, by chance.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ClientChoice {
    /// How many. If there are fewer, these.
    pub count: usize,
    /// Of which groups, by their places in the scenario. Absent: of any.
    pub groups: Option<Vec<usize>>,
    /// At which nodes, by their places in the scenario. Absent: at any.
    pub nodes: Option<Vec<usize>>,
}

impl ClientChoice {
    /// So many of all.
    pub const fn any(count: usize) -> Self {
        Self {
            count,
            groups: None,
            nodes: None,
        }
    }

    /// How many there are to choose from.
    pub fn number_of(&self, all: &[ClientGroup]) -> usize {
        let mut number = 0;
        for (place, group) in all.iter().enumerate() {
            let groups = self.groups.as_ref();
            if groups.is_some_and(|groups| !groups.contains(&place)) {
                continue;
            }
            // The first is at the first node, and so on in turn.
            let turns = group.nodes.len().max(1);
            for (turn, node) in group.nodes.iter().enumerate() {
                let nodes = self.nodes.as_ref();
                if nodes.is_none_or(|nodes| nodes.contains(node)) {
                    number += group.count / turns + usize::from(turn < group.count % turns);
                }
            }
        }
        number
    }
}

/// Whose clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClockChoice {
    /// That of a node's servers.
    Node(NodeChoice),
    /// Those of clients.
    Clients(ClientChoice),
}

/// From whom a node is cut off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// From its parent.
    Parent,
    /// From its clients and child servers.
    Below,
    /// From all.
    All,
}

/// Which servers of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Servers {
    /// The master.
    Master,
    /// All but the master.
    Others,
    /// Each of them, or not, by chance.
    Some,
    /// All.
    All,
}

impl Servers {
    /// For people.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Master => "the master",
            Self::Others => "the other candidates",
            Self::Some => "some servers",
            Self::All => "all servers",
        }
    }
}

/// What does not get through between a server and etcd.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ToEtcd {
    /// Nothing.
    Both,
    /// What the server asks.
    There,
    /// What etcd answers: what was asked for is done.
    Back,
}

impl ToEtcd {
    /// For people.
    pub(crate) const fn text(self) -> &'static str {
        match self {
            Self::Both => "",
            Self::There => ": their questions are lost",
            Self::Back => ": its answers are lost",
        }
    }
}
