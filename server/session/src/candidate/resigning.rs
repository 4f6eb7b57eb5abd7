//! Giving up: the mastership first, so that another candidate has it at once, then the lease, and everything
//! that stands under it.

use std::time::Duration;

use super::Candidate;
use super::phase::{Phase, Resignation};
use super::report::Report;
use super::step::{Awaited, Step, Templates};
use super::store::{Op, OpAnswer};
use crate::time::Time;

/// How long a resignation may take, all attempts together.
const RESIGN_TIMEOUT: Duration = Duration::from_secs(1);

/// How long one attempt to resign may take.
const RESIGN_ATTEMPT: Duration = Duration::from_millis(300);

impl Candidate {
    /// Whatever is under way is given up, and what is there is given back.
    pub(super) fn begin_to_resign(&mut self, now: Time) {
        // What waits to be in force will never be.
        self.templates = Templates::Settled;
        let Some(seat) = self.phase.seat() else {
            return self.be_over();
        };
        let lease = seat.lease;
        let mastership = self.phase.held().map(|held| {
            let told = self.told(held, lease, now);
            // One that has not begun has nothing to give up but the key: its predecessor's time is not over.
            let had_begun = held.begins <= now;
            let txn = self.claim.resign(held.created, told, lease.id, had_begun);
            // One endpoint may be dead; there is time for another one.
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

    /// An answer while it resigns.
    pub(super) fn take_last_answer(&mut self, awaited: &Awaited, answer: &OpAnswer, now: Time) {
        let Phase::Resigning(resignation) = &mut self.phase else {
            return;
        };
        match (awaited, answer) {
            (Awaited::Resigned, OpAnswer::Transacted(answer)) => {
                let was_ours = answer.succeeded;
                if let Some((_, epoch, _)) = resignation.mastership.take() {
                    self.report(Report::Resigned { epoch, was_ours });
                }
                self.give_back_what_is_left(now);
            }
            (Awaited::Resigned, _) => {
                self.report(Report::NotResigned);
                self.give_back_what_is_left(now);
            }
            (_, OpAnswer::Revoked | OpAnswer::LeaseGone) => self.be_over(),
            _ => {
                self.report(Report::NotRevoked);
                self.be_over();
            }
        }
    }

    /// Whether the time to resign was over.
    pub(super) fn end_resignation_if_late(&mut self, now: Time) {
        if matches!(&self.phase, Phase::Resigning(resignation) if resignation.until <= now) {
            self.report(Report::ResignationLate);
            self.be_over();
        }
    }

    fn be_over(&mut self) {
        self.phase = Phase::Over;
        self.step = Step::Idle { again_at: self.now };
    }
}
