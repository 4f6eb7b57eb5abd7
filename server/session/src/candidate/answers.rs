//! Effects of etcd's answers.

use std::time::Duration;

use super::older_leases::PredecessorLeases;
use super::phase::{EtcdLease, HeldMastership, Phase};
use super::report::{ElectionReport, LossReason};
use super::step::{Awaited, Stage};
use super::store::{Op, OpAnswer, Registration, TxnAnswer};
use super::transactions::{self, CreatedKey};
use super::{Candidate, term};
use crate::backoff::{Backoff, WaitLimits};
use crate::time::Time;

/// Waits between attempts when no endpoint answers. Each has a random and a fixed part, so that candidates that failed
/// together retry neither at the same moment nor immediately.
const WAITS: WaitLimits = WaitLimits {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    least: 0.1,
};

impl Candidate {
    /// Handles the answer to the awaited request, which was sent at `sent_at`.
    pub(super) fn take_answer(
        &mut self,
        awaited: Awaited,
        answer: OpAnswer,
        sent_at: Time,
        chance: f64,
        now: Time,
    ) -> Option<Stage> {
        if answer != OpAnswer::Failed {
            self.last_round_trip = now.since(sent_at);
        }
        match (awaited, answer) {
            // The lease of the span is gone, or this server's own. A renewal of that one shows which.
            (Awaited::Confirmed { .. }, OpAnswer::LeaseGone) if self.span.take().is_some() => {
                let own = self.phase.seat()?.lease.id;
                self.ask(Op::Renew(own), Awaited::Renewed, now)
            }
            (_, OpAnswer::LeaseGone) => self.lose_lease(chance, now),
            (_, OpAnswer::Failed) => self.fail(chance, now),
            (Awaited::Probed, OpAnswer::Probed) => Some(Stage::Renew),
            (Awaited::Granted, OpAnswer::Granted(id, ttl)) => {
                self.phase.enter(EtcdLease {
                    id,
                    ttl,
                    renewed: sent_at,
                });
                Some(Stage::Register)
            }
            // It was that of the span. A later confirmation has another one.
            (Awaited::Renewed, OpAnswer::Renewed) if self.phase.held().is_some() => {
                self.confirm(false, Stage::Register, now)
            }
            (Awaited::Renewed, OpAnswer::Renewed) => {
                self.phase.seat_mut()?.lease.renewed = sent_at;
                Some(Stage::Register)
            }
            (Awaited::Span { mend, then }, OpAnswer::Granted(id, ttl)) => {
                self.note_span(id, ttl);
                self.confirm(mend, then, now)
            }
            (Awaited::Registered(registration), OpAnswer::Transacted(answer)) => {
                if let Some(seat) = self.phase.seat_mut() {
                    seat.registered = Some((registration, answer.revision));
                }
                Some(Stage::Key)
            }
            (
                Awaited::Confirmed {
                    registers,
                    announces_next,
                    then,
                },
                OpAnswer::Transacted(answer),
            ) => {
                self.note_renewed(registers, &answer, sent_at);
                self.confirmed(sent_at, &answer, announces_next, then, now)
            }
            (Awaited::Stood { epoch_offset, seen }, OpAnswer::Transacted(answer)) => {
                self.stood(epoch_offset, seen, &answer, now)
            }
            (Awaited::Cleared, OpAnswer::Transacted(_)) => Some(Stage::Confirm),
            (Awaited::History { created, won }, OpAnswer::History(Some(unstated))) => {
                self.hold(created, won, unstated, now)
            }
            (Awaited::Marks { created, won }, OpAnswer::Marks(found)) => {
                self.phase.seat_mut()?.lease.renewed = sent_at;
                self.take_marks(found, created, won, now)
            }
            // The key stays. The mastership is held once the history is known.
            (Awaited::History { .. }, OpAnswer::History(None)) => Some(Stage::Confirm),
            (awaited, answer) => {
                debug_assert!(false, "{answer:?} is no answer to {awaited:?}");
                self.fail(chance, now)
            }
        }
    }

    /// Notes the renewal that came with a transaction, and the registration if that was in it.
    fn note_renewed(&mut self, registers: Option<Registration>, answer: &TxnAnswer, sent_at: Time) {
        if let Some(seat) = self.phase.seat_mut() {
            seat.lease.renewed = sent_at;
            if let Some(registration) = registers.filter(|_| answer.succeeded) {
                seat.registered = Some((registration, answer.revision));
            }
        }
    }

    /// Handles etcd's confirmation of the mastership with a renewal sent at that time, or its refusal.
    fn confirmed(
        &mut self,
        sent_at: Time,
        answer: &TxnAnswer,
        announces_next: bool,
        then: Stage,
        now: Time,
    ) -> Option<Stage> {
        let ttl = self.phase.seat()?.lease.ttl;
        let until = term::valid_until(sent_at, ttl, self.config.clock_tolerance);
        let held = self.phase.held_mut()?;
        if answer.succeeded {
            held.note_confirmed(until, now);
            self.decides_until = Some(until);
            if let Some(span) = &mut self.span {
                span.is_written = true;
            }
            // Templates that came after this request was sent are not recorded in etcd yet. The next request does that.
            return if announces_next {
                self.apply_then(then)
            } else {
                Some(then)
            };
        }
        if !transactions::is_ours_by_hand(answer, held.created) {
            self.lose(LossReason::NotConfirmed);
        }
        Some(then)
    }

    /// Handles the result: a win, or a faster candidate, which the next view will show. `seen`: etcd's revision before.
    fn stood(
        &mut self,
        epoch_offset: u64,
        seen: u64,
        answer: &TxnAnswer,
        now: Time,
    ) -> Option<Stage> {
        if !answer.succeeded {
            return Some(Stage::Confirm);
        }
        // Views that came meanwhile may be newer than the answer.
        if answer.revision < seen {
            self.terms.note_went_back();
        }
        let view = self.view.as_deref();
        self.note_term(transactions::term_found(answer, view, self.config.ttl), now);
        let created = CreatedKey {
            revision: answer.revision,
            epoch_offset,
        };
        self.win(created, now)
    }

    /// Notes that it has the master's key now. If the key's epoch is not the highest, etcd has gone back, or the view
    /// is an old one, of a key that is lost. In both cases it gives the key back. Otherwise the key would stay for as
    /// long as the lease.
    pub(super) fn win(&mut self, created: CreatedKey, now: Time) -> Option<Stage> {
        if self.terms.highest_epoch() >= created.epoch() {
            self.report(ElectionReport::NotHighest);
            return self.give_back(created, now);
        }
        match self.lengths {
            Some(_) => self.read_marks(created, now),
            None => self.win_with_marks(created, now, now),
        }
    }

    /// Holds the mastership, if it is known how long leases of predecessors last, or asks for that.
    pub(super) fn win_with_marks(
        &mut self,
        created: CreatedKey,
        won: Time,
        now: Time,
    ) -> Option<Stage> {
        let unstated = match &self.lengths {
            Some(lengths) if self.terms.predecessor_leases() == PredecessorLeases::NotStated => {
                let templates = self.config.templates.as_ref();
                if templates.is_some_and(|templates| templates.has_history) {
                    let until = self.phase.seat()?.lease.next_renewal();
                    let awaited = Awaited::History { created, won };
                    return self.ask(Op::ReadHistory(until), awaited, now);
                }
                // Former templates are unknown, so former leases may have been as long as the longest now.
                lengths.longest()
            }
            _ => Duration::ZERO,
        };
        self.hold(created, won, unstated, now)
    }

    /// Holds the mastership, since all about its predecessors is known. `unstated` is the longest lease of a
    /// predecessor whose term does not state it.
    fn hold(
        &mut self,
        created: CreatedKey,
        won: Time,
        unstated: Duration,
        now: Time,
    ) -> Option<Stage> {
        let epoch = created.epoch();
        // During a read, another server may have reported a higher epoch.
        if self.terms.highest_epoch() >= epoch {
            self.report(ElectionReport::NotHighest);
            return self.give_back(created, now);
        }
        let (server, decides_until) = (&self.config.server, self.decides_until);
        let (begins, vacant_since) = self.terms.begin(server, decides_until, won);
        let inherited = vacant_since.map(|since| self.inherit(since, unstated));
        let longer_leases = inherited.unwrap_or_default();
        self.terms.note_own_epoch(epoch);
        self.report(ElectionReport::Elected {
            epoch,
            wait: begins.since(won),
        });
        self.phase.hold(HeldMastership {
            created,
            begins,
            vacant_since,
            longer_leases,
            valid_until: None,
        });
        Some(Stage::Confirm)
    }

    /// Returns the longest lease that may have been valid when the node became vacant, by templates other than those in
    /// force.
    fn inherit(&mut self, vacant_since: Time, unstated: Duration) -> Duration {
        let Some(lengths) = &mut self.lengths else {
            return Duration::ZERO;
        };
        let longer = lengths
            .longer_leases(self.terms.predecessor_leases(), unstated)
            .max(self.terms.lost_after(vacant_since))
            // Leases that this server granted in its last mastership.
            .max(lengths.older_after(vacant_since));
        lengths.note_older(vacant_since, longer);
        longer
    }

    pub(super) fn lose(&mut self, why: LossReason) {
        self.marks = None;
        if let Some(held) = self.phase.lose() {
            let epoch = held.created.epoch();
            self.report(ElectionReport::Lost { epoch, why });
        }
    }

    fn lose_lease(&mut self, chance: f64, now: Time) -> Option<Stage> {
        self.lose(LossReason::LeaseGone);
        self.phase = Phase::Outside;
        // It waits, in case etcd has lost all leases at once.
        let wait = Backoff::default().note_failure(WAITS, 0, chance);
        self.rest(now + wait)
    }

    fn fail(&mut self, chance: f64, now: Time) -> Option<Stage> {
        // If one endpoint fails, it tries the others at once.
        let others = self.config.endpoints.saturating_sub(1);
        let wait = self.backoff.note_failure(WAITS, others, chance);
        if wait.is_zero() {
            return Some(Stage::Begin);
        }
        self.report_contact(false);
        self.rest(now + wait)
    }
}
