//! The holders of one resource: holders by name, the exact sums over them, and the lease that ends next.
//!
//! Nothing here decides anything. Every sum is kept exactly (see [`ExactSum`]), and expiry is found
//! without scanning many ([`places`]): every holder is scheduled to be looked at, not later than its next
//! expiry. One that comes up early, because the lease was renewed meanwhile, is scheduled again, so
//! renewing a lease costs nothing here, and each lease is looked at about once a lease length.

mod ending;
mod holding;
mod places;

pub(crate) use holding::{Holding, ServerReport, Standing, Version};
pub(crate) use places::Slot;

use std::cell::OnceCell;
use std::ops::Range;

use crate::claims::Demand;
use crate::exact_sum::ExactSum;
use crate::holders::Leases;
use crate::holders::table::ending::Ending;
use crate::holders::table::places::{NameHash, Places};
use crate::id::HolderId;
use crate::time::Time;

/// The holders of one resource. In this order, what every request reads stands together.
#[derive(Debug)]
#[repr(C)]
pub(crate) struct LeaseTable {
    places: Places,
    hash: NameHash,
    version: Version,
    /// Leases that are still to be ended by a time.
    ending: Option<Box<Ending>>,
    /// No lease that is worth anything ends later.
    in_use_until: Time,
    len: u32,
    waiting: u32,
    granted: ExactSum,
    reserved: ExactSum,
    wants: ExactSum,
    without_demand: ExactSum,
    needs: ExactSum,
}

impl LeaseTable {
    /// An empty table; the seed keys the hash of names.
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            hash: NameHash { seed },
            version: Version::FIRST,
            places: Places::new(),
            len: 0,
            waiting: 0,
            granted: ExactSum::ZERO,
            reserved: ExactSum::ZERO,
            in_use_until: Time::ZERO,
            wants: ExactSum::ZERO,
            without_demand: ExactSum::ZERO,
            needs: ExactSum::ZERO,
            ending: None,
        }
    }

    /// Version of the table, which changes whenever a sum changes or [`LeaseTable::note_changed`] is called.
    pub(crate) fn version(&self) -> Version {
        self.version
    }

    /// Notes that another input of decisions has changed.
    pub(crate) fn note_changed(&mut self) {
        self.version = self.version.next();
    }

    /// Number of holders.
    pub(crate) fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Σ of what the newest leases say.
    pub(crate) fn granted(&self) -> &ExactSum {
        &self.granted
    }

    /// Σ of the most that may be in use.
    pub(crate) fn reserved(&self) -> &ExactSum {
        &self.reserved
    }

    /// Time until which capacity may be in use, if no more is granted. None: nothing is in use. If a holder reported
    /// less than its grant, this time may be later than the end of the last lease, but never later than the end of a
    /// granted lease.
    pub(crate) fn in_use_until(&self, now: Time) -> Option<Time> {
        let in_use = !self.reserved.is_zero() && self.in_use_until > now;
        in_use.then_some(self.in_use_until)
    }

    /// Σ wants.
    pub(crate) fn wants(&self) -> &ExactSum {
        &self.wants
    }

    /// Σ of what child servers count for holders that are not in their demand yet.
    pub(crate) fn without_demand(&self) -> &ExactSum {
        &self.without_demand
    }

    /// Σ of the larger of wants and the most that may be in use.
    pub(crate) fn needs(&self) -> &ExactSum {
        &self.needs
    }

    /// Number of holders that get less than their share because of leases of others.
    pub(crate) fn waiting(&self) -> usize {
        self.waiting as usize
    }

    /// That holder.
    pub(crate) fn find(&self, holder: &HolderId) -> Option<Slot> {
        self.find_by(holder, || self.hash.of_name(holder))
    }

    /// The holder that asks.
    pub(crate) fn find_asker(&self, asker: &Asker) -> Option<Slot> {
        self.find_by(asker.holder(), || asker.hash(self.hash))
    }

    fn find_by(&self, holder: &HolderId, name: impl FnOnce() -> u32) -> Option<Slot> {
        let found = self.places.find(name, |it| it.is(holder));
        found.or_else(|| {
            // A process that was replaced is not found by its name alone.
            holder.process?;
            let process = || self.hash.of(holder) as u32;
            self.places.find(process, |it| it.is(holder))
        })
    }

    /// The newest process of a holder's name.
    pub(crate) fn newest_of_name(&self, holder: &HolderId) -> Option<Slot> {
        let is_it = |it: &Holding| it.is_named(holder) && it.standing != Standing::Replaced;
        self.places.find(|| self.hash.of_name(holder), is_it)
    }

    /// Returns the holder in `slot`.
    pub(crate) fn get(&self, slot: Slot) -> Option<&Holding> {
        self.places.get(slot)
    }

    fn get_mut(&mut self, slot: Slot) -> Option<&mut Holding> {
        self.places.get_mut(slot)
    }

    /// Puts in a holder that is not there yet.
    pub(crate) fn insert(&mut self, mut holding: Holding) -> Slot {
        debug_assert!(
            self.find(&holding.holder()).is_none(),
            "{} is there already",
            holding.holder()
        );
        self.note_changed();
        self.wants.add(holding.demand.wants());
        self.without_demand.add(holding.without_demand());
        self.needs.add(holding.needs());
        self.granted.add(holding.newest().capacity);
        self.reserved.add_sum(&holding.leases.reserved_sum());
        self.waiting += u32::from(holding.waits);
        self.len += 1;
        if let Some(until) = holding.leases.in_use_until() {
            self.in_use_until = self.in_use_until.max(until);
        }
        holding.is_ended = self.ending.is_some();
        self.places.insert(holding, self.hash)
    }

    /// Takes a holder out.
    pub(crate) fn remove(&mut self, slot: Slot) -> Option<Holding> {
        let holding = self.places.remove(slot, self.hash)?;
        self.note_changed();
        self.wants.subtract(holding.demand.wants());
        self.without_demand.subtract(holding.without_demand());
        self.needs.subtract(holding.needs());
        self.granted.subtract(holding.newest().capacity);
        self.reserved.subtract_sum(&holding.leases.reserved_sum());
        self.waiting -= u32::from(holding.waits);
        self.len -= 1;
        if self.is_empty() {
            self.in_use_until = Time::ZERO;
            self.ending = None;
        }
        Some(holding)
    }

    /// Changes a holder's leases, keeping the sums and the schedule in step.
    pub(crate) fn change_leases<T>(
        &mut self,
        slot: Slot,
        change: impl FnOnce(&mut Leases) -> T,
    ) -> Option<T> {
        self.end_leases_of(slot);
        let holding = self.get_mut(slot)?;
        let granted = holding.newest().capacity;
        let reserved = holding.leases.reserved_sum();
        let needs = holding.needs();
        let result = change(&mut holding.leases);
        let granted_now = holding.newest().capacity;
        let reserved_now = holding.leases.reserved_sum();
        let needs_now = holding.needs();
        let next_expiry = holding.leases.next_expiry();
        let in_use_until = holding.leases.in_use_until();
        if next_expiry < holding.scheduled {
            self.places.schedule(slot, next_expiry);
        }
        if granted_now != granted {
            self.note_changed();
            self.granted.replace(granted, granted_now);
        }
        if reserved_now != reserved {
            self.note_changed();
            // Put in first: between the two steps the sum never goes below what it holds.
            self.reserved.add_sum(&reserved_now);
            self.reserved.subtract_sum(&reserved);
            self.needs.replace(needs, needs_now);
        }
        if let Some(until) = in_use_until {
            self.in_use_until = self.in_use_until.max(until);
        }
        Some(result)
    }

    /// The leases of a holder as they are now: those that are ended step by step have ended.
    pub(crate) fn copy_leases(&mut self, slot: Slot) -> Option<Leases> {
        self.end_leases_of(slot);
        self.get(slot).map(|holding| holding.leases.clone())
    }

    /// The newest lease of a holder that has no other one lasts until then.
    pub(crate) fn renew(&mut self, slot: Slot, expires_at: Time) {
        self.end_leases_of(slot);
        let Some(holding) = self.get_mut(slot) else {
            return;
        };
        holding.leases.renew(expires_at);
        if !holding.newest().capacity.is_zero() {
            self.in_use_until = self.in_use_until.max(expires_at);
        }
    }

    /// Changes what a holder asks for.
    pub(crate) fn change_demand(&mut self, slot: Slot, demand: Demand) {
        self.note_changed();
        if let Some(holding) = self.get_mut(slot) {
            let after = demand.wants();
            let needs = holding.needs();
            let before = std::mem::replace(&mut holding.demand, demand).wants();
            let needs_now = holding.needs();
            self.wants.replace(before, after);
            self.needs.replace(needs, needs_now);
        }
    }

    /// Changes a child server's report about itself.
    pub(crate) fn change_report(&mut self, slot: Slot, report: Option<ServerReport>) {
        if let Some(holding) = self.get_mut(slot) {
            let (needs, without) = (holding.needs(), holding.without_demand());
            holding.report = report.map(Box::new);
            let (needs_now, without_now) = (holding.needs(), holding.without_demand());
            self.needs.replace(needs, needs_now);
            self.without_demand.replace(without, without_now);
        }
    }

    /// Changes whether a holder waits for others.
    pub(crate) fn change_waits(&mut self, slot: Slot, waits: bool) {
        let Some(holding) = self.get_mut(slot) else {
            return;
        };
        let before = std::mem::replace(&mut holding.waits, waits);
        if waits != before {
            self.waiting = self.waiting + u32::from(waits) - u32::from(before);
            self.note_changed();
        }
    }

    /// Changes the standing of a client's process, and with it how the process is found.
    pub(crate) fn change_standing(&mut self, slot: Slot, standing: Standing) {
        self.places.change_standing(slot, standing, self.hash);
    }

    /// Changes fields that no sum includes: share, why, sequence, times.
    pub(crate) fn note(&mut self, slot: Slot, note: impl FnOnce(&mut Holding)) {
        if let Some(holding) = self.get_mut(slot) {
            note(holding);
        }
    }

    /// Not later than the first expiry of any lease.
    pub(crate) fn next_expiry(&self) -> Option<Time> {
        let scheduled = self.places.next_scheduled();
        match self.ending_due() {
            Some(due) => Some(scheduled.map_or(due, |time| time.min(due))),
            None => scheduled,
        }
    }

    /// Looks at the holder that is due first, if there is one, or ends leases that are to end by a time. A holder whose
    /// last lease has ended is taken out.
    pub(crate) fn expire_one(&mut self, now: Time) -> Expired {
        if let Some(ended) = self.end_some() {
            return ended;
        }
        let Some(slot) = self.places.scheduled_by(now) else {
            return Expired::NothingDue;
        };
        let before = self.get(slot).map(Holding::reserved);
        let is_silent = self.get(slot).is_some_and(|it| it.is_silent(now));
        let alive = self
            .change_leases(slot, |leases| leases.expire(now))
            .unwrap_or(false);
        if !alive {
            return self
                .remove(slot)
                .map_or(Expired::Nobody, |h| Expired::Holder(slot, Box::new(h)));
        }
        if let Some(holding) = self.get(slot) {
            let next_expiry = holding.leases.next_expiry();
            self.places.schedule(slot, next_expiry);
        }
        if is_silent {
            return Expired::Silent(slot);
        }
        if self.get(slot).map(Holding::reserved) < before {
            return Expired::Part;
        }
        Expired::Nobody
    }

    /// All holders, in no meaningful but always the same order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Holding> {
        self.places.iter()
    }

    /// Number of places, taken or free.
    pub(crate) fn places(&self) -> usize {
        self.places.len()
    }

    /// The holders in these places.
    pub(crate) fn in_places(&self, places: Range<usize>) -> impl Iterator<Item = &Holding> {
        places.filter_map(|place| self.get(Slot::of(place)))
    }

    /// Whether the table has had so many holders that dropping it takes long.
    pub(crate) fn has_had_many(&self) -> bool {
        self.places.are_in_chunks()
    }

    /// Asserts that every kept sum is what its parts add up to. O(n), for tests.
    ///
    /// # Panics
    ///
    /// If one is not.
    pub(crate) fn assert_consistent(&self) {
        let mut granted = ExactSum::ZERO;
        let mut reserved = ExactSum::ZERO;
        let mut wants = ExactSum::ZERO;
        let mut without_demand = ExactSum::ZERO;
        let mut needs = ExactSum::ZERO;
        let mut waiting = 0;
        let mut len = 0;
        for holding in self.iter() {
            granted.add(holding.newest().capacity);
            reserved.add_sum(&holding.leases.reserved_sum());
            wants.add(holding.demand.wants());
            without_demand.add(holding.without_demand());
            needs.add(holding.needs());
            waiting += u32::from(holding.waits);
            len += 1;
            assert!(
                holding.newest().capacity <= holding.reserved(),
                "{holding:?}"
            );
            assert!(
                self.ending.is_some() || holding.leases.in_use_until() <= Some(self.in_use_until),
                "{holding:?}"
            );
            assert!(
                holding.scheduled <= holding.leases.next_expiry(),
                "{holding:?}"
            );
        }
        assert_eq!(granted, self.granted, "Σ granted");
        assert_eq!(reserved, self.reserved, "Σ reserved");
        assert_eq!(wants, self.wants, "Σ wants");
        assert_eq!(without_demand, self.without_demand, "Σ without demand");
        assert_eq!(needs, self.needs, "Σ needs");
        assert_eq!(waiting, self.waiting, "waiting holders");
        assert_eq!(len, self.len(), "holders");
        self.places.assert_consistent(len);
    }

    /// A keyed hash of a name.
    pub(crate) fn name_hash(&self, holder: &HolderId) -> u64 {
        self.hash.of(holder)
    }
}

/// Result of looking at a holder that is due.
#[derive(Debug)]
pub(crate) enum Expired {
    /// No holder is due.
    NothingDue,
    /// No last lease has ended; there may be more.
    Nobody,
    /// This holder was replaced and did not ask when it should have; there may be more.
    Silent(Slot),
    /// An older lease has ended, and frees something; there may be more.
    Part,
    /// This holder's last lease has ended, and its slot is free; there may be more.
    Holder(Slot, Box<Holding>),
}

/// The holder behind a request, and the hash of its name once a table has needed it.
///
/// A request that names many resources looks for one holder in each of their tables, which all have the node's key: so
/// the name is hashed once. Name and hash are one value: the hash of another name would not find the holder, and the
/// table would add it twice.
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    holder: HolderId,
    hash: OnceCell<u32>,
}

impl Asker {
    /// A holder whose name is not hashed yet.
    pub(crate) fn new(holder: HolderId) -> Self {
        let hash = OnceCell::new();
        Self { holder, hash }
    }

    /// The holder.
    pub(crate) fn holder(&self) -> &HolderId {
        &self.holder
    }

    /// The hash of its name by the key of a node, which is the same at each call.
    fn hash(&self, key: NameHash) -> u32 {
        let of_name = || key.of_name(&self.holder);
        let hash = *self.hash.get_or_init(of_name);
        debug_assert_eq!(hash, of_name(), "by another key");
        hash
    }
}

#[cfg(test)]
mod tests;
