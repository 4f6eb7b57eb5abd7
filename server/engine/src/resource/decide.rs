//! How a request becomes a lease.
//!
//! The algorithm decides the share that a holder *should* have. Leases of others bound the grant that it gets *now*:
//! gets = min(share, C − Σ reserved of the others). Since Σ reserved is kept exactly, Σ reserved ≤ C holds to the
//! last bit, and is asserted after every decision (`docs/algorithms.md`, "What is reserved").
//!
//! **When the capacity is lowered** below the sum of the leases, no lease can be taken back; each holder shrinks at
//! its next refresh. By the bound alone, the first holder to refresh would be cut to nothing, and grow again when
//! the others have shrunk. So a holder may keep its newest lease, up to its share of the lowered capacity by the
//! claims of that moment ([`lowering`](super::lowering)). These shares add up to the capacity, so once every holder
//! has refreshed, the leases fit; and a holder with no more than its share loses nothing.
//!
//! Below the root, [`pending`](super::pending) decides which holders must wait for the parent first.

use std::time::Duration;

use crate::admission::AdmissionGate;
use crate::amount::Amount;
use crate::division::Grant;
use crate::holders::{HolderAsk, Holding, Lease, Leases, Precedence, Slot, Standing};
use crate::id::HolderKind;
use crate::messages::{LimitedBy, RefusalReason};
use crate::resource::ask::{Answer, AnswerKind};
use crate::resource::holders::{Decision, grant_by_kind};
use crate::resource::pace::Before;
use crate::resource::{EXPIRIES_PER_REQUEST, Resource, pace};
use crate::time::Time;

impl Resource {
    /// A request of a holder.
    ///
    /// # Errors
    ///
    /// If the template is gone, the parent refuses the resource, or a limit is reached: nothing is
    /// changed then. [`RefusalReason::NotReady`] if this server has no lease itself yet.
    pub(crate) fn handle_ask(
        &mut self,
        mut ask: HolderAsk<'_>,
        gate: &mut AdmissionGate<'_>,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        if !self.has_source() {
            return Err(RefusalReason::UnknownResource);
        }
        if let Some(reason) = self.refused(now) {
            return Err(reason);
        }
        self.stop_waiting(now);
        let looked_at = self.expire(EXPIRIES_PER_REQUEST, now);
        self.count_demand(&mut ask, gate.limits);
        let slot = self.holders.table.find_asker(ask.asker);
        self.admit_request(slot, &ask, gate, now)?;
        if let Some(slot) = slot {
            if let Some(answer) = self.repeat(slot, &ask, now) {
                // Leases that ended, or were only looked at, have changed when the resource is due.
                let kind = if looked_at == 0 {
                    AnswerKind::Repeated
                } else {
                    AnswerKind::Decided
                };
                return Ok(Answer { kind, ..answer });
            }
            if let Some(answer) = self.hear_again(slot, &ask, now)? {
                return Ok(answer);
            }
        }
        let admitted = self.admit(slot, &ask, gate, now)?;
        self.count_reports(slot, &mut ask, admitted, now);
        self.note_reports(slot, &ask, now)?;
        Ok(self.decide(slot, &ask, now))
    }

    /// A request of a known holder. None: it has to be decided.
    ///
    /// # Errors
    ///
    /// If the name of a child server is another process's.
    fn hear_again(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        now: Time,
    ) -> Result<Option<Answer>, RefusalReason> {
        let Some(holding) = self.holders.table.get(slot) else {
            return Ok(None);
        };
        let precedence = holding.precedence(ask.identity(), now);
        if precedence == Precedence::OutOfOrder {
            if ask.incarnation != holding.incarnation && ask.mastership().is_some() {
                // A newer start of its node has the lease, or a newer master.
                let algorithm = self.policy.algorithm();
                return Err(self.holders.another_process(slot, algorithm, now));
            }
            if holding.pending {
                // The holder has only reported leases, and none of this server.
                return Err(RefusalReason::NotReady);
            }
            let kind = AnswerKind::OutOfOrder;
            return Ok(Some(self.current(slot, ask.floor, kind, now)));
        }
        let since = now.since(holding.decided_at);
        // Others wait for the capacity that an acknowledgement frees. Each shrink has only one.
        let newest = holding.newest().capacity;
        let acknowledges = ask.acknowledges() && ask.in_use() <= newest && newest < holding.own();
        let is_next = precedence == Precedence::Next && !self.holders.is_new_mastership(slot, ask);
        let is_early = since < ask.floor && !holding.is_invited(now) && !holding.pending;
        if is_early && is_next && !acknowledges && !self.holders.take_early_news(slot, ask, now) {
            let floor_left = ask.floor - since;
            return Ok(Some(self.answer_too_early(slot, ask, floor_left, now)));
        }
        if ask.holder().kind == HolderKind::Client {
            if precedence == Precedence::Unnumbered {
                // It comes from another program without an incarnation, which must not use this holder's lease.
                return Err(RefusalReason::Unnumbered);
            }
            self.holders.hear_process(slot, ask.holder(), now);
            return Ok(None);
        }
        self.holders
            .settle_name(slot, ask, precedence, self.policy.algorithm(), now)?;
        if precedence != Precedence::Next {
            self.tell_recovery(now, |recovery, s| recovery.forget_report(s, ask));
        }
        self.holders
            .note_mastership(slot, ask, false, self.recovery.is_some());
        Ok(None)
    }

    /// Records the reports of a holder, as far as they are believed.
    ///
    /// # Errors
    ///
    /// If it can only keep what it has, until the parent has answered, or etcd has confirmed the mark.
    fn note_reports(
        &mut self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        now: Time,
    ) -> Result<(), RefusalReason> {
        self.tell_recovery(now, |recovery, s| recovery.hear(s, slot, ask));
        if self.must_wait_for_parent(slot, ask, now) || self.must_wait_for_mark(slot, ask) {
            self.note_pending(slot, ask, now);
            return Err(RefusalReason::NotReady);
        }
        self.tell_recovery(now, |recovery, s| recovery.count(s, slot, ask));
        Ok(())
    }

    pub(super) fn decide(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) -> Answer {
        let before = slot
            .and_then(|slot| self.holders.table.get(slot))
            .map(Before::of);
        let was_overcommitted = cfg!(debug_assertions) && self.overcommitted().is_some();
        let version = self.holders.table.version();
        let slot = match slot {
            Some(slot) => self.decide_for_known(slot, ask, now),
            None => self.decide_for_new(ask, now),
        };
        // Then reports count, whatever we have ourselves.
        let counts_reports = self.parent.is_some() && self.recovery.is_some();
        debug_assert!(
            was_overcommitted || self.overcommitted().is_none() || counts_reports,
            "{}: a grant took Σ reserved above the capacity",
            self.id
        );
        let grew = before.is_none_or(|before| ask.demand.wants() > before.wants);
        let after = self.holders.table.get(slot).map(Before::of);
        let waited = before.and_then(|before| before.waited_for(after?));
        let repeats_in = Some(version).filter(|it| *it == self.holders.table.version());
        self.holders.table.note(slot, |holding| {
            holding.repeats_in = repeats_in;
            holding.wants_more = ask.wants_more;
        });
        self.holders.note_request(slot, ask);
        let refresh_in = self.plan(slot, ask, grew, waited, now);
        self.place(slot);
        self.holders.note_unsettled();
        let answer = self.current(slot, refresh_in, AnswerKind::Decided, now);
        Answer {
            decided: !ask.is_held,
            ..answer
        }
    }

    /// The holder's newest lease as an answer.
    pub(super) fn current(
        &mut self,
        slot: Slot,
        refresh_in: Duration,
        kind: AnswerKind,
        now: Time,
    ) -> Answer {
        let learning_for = self.learning_for(now);
        let safe_capacity = self.safe_capacity(learning_for);
        self.holders.note_safe_capacity(slot, safe_capacity);
        // Callers have just found the holder there.
        let nothing = Lease {
            capacity: Amount::ZERO,
            expires_at: now,
        };
        let known = self.holders.table.get(slot);
        let known = known.map(|it| (it.newest(), self.limited_by(it, now), it.refresh_at));
        let (lease, limited_by, planned) = known.unwrap_or((nothing, LimitedBy::Share, now));
        let refresh_in = if kind == AnswerKind::OutOfOrder {
            // Not before it was planned: a holder that numbers its requests wrongly must not be asked to
            // come back at once, for ever.
            refresh_in.max(planned.since(now))
        } else {
            refresh_in
        };
        Answer {
            lease,
            refresh_in: pace::within_lease(refresh_in, lease.expires_at.since(now)),
            safe_capacity,
            limited_by,
            learning_for,
            kind,
            decided: matches!(kind, AnswerKind::Decided | AnswerKind::Repeated),
        }
    }

    fn decide_for_known(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> Slot {
        let Some(holding) = self.holders.table.get(slot) else {
            return slot;
        };
        // This uses the claim at the time of the lowering, so it comes before the change of demand.
        let (kept_if_lowered, had) = (self.lowering.kept(holding), holding.own());
        self.holders.change_demand(slot, &ask.demand);
        // A report of at least its present leases lowers none of them.
        if ask.acknowledges() && ask.in_use() < had {
            self.holders
                .table
                .change_leases(slot, |leases| leases.acknowledge(ask.in_use()));
        }
        let Some(holding) = self.holders.table.get(slot) else {
            return slot;
        };
        let grant = self.grant_known(holding, ask, kept_if_lowered, now);
        let held = holding.own();
        let may_use_more = ask.in_use() > held.max(grant.gets);
        if may_use_more || ask.in_use() > ask.to_confirm() {
            let leases = self.in_recovery(now, |recovery, s| recovery.reserve(s, ask, grant.room));
            self.holders.table.change_leases(slot, |known| {
                leases
                    .into_iter()
                    .flatten()
                    .for_each(|lease| known.grant(lease));
            });
        }
        let holding = self.holders.table.get(slot);
        let had_until = holding.map(|it| it.leases().last_expiry());
        let mut decision = self.decision(ask, &grant, had_until, now);
        if ask.is_push
            && let Some(holding) = holding.filter(|it| it.kind() == HolderKind::Client)
        {
            // A client does not know when a push was decided, so the push does not make its lease longer.
            decision.lease.expires_at = holding.newest().expires_at;
        }
        let shrink = self.policy.algorithm().shrink;
        self.holders.decide(slot, &decision, shrink);
        self.tell_recovery(now, |recovery, s| recovery.note_granted(s, ask, &grant));
        slot
    }

    fn decide_for_new(&mut self, ask: &HolderAsk<'_>, now: Time) -> Slot {
        self.holders.claim(&ask.demand);
        let nothing = Amount::ZERO;
        let grant = self.grant(ask, nothing, nothing, nothing, now);
        // If the holder wants less than it has, its reported lease counts until it reports that it has shrunk.
        let reports = self.in_recovery(now, |recovery, s| recovery.reserve(s, ask, grant.room));
        let reports = reports.unwrap_or_default();
        let has_until = reports.iter().map(|lease| lease.expires_at).max();
        let decision = self.decision(ask, &grant, has_until, now);
        let mut leases = Leases::new(decision.lease);
        if !reports.is_empty() {
            reports.into_iter().for_each(|lease| leases.grant(lease));
            grant_by_kind(&mut leases, ask.holder().kind, decision.lease);
        }
        let slot = self.insert(ask, leases, &decision, now);
        self.tell_recovery(now, |recovery, s| recovery.note_granted(s, ask, &grant));
        slot
    }

    /// Inserts a new holder, which has claimed. It replaces the newest process of its name.
    pub(super) fn insert(
        &mut self,
        ask: &HolderAsk<'_>,
        leases: Leases,
        decision: &Decision,
        now: Time,
    ) -> Slot {
        let standing = self.holders.replace_process(ask.holder());
        let slot = self.holders.insert(ask, leases, decision, now);
        self.holders
            .table
            .note(slot, |holding| holding.standing = standing);
        self.holders
            .note_mastership(slot, ask, true, self.recovery.is_some());
        slot
    }

    /// Turns a grant into a lease. The leases on record last until `had_until`.
    fn decision(
        &self,
        ask: &HolderAsk<'_>,
        grant: &Grant,
        had_until: Option<Time>,
        now: Time,
    ) -> Decision {
        let is_cut = grant.cut_from.is_some();
        let expires_at = self.in_recovery(now, |recovery, s| {
            recovery.lease_ends(s, ask.holder(), had_until, is_cut)
        });
        let expires_at = expires_at.unwrap_or_else(|| self.situation(now).lease_end());
        Decision {
            lease: Lease {
                capacity: grant.gets,
                expires_at,
            },
            share: self.prospect(&ask.demand, grant.share),
            why: grant.why,
            waits: grant.waits,
            // Earlier lowerings divided the capacity among others.
            lowering: self.lowering.number(),
        }
    }
}

// Most requests repeat the one before, and nothing has changed since. The inputs of a decision have a version
// (`LeaseTable::version`): claims, reserved capacity, capacity and algorithm. If a decision leaves all of them unchanged,
// the same request gets the same decision as long as the version stays the same. So it is not decided again. Debug
// builds decide it anyway, and compare. This does not apply below the root, where the parent's answers count, nor in
// learning mode, where reports do.

impl Resource {
    /// The answer to a request that repeats what was decided. None: it has to be decided.
    pub(super) fn repeat(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> Option<Answer> {
        if self.parent.is_some() || self.recovery.is_some() {
            return None;
        }
        let holding = self.holders.table.get(slot)?;
        let is_early = now.since(holding.decided_at) < ask.floor && !holding.is_invited(now);
        let is_decided = holding.repeats_in == Some(self.holders.table.version());
        let is_repeat = is_decided && !is_early && is_same(holding, ask);
        if !is_repeat {
            return None;
        }
        self.assert_decides_the_same(holding, ask, now);
        let waited = Before::of(holding).invited_after;
        let expires_at = self.situation(now).lease_end();
        self.holders.table.renew(slot, expires_at);
        self.holders
            .table
            .note(slot, |holding| holding.wants_more = ask.wants_more);
        self.holders.note_request(slot, ask);
        let refresh_in = self.plan(slot, ask, false, waited, now);
        Some(self.current(slot, refresh_in, AnswerKind::Repeated, now))
    }

    /// Debug builds only.
    fn assert_decides_the_same(&self, holding: &Holding, ask: &HolderAsk<'_>, now: Time) {
        if cfg!(debug_assertions) {
            let newest = holding.newest().capacity;
            let grant = self.grant(ask, newest, newest, newest, now);
            let known = (newest, holding.share, holding.why, holding.waits);
            let fresh = (grant.gets, grant.share, grant.why, grant.waits);
            assert_eq!(known, fresh, "{}: decided as before", self.id);
        }
    }
}

/// Whether a client asks for what it asked for before, has what it was granted and nothing else, and speaks for itself
/// alone.
fn is_same(holding: &Holding, ask: &HolderAsk<'_>) -> bool {
    let newest = holding.newest().capacity;
    let is_alone = holding.standing == Standing::Newest && holding.leases().is_only_newest();
    let is_next = match ask.sequence {
        Some(sequence) => sequence > holding.sequence,
        None => holding.sequence == 0,
    };
    holding.kind() == HolderKind::Client
        && is_next
        && is_alone
        && !holding.pending
        && ask.streams == holding.streams
        && ask.incarnation == holding.incarnation
        && ask.in_use() == newest
        && ask.demand == holding.demand
}
