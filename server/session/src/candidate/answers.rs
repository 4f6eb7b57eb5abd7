//! What follows from an answer of etcd.

use std::time::Duration;

use super::claim::{self, Created};
use super::lengths::Said;
use super::phase::{Held, Lease, Phase};
use super::report::{Loss, Report};
use super::step::{Awaited, Stage};
use super::store::{Op, OpAnswer, TxnAnswer};
use super::{Candidate, term};
use crate::backoff::{Backoff, Limits};
use crate::planted::{self, Bug};
use crate::time::Time;

/// Waits between attempts when no endpoint answers. A part is certain: those who failed together do not all come
/// back at once, nor at once.
const WAITS: Limits = Limits {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    least: 0.1,
};

impl Candidate {
    /// An answer to what is waited for, which was sent then.
    pub(super) fn take_answer(
        &mut self,
        awaited: Awaited,
        answer: OpAnswer,
        sent_at: Time,
        chance: f64,
        now: Time,
    ) -> Option<Stage> {
        match (awaited, answer) {
            (_, OpAnswer::LeaseGone) if planted::is(Bug::LeaseGoneUnnoticed) => {
                self.fail(chance, now)
            }
            (_, OpAnswer::LeaseGone) => self.lose_lease(chance, now),
            (_, OpAnswer::Failed) => self.fail(chance, now),
            (Awaited::Heard, OpAnswer::Heard) => Some(Stage::Renew),
            (Awaited::Granted, OpAnswer::Granted(id, ttl)) => {
                self.phase.enter(Lease {
                    id,
                    ttl,
                    renewed: sent_at,
                });
                Some(Stage::Register)
            }
            (Awaited::Renewed, OpAnswer::Renewed) => self.renewed(sent_at, now),
            (Awaited::Registered(registration), OpAnswer::Transacted(answer)) => {
                if let Some(seat) = self.phase.seat_mut() {
                    seat.registered = Some((registration, answer.revision));
                }
                Some(Stage::Key)
            }
            (
                Awaited::Confirmed {
                    lease,
                    tells_next,
                    then,
                },
                OpAnswer::Transacted(answer),
            ) => self.confirmed(lease, &answer, tells_next, then, now),
            (Awaited::Stood { epoch_offset }, OpAnswer::Transacted(answer)) => {
                self.stood(epoch_offset, &answer, now)
            }
            (Awaited::Cleared, OpAnswer::Transacted(_)) => Some(Stage::Confirm),
            (Awaited::History { created, won }, OpAnswer::History(Some(unsaid))) => {
                // Reading took its time, in which another server may have told of a higher one.
                if self.past.highest_epoch() >= created.epoch() {
                    self.report(Report::NotHighest);
                    return self.give_back(created, now);
                }
                self.hold(created, won, unsaid)
            }
            // The key stays, and is taken up when all is known.
            (Awaited::History { .. }, OpAnswer::History(None)) => Some(Stage::Confirm),
            (awaited, answer) => {
                debug_assert!(false, "{answer:?} is no answer to {awaited:?}");
                self.fail(chance, now)
            }
        }
    }

    fn renewed(&mut self, sent_at: Time, now: Time) -> Option<Stage> {
        let renewed = if planted::is(Bug::RenewalFromAnswer) {
            now
        } else {
            sent_at
        };
        let lease = Lease {
            renewed,
            ..self.phase.seat()?.lease
        };
        if self.phase.held().is_some() {
            // Before it is noted as renewed: if this fails, both are tried again soon.
            return self.confirm(lease, false, Stage::Register, now);
        }
        self.phase.seat_mut()?.lease = lease;
        Some(Stage::Register)
    }

    /// etcd has confirmed the mastership after that renewal, or has not.
    fn confirmed(
        &mut self,
        lease: Lease,
        answer: &TxnAnswer,
        tells_next: bool,
        then: Stage,
        now: Time,
    ) -> Option<Stage> {
        let until = term::valid_until(lease.renewed, lease.ttl, self.config.clock_error);
        if let Some(seat) = self.phase.seat_mut() {
            seat.lease = lease;
        }
        let held = self.phase.held_mut()?;
        if answer.succeeded {
            held.note_confirmed(until, now);
            self.decides_until = Some(until);
            // Templates that were handed in since it was asked, etcd has not heard of: they are told next.
            return if tells_next || planted::is(Bug::UntoldTemplatesApplied) {
                self.apply_then(then)
            } else {
                Some(then)
            };
        }
        if !claim::is_ours_by_hand(answer, held.created) {
            self.lose(Loss::NotConfirmed);
        }
        Some(then)
    }

    /// It has become the master, or somebody else was faster; that will be seen.
    fn stood(&mut self, epoch_offset: u64, answer: &TxnAnswer, now: Time) -> Option<Stage> {
        if !answer.succeeded {
            return Some(Stage::Confirm);
        }
        let view = self.view.as_deref();
        let ttl = self.config.ttl;
        match claim::term_found(answer, view, ttl) {
            Some((term, seen)) => self.past.note_term(&term, ttl, seen),
            None => self.past.note_no_term(ttl, now),
        }
        let created = Created {
            revision: answer.revision,
            epoch_offset,
        };
        self.win(created, now, now)
    }

    /// The master's key is ours since then. If its epoch is not the highest, etcd has gone back, or this is a
    /// view of before, of a key that was lost. Be that as it may: it is given back, or would stay for as long as
    /// the lease.
    pub(super) fn win(&mut self, created: Created, won: Time, now: Time) -> Option<Stage> {
        if self.past.highest_epoch() >= created.epoch() {
            self.report(Report::NotHighest);
            return self.give_back(created, now);
        }
        let unsaid = match &self.lengths {
            Some(lengths) if self.past.said() == Said::Nothing => {
                let templates = self.config.templates.as_ref();
                if templates.is_some_and(|templates| templates.has_history) {
                    let until = self.phase.seat()?.lease.next_renewal();
                    let awaited = Awaited::History { created, won };
                    return self.ask(Op::ReadHistory(until), awaited, now);
                }
                // Nothing is known of former ones: what takes a short one now may have taken any.
                lengths.longest()
            }
            _ => Duration::ZERO,
        };
        self.hold(created, won, unsaid)
    }

    /// The same, and all is known of its predecessors. `unsaid` is how long leases may last of one that said
    /// nothing of them.
    fn hold(&mut self, created: Created, won: Time, unsaid: Duration) -> Option<Stage> {
        let epoch = created.epoch();
        debug_assert!(epoch > self.past.highest_epoch(), "epochs grow: {epoch}");
        let (begins, vacant_since) = self
            .past
            .begin(&self.config.server, self.decides_until, won);
        let longer_leases = self.inherit(vacant_since, unsaid);
        self.past.note_own_epoch(epoch);
        self.report(Report::Elected {
            epoch,
            wait: begins.since(won),
        });
        self.phase.hold(Held {
            created,
            begins,
            vacant_since,
            longer_leases,
            valid_until: None,
        });
        Some(Stage::Confirm)
    }

    /// How long the longest lease may be that was out when the node became vacant, by templates other than
    /// those in force.
    fn inherit(&mut self, vacant_since: Time, unsaid: Duration) -> Duration {
        let Some(lengths) = &mut self.lengths else {
            return Duration::ZERO;
        };
        let longer = lengths
            .longer_leases(self.past.said(), unsaid)
            .max(self.past.lost_after(vacant_since))
            // What this server granted before it lost its last mastership.
            .max(lengths.older_after(vacant_since));
        lengths.inherit(vacant_since, longer);
        longer
    }

    pub(super) fn lose(&mut self, why: Loss) {
        if let Some(held) = self.phase.lose() {
            let epoch = held.created.epoch();
            self.report(Report::Lost { epoch, why });
        }
    }

    fn lose_lease(&mut self, chance: f64, now: Time) -> Option<Stage> {
        self.lose(Loss::LeaseGone);
        self.phase = Phase::Outside;
        // Not in a rush, should etcd lose every lease at once.
        let wait = Backoff::default().note_failure(WAITS, 0, chance);
        self.rest(now + wait)
    }

    fn fail(&mut self, chance: f64, now: Time) -> Option<Stage> {
        // One endpoint that fails is no problem yet: the others are tried at once.
        let others = self.config.endpoints.saturating_sub(1);
        let wait = self.backoff.note_failure(WAITS, others, chance);
        if wait.is_zero() {
            return Some(Stage::Begin);
        }
        self.report_contact(false);
        self.rest(now + wait)
    }
}
