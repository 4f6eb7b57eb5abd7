//! What a child server may be using whose node has had several masterships; and what of our own
//! holders may be in use that earlier masterships of ours handed out.
//!
//! In learning mode a child knows of its holders only those that it has heard. What its predecessors
//! handed out to others is in our books, if they were granted it by us; if we learn, too, it is not,
//! unless we have heard them. So a learning child tells by which masterships what it has heard of was
//! granted. Of those in our books, either it or the books say more, and what the child has heard of is
//! a part of that; what others granted comes on top.

use std::sync::Arc;
use std::time::Duration;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::{HolderId, MastershipId};
use crate::lease_table::Slot;
use crate::planted::{self, Bug};
use crate::request::Has;
use crate::resource::Resource;
use crate::resource::ask::HolderAsk;
use crate::resource::learned::{Origin, Word};
use crate::supply::Told;
use crate::time::{self, Time};

/// So long a word may have been on its way. Nobody knows for how long it was; it is far longer than most are, and
/// so short that hardly a lease is that near to its end when its holder asks.
const ON_ITS_WAY_MAX: Duration = Duration::from_millis(500);

impl Resource {
    /// Whether a child server asks by another mastership of its node than before.
    pub(super) fn is_new_mastership(&self, slot: Slot, ask: &HolderAsk<'_>) -> bool {
        let past = self.ledger.get(slot).and_then(|it| it.past.as_ref());
        let known = past.and_then(|it| it.masterships().current());
        ask.mastership().is_some() && known != ask.mastership()
    }

    /// Remembers by which mastership of its node a child server asks, before anything is decided. Of a
    /// child that is new, afterwards.
    pub(super) fn note_mastership(&mut self, slot: Slot, ask: &HolderAsk<'_>, is_new: bool) {
        let is_another = self.is_new_mastership(slot, ask);
        let Some(mastership) = ask.mastership().filter(|_| is_another) else {
            return;
        };
        let learns = self.is_learning();
        self.ledger.note(slot, |holding| {
            let granted = (!is_new).then(|| holding.leases().clone());
            let past = holding.past.get_or_insert_default();
            past.masterships_mut()
                .note(mastership, granted.as_ref(), learns);
        });
    }

    /// What a child server in learning mode says that is outstanding, and what besides is in our books
    /// as handed out by its predecessors. None: nothing besides.
    pub(super) fn merge_words<'a>(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'a>,
        now: Time,
    ) -> Option<HolderAsk<'a>> {
        ask.mastership()?;
        if ask.acknowledges() {
            return None;
        }
        let past = self.ledger.get(slot?)?.past.as_ref()?;
        let masterships = past.masterships();
        let inherited = masterships.inherited(now)?;
        // What the child counts for those that it has not heard of is a part of what it says.
        let mut known = ExactSum::from(ask.unheard);
        let heard = ask.told_of.iter();
        heard
            .filter(|part| masterships.is_accounted(part.granted_by))
            .for_each(|part| known.add(part.capacity));
        let mut outstanding = ExactSum::from(inherited.reserved()).without(&known);
        if outstanding.is_zero() {
            return None;
        }
        let told = ask.outstanding.unwrap_or(Has::untimed(Amount::ZERO));
        let lasts = inherited.last_expiry().since(now);
        let expires_in = match told.expires_in {
            Some(told) => Some(told.max(lasts)),
            None if told.capacity.is_zero() => Some(lasts),
            None => None,
        };
        outstanding.add(told.capacity);
        Some(HolderAsk {
            outstanding: Some(Has {
                capacity: outstanding.rounded_up(),
                expires_in,
                ..told
            }),
            ..ask.clone()
        })
    }

    /// Remembers who granted what a holder says that it has, if we learn, below the root.
    pub(super) fn note_learned(&mut self, slot: Option<Slot>, ask: &HolderAsk<'_>, now: Time) {
        if self.upstream.is_none() || !self.is_learning() || ask.word().is_zero() {
            return;
        }
        let granted_by = ask.has.and_then(|has| has.granted_by);
        let holding = slot.and_then(|slot| self.ledger.get(slot));
        // What we have granted it ourselves says nothing of our predecessors.
        let may_be_ours = holding.is_some_and(|holding| !holding.pending);
        let origin: Origin = match granted_by {
            Some(granted_by) if granted_by == self.beginning.mastership => return,
            Some(granted_by) => Some(granted_by),
            None if may_be_ours => return,
            // A child server that has just begun, too: it knows nothing of who granted it.
            None if ask.mastership().is_some() => Some(MastershipId::NOBODY),
            None => None,
        };
        let holder = self.ledger.key_of(ask.holder);
        // Who does not say for how long may have it for no longer.
        let lasts_of = |has: Has| {
            let lasts = has.expires_in.map_or(Duration::ZERO, time::at_least);
            lasts.saturating_sub(ON_ITS_WAY_MAX)
        };
        let lasts = ask.words().map(lasts_of).max().unwrap_or_default();
        // Work that goes on when a lease is over counts, but is no part of what earlier masterships had
        // handed out: they may have given that to others. Nor is a lease that may have ended while its holder's
        // word was on its way.
        let is_over = |has: Has| has.expires_in.is_some_and(|lasts| lasts <= ON_ITS_WAY_MAX);
        let part = match ask.words().all(is_over) {
            true => Amount::ZERO,
            false => ask.word(),
        };
        let has = ask
            .has
            .map(|has| (has.capacity.min(part), now + lasts_of(has)));
        let word = Word {
            origin,
            amount: part,
            until: now + lasts,
            said: now - ON_ITS_WAY_MAX,
            lasts: has,
        };
        self.ledger.learned.note(holder, word);
    }

    /// The most that is left for a holder of what there is: what others have, or may have though we
    /// have not heard of it, is not.
    pub(super) fn room_for_heard(&self, held: Amount) -> Amount {
        if planted::is(Bug::OthersForgotten) {
            return self.supply.capacity;
        }
        let mut others = *self.ledger.table().reserved();
        others.subtract(held);
        others.add_sum(&self.unheard());
        others.left_of(self.supply.capacity)
    }

    /// When a lease ends that is granted now. What a predecessor may take back that still lives is not
    /// made longer.
    pub(super) fn lease_ends(&self, holder: &HolderId, now: Time) -> Time {
        let expiry = self.expiry_from(now);
        let told = self.supply.told.as_ref();
        let may_live = told.is_some_and(|told| told.predecessor_for.is_some());
        if !may_live || !self.is_learning() {
            return expiry;
        }
        let until = self.ledger.learned.until(self.ledger.key_of(holder));
        until.map_or(expiry, |until| expiry.min(until.max(now)))
    }

    /// The most that may be in use by holders that we have not heard of yet.
    pub(super) fn unheard(&self) -> ExactSum {
        if self.is_learning() {
            self.ledger.learned.unheard()
        } else {
            ExactSum::ZERO
        }
    }

    /// Whether what we are granted above what our predecessors were may be handed out, although we
    /// learn: we know how much that was. A parent that learns, too, grants nothing above it, but for
    /// what it rounds up. And what a predecessor may take back that still lives is not ours, nor what its
    /// holders give back to us. If holders say that they have more than there is, nothing is nobody's.
    pub(super) fn hands_out_fresh(&self, now: Time) -> bool {
        let told = self.supply.told.as_ref();
        let is_settled = |told: &Arc<Told>| !told.learning && told.predecessor_for.is_none();
        self.ledger.learned.has_books()
            && told.is_some_and(is_settled)
            && self.confirmed_level(now).is_none()
    }
}
