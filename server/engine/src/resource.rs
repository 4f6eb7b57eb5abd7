//! One resource: turns the grants of its algorithm into leases that never add up to too much.
//!
//! The algorithm says what a holder *should* have. What it gets *now* is bounded by what others may
//! still be using: gets = min(share, C − Σ reserved of the others). Since Σ reserved is kept
//! exactly, Σ reserved ≤ C holds to the last bit, and is asserted after every decision
//! (`docs/algorithms.md`, "What is reserved").
//!
//! **When the capacity is lowered** below what is out, nothing can be taken back; everyone shrinks
//! at its next refresh. By the bound alone the first to come would be cut to nothing, only to grow
//! again when the others have shrunk. So a holder may keep its part of the lowered capacity: what
//! it had reserved when it was lowered, times new capacity over what was reserved in total. These
//! parts add up to the capacity, so once everyone has refreshed, it fits.

pub mod ask;

use std::sync::Arc;
use std::time::Duration;

use crate::algorithm::{self, Bound, Reason, Share, Why, band_of};
use crate::amount::Amount;
use crate::bands::Bands;
use crate::claim::Subclients;
use crate::id::{HolderId, ResourceId};
use crate::lease::{Lease, Leases};
use crate::lease_table::{Expired, Holding, LeaseTable, Slot};
use crate::node::Limits;
use crate::refresh::{self, Invitations};
use crate::request::RefusalReason;
use crate::resource::ask::{Answer, AnswerKind, HolderAsk, Released};
use crate::snapshot::{LeaseSnapshot, ResourceSnapshot};
use crate::supply::Supply;
use crate::template::{Algorithm, SafeCapacity, Shrink, Template};
use crate::time::Time;

/// Entries of ended leases looked at by one request. It never does more than this of others' work;
/// what is left is done by the timer, and until then counts as in use, which is the safe side.
const EXPIRIES_PER_REQUEST: usize = 32;

/// A shortfall below this part of the share is rounding, not waiting.
const ROUNDING: f64 = 1e-12;

/// A lowering of the capacity below what was out.
#[derive(Clone, Copy, Debug, Default)]
struct Lowering {
    /// Counts them.
    number: u32,
    /// What part of what it had reserved a holder may keep.
    kept: f64,
}

/// A resource with holders, or about to have one.
#[derive(Debug)]
pub struct Resource {
    id: ResourceId,
    /// None: the template is gone, and the leases run down.
    template: Option<Arc<Template>>,
    /// The algorithm in force, also while the template is gone.
    algorithm: Algorithm,
    supply: Supply,
    bands: Bands,
    table: LeaseTable,
    learning_until: Option<Time>,
    lowering: Lowering,
    invitations: Invitations,
    expired: u64,
}

impl Resource {
    /// A resource nobody holds yet. `master_since` is when mastership was won.
    pub fn new(
        id: ResourceId,
        template: Arc<Template>,
        master_since: Time,
        seed: u64,
        now: Time,
    ) -> Self {
        let mut resource = Self {
            id,
            algorithm: template.algorithm.clone(),
            supply: Supply::of_root(template.capacity),
            template: Some(template),
            bands: Bands::default(),
            table: LeaseTable::new(seed),
            learning_until: None,
            lowering: Lowering::default(),
            invitations: Invitations::new(seed),
            expired: 0,
        };
        resource.learn_from(master_since, now);
        resource
    }

    /// Its id.
    pub fn id(&self) -> &ResourceId {
        &self.id
    }

    /// Whether nobody holds anything of it: nothing is lost by forgetting it.
    pub fn is_empty(&self) -> bool {
        self.table.is_empty()
    }

    /// Whether its template is still there.
    pub fn has_template(&self) -> bool {
        self.template.is_some()
    }

    /// What there is to share, and Σ reserved, if that is more and more than may be.
    pub fn overcommitted(&self) -> Option<(f64, f64)> {
        let over = self.algorithm.kind.promises_total()
            && self.table.reserved().exceeds(self.supply.capacity);
        over.then(|| {
            (
                self.supply.capacity.get(),
                self.table.reserved().rounded_down(),
            )
        })
    }

    /// A request of a holder.
    ///
    /// # Errors
    ///
    /// If the template is gone or a limit is reached; nothing is changed then.
    pub fn handle_ask(
        &mut self,
        ask: &HolderAsk<'_>,
        floor: Duration,
        limits: &Limits,
        now: Time,
    ) -> Result<Answer, RefusalReason> {
        if self.template.is_none() {
            return Err(RefusalReason::UnknownResource);
        }
        self.expire(EXPIRIES_PER_REQUEST, now);
        let slot = self.table.find(ask.holder.kind, ask.holder.name.as_str());
        let known = slot.and_then(|slot| Some((slot, self.table.get(slot)?)));
        if let Some((slot, holding)) = known {
            if holding.has_seen(ask.sequence) {
                return Ok(self.current(slot, floor, AnswerKind::OutOfOrder, now));
            }
            let since = now.since(holding.decided_at);
            // Others wait for what an acknowledgement frees. One comes for each shrink, no more.
            let has = ask.has.map_or(Amount::ZERO, |has| has.capacity);
            let newest = holding.newest().capacity;
            let acknowledges = has <= newest && newest < holding.reserved();
            if since < floor && !acknowledges {
                return Ok(self.answer_too_early(slot, ask, floor - since, now));
            }
        }
        self.check_limits(slot, ask, limits)?;
        let was_overcommitted = self.overcommitted().is_some();
        let slot = match slot {
            Some(slot) => self.decide_for_known(slot, ask, now),
            None => self.decide_for_new(ask, now),
        };
        debug_assert!(
            was_overcommitted || self.overcommitted().is_none(),
            "{}: a grant took Σ reserved above the capacity",
            self.id
        );
        let refresh_in = self.plan_refresh(slot, floor, now);
        let lowering = self.lowering.number;
        self.table.note(slot, |holding| {
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            holding.decided_at = now;
            holding.refresh_at = now + refresh_in;
            holding.lowering = lowering;
        });
        Ok(self.current(slot, refresh_in, AnswerKind::Decided, now))
    }

    /// A holder gives back what it has. Returns whether it had anything.
    pub fn handle_release(
        &mut self,
        holder: &HolderId,
        sequence: Option<u64>,
        now: Time,
    ) -> Released {
        self.expire(EXPIRIES_PER_REQUEST, now);
        let slot = self.table.find(holder.kind, holder.name.as_str());
        let Some((slot, holding)) = slot.and_then(|slot| Some((slot, self.table.get(slot)?)))
        else {
            return Released::NotThere;
        };
        if holding.has_seen(sequence) {
            return Released::OutOfOrder;
        }
        if let Some(gone) = self.table.remove(slot) {
            self.forget_claim(&gone);
        }
        Released::Freed
    }

    /// The template that is in force from now on; None: it is gone.
    pub fn handle_template(
        &mut self,
        template: Option<Arc<Template>>,
        master_since: Time,
        now: Time,
    ) {
        let Some(template) = template else {
            // What is out runs down; nothing new is given, whatever comes.
            let was_overcommitted = self.overcommitted().is_some();
            self.template = None;
            self.set_supply(Supply::NONE, was_overcommitted);
            return;
        };
        let rebanded = template.algorithm.kind != self.algorithm.kind;
        let promised_total = self.algorithm.kind.promises_total();
        let learned_until = self.learning_until;
        let was_overcommitted = self.overcommitted().is_some();
        self.algorithm = template.algorithm.clone();
        let supply = Supply::of_root(template.capacity);
        self.template = Some(template);
        if rebanded {
            self.bands = Bands::default();
            for holding in self.table.iter() {
                self.bands.insert(
                    band_of(self.algorithm.kind, holding.priority),
                    holding.claim,
                );
            }
        }
        self.learn_from(master_since, now);
        if promised_total {
            // What was learned stays learned: a change may end learning mode, never start it.
            self.learning_until = self.learning_until.min(learned_until);
        }
        self.set_supply(supply, was_overcommitted);
    }

    /// Does up to `entries_max` steps of taking out ended leases, and ends learning mode. Returns
    /// whether learning mode ended just now.
    pub fn handle_timeout(&mut self, entries_max: usize, now: Time) -> bool {
        self.expire(entries_max, now);
        let learned = self.learning_until.is_some_and(|until| until <= now);
        if learned {
            self.learning_until = None;
        }
        learned
    }

    /// How many holders' last leases have ended since this was last asked.
    pub fn take_expired(&mut self) -> u64 {
        std::mem::take(&mut self.expired)
    }

    /// When [`Resource::handle_timeout`] is due, and whether for the end of learning mode.
    pub fn next_timeout(&self) -> Option<(Time, bool)> {
        let expiry = self.table.next_expiry().map(|time| (time, false));
        let learning = self.learning_until.map(|time| (time, true));
        [expiry, learning].into_iter().flatten().min()
    }

    /// What is known of it now.
    pub fn snapshot(&self, now: Time) -> ResourceSnapshot {
        ResourceSnapshot {
            resource: self.id.clone(),
            template: self
                .template
                .as_ref()
                .map(|template| template.identifier_glob.clone()),
            description: self
                .template
                .as_ref()
                .map(|template| template.description.clone())
                .unwrap_or_default(),
            algorithm: self.algorithm.clone(),
            capacity: self.supply.capacity.get(),
            safe_capacity: Some(self.safe_capacity()),
            wants: self.table.wants().rounded_down(),
            granted: self.table.granted().rounded_down(),
            reserved: self.table.reserved().rounded_down(),
            leases: self.table.len(),
            clients: self.bands.total_subclients(),
            waiting: self.table.waiting(),
            learning_remaining: self.learning_remaining(now),
        }
    }

    /// Up to `max` leases.
    pub fn lease_snapshots(&self, max: usize) -> Vec<LeaseSnapshot> {
        let snapshot = |holding: &Holding| LeaseSnapshot {
            holder: holding.holder.clone(),
            priority: holding.priority,
            subclients: holding.claim.subclients.get(),
            wants: holding.claim.wants.get(),
            share: holding.share.get(),
            granted: holding.newest().capacity.get(),
            reserved: holding.reserved().get(),
            expires_at: holding.newest().expires_at,
            refresh_interval: holding.refresh_at.since(holding.decided_at),
            why: holding.why,
        };
        self.table.iter().take(max).map(snapshot).collect()
    }

    /// Bytes of memory behind it.
    pub fn memory_bytes(&self) -> usize {
        size_of::<Self>() + self.table.memory_bytes() + self.bands.memory_bytes()
    }

    /// Asserts that all sums are what their parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub fn assert_consistent(&self) {
        self.table.assert_consistent();
        let indexed: usize = self.bands.iter().map(|(_, index)| index.len()).sum();
        assert_eq!(indexed, self.table.len(), "claims in the index");
    }

    fn learn_from(&mut self, master_since: Time, now: Time) {
        let until = master_since + self.algorithm.learning_mode_duration;
        // NO_ALGORITHM and STATIC decide by the holder's own claim: there is nothing to learn.
        let learns = until > now && self.algorithm.kind.promises_total();
        self.learning_until = learns.then_some(until);
    }

    fn learning_remaining(&self, now: Time) -> Option<Duration> {
        self.learning_until
            .filter(|until| *until > now)
            .map(|until| until.since(now))
    }

    fn set_supply(&mut self, supply: Supply, was_overcommitted: bool) {
        let lowered = supply.capacity < self.supply.capacity;
        self.supply = supply;
        // As long as an earlier lowering comes down, only a further one changes who may keep what.
        if let Some((capacity, reserved)) = self.overcommitted()
            && (lowered || !was_overcommitted)
        {
            self.lowering.number = self.lowering.number.wrapping_add(1);
            // Rounded down by more than all roundings that follow.
            self.lowering.kept = (capacity / reserved) * (1.0 - 1e-14);
        }
    }

    fn expire(&mut self, entries_max: usize, now: Time) {
        for _ in 0..entries_max {
            match self.table.expire_one(now) {
                Expired::NothingDue => break,
                Expired::Nobody => {}
                Expired::Holder(gone) => {
                    self.forget_claim(&gone);
                    self.expired += 1;
                }
            }
        }
    }

    fn forget_claim(&mut self, gone: &Holding) {
        self.bands
            .remove(band_of(self.algorithm.kind, gone.priority), gone.claim);
    }

    fn check_limits(
        &self,
        slot: Option<Slot>,
        ask: &HolderAsk<'_>,
        limits: &Limits,
    ) -> Result<(), RefusalReason> {
        if slot.is_none() && self.table.len() >= limits.leases_per_resource_max {
            return Err(RefusalReason::TooManyLeases(self.table.len()));
        }
        let band = band_of(self.algorithm.kind, ask.priority);
        if self.bands.len() >= limits.bands_per_resource_max && self.bands.get(band).is_none() {
            return Err(RefusalReason::TooManyBands(self.bands.len()));
        }
        Ok(())
    }

    /// A request that came faster than the floor gets the current lease, and is told when its new
    /// wishes will be heard.
    fn answer_too_early(
        &mut self,
        slot: Slot,
        ask: &HolderAsk<'_>,
        floor_left: Duration,
        now: Time,
    ) -> Answer {
        let mut refresh_in = floor_left;
        self.table.note(slot, |holding| {
            holding.sequence = ask.sequence.unwrap_or(holding.sequence);
            if holding.claim == ask.claim && holding.priority == ask.priority {
                refresh_in = refresh_in.max(holding.refresh_at.since(now));
            }
        });
        self.current(slot, refresh_in, AnswerKind::TooEarly, now)
    }

    /// The holder's newest lease as an answer.
    fn current(&self, slot: Slot, refresh_in: Duration, kind: AnswerKind, now: Time) -> Answer {
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
            safe_capacity: self.safe_capacity(),
            kind,
        }
    }

    fn decide_for_known(&mut self, slot: Slot, ask: &HolderAsk<'_>, now: Time) -> Slot {
        let kind = self.algorithm.kind;
        let has = ask.has.map_or(Amount::ZERO, |has| has.capacity);
        let Some(holding) = self.table.get(slot) else {
            return slot;
        };
        let (priority, claim) = (holding.priority, holding.claim);
        if (priority, claim) != (ask.priority, ask.claim) {
            self.bands.remove(band_of(kind, priority), claim);
            self.bands.insert(band_of(kind, ask.priority), ask.claim);
            self.table.change_claim(slot, ask.priority, ask.claim);
        }
        self.table
            .change_leases(slot, |leases| leases.acknowledge(has));
        let (held, newest, lowering) = self.table.get(slot).map_or(
            (Amount::ZERO, Amount::ZERO, self.lowering.number),
            |holding| {
                (
                    holding.reserved(),
                    holding.newest().capacity,
                    holding.lowering,
                )
            },
        );
        let kept = if lowering == self.lowering.number {
            newest
        } else {
            Amount::from_computed(held.get() * self.lowering.kept)
        };
        let grant = self.grant(ask, held, kept, now);
        let lease = Lease {
            capacity: grant.gets,
            expires_at: self.expiry_from(now),
        };
        let immediate = self.algorithm.shrink == Shrink::Immediate;
        self.table.change_leases(slot, |leases| {
            leases.grant(lease);
            if immediate {
                leases.forget_older();
            }
        });
        self.table.change_waits(slot, grant.waits);
        self.table.note(slot, |holding| {
            holding.share = grant.share.amount;
            holding.why = grant.why;
        });
        slot
    }

    fn decide_for_new(&mut self, ask: &HolderAsk<'_>, now: Time) -> Slot {
        self.bands
            .insert(band_of(self.algorithm.kind, ask.priority), ask.claim);
        let grant = self.grant(ask, Amount::ZERO, Amount::ZERO, now);
        let lease = Lease {
            capacity: grant.gets,
            expires_at: self.expiry_from(now),
        };
        let mut leases = Leases::new(lease);
        if let (Some(has), true) = (ask.has, self.learning_remaining(now).is_some()) {
            // It wants less than it has: until it says that it has shrunk, what it has counts.
            let length = self.algorithm.lease_length;
            let expires_at = now + has.expires_in.unwrap_or(length).min(length);
            leases = Leases::new(Lease {
                capacity: has.capacity.min(grant.room),
                expires_at,
            });
            leases.grant(lease);
        }
        let mut holding = Holding::new(
            ask.holder.clone(),
            ask.priority,
            ask.claim,
            leases,
            grant.why,
            now,
        );
        holding.share = grant.share.amount;
        holding.waits = grant.waits;
        self.table.insert(holding)
    }

    /// What a holder gets, whose claim is in the index, who has `held` reserved, and who may keep
    /// `kept` should the capacity be lowered below what is out.
    fn grant(&self, ask: &HolderAsk<'_>, held: Amount, kept: Amount, now: Time) -> Grant {
        let kind = self.algorithm.kind;
        let mut others = *self.table.reserved();
        others.subtract(held);
        let free = others.left_of(self.supply.capacity);
        let lowered = self.overcommitted().is_some();
        let room = if lowered { free.max(kept) } else { free };
        if self.learning_remaining(now).is_some() {
            let has = ask.has.map_or(Amount::ZERO, |has| has.capacity);
            let confirmed = has.min(ask.claim.wants);
            let gets = confirmed.min(room);
            let bound = if gets < confirmed {
                Bound::LearningLeft
            } else {
                Bound::SaysItHas
            };
            let reason = Reason::Learning;
            let share = Share {
                amount: confirmed,
                reason,
            };
            return Grant {
                share,
                gets,
                room,
                waits: false,
                why: Why { reason, bound },
            };
        }
        let share = algorithm::share(
            &self.algorithm,
            &self.bands,
            self.supply.capacity,
            ask.priority,
            ask.claim,
        );
        let gets = if kind.promises_total() {
            share.amount.min(room)
        } else {
            share.amount
        };
        let waits = gets.get() < share.amount.get() * (1.0 - ROUNDING);
        let bound = match (waits, lowered) {
            (false, _) => Bound::Share,
            (true, true) => Bound::CapacityLowered,
            (true, false) => Bound::OthersHold,
        };
        Grant {
            share,
            gets,
            room,
            waits,
            why: Why {
                reason: share.reason,
                bound,
            },
        }
    }

    fn expiry_from(&self, now: Time) -> Time {
        let expiry = now + self.algorithm.lease_length;
        self.supply.expires_at.map_or(expiry, |end| expiry.min(end))
    }

    /// When a holder that was just decided for should come back.
    fn plan_refresh(&mut self, slot: Slot, floor: Duration, now: Time) -> Duration {
        let interval = self.algorithm.refresh_interval;
        let Some(holding) = self.table.get(slot) else {
            return interval;
        };
        let newest = holding.newest();
        let wanting = newest.capacity < holding.claim.wants;
        let others_want = self.table.waiting() > 0 || self.table.wants() > self.table.granted();
        let awaited = others_want && holding.reserved() > newest.capacity;
        let refresh_in = match self.learning_remaining(now) {
            Some(remaining) if wanting => {
                self.invitations.after_learning(interval, floor, remaining)
            }
            None if holding.waits => self.invitations.soon(interval, floor, now),
            // The floor is not for acknowledgements.
            None if awaited => self.invitations.soon(interval, floor / 8, now),
            _ => interval,
        };
        refresh::within_lease(refresh_in, newest.expires_at.since(now))
    }

    /// The template's, else the capacity divided by the number of clients.
    fn safe_capacity(&self) -> SafeCapacity {
        let of_template = self
            .template
            .as_ref()
            .and_then(|template| template.safe_capacity);
        of_template.unwrap_or_else(|| {
            let clients = self.bands.total_subclients().max(Subclients::ONE.get());
            SafeCapacity::Limited(Amount::from_computed(self.supply.capacity.get() / clients))
        })
    }
}

/// A decision, before it becomes a lease.
#[derive(Clone, Copy, Debug)]
struct Grant {
    share: Share,
    gets: Amount,
    /// The most it could have got.
    room: Amount,
    /// It gets less than its share because of what others hold.
    waits: bool,
    why: Why,
}
