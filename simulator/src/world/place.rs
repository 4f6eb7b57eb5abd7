//! A place in the tree: the servers that run there, and the way of each to its parent. Who of them is the
//! master, each knows itself.

use std::collections::VecDeque;
use std::num::NonZeroU16;
use std::sync::Arc;

use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::node::{Config, Node};
use doorward_engine::template::Templates;
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::parent_session::ParentSession;

use crate::scenario::Servers;
use crate::world::candidates::Candidacy;
use crate::world::child_streams::Below;
use crate::world::clock::LocalClock;
use crate::world::etcd::{Letter, WayToEtcd};
use crate::world::load::RequestCounts;
use crate::world::message::Message;
use crate::world::undecided_calls::{self, UndecidedCall};

/// A place in the tree.
#[derive(Debug)]
pub(crate) struct Place {
    pub(crate) name: HolderName,
    pub(crate) parent: Option<u32>,
    pub(crate) children: Vec<u32>,
    pub(crate) level: usize,
    pub(crate) clients: usize,
    /// Where they are found, by slot.
    pub(crate) addresses: Arc<[Address]>,
    /// All that run: at most one for each slot, and second processes under the same name.
    pub(crate) servers: Vec<ServerProcess>,
    /// Where they run, one for each candidate.
    pub(crate) slots: Vec<ServerSlot>,
    /// How many have ever been started.
    pub(crate) starts: u64,
    /// Until then no candidate is able to be the master.
    pub(crate) unable_until: Time,
    /// Where the servers of its parent are, as far as it knows.
    pub(crate) parents: Arc<[Address]>,
    /// Until then its servers send whoever asks to one another, not to the master.
    pub(crate) circles_until: Time,
    /// Until then whoever looks for its servers finds addresses at which nobody is.
    pub(crate) stale_until: Time,
    /// What those who look find: `addresses`, or stale ones.
    pub(crate) published: Arc<[Address]>,
    /// Until then, nothing passes between it and its parent.
    pub(crate) cut_above_until: Time,
    /// Until then, nothing passes between it and its clients and children.
    pub(crate) cut_below_until: Time,
    pub(crate) clock: LocalClock,
    /// When it is next looked at.
    pub(crate) wake_at: Option<Time>,
    /// Since when its last master answers.
    pub(crate) up_since: Time,
    pub(crate) load: RequestCounts,
}

/// Where a server runs.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ServerSlot {
    /// Until then it is down.
    pub(crate) down_until: Time,
    pub(crate) way: WayToEtcd,
}

/// A server: a process.
#[derive(Debug)]
pub(crate) struct ServerProcess {
    /// Which one it is: no two servers of a place ever have the same.
    pub(crate) term: u64,
    /// In which of the place's slots.
    pub(crate) slot: u32,
    /// It is a second process of a node without an election.
    pub(crate) is_twin: bool,
    /// It is the master, or was until its term ended a moment ago.
    pub(crate) leads: bool,
    /// Its part in the election. None: there is none.
    pub(crate) candidacy: Option<Box<Candidacy>>,
    pub(crate) node: Node,
    pub(crate) parent_link: WayUp,
    /// Until then it does nothing.
    pub(crate) frozen_until: Option<Time>,
    /// What came while it did nothing.
    pub(crate) inbox: Vec<Message>,
    /// What came from etcd meanwhile.
    pub(crate) letters: Vec<Letter>,
    /// It was asked to hand over meanwhile.
    pub(crate) is_to_resign: bool,
    /// The operator's templates that are in force here; at the root only.
    pub(crate) templates: Templates,
    /// What the operator wrote while it did nothing: it reads that when it goes on.
    pub(crate) unread: Option<Templates>,
    /// The streams of its child servers.
    pub(crate) below: Below,
    /// Clients' calls that wait for the parent: who has waited longest is first.
    pub(crate) waiting: VecDeque<UndecidedCall>,
}

/// The way to the parent.
#[derive(Clone, Debug)]
pub(crate) struct WayUp {
    pub(crate) session: ParentSession,
    /// The parent's server it is connected to.
    pub(crate) to: Option<u64>,
    /// It was found out of reach, or to refuse this server, and has not answered since.
    pub(crate) is_down: bool,
    /// Something on this connection was lost in a partition. What comes later would have to wait for it:
    /// nothing more passes until there is another connection.
    pub(crate) is_stalled: bool,
    /// When the last message arrives, up and down: connections keep their order.
    pub(crate) last_up: Time,
    pub(crate) last_down: Time,
}

impl WayUp {
    /// To a parent at these addresses.
    pub(crate) fn new(parents: Arc<[Address]>) -> Self {
        Self {
            session: ParentSession::new(parents),
            to: None,
            is_down: false,
            is_stalled: false,
            last_up: Time::ZERO,
            last_down: Time::ZERO,
        }
    }
}

/// Worlds are small: every other server puts in the claims of its children one by one, or two by two, so that others
/// are seen to ask in between.
fn claims_at_once(seed: u64) -> NonZeroU16 {
    match seed % 4 {
        0 => NonZeroU16::MIN,
        1 => NonZeroU16::MIN.saturating_add(1),
        _ => Config::default().claims_at_once,
    }
}

impl ServerProcess {
    pub(crate) fn new(
        place: &Place,
        slot: u32,
        seed: u64,
        settings: Servers,
        templates: Templates,
    ) -> Self {
        let config = Config {
            name: place.name.to_string(),
            has_parent: place.parent.is_some(),
            // As it is drawn: of each server another one.
            incarnation: Incarnation::new(seed).unwrap_or(Incarnation::FIRST),
            seed,
            refresh_floor: settings.refresh_floor,
            claims_at_once: claims_at_once(seed),
            ..Config::default()
        };
        Self {
            term: place.starts,
            slot,
            is_twin: false,
            leads: false,
            candidacy: None,
            node: Node::new(config, templates.clone()),
            templates,
            parent_link: WayUp::new(Arc::clone(&place.parents)),
            frozen_until: None,
            inbox: Vec::new(),
            letters: Vec::new(),
            is_to_resign: false,
            unread: None,
            below: Below::new(settings.push_round),
            waiting: VecDeque::new(),
        }
    }

    /// Whether its parent is known to be out of reach.
    pub(crate) fn is_parent_down(&self) -> bool {
        self.parent_link.is_down
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
        let session = &self.parent_link.session;
        let ask = self.node.poll_upstream_timeout();
        let ask = ask.filter(|_| session.may_ask());
        let late = session.poll_timeout();
        let below = self.below.streams.poll_timeout();
        let waiting = undecided_calls::due(&self.waiting);
        let candidacy = self.candidacy.as_ref();
        let election = candidacy.and_then(|it| it.candidate.poll_timeout());
        let local = [timeout, ask, late, below, waiting, election];
        let local = local.into_iter().flatten().min();
        local.map(|at| clock.when(at))
    }
}

impl Place {
    /// The server of that term, if it is still there.
    pub(crate) fn server(&mut self, term: u64) -> Option<&mut ServerProcess> {
        self.servers.iter_mut().find(|server| server.term == term)
    }

    /// Who is the master, as far as it knows itself; it may be frozen. None: nobody is.
    pub(crate) fn master(&self, now: Time) -> Option<&ServerProcess> {
        let local = self.clock.shows(now);
        let masters = self.servers.iter();
        let masters = masters.filter(|it| !it.is_twin && it.node.mastership(local).is_master());
        masters.max_by_key(|server| server.node.mastership(local).epoch())
    }

    /// Who runs at one of its addresses.
    pub(crate) fn at_address(&self, address: &Address) -> Option<&ServerProcess> {
        let slot = self.slot_of(address)?;
        let mut all = self.servers.iter().filter(|server| !server.is_twin);
        all.find(|server| server.slot == slot)
    }

    /// Which slot has that address. None: it is none of these.
    pub(crate) fn slot_of(&self, address: &Address) -> Option<u32> {
        let slot = self.addresses.iter().position(|known| known == address)?;
        u32::try_from(slot).ok()
    }
}
