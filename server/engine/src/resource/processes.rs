//! Processes of one name, and releases.
//!
//! The name of a child server's node belongs to one process: this file decides which, and keeps the leases of the
//! others. Two processes of one client name are two holders.
//!
//! A child server's process with a new incarnation was restarted. If its predecessor lives, it asks again within its
//! refresh interval, and keeps its lease. Then the later process is refused.
//!
//! A restarted child server inherits the leases of its node, and hands out none of them while it learns. So a restart
//! keeps no leases apart. Only grants of a process that came later than a live one are kept apart. A process that has
//! finished learning inherits nothing: it asked a predecessor of this server before, which perhaps refused it, and its
//! report does not cover the process that asked here first.

use crate::admission::CallerSlot;
use crate::amount::Amount;
use crate::holders::{
    HolderAsk, Holding, Identity, Lease, OtherProcessLease, Precedence, Slot, Standing, Whose,
};
use crate::id::{HolderId, Incarnation};
use crate::messages::{Conflict, RefusalReason, Released};
use crate::resource::holders::Holders;
use crate::resource::{EXPIRIES_PER_REQUEST, Resource};
use crate::templates::{Algorithm, REFRESH_IN_MAX};
use crate::time::Time;

impl Holders {
    /// Decides which process has the name of a child server's request. Two live processes under it are noted for
    /// the node ([`Effects::conflict`](super::Effects::conflict)).
    ///
    /// # Errors
    ///
    /// If it is not the one that asks: then nothing is decided.
    pub(super) fn settle_name(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        precedence: Precedence,
        algorithm: &Algorithm,
        now: Time,
    ) -> Result<(), RefusalReason> {
        match precedence {
            Precedence::Next => {
                self.part_from_former(slot, ask, algorithm, now);
                Ok(())
            }
            Precedence::OutOfOrder => Ok(()),
            Precedence::Started => {
                self.hand_name_on(slot, ask, now);
                Ok(())
            }
            Precedence::Returned => {
                self.give_name_back(slot, ask, now);
                let past = self.table.get(slot).and_then(|it| it.past.as_ref());
                let refused = past.and_then(|past| past.refused());
                self.note_refused(ask.holder(), refused, now);
                Ok(())
            }
            // A process that asks again lives.
            Precedence::Late => Err(RefusalReason::NotReady),
            Precedence::Unnumbered => Err(self.another_process(slot, algorithm, now)),
            Precedence::Refused => {
                // It goes on: both still live.
                self.note_refused(ask.holder(), ask.incarnation, now);
                let (process, sequence) = (ask.incarnation, ask.sequence);
                self.note_past(slot, |past| past.note_request(process, sequence));
                Err(self.another_process(slot, algorithm, now))
            }
        }
    }

    /// Whether a child server asks by another mastership of its node than before.
    pub(super) fn is_new_mastership(&self, slot: Slot, ask: &HolderAsk<'_>) -> bool {
        let past = self.table.get(slot).and_then(|it| it.past.as_ref());
        let known = past.and_then(|it| it.masterships.current());
        ask.mastership().is_some() && known != ask.mastership()
    }

    /// Notes the mastership by which a child server asks: before a decision, or after it for a new child.
    pub(super) fn note_mastership(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        is_new: bool,
        learns: bool,
    ) {
        let is_another = self.is_new_mastership(slot, ask);
        let Some(mastership) = ask.mastership().filter(|_| is_another) else {
            return;
        };
        let granted = self.table.copy_leases(slot).filter(|_| !is_new);
        self.table.note(slot, |holding| {
            let past = holding.past.get_or_insert_default();
            past.masterships.note(mastership, granted.as_ref(), learns);
        });
    }

    fn note_refused(&mut self, holder: &HolderId, process: Option<Incarnation>, now: Time) {
        let holder = HolderId {
            process,
            ..holder.clone()
        };
        self.note_conflict(holder, now);
    }

    fn note_conflict(&mut self, holder: HolderId, now: Time) {
        let conflict = Conflict { holder, at: now };
        self.effects.conflict = Some(Box::new(conflict));
    }

    /// Returns the refusal for a process whose name another one has, with the retry delay.
    pub(super) fn another_process(
        &self,
        slot: Slot,
        algorithm: &Algorithm,
        now: Time,
    ) -> RefusalReason {
        let expected_by = self.table.get(slot).map_or(now, Holding::overdue_at);
        let wait = expected_by.since(now).max(algorithm.refresh_interval);
        RefusalReason::AnotherProcess(wait.min(REFRESH_IN_MAX))
    }

    /// Gives the name to a process that was started.
    fn hand_name_on(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let before = holding.incarnation;
        let mut expected_by = holding.overdue_at();
        let past = holding.past.as_ref();
        let was_refused = past.is_some_and(|past| past.was_refused(ask.incarnation));
        let still_waits = past.and_then(|past| past.expected_by(now));
        let mut had = None;
        if was_refused || ask.acknowledges() {
            // It has finished learning long ago, and does not know the grants of the other process: this server or a
            // predecessor has refused it before.
            self.table
                .change_leases(slot, |leases| leases.set_apart(before, now));
        } else {
            had = self.table.copy_leases(slot);
        }
        if let Some(by) = still_waits {
            expected_by = expected_by.max(by);
        }
        self.rename(slot, ask.incarnation, false);
        self.note_past(slot, |past| {
            if still_waits.is_none() {
                past.forget_had();
            }
            if let Some(had) = had {
                past.note_had(had);
            }
            past.note_started(expected_by);
        });
    }

    /// Handles a later process of a child server that has finished learning although leases of the former process still
    /// last. It began to learn long before its first request here, so its report is incomplete, and the leases of the
    /// former process count in addition. Without learning mode, they count until the former process should have asked
    /// again.
    fn part_from_former(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        algorithm: &Algorithm,
        now: Time,
    ) {
        if !ask.acknowledges() {
            return;
        }
        let past = self.table.get(slot).and_then(|it| it.past.as_ref());
        let learns = algorithm.learns();
        let expected_by = || past.and_then(|past| past.expected_by(now));
        let Some(until) = learns.then_some(Time::MAX).or_else(expected_by) else {
            return;
        };
        let Some((former, had)) = past.and_then(|past| past.last_had(now)) else {
            return;
        };
        let ends = had.last_expiry();
        let apart = OtherProcessLease {
            whose: Whose::One(former),
            lease: Lease {
                capacity: had.own(),
                expires_at: ends.min(until),
            },
            ends,
        };
        if !apart.lease.capacity.is_zero() {
            self.table
                .change_leases(slot, |leases| leases.add_apart(apart));
        }
    }

    /// Gives the name back to a process that was replaced: it came first, and lives.
    fn give_name_back(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let later = holding.incarnation;
        self.restore_child(slot, ask.incarnation, later, now);
        self.note_past(slot, |past| past.refuse_later(ask.incarnation));
        self.rename(slot, ask.incarnation, true);
    }

    /// Restores the leases of a child server that came first. Grants of a later process of its name, also to holders
    /// that moved there, count in addition. If the leases of the first process have ended, or it counted as gone, the
    /// later process may use all leases of the name.
    fn restore_child(
        &mut self,
        slot: Slot,
        first: Option<Incarnation>,
        later: Option<Incarnation>,
        now: Time,
    ) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let past = holding.past.as_ref();
        let had = past.and_then(|past| past.had(first, now));
        // Until an answer said that the first process is gone, the later one has extended no lease: it confirmed only
        // leases of the first one. From then on it may confirm all that it has, reported or not. A process that does
        // not learn hands out its lease in any case.
        let learns = holding.report.as_ref().is_some_and(|it| it.learning);
        let may_confirm = !learns || past.is_none_or(|past| past.former_counts_as_gone());
        self.table.change_leases(slot, |leases| {
            let Some(had) = had else {
                let own = leases.take_apart(first);
                leases.set_apart(later, now);
                if let Some(own) = own {
                    leases.grant_to_server(own);
                }
                return;
            };
            let fresh = leases.reserved().get() - had.reserved().get();
            let confirmed = if may_confirm {
                let mut of_others = leases.clone();
                of_others.take_apart(first);
                of_others.reserved()
            } else {
                Amount::ZERO
            };
            let ends = leases.last_expiry();
            let apart = OtherProcessLease {
                whose: Whose::One(later),
                lease: Lease {
                    capacity: Amount::from_computed(fresh).max(confirmed),
                    expires_at: ends,
                },
                ends,
            };
            *leases = had;
            if !apart.lease.capacity.is_zero() {
                leases.add_apart(apart);
            }
        });
    }

    fn rename(&mut self, slot: Slot, to: Option<Incarnation>, is_refused: bool) {
        self.table.note(slot, |holding| {
            let past = holding.past.get_or_insert_default();
            past.note_former(holding.incarnation, holding.sequence, is_refused);
            past.forget_former(to);
            holding.incarnation = to;
            holding.sequence = 0;
            holding.pending = false;
        });
    }
}

// A holder's own release frees its lease at once. A message of another program under the same name must not free what
// the holder still uses. A process has drawn a random incarnation, which no other program knows; a process without one
// is identified by the address of its requests. A release that names no process concerns the newest process of the
// name, and frees its lease only when that process should have asked again. Until then the lease counts; and if the
// holder asks before, the release has no effect.

impl Resource {
    /// A release of what a client has. `caller` is where it comes from; none if that does not matter,
    /// and none, if nothing came from there before.
    pub(crate) fn handle_release(
        &mut self,
        holder: &HolderId,
        sequence: Option<u64>,
        caller: Option<CallerSlot>,
        now: Time,
    ) -> Released {
        self.expire(EXPIRIES_PER_REQUEST, now);
        let own = self.holders.table.find(holder);
        let of_name = || self.holders.table.newest_of_name(holder);
        // A process that holds nothing any more may repeat its release: that must not end the lease of another one.
        let slot = own.or_else(|| holder.process.is_none().then(of_name).flatten());
        let Some((slot, holding)) =
            slot.and_then(|slot| Some((slot, self.holders.table.get(slot)?)))
        else {
            return Released::NotThere;
        };
        let asks = Identity {
            epoch: None,
            process: holder.process,
            sequence,
        };
        let is_in_order = match own {
            Some(_) => holding.precedence(asks, now) == Precedence::Next,
            None => sequence.is_some() || holding.sequence == 0,
        };
        if !is_in_order {
            return Released::OutOfOrder;
        }
        let expected_by = holding.overdue_at();
        if own.is_some() && is_its_own(holding, caller) || expected_by <= now {
            self.holders.remove(slot, self.recovery.as_deref_mut());
            return Released::Freed;
        }
        self.holders
            .table
            .change_leases(slot, |leases| leases.end_by(expected_by));
        Released::UnlessHeard(expected_by.since(now))
    }
}

/// Whether the release comes from the process itself, as far as that is known.
fn is_its_own(holding: &Holding, caller: Option<CallerSlot>) -> bool {
    let anybody = CallerSlot::NOBODY;
    holding.incarnation.is_some()
        || holding.caller == anybody
        || caller.is_some_and(|caller| caller == anybody || caller == holding.caller)
}

// Two processes of one client name are two holders. A process that asks for the first time replaces the previous
// process of its name, which may have ended. If that one does not ask when it should, it wants nothing any more, and
// its lease counts until it ends. If it does ask, it is a holder like any other, and the server reports two live
// processes of one name.
//
// Until then both claims count, so that others make room for the new process. A process that replaced another one and
// never asked again is an exception: restarts in a loop must not take the shares of others.

impl Holders {
    /// Notes that a new holder comes: it replaces the newest process of its name. Returns its standing.
    pub(super) fn replace_process(&mut self, holder: &HolderId) -> Standing {
        let before = self.table.newest_of_name(holder);
        let Some((slot, before)) = before.and_then(|slot| Some((slot, self.table.get(slot)?)))
        else {
            return Standing::Newest;
        };
        let is_waited_for = before.standing == Standing::Newest;
        self.replace(slot, is_waited_for);
        Standing::Restarted
    }

    /// Notes that a client's process asks again. If it was replaced by a process that is still there,
    /// both are reported. Otherwise it is the newest again.
    pub(super) fn hear_process(&mut self, slot: Slot, holder: &HolderId, now: Time) {
        match self.table.get(slot).map(|it| it.standing) {
            Some(Standing::Restarted) => {
                let newest = Standing::Newest;
                self.table.note(slot, |holding| holding.standing = newest);
            }
            Some(Standing::Replaced) => {
                let newest = self.table.newest_of_name(holder);
                let newest = newest.and_then(|newest| self.table.get(newest));
                match newest.map(|newest| newest.overdue_at() > now) {
                    Some(true) => {
                        self.note_conflict(HolderId::client(holder.name.clone(), None), now);
                    }
                    Some(false) => {}
                    None => self.make_newest(slot),
                }
            }
            Some(Standing::Newest) | None => {}
        }
    }
}
