//! How a request becomes a lease.
//!
//! The algorithm says what a holder *should* have. What it gets *now* is bounded by what others may
//! still be using: gets = min(share, C − Σ reserved of the others). Since Σ reserved is kept
//! exactly, Σ reserved ≤ C holds to the last bit, and is asserted after every decision
//! (`docs/algorithms.md`, "What is reserved").
//!
//! **When the capacity is lowered** below what is out, nothing can be taken back; everyone shrinks
//! at its next refresh. By the bound alone the first to come would be cut to nothing, only to grow
//! again when the others have shrunk. So a holder may keep its newest lease, up to its share
//! of the lowered capacity by the claims of that moment ([`lowering`](super::lowering)). These
//! shares add up to the capacity, so once everyone has refreshed, it fits; and who has no more than
//! its share loses nothing.
//!
//! Below the root, who must wait for the parent before anything is decided, [`pending`](super::pending)
//! says.

use std::time::Duration;

use crate::admission::Gate;
use crate::algorithm::{self, Bound, Share, Why};
use crate::amount::Amount;
use crate::demand::Demand;
use crate::id::HolderKind;
use crate::lease::{Lease, Leases};
use crate::lease_table::{Holding, Slot};
use crate::past::Precedence;
use crate::refresh;
use crate::request::{LimitedBy, RefusalReason};
use crate::resource::admit::Admitted;
use crate::resource::ask::{Answer, AnswerKind, HolderAsk};
use crate::resource::grant::{self, Grant, ROUNDING};
use crate::resource::pace::{Before, Planned};
use crate::resource::{EXPIRIES_PER_REQUEST, Resource};
use crate::supply::Supply;
use crate::template::Shrink;
use crate::time::Time;

/// A child server that is pushed to may be silent for so long, and twice its refresh interval.
const SILENT_MIN: Duration = Duration::from_secs(5);

impl Resource {
    /// A request of a holder.
    ///
    /// # Errors
    ///
    /// If the template is gone, the parent refuses the resource, or a limit is reached: nothing is
    /// changed then. [`RefusalReason::NotReady`] if this server has no lease itself yet.
    pub fn handle_ask(
        &mut self,
        ask: &HolderAsk<'_>,
        gate: &mut Gate<'_>,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        if !self.has_source() {
            return Err(RefusalReason::UnknownResource);
        }
        if let Some(reason) = self.upstream.as_ref().and_then(|up| up.refused(now)) {
            return Err(reason);
        }
        self.expire(EXPIRIES_PER_REQUEST, now);
        let bounded = self.bounded_ask(ask, gate.limits);
        let wants_more = bounded.is_some();
        let ask = bounded.as_ref().unwrap_or(ask);
        let slot = self.table.find(ask.holder.kind, ask.holder.name.as_str());
        self.admit_request(slot, ask, gate, now)?;
        let known = slot.and_then(|slot| Some((slot, self.table.get(slot)?)));
        if let Some((slot, holding)) = known {
            let precedence = holding.precedence(ask.identity(), now);
            if precedence == Precedence::OutOfOrder {
                let is_others =
                    ask.incarnation != holding.incarnation && ask.mastership().is_some();
                if holding.pending || is_others {
                    // What it has is by its own word, and no lease of ours; or the lease is of another
                    // process of its node.
                    return Err(RefusalReason::NotReady);
                }
                return Ok(self.current(slot, ask.floor, AnswerKind::OutOfOrder, now));
            }
            let since = now.since(holding.decided_at);
            // Others wait for what an acknowledgement frees. One comes for each shrink, no more.
            let newest = holding.newest().capacity;
            let acknowledges = ask.acknowledges() && ask.word() <= newest && newest < holding.own();
            let is_next = precedence == Precedence::Next && !self.is_new_mastership(slot, ask);
            let is_early = since < ask.floor && !holding.is_invited(now) && !holding.pending;
            if is_early && is_next && !acknowledges && !self.take_early_news(slot, ask, now) {
                return Ok(self.answer_too_early(slot, ask, ask.floor - since, now));
            }
            self.settle_name(slot, ask, precedence, now)?;
            if precedence != Precedence::Next {
                self.forget_word(ask.holder);
            }
            self.note_mastership(slot, ask, false);
        }
        let admitted = self.admit(slot, ask, gate, now)?;
        let (ask, is_held) = match &admitted {
            Admitted::AsAsked => (ask, false),
            Admitted::New(ask) => (ask, false),
            Admitted::WithoutGrowth(ask) => (ask, true),
        };
        let before = slot.and_then(|slot| self.table.get(slot)).map(Before::of);
        let merged = self.merge_words(slot, ask, now);
        let ask = merged.as_ref().unwrap_or(ask);
        let bounded = self.bounded_word(slot, ask, now);
        let ask = bounded.as_ref().unwrap_or(ask);
        if self.upstream.is_none() {
            self.count_word(slot, ask, now);
        }
        let believed = self.believed(slot, ask, now);
        let believed = believed.as_ref().unwrap_or(ask);
        self.note_learned(slot, believed, now);
        if self.must_wait_for_parent(slot, ask, believed, now) {
            self.note_pending(slot, ask, believed, now);
            return Err(RefusalReason::NotReady);
        }
        if self.upstream.is_some() {
            self.count_word(slot, ask, now);
        }
        let was_overcommitted = self.overcommitted().is_some();
        let slot = match slot {
            Some(slot) => self.decide_for_known(slot, ask, now),
            None => self.decide_for_new(ask, now),
        };
        debug_assert!(
            was_overcommitted || self.overcommitted().is_none() || self.learns_from_words(now),
            "{}: a grant took Σ reserved above the capacity",
            self.id
        );
        let grew = before.is_none_or(|before| ask.demand.wants() > before.wants);
        let after = self.table.get(slot).map(Before::of);
        let waited = before.and_then(|before| before.waited_for(after?));
        self.table.note(slot, |holding| {
            holding.report = ask.report.clone().map(Box::new);
            if let Some(report) = &mut holding.report
                && holding.demand != ask.demand
            {
                report.unheard = Amount::ZERO;
            }
        });
        let Planned {
            refresh_in,
            invited,
        } = self.plan_refresh(slot, grew, waited, ask.floor, now);
        let lowering = self.lowering.number();
        self.table.note(slot, |holding| {
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            holding.incarnation = ask.incarnation;
            holding.wants_more = wants_more;
            holding.pending = false;
            holding.decided_at = now;
            holding.refresh_at = now + refresh_in;
            holding.invited = invited;
            holding.lowering = lowering;
        });
        self.unsettled = true;
        let answer = self.current(slot, refresh_in, AnswerKind::Decided, now);
        Ok(Answer {
            decided: answer.decided && !is_held,
            ..answer
        })
    }

    /// Whether what holders say they have counts, whatever we have ourselves.
    fn learns_from_words(&self, now: Time) -> bool {
        self.upstream.is_some() && self.learning_remaining(now).is_some()
    }

    /// Decides anew for a child server with a stream that did not ask, by what it last asked. None:
    /// it would get and be told just what it has, or it has been silent for too long.
    pub fn regrant(&mut self, slot: Slot, now: Time) -> Option<Answer> {
        let holding = self.table.get(slot)?;
        let safe_fell = self.safe_fell(holding, now);
        if holding.pending || self.learning_remaining(now).is_some() || !self.has_lease(now) {
            return None;
        }
        // A template that is gone takes nothing back: what is out runs down.
        if !self.has_source() {
            return None;
        }
        // Whoever is silent may be gone: what it has must end.
        let asked_at = holding
            .report
            .as_ref()
            .map_or(now, |report| report.asked_at);
        let interval = self.interval_of(holding, Duration::ZERO);
        let interval = interval.max(self.algorithm.refresh_interval);
        if now.since(asked_at) > 2 * interval + SILENT_MIN {
            return None;
        }
        let (held, newest) = (holding.own(), holding.newest());
        let kept = self.lowering.kept(holding).unwrap_or(newest.capacity);
        let kept = self.without_apart(slot, kept);
        let share_before = holding.share;
        let report = holding.report.as_ref().filter(|report| report.learning);
        let unheard = report.map(|report| report.unheard);
        let demand = holding.demand.clone();
        let share =
            algorithm::solve(&self.algorithm, &self.bands, &self.supply, &demand).share_of(&demand);
        let keeps = unheard.map(|unheard| grant::keeps(newest.capacity, share, unheard.min(held)));
        let grant = self.grant_share(share, held, kept, keeps);
        let same = |a: Amount, b: Amount| (a.get() - b.get()).abs() <= a.get() * ROUNDING;
        if same(grant.gets, newest.capacity) && same(grant.share.amount, share_before) && !safe_fell
        {
            return None;
        }
        let lowering = self.lowering.number();
        self.give(slot, &grant, now);
        let refresh_in = self
            .plan_refresh(slot, false, None, Duration::ZERO, now)
            .refresh_in;
        self.table.note(slot, |holding| {
            holding.refresh_at = now + refresh_in;
            holding.lowering = lowering;
        });
        debug_assert!(
            self.overcommitted().is_none() || grant.gets <= held,
            "{}: a grant took Σ reserved above the capacity",
            self.id
        );
        Some(self.current(slot, refresh_in, AnswerKind::Decided, now))
    }

    /// The holder's newest lease as an answer.
    pub(super) fn current(
        &mut self,
        slot: Slot,
        refresh_in: Duration,
        kind: AnswerKind,
        now: Time,
    ) -> Answer {
        let safe_capacity = self.safe_capacity(now);
        self.note_safe_told(slot, safe_capacity);
        let lease = self.table.get(slot).map_or(
            // Callers have just found the holder there.
            Lease {
                capacity: Amount::ZERO,
                expires_at: now,
            },
            Holding::newest,
        );
        let refresh_in = match (kind, self.table.get(slot)) {
            // Not before it was planned: whoever numbers its requests wrongly must not be told to
            // come back at once, for ever.
            (AnswerKind::OutOfOrder, Some(holding)) => {
                refresh_in.max(holding.refresh_at.since(now))
            }
            _ => refresh_in,
        };
        Answer {
            lease,
            refresh_in: refresh::within_lease(refresh_in, lease.expires_at.since(now)),
            safe_capacity,
            limited_by: self
                .table
                .get(slot)
                .map_or(LimitedBy::Share, |holding| self.limited_by(holding, now)),
            learning_for: self.learning_for(now),
            kind,
            decided: kind == AnswerKind::Decided,
        }
    }

    /// A child server in learning mode has not heard of all its holders yet: as long as it asks on
    /// behalf of fewer clients than before, what it asked for before counts, here and towards our
    /// own parent.
    pub(super) fn change_demand(&mut self, slot: Slot, ask: &HolderAsk<'_>) {
        let Some(holding) = self.table.get(slot) else {
            return;
        };
        let looks_small = !ask.acknowledges() && ask.demand.clients() < holding.demand.clients();
        if holding.demand != ask.demand && !looks_small {
            let (before, caller) = (holding.demand.clone(), holding.caller);
            self.note_demand(caller, &before, &ask.demand);
            self.remove_claims(&before);
            self.insert_claims(&ask.demand);
            self.table.change_demand(slot, ask.demand.clone());
        }
    }

    fn decide_for_known(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> Slot {
        let Some(holding) = self.table.get(slot) else {
            return slot;
        };
        // By the claim it had when the capacity was lowered, so before that changes.
        let kept_if_lowered = self.lowering.kept(holding);
        self.change_demand(slot, ask);
        if ask.acknowledges() {
            self.table
                .change_leases(slot, |leases| leases.acknowledge(ask.word()));
        }
        let (held, newest) = self
            .table
            .get(slot)
            .map_or((Amount::ZERO, Amount::ZERO), |holding| {
                (holding.own(), holding.newest().capacity)
            });
        let kept = kept_if_lowered.map_or(newest, |kept| kept.min(held));
        let kept = self.without_apart(slot, kept);
        let Some(holding) = self.table.get(slot) else {
            return slot;
        };
        let mut grant = self.grant(ask, &holding.demand, held, kept, newest, now);
        // One that is started again and again must not take what is free each time.
        let others = holding.leases().apart_but_one();
        if !others.is_zero() {
            let most = Amount::from_computed(grant.share.amount.get() - others.get());
            grant.waits |= most < grant.gets;
            grant.gets = grant.gets.min(most);
        }
        let may_use_more = ask.word() > held.max(grant.gets);
        let learns = self.learning_remaining(now).is_some();
        if learns && (may_use_more || ask.word() > ask.to_confirm()) {
            let leases = self.leases_of_words(ask, grant.room, now);
            self.table.change_leases(slot, |known| {
                leases.into_iter().for_each(|lease| known.grant(lease));
            });
        }
        self.give(slot, &grant, now);
        self.note_granted(ask.holder, &grant);
        slot
    }

    /// What of that a holder may keep, if more is out than there is: not what another process under its
    /// name has besides.
    fn without_apart(&self, slot: Slot, kept: Amount) -> Amount {
        let Some(holding) = self.table.get(slot) else {
            return kept;
        };
        holding.leases().apart_sum().left_of(kept)
    }

    /// Makes a decision a lease.
    fn give(&mut self, slot: Slot, grant: &Grant, now: Time) {
        let expires_at = self.table.get(slot).map_or(now, |holding| {
            let had_until = Some(holding.leases().last_expiry());
            self.grant_ends(&holding.holder, had_until, grant, now)
        });
        let lease = Lease {
            capacity: grant.gets,
            expires_at,
        };
        let immediate = self.algorithm.shrink == Shrink::Immediate;
        let hands_out = self
            .table
            .get(slot)
            .is_some_and(|it| it.holder.kind == HolderKind::Server);
        self.table.change_leases(slot, |leases| {
            match hands_out {
                true => leases.grant_to_server(lease),
                false => leases.grant(lease),
            }
            if immediate {
                leases.forget_older();
            }
        });
        self.table.change_waits(slot, grant.waits);
        let demand = self.table.get(slot).map(|holding| &holding.demand);
        let prospect = demand.map_or(Amount::ZERO, |demand| self.prospect(demand, grant.share));
        self.table.note(slot, |holding| {
            holding.share = prospect;
            holding.why = grant.why;
        });
    }

    /// What a holder should have once others have shrunk: its share; of a child server, its share
    /// of what we should have ourselves, so that those below it know, too, that more is to come.
    pub(super) fn prospect(&self, demand: &Demand, share: Share) -> Amount {
        let (Demand::Server(_), Some(told), true) =
            (demand, &self.supply.told, self.supply.expects_more())
        else {
            return share.amount;
        };
        if self.algorithm.kind.has_bands() {
            // How what is to come splits over the bands is not known: as what there is, say.
            let wants = demand.wants();
            if self.supply.capacity.is_zero() {
                return wants;
            }
            let part = told.share.get() / self.supply.capacity.get();
            let expected = Amount::from_computed(share.amount.get() * part);
            return expected.min(wants).max(share.amount);
        }
        let expected = Supply {
            capacity: told.share,
            ..self.supply.clone()
        };
        let rule = algorithm::solve(&self.algorithm, &self.bands, &expected, demand);
        rule.share_of(demand).amount.max(share.amount)
    }

    fn decide_for_new(&mut self, ask: &HolderAsk<'_>, now: Time) -> Slot {
        self.insert_claims(&ask.demand);
        let grant = self.grant(
            ask,
            &ask.demand,
            Amount::ZERO,
            Amount::ZERO,
            Amount::ZERO,
            now,
        );
        let mut words = Vec::new();
        if self.learning_remaining(now).is_some() {
            // It wants less than it has: until it says that it has shrunk, what it has counts.
            words = self.leases_of_words(ask, grant.room, now);
        }
        let has_until = words.iter().map(|word| word.expires_at).max();
        let lease = Lease {
            capacity: grant.gets,
            expires_at: self.grant_ends(ask.holder, has_until, &grant, now),
        };
        let mut leases = Leases::new(lease);
        if !words.is_empty() {
            words.into_iter().for_each(|word| leases.grant(word));
            match ask.holder.kind {
                HolderKind::Server => leases.grant_to_server(lease),
                HolderKind::Client => leases.grant(lease),
            }
        }
        let slot = self.insert(ask, leases, grant.share, now);
        self.note_granted(ask.holder, &grant);
        self.table.change_waits(slot, grant.waits);
        let prospect = self.prospect(&ask.demand, grant.share);
        self.table.note(slot, |holding| {
            holding.share = prospect;
            holding.why = grant.why;
        });
        slot
    }

    /// Puts in a holder that is not there yet, but whose claims are.
    pub(super) fn insert(
        &mut self,
        ask: &HolderAsk<'_>,
        leases: Leases,
        share: Share,
        now: Time,
    ) -> Slot {
        let why = Why {
            reason: share.reason,
            bound: Bound::Share,
        };
        let mut holding = Holding::new(ask.holder.clone(), ask.demand.clone(), leases, why, now);
        holding.share = share.amount;
        // Earlier lowerings divided the capacity among others.
        holding.lowering = self.lowering.number();
        holding.caller = ask.caller;
        let slot = self.table.insert(holding);
        self.note_came(ask);
        self.note_mastership(slot, ask, true);
        if ask.holder.kind == HolderKind::Server {
            self.children.insert(ask.holder.name.clone(), slot);
        }
        slot
    }

    pub(super) fn expiry_from(&self, now: Time) -> Time {
        let expiry = now + self.algorithm.lease_length;
        self.supply.expires_at.map_or(expiry, |end| expiry.min(end))
    }
}
