//! Small model of etcd, and of the servers' connections to it. Requests may be late or lost, and so
//! may the answers to requests that were executed. Watches deliver keys in order. A server reads
//! its keys again when a watch broke, when its next events were compacted, or when etcd was set up
//! again.
//!
//! A lease ends no earlier than its TTL after the last renewal that arrived. It may end later by a
//! random time, up to the spread of election times in the scenario; this makes elections long or
//! short.

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

/// Time of a message to or from etcd, which is near.
const TAKES: Span = (Duration::from_micros(200), Duration::from_millis(2));

/// Model of etcd, with its messages under way.
#[derive(Debug)]
pub(crate) struct Etcd {
    pub(crate) store: EtcdStore,
    mail: Mail<Letter>,
    /// Random stream of etcd alone.
    chance: Chance,
    /// Leases with a scheduled check of their end.
    timed: BTreeSet<LeaseId>,
    /// Earliest end of leases that last longer than they must.
    lasting: BTreeMap<LeaseId, Time>,
    /// True before the run begins: nothing takes time, so that every node elects a master.
    pub(crate) is_quick: bool,
}

/// Message on its way to etcd or from it.
#[derive(Clone, Debug)]
pub(crate) enum Letter {
    /// Request to etcd.
    Question {
        from: ServerId,
        asking: EtcdRequest,
        sent: Time,
    },
    /// Answer for a server, or its timeout.
    Answer {
        to: ServerId,
        id: OpId,
        answer: OpAnswer,
    },
    /// Keys for a server: from its watch of that number, or because it read them.
    Keys {
        to: ServerId,
        watch: u32,
        reading: ReadKeys,
        /// Time of the read; `None` if the watch sends it.
        asked: Option<Time>,
    },
    /// A server reads its keys to test its contact with etcd.
    Look(ServerId),
    /// A lease may end.
    Lease(LeaseId),
}

impl Letter {
    /// Returns the server that receives it.
    fn to(&self) -> Option<ServerId> {
        match self {
            Self::Answer { to, .. } | Self::Keys { to, .. } | Self::Look(to) => Some(*to),
            Self::Question { .. } | Self::Lease(_) => None,
        }
    }
}

/// Connection of one server to etcd and back.
#[derive(Clone, Copy, Debug)]
pub(crate) struct WayToEtcd {
    /// End of the time in which requests are lost.
    pub(crate) there_cut_until: Time,
    /// End of the time in which answers are lost.
    pub(crate) back_cut_until: Time,
    /// End of the time in which calls are lost with probability `loss`, in one direction or the
    /// other, and others are late.
    pub(crate) bad_until: Time,
    pub(crate) loss: f64,
    pub(crate) late: Span,
}

impl WayToEtcd {
    /// Connection without disturbance.
    pub(crate) const OPEN: Self = Self {
        there_cut_until: Time::ZERO,
        back_cut_until: Time::ZERO,
        bad_until: Time::ZERO,
        loss: 0.0,
        late: (Duration::ZERO, Duration::ZERO),
    };

    /// Returns the time until which either direction is cut.
    pub(crate) fn cut_until(&self) -> Time {
        self.there_cut_until.max(self.back_cut_until)
    }

    /// Ends all disturbance.
    pub(crate) fn mend(&mut self, now: Time) {
        self.there_cut_until = self.there_cut_until.min(now);
        self.back_cut_until = self.back_cut_until.min(now);
        self.bad_until = self.bad_until.min(now);
    }
}

impl Etcd {
    /// Creates an empty etcd for that many nodes.
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

    /// Returns a random number for a candidate.
    pub(crate) fn uniform(&mut self) -> f64 {
        self.chance.uniform()
    }

    /// Returns a random time within a span.
    pub(crate) fn some_time(&mut self, span: Span) -> Duration {
        match self.is_quick {
            true => Duration::ZERO,
            false => self.chance.duration(span.0, span.1),
        }
    }

    /// Returns the delay of a message.
    fn takes(&mut self, way: &WayToEtcd, now: Time) -> Duration {
        let takes = self.some_time(TAKES);
        match now < way.bad_until {
            true => takes + self.some_time(way.late),
            false => takes,
        }
    }

    /// Returns whether a message is lost.
    fn loses(&mut self, way: &WayToEtcd, cut_until: Time, now: Time) -> bool {
        now < cut_until || now < way.bad_until && self.chance.happens(way.loss)
    }

    /// Keeps the lease of a silent holder until then, unless it is renewed later.
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

    /// Delivers a message at etcd or from it.
    pub(super) fn open_letter(&mut self, slot: u32) {
        if let Some(letter) = self.etcd.mail.take(slot) {
            self.read_letter(letter);
        }
    }

    pub(super) fn read_letter(&mut self, letter: Letter) {
        let now = self.now;
        if let Some(to) = letter.to() {
            let server = self.server_of(to);
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

    /// Schedules a check of a lease's end.
    fn time_lease(&mut self, lease: LeaseId, at: Time) {
        if self.etcd.timed.insert(lease) {
            self.post(at, Letter::Lease(lease));
        }
    }

    /// Ends a lease unless it was renewed.
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

    /// Ends a lease now.
    pub(super) fn end_lease(&mut self, lease: LeaseId) {
        let node = self.etcd.store.node_of(lease);
        let before = self.etcd.store.revision();
        self.etcd.lasting.remove(&lease);
        self.etcd.store.end(lease, self.now);
        if let Some(node) = node.filter(|_| self.etcd.store.revision() != before) {
            self.tell_keys(node);
        }
    }

    /// Loses what was written to etcd since `then`; `None` loses everything.
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
