//! A small model of etcd, and the ways of servers to it: what they ask arrives late, or not at all; so does
//! the answer, to what was done; keys that are followed are sent in order, and read anew when a watch is
//! of no use any more (it broke, what it is to send was compacted, or etcd was set up anew).
//!
//! A lease ends no earlier than its TTL after the last renewal that has arrived. By chance it ends later, by as
//! much as elections differ: that is what makes elections long and short here.

mod calls;
pub(crate) mod store;
mod watches;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorward_engine::time::Time;
use doorward_session::candidate::store::{EtcdRequest, LeaseId, OpAnswer, OpId};

use crate::chance::Chance;
use crate::scenario::fault::Span;
use crate::world::World;
use crate::world::agenda::What;
use crate::world::etcd::store::{EtcdStore, ReadKeys};
pub(crate) use crate::world::etcd::watches::KeyWatch;
use crate::world::message::{Mail, ServerId};

/// How long a message to or from etcd takes: it is near.
const TAKES: Span = (Duration::from_micros(200), Duration::from_millis(2));

/// etcd, and what is on its way to and from it.
#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) store: EtcdStore,
    mail: Mail<Letter>,
    /// Decides about etcd, and about nothing else.
    chance: Chance,
    /// Leases at whose end somebody will look.
    timed: BTreeSet<LeaseId>,
    /// Leases that end no earlier than this, although they may.
    lasting: BTreeMap<LeaseId, Time>,
    /// Nothing takes any time: everybody is elected before it begins.
    pub(crate) is_quick: bool,
}

/// Something on its way to etcd, or from it.
#[derive(Clone, Debug)]
pub(crate) enum Letter {
    /// A question arrives at etcd.
    Question {
        from: ServerId,
        asking: EtcdRequest,
        sent: Time,
    },
    /// A server is answered, or gives up.
    Answer {
        to: ServerId,
        id: OpId,
        answer: OpAnswer,
    },
    /// A server gets its keys as they were: by its watch of that number, or because it has read them.
    Keys {
        to: ServerId,
        watch: u32,
        reading: ReadKeys,
        /// When they were read. None: the watch sends it.
        asked: Option<Time>,
    },
    /// A server reads its keys, to see that etcd is there.
    Look(ServerId),
    /// A lease may end.
    Lease(LeaseId),
}

impl Letter {
    /// To which server it comes.
    fn to(&self) -> Option<ServerId> {
        match self {
            Self::Answer { to, .. } | Self::Keys { to, .. } | Self::Look(to) => Some(*to),
            Self::Question { .. } | Self::Lease(_) => None,
        }
    }
}

/// The way from one server to etcd and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayToEtcd {
    /// Until then no question arrives.
    pub(crate) there_cut_until: Time,
    /// Until then no answer does.
    pub(crate) back_cut_until: Time,
    /// Until then, so many of the calls are lost, one way or the other, and others come so much later.
    pub(crate) bad_until: Time,
    pub(crate) loss: f64,
    pub(crate) late: Span,
}

impl WayToEtcd {
    /// One on which everything passes.
    pub(crate) const OPEN: Self = Self {
        there_cut_until: Time::ZERO,
        back_cut_until: Time::ZERO,
        bad_until: Time::ZERO,
        loss: 0.0,
        late: (Duration::ZERO, Duration::ZERO),
    };

    /// Until when it is cut, this way or that.
    pub(crate) fn cut_until(&self) -> Time {
        self.there_cut_until.max(self.back_cut_until)
    }

    /// From now on everything passes.
    pub(crate) fn mend(&mut self, now: Time) {
        self.there_cut_until = self.there_cut_until.min(now);
        self.back_cut_until = self.back_cut_until.min(now);
        self.bad_until = self.bad_until.min(now);
    }
}

impl Etcd {
    /// One for that many nodes, in which nothing stands.
    pub(crate) fn new(nodes: usize, is_restored: bool, chance: Chance) -> Self {
        Self {
            store: EtcdStore::new(nodes, is_restored),
            mail: Mail::default(),
            chance,
            timed: BTreeSet::new(),
            lasting: BTreeMap::new(),
            is_quick: false,
        }
    }

    /// Chance for a candidate.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.chance.uniform()
    }

    /// A time within a span.
    pub(crate) fn some_time(&mut self, span: Span) -> Duration {
        match self.is_quick {
            true => Duration::ZERO,
            false => self.chance.duration(span.0, span.1),
        }
    }

    /// How long a message takes on a way.
    fn takes(&mut self, way: &WayToEtcd, now: Time) -> Duration {
        let takes = self.some_time(TAKES);
        match now < way.bad_until {
            true => takes + self.some_time(way.late),
            false => takes,
        }
    }

    /// Whether a message is lost on a way that is cut until then.
    fn loses(&mut self, way: &WayToEtcd, cut_until: Time, now: Time) -> bool {
        now < cut_until || now < way.bad_until && self.chance.happens(way.loss)
    }

    /// Whoever held a lease is silent from now on: it ends no earlier than then, unless it is renewed.
    pub(crate) fn keep_lease(&mut self, lease: LeaseId, until: Time) {
        let until = self.lasting.get(&lease).map_or(until, |it| until.max(*it));
        self.lasting.insert(lease, until);
    }
}

impl World<'_> {
    fn post(&mut self, at: Time, letter: Letter) {
        let slot = self.etcd.mail.keep(letter);
        self.events.put(at, What::Etcd(slot));
    }

    /// Something arrives at etcd, or from it.
    pub(super) fn open_letter(&mut self, slot: u32) {
        if let Some(letter) = self.etcd.mail.take(slot) {
            self.read_letter(letter);
        }
    }

    pub(super) fn read_letter(&mut self, letter: Letter) {
        let now = self.now;
        if let Some(to) = letter.to() {
            let server = self.place(to.place).and_then(|place| place.server(to.term));
            let Some(server) = server else { return };
            if server.is_frozen(now) {
                server.letters.push(letter);
                return;
            }
        }
        match letter {
            Letter::Question { from, asking, sent } => self.answer_question(from, asking, sent),
            Letter::Answer { to, id, answer } => self.hear_answer(to, id, answer),
            Letter::Keys {
                to,
                watch,
                reading,
                asked,
            } => self.hear_keys(to, watch, &reading, asked),
            Letter::Look(id) => self.look_at_etcd(id),
            Letter::Lease(lease) => self.look_at_lease(lease),
        }
    }

    /// Somebody will look at the end of a lease.
    fn time_lease(&mut self, lease: LeaseId, at: Time) {
        if self.etcd.timed.insert(lease) {
            self.post(at, Letter::Lease(lease));
        }
    }

    /// A lease ends, if it was not renewed.
    fn look_at_lease(&mut self, lease: LeaseId) {
        let now = self.now;
        self.etcd.timed.remove(&lease);
        let Some(ends) = self.etcd.store.ends(lease) else {
            self.etcd.lasting.remove(&lease);
            return;
        };
        if ends > now {
            self.time_lease(lease, ends);
            return;
        }
        let (least, most) = self.elections.take;
        let later = (Duration::ZERO, most.saturating_sub(least));
        let until = match self.etcd.lasting.get(&lease) {
            Some(until) => *until,
            None => {
                let until = now + self.etcd.some_time(later);
                self.etcd.lasting.insert(lease, until);
                until
            }
        };
        if until > now {
            self.time_lease(lease, until);
            return;
        }
        self.end_lease(lease);
    }

    /// A lease ends now.
    pub(super) fn end_lease(&mut self, lease: LeaseId) {
        let node = self.etcd.store.node_of(lease);
        let before = self.etcd.store.revision();
        self.etcd.lasting.remove(&lease);
        self.etcd.store.end(lease, self.now);
        if let Some(node) = node.filter(|_| self.etcd.store.revision() != before) {
            self.tell_keys(node);
        }
    }

    /// What was written to etcd since then is lost; everything, if that is not said.
    pub(super) fn set_etcd_back(&mut self, then: Option<Time>) {
        let now = self.now;
        match then {
            Some(then) => self.etcd.store.restore(then, now),
            None => self.etcd.store.wipe(now),
        }
        self.etcd.lasting.clear();
        for lease in self.etcd.store.leases() {
            if let Some(ends) = self.etcd.store.ends(lease) {
                self.time_lease(lease, ends);
            }
        }
        self.break_watches();
    }
}
