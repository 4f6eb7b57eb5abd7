//! Random faults of a world.

use std::time::Duration;

use doorward_session::candidate::store::{EtcdKey, Value};

use crate::election_world::{ElectionEvent, ElectionWorld, TTL};
use crate::etcd_model::EtcdModel;

/// How long a candidate that is cut off takes to notice it.
const NOTICED: Duration = Duration::from_millis(700);

/// What may go wrong.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Mishaps {
    /// The part of requests that are lost, late, or not answered.
    pub(crate) lossy: f64,
    /// The error of the clocks: each is that much too fast or too slow.
    pub(crate) clocks: f64,
    /// Candidates are cut off, frozen, killed, or made to resign.
    pub(crate) candidates: bool,
    /// etcd is restored from a backup, or wiped.
    pub(crate) goes_back: bool,
}

impl ElectionWorld {
    /// Injects a random fault.
    pub(crate) fn go_wrong(&mut self) {
        let number = self.chance.below(self.members.len());
        let length = self.chance.span(TTL * 3);
        match self.chance.below(10) {
            0 => self.store.delete(&EtcdKey::Master),
            1 => {
                let lease = self
                    .store
                    .keys
                    .get(&EtcdKey::Master)
                    .and_then(|it| it.lease);
                lease.into_iter().for_each(|lease| self.store.revoke(lease));
            }
            2 => self.store.put(EtcdKey::Master, Value::Unreadable),
            3 | 4 if self.mishaps.candidates => self.cut_off(number, length),
            5 if self.mishaps.candidates => self.freeze(number, length),
            6 if self.mishaps.candidates => self.stop(number, length),
            7 if self.mishaps.candidates => {
                let member = &mut self.members[number];
                let now = member.shows(self.now);
                if let Some(candidate) = &mut member.candidate {
                    candidate.handle_resign(now);
                    self.drain(number);
                }
            }
            3 | 4 if self.mishaps.goes_back => self.backup = self.store.clone(),
            5 | 6 if self.mishaps.goes_back => self.lose_etcd(self.backup.clone()),
            7 if self.mishaps.goes_back => self.lose_etcd(EtcdModel::default()),
            _ => {}
        }
        self.show();
        self.check();
    }

    /// etcd goes back to a backup, after every candidate has seen its last state.
    fn lose_etcd(&mut self, backup: EtcdModel) {
        let view = self.store.view();
        for number in 0..self.members.len() {
            self.see(number, view.clone());
        }
        self.queue
            .retain(|_, (_, _, event)| !matches!(event, ElectionEvent::Sees(_)));
        self.store.restore(&backup, self.now);
    }

    fn cut_off(&mut self, number: usize, length: Duration) {
        let member = &mut self.members[number];
        member.cut_until = member.cut_until.max(self.now + length);
        let left = member.cut_until.since(self.now);
        self.schedule(NOTICED, number, ElectionEvent::Away);
        self.schedule(left, number, ElectionEvent::Back);
    }

    fn freeze(&mut self, number: usize, length: Duration) {
        let member = &mut self.members[number];
        member.frozen_until = member.frozen_until.max(self.now + length);
        let left = member.frozen_until.since(self.now);
        self.schedule(left, number, ElectionEvent::Thaws);
    }
}
