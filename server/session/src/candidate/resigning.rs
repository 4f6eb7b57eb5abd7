//! Resignation: first the mastership, so that another candidate gets it at once, then the lease with all keys under it.

use std::time::Duration;

use super::Candidate;
use super::phase::{Phase, Resignation};
use super::report::ElectionReport;
use super::step::{Awaited, Step};
use super::store::{Op, OpAnswer, TermRecord};
use super::transactions;
use crate::time::Time;

/// Longest time of a resignation, all attempts together.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

/// Longest time of one attempt to resign.
const RESIGN_ATTEMPT: Duration = Duration::from_millis(300);

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
            // A confirmed term has its mark.
            let mark = self
                .mark
                .filter(|it| it.is_written && held.valid_until.is_some());
            let term = TermRecord {
                // If it has not begun, its predecessor's time is not over. The term must still say so.
                resigned: held.begins <= now,
                is_marked: mark.is_some(),
                ..self.term(held, lease, now)
            };
            let txn = transactions::resign(held.created, term, lease.id);
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

    fn give_back_what_is_left(&mut self, now: Time) {
        let Phase::Resigning(resignation) = &mut self.phase else {
            return;
        };
        match &mut resignation.mastership {
            Some((txn, _, attempts)) if *attempts > 0 => {
                *attempts -= 1;
                let op = Op::Transact("resign", txn.clone());
                let within = RESIGN_ATTEMPT.min(self.config.call_timeout());
                self.ask_within(within, op, Awaited::Resigned, now);
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
