//! A place in the tree: the server that is master there, those that still believe they are, and the
//! way to its parent.

use std::collections::VecDeque;
use std::sync::Arc;

use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::node::{Config, Node};
use doorward_engine::template::Templates;
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::parent_session::ParentSession;

use crate::scenario::Servers;
use crate::world::child_streams::Below;
use crate::world::clock::LocalClock;
use crate::world::lengths::Lengths;
use crate::world::links::engine_time;
use crate::world::load::Load;
use crate::world::message::Message;
use crate::world::seats::Seats;
use crate::world::waiting::{self, Waiting};

/// A place in the tree.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: HolderName,
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) level: usize,
    pub(crate) candidates: u32,
    pub(crate) seats: Seats,
    pub(crate) clients: usize,
    /// Who decides. None: there is no master.
    pub(crate) master: Option<Box<Server>>,
    /// Servers that another one has succeeded, and that do not know it: frozen, or cut off; and second
    /// processes under its name.
    pub(crate) succeeded: Vec<Server>,
    /// Until then there is none, whatever candidates there are.
    pub(crate) vacant_until: Time,
    /// How many servers have been master here.
    pub(crate) terms: u64,
    /// Since when the last of them has decided nothing any more, by its clock, as far as candidates
    /// know.
    pub(crate) vacant_since: Option<Time>,
    /// The highest epoch that its candidates remember. 0: they remember none.
    pub(crate) epoch_seen: u64,
    /// What stands beside the term of how long leases last; of a root with an election only.
    pub(crate) lengths: Option<Lengths>,
    /// Where the servers of its parent are.
    pub(crate) parents: Arc<[Address]>,
    /// Until then, nothing passes between it and its parent.
    pub(crate) cut_above_until: Time,
    /// Until then, nothing passes between it and its clients and children.
    pub(crate) cut_below_until: Time,
    pub(crate) clock: LocalClock,
    /// When it is next looked at.
    pub(crate) wake_at: Option<Time>,
    /// Since when its last master answers.
    pub(crate) up_since: Time,
    pub(crate) load: Load,
}

/// A server that is master, or believes it is.
#[derive(Debug)]
pub(crate) struct Server {
    /// Which one it is: no two servers of a place ever have the same.
    pub(crate) term: u64,
    /// At which of its place's addresses it is.
    pub(crate) seat: u32,
    /// It is a second process of a node without an election.
    pub(crate) is_twin: bool,
    /// By what it is the master. None: there is no election.
    pub(crate) epoch: Option<u64>,
    pub(crate) node: Node,
    pub(crate) way_up: Link,
    /// Until then it does nothing.
    pub(crate) frozen_until: Option<Time>,
    /// What came while it did nothing.
    pub(crate) inbox: Vec<Message>,
    /// What it knows of the operator's templates; at the root only.
    pub(crate) templates: Templates,
    /// What the operator wrote while it did nothing, or was cut off from etcd, to which it has to write
    /// first how long leases last: it goes by that when it goes on.
    pub(crate) unread: Option<Templates>,
    /// Until then it is cut off from the election.
    pub(crate) isolated_until: Option<Time>,
    /// When its term ends by its own clock, unless it is confirmed before. None: it is confirmed all
    /// the time.
    pub(crate) term_ends: Option<Time>,
    /// The streams of its child servers.
    pub(crate) below: Below,
    /// Clients' calls that wait for the parent: who has waited longest is first.
    pub(crate) waiting: VecDeque<Waiting>,
}

/// The way to the parent.
#[derive(Clone, Debug)]
pub(crate) struct Link {
    pub(crate) session: ParentSession,
    /// The parent's server it is connected to.
    pub(crate) to: Option<u64>,
    /// It was found out of reach, or to refuse this server, and has not answered since.
    pub(crate) is_down: bool,
    /// Something on this connection was lost in a partition. What comes later would have to wait for it:
    /// nothing more passes until there is another connection.
    pub(crate) is_stuck: bool,
    /// When the last message arrives, up and down: connections keep their order.
    pub(crate) last_up: Time,
    pub(crate) last_down: Time,
}

impl Link {
    /// To a parent at these addresses.
    pub(crate) fn new(parents: Arc<[Address]>) -> Self {
        Self {
            session: ParentSession::new(parents),
            to: None,
            is_down: false,
            is_stuck: false,
            last_up: Time::ZERO,
            last_down: Time::ZERO,
        }
    }
}

impl Server {
    pub(crate) fn new(
        place: &Place,
        seed: u64,
        settings: Servers,
        templates: Templates,
        now: Time,
    ) -> Self {
        let config = Config {
            name: place.name.to_string(),
            has_parent: place.parent.is_some(),
            // As it is drawn: of each server another one.
            incarnation: Incarnation::new(seed).unwrap_or(Incarnation::FIRST),
            seed,
            refresh_floor: settings.refresh_floor,
            ..Config::default()
        };
        Self {
            term: place.terms,
            seat: place.next_seat(now),
            is_twin: false,
            epoch: (place.candidates > 1).then_some(place.epoch_seen),
            node: Node::new(config, templates.clone()),
            templates,
            way_up: Link::new(Arc::clone(&place.parents)),
            frozen_until: None,
            inbox: Vec::new(),
            unread: None,
            isolated_until: None,
            term_ends: None,
            below: Below::new(settings.push_round),
            waiting: VecDeque::new(),
        }
    }

    /// Whether its parent is known to be out of reach.
    pub(crate) fn is_parent_down(&self) -> bool {
        self.way_up.is_down
    }

    pub(crate) fn is_frozen(&self, now: Time) -> bool {
        self.frozen_until.is_some_and(|until| now < until)
    }

    /// When it has something to do by itself, in the world's time.
    pub(crate) fn due(&self, clock: &LocalClock) -> Option<Time> {
        if let Some(until) = self.frozen_until {
            return Some(until);
        }
        let timeout = self.node.poll_timeout().map(|timeout| timeout.at);
        let session = &self.way_up.session;
        let ask = self.node.poll_upstream_timeout();
        let ask = ask.filter(|_| session.may_ask());
        let late = session.poll_timeout().map(engine_time);
        let below = self.below.streams.poll_timeout().map(engine_time);
        let waiting = waiting::due(&self.waiting);
        let local = [timeout, ask, late, below, waiting].into_iter().flatten();
        let local = local.min().map(|at| clock.when(at));
        [local, self.isolated_until].into_iter().flatten().min()
    }
}

impl Place {
    /// Its master goes by other templates from now on; that leases become shorter is written first.
    pub(crate) fn go_by(&mut self, templates: Templates, local: Time) {
        if let Some(lengths) = &mut self.lengths {
            lengths.change(templates.clone(), local);
        }
        if let Some(master) = &mut self.master {
            master.templates = templates.clone();
            master.node.handle_templates(templates, local);
        }
    }

    /// The server of that term, if it is still there.
    pub(crate) fn server(&mut self, term: u64) -> Option<&mut Server> {
        let master = self.master.iter_mut().map(Box::as_mut);
        let mut all = master.chain(self.succeeded.iter_mut());
        all.find(|server| server.term == term)
    }
}
