//! Faults of etcd: it is wiped, restored from a backup, or answers badly. Also a stop of all
//! servers of a node, after which no process remembers the keys.

use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeChoice, Span, ToEtcd};
use crate::world::World;

impl World<'_> {
    /// Stops all servers of a node, and starts them again later.
    pub(super) fn stop(&mut self, node: &NodeChoice, length: Span) {
        let text = |name: &str| format!("all servers of {name} stop");
        let (number, until) = self.begin_at(node, length, MarkKind::Kill, text);
        self.note(5, number.into(), 0.0);
        for slot in self.places[number].slots.numbers() {
            self.take_down(number, slot, until);
        }
    }

    /// Loses what was written to etcd since a time. Candidates that run remember it. With `length`,
    /// etcd is out of reach before that.
    pub(super) fn lose_etcd(&mut self, back: Option<Span>, length: Option<Span>) {
        let now = self.now;
        let (then, text) = match back {
            None => (None, "etcd is wiped".to_owned()),
            Some((least, most)) => {
                let back = self.fault_rng.duration(least, most);
                let then = now.since(Time::ZERO).saturating_sub(back);
                let text = format!("etcd is restored to its state {back:?} ago");
                (Some(Time::ZERO + then), text)
            }
        };
        let until = self.end_if_any(length);
        self.mark(until, MarkKind::Election, text);
        let Some(until) = until else {
            return self.restore_etcd(then);
        };
        for number in self.places.numbers() {
            for slot in self.places[number].slots.numbers() {
                self.cut_off(number, slot, ToEtcd::Both, until);
            }
        }
        self.act(until, move |world| world.restore_etcd(then));
    }

    /// Loses a part of a node's calls to etcd, and delays the others.
    pub(super) fn degrade_etcd(&mut self, node: &NodeChoice, loss: f64, late: Span, length: Span) {
        let most = late.1;
        let lost = format!("loses {loss} of its calls to etcd; others are up to {most:?} late");
        let text = |name: &str| format!("{name} {lost}");
        let (number, until) = self.begin_at(node, length, MarkKind::Isolate, text);
        for slot in self.places[number].slots.iter_mut() {
            (slot.way.bad_until, slot.way.loss, slot.way.late) = (until, loss, late);
        }
    }

    /// Ends all faults of etcd, and the leases of servers that are gone. A lease span of
    /// theirs ends by itself.
    pub(super) fn heal_etcd(&mut self) {
        let now = self.now;
        let mut held = Vec::new();
        let ttl = self.ttl();
        for id in self.candidates() {
            self.notice_cut(id, now);
            let server = self.server_of(id);
            held.extend(server.and_then(|it| it.candidacy.as_ref()?.lease));
        }
        for (lease, _) in self.etcd.store.leases() {
            let is_span = self.etcd.store.lease(lease).is_some_and(|it| it.ttl > ttl);
            if !held.contains(&lease) && !is_span {
                self.end_lease(lease);
            }
        }
    }
}
