//! Candidates' requests to etcd: each arrives or is lost; etcd executes it; the answer arrives in
//! time or not.

use std::time::Duration;

use doorward_engine::time::Time;
use doorward_replica::Replica;
use doorward_session::candidate::store::{EtcdRequest, LeaseId, Op, OpAnswer, OpId};

use crate::world::{ServerId, World};

impl World<'_> {
    /// Sends a server's request to etcd.
    pub(crate) fn ask_etcd(&mut self, from: ServerId, asking: EtcdRequest) {
        let now = self.now;
        let Some(way) = self.etcd_connection(from) else {
            return;
        };
        let given_up = now + asking.within;
        let takes = self.etcd.takes(&way, now);
        let is_lost = self.etcd.loses(&way, way.there_cut_until, now);
        if is_lost || takes >= asking.within {
            self.send_etcd_answer(given_up, from, asking.id, OpAnswer::Failed);
        }
        if !is_lost {
            self.act(now + takes, move |world| {
                world.answer_question(from, asking, now);
            });
        }
    }

    /// Executes a request that has arrived, whether or not its answer will arrive.
    pub(crate) fn answer_question(&mut self, from: ServerId, asking: EtcdRequest, sent: Time) {
        let now = self.now;
        let answer = match &asking.op {
            Op::ReadHistory(_) => OpAnswer::History(Some(self.longer_leases_ever(from))),
            op => self.etcd.store.execute(from.place, op, now),
        };
        match (&asking.op, &answer) {
            (Op::Grant(_), OpAnswer::Granted(lease, ttl)) => {
                self.schedule_lease_check(*lease, now + *ttl);
                // The lease of a lease span is longer.
                if *ttl == self.ttl() {
                    self.note_renewal(from, Some(*lease), sent);
                }
            }
            (Op::Renew(lease), OpAnswer::Renewed)
            | (Op::ReadMarks { lease, .. }, OpAnswer::Marks(_)) => {
                self.note_renewed(from, *lease, sent)
            }
            (Op::Confirm { lease, span, .. }, OpAnswer::Transacted(_)) => {
                for lease in [Some(*lease), *span].into_iter().flatten() {
                    self.note_renewed(from, lease, sent);
                }
            }
            _ => {}
        }
        if self.etcd.store.take_change() {
            self.send_keys(from.place);
        }
        let Some(way) = self.etcd_connection(from) else {
            return;
        };
        let given_up = sent + asking.within;
        let arrives = now + self.etcd.takes(&way, now);
        if self.etcd.loses(&way, way.back_cut_until, now) || arrives >= given_up {
            // A request that arrives later has already timed out.
            if now < given_up {
                self.send_etcd_answer(given_up, from, asking.id, OpAnswer::Failed);
            }
            return;
        }
        self.send_etcd_answer(arrives, from, asking.id, answer);
    }

    /// Notes that etcd has renewed a lease.
    fn note_renewed(&mut self, from: ServerId, lease: LeaseId, sent: Time) {
        let ttl = self.ttl();
        let stored = self.etcd.store.lease(lease);
        if stored.is_some_and(|it| it.ttl == ttl) {
            self.note_renewal(from, None, sent);
        }
    }

    /// Returns the longest lease of any earlier templates where the server's templates give a
    /// shorter one.
    fn longer_leases_ever(&mut self, id: ServerId) -> Duration {
        let Some(server) = self.places[id.place].server(id.term) else {
            return Duration::ZERO;
        };
        let outlast = self.templates_before.iter();
        let outlast = outlast.map(|before| before.outlasts(server.node().templates()));
        outlast.max().unwrap_or_default()
    }

    /// Gives a candidate an answer or a timeout at a time.
    fn send_etcd_answer(&mut self, at: Time, to: ServerId, id: OpId, mut answer: OpAnswer) {
        let input = move |replica: &mut Replica, now| {
            if let OpAnswer::Transacted(answer) = &mut answer
                && let Some(found) = &mut answer.found
            {
                found.seen_at = now;
            }
            replica.handle_etcd_answer(id, answer, now);
        };
        self.send_news(at, to, move |world| world.input(to, input));
    }
}
