//! Resignation: first the mastership, so that another candidate gets it at once, then the lease with all keys under it.
//! A master that an operator asks to step down gives back the mastership alone.

use std::time::Duration;

use super::Candidate;
use super::phase::{EtcdLease, HeldMastership, Phase, Resignation};
use super::report::{ElectionReport, LossReason};
use super::step::{Awaited, Stage, Step};
use super::store::{Op, OpAnswer, Registration, TermRecord, Txn};
use super::transactions;
use crate::time::Time;

/// Longest time of a resignation, all attempts together.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

impl Candidate {
    /// Abandons the request in flight, and starts to give back its lease and keys.
    pub(super) fn begin_to_resign(&mut self, now: Time) {
        // Waiting templates never come into force.
        self.next_templates = None;
        self.marks = None;
        let Some(seat) = self.phase.seat() else {
            return self.be_over();
        };
        let lease = seat.lease;
        let mastership = self.phase.held().map(|held| {
            let txn = self.handover(held, lease, now);
            // One endpoint may be down, and there is time to try another one.
            let attempts = self.config.endpoints.saturating_add(1);
            (txn, held.created.epoch(), attempts)
        });
        self.phase = Phase::Resigning(Resignation {
            until: now + RESIGN_TIMEOUT,
            lease: lease.id,
            mastership,
        });
        self.give_back_what_is_left(now);
    }

    /// Returns the transaction after which another candidate may decide at once.
    fn handover(&self, held: &HeldMastership, lease: EtcdLease, now: Time) -> Txn {
        // A confirmed term has its lease span.
        let is_confirmed = held.valid_until.is_some();
        let span = self.span.filter(|it| it.is_written && is_confirmed);
        let term = TermRecord {
            // If it has not begun, its predecessor's time is not over. The term must still say so.
            resigned: held.begins <= now,
            has_lease_span: span.is_some(),
            ..self.term(held, lease, now)
        };
        transactions::resign(held.created, term, lease.id)
    }

    /// Gives up the mastership, since an operator asks for that. It remains a candidate.
    pub(super) fn step_down(&mut self, held: &HeldMastership, now: Time) -> Option<Stage> {
        let lease = self.phase.seat()?.lease;
        let txn = self.handover(held, lease, now);
        // This server decides nothing from now on, whatever becomes of the transaction.
        self.lose(LossReason::SteppedDown);
        self.ask(Op::Transact("step down", txn), Awaited::Cleared, now)
    }

    /// Whether this server has stepped down, and leaves the mastership to another one. The request ends after a while,
    /// in case no other candidate can be the master.
    pub(super) fn has_stepped_down(&self) -> bool {
        self.view.as_ref().is_some_and(|view| {
            let is_own = |other: &Registration| other.server == self.config.server;
            let epoch = view.steps_down();
            let was_own =
                |term: &TermRecord| epoch == Some(term.epoch) && term.server == self.config.server;
            self.terms.last().is_some_and(was_own) && !view.registrations().all(is_own)
        })
    }

    fn give_back_what_is_left(&mut self, now: Time) {
        let Phase::Resigning(resignation) = &mut self.phase else {
            return;
        };
        match &mut resignation.mastership {
            Some((txn, _, attempts)) if *attempts > 0 => {
                *attempts -= 1;
                let op = Op::Transact("resign", txn.clone());
                self.ask(op, Awaited::Resigned, now);
            }
            _ => {
                let revoke = Op::Revoke(resignation.lease);
                self.ask(revoke, Awaited::Revoked, now);
            }
        }
    }

    /// Handles an answer during a resignation.
    pub(super) fn take_last_answer(&mut self, awaited: &Awaited, answer: &OpAnswer, now: Time) {
        let Phase::Resigning(resignation) = &mut self.phase else {
            return;
        };
        match (awaited, answer) {
            (Awaited::Resigned, OpAnswer::Transacted(answer)) => {
                let was_ours = answer.succeeded;
                if let Some((_, epoch, _)) = resignation.mastership.take() {
                    self.report(ElectionReport::Resigned { epoch, was_ours });
                }
                self.give_back_what_is_left(now);
            }
            (Awaited::Resigned, _) => {
                self.report(ElectionReport::NotResigned);
                self.give_back_what_is_left(now);
            }
            (_, OpAnswer::Revoked | OpAnswer::LeaseGone) => self.be_over(),
            _ => {
                self.report(ElectionReport::NotRevoked);
                self.be_over();
            }
        }
    }

    /// Ends the resignation if its time is over.
    pub(super) fn end_resignation_if_late(&mut self, now: Time) {
        if matches!(&self.phase, Phase::Resigning(resignation) if resignation.until <= now) {
            self.report(ElectionReport::ResignationLate);
            self.be_over();
        }
    }

    fn be_over(&mut self) {
        self.phase = Phase::Over;
        self.step = Step::Idle { again_at: self.now };
    }
}
