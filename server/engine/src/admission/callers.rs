//! Accounts of the callers: the resources and holders that each has brought and that still exist.
//!
//! The map is bounded, too. A new caller takes the place of one that has nothing here and did nothing
//! lately. Once the map is full, newcomers share one entry. Adding a caller checks only a few entries, because a storm
//! of many addresses comes while others wait for the node (CLOCK eviction).

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

use crate::admission::limits::Bucket;
use crate::id::Caller;
use crate::split_table::SplitTable;
use crate::time::Time;

/// Number of callers with an entry of their own.
pub(crate) const CALLERS_MAX: usize = 65_536;

/// Number of entries that each addition checks for removal.
const CLOCK_STEPS: usize = 4;

/// A caller in the accounts. Small, since every lease has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallerSlot(u32);

impl CallerSlot {
    /// Slot for resources and holders without a known caller. No limit of a caller applies to it.
    pub(crate) const NOBODY: Self = Self(0);

    /// Slot of all callers that have no entry of their own.
    const SHARED: Self = Self(1);
}

/// A caller.
#[derive(Clone, Debug, Default)]
pub(super) struct CallerAccount {
    caller: Option<Caller>,
    /// Bytes of the resources and holders that it has brought.
    pub(super) bytes: usize,
    /// New resources and leases lately.
    pub(super) newcomers: Bucket,
    /// Requests lately.
    pub(super) requests: Bucket,
}

impl CallerAccount {
    /// Whether forgetting it changes nothing.
    fn is_idle(&self, now: Time) -> bool {
        self.bytes == 0 && self.newcomers.is_full(now) && self.requests.is_full(now)
    }
}

/// All callers that have something here, or did something lately.
#[derive(Debug)]
pub(super) struct Callers {
    seed: u64,
    max: usize,
    accounts: Vec<CallerAccount>,
    free: Vec<CallerSlot>,
    by_caller: SplitTable,
    hand: usize,
}

impl Callers {
    /// None yet; the seed keys the hash of callers.
    pub(super) fn new(seed: u64) -> Self {
        Self::of_at_most(CALLERS_MAX, seed)
    }

    fn of_at_most(max: usize, seed: u64) -> Self {
        Self {
            seed,
            max,
            // The entries of `NOBODY` and `SHARED`.
            accounts: vec![CallerAccount::default(); 2],
            free: Vec::new(),
            by_caller: SplitTable::default(),
            hand: 0,
        }
    }

    /// Number of callers with an entry of their own.
    pub(super) fn count(&self) -> usize {
        self.by_caller.len()
    }

    /// Returns the slot of a known caller. [`CallerSlot::NOBODY`] for none.
    pub(super) fn find(&self, caller: Option<Caller>) -> Option<CallerSlot> {
        let Some(caller) = caller else {
            return Some(CallerSlot::NOBODY);
        };
        let account = |slot| self.get(CallerSlot(slot));
        let is_it = |slot| account(slot).is_some_and(|it| it.caller == Some(caller));
        let found = self.by_caller.find(self.hash(caller), is_it);
        found.map(CallerSlot)
    }

    /// Returns the slot of a caller, and adds the caller if it is new.
    pub(super) fn enter(&mut self, caller: Option<Caller>, now: Time) -> CallerSlot {
        if let Some(found) = self.find(caller) {
            return found;
        }
        self.make_room(now);
        if self.by_caller.len() >= self.max {
            return CallerSlot::SHARED;
        }
        let account = CallerAccount {
            caller,
            ..CallerAccount::default()
        };
        let slot = self.place(account);
        if let Some(caller) = caller {
            self.by_caller.insert(self.hash(caller), slot.0);
        }
        slot
    }

    /// Returns the account of a caller.
    pub(super) fn get(&self, slot: CallerSlot) -> Option<&CallerAccount> {
        self.accounts.get(slot.0 as usize)
    }

    /// Returns the account of a caller, to be changed. None for [`CallerSlot::NOBODY`], which no limit counts.
    pub(super) fn get_mut(&mut self, slot: CallerSlot) -> Option<&mut CallerAccount> {
        let account = self.accounts.get_mut(slot.0 as usize);
        account.filter(|_| slot != CallerSlot::NOBODY)
    }

    /// Every caller, and those that share one entry.
    pub(super) fn iter(&self) -> impl Iterator<Item = &CallerAccount> {
        // Place 0 of the accounts belongs to `NOBODY`.
        self.accounts.iter().skip(1)
    }

    fn place(&mut self, account: CallerAccount) -> CallerSlot {
        let slot = self.free.pop().unwrap_or_else(|| {
            self.accounts.push(CallerAccount::default());
            CallerSlot(u32::try_from(self.accounts.len() - 1).unwrap_or(u32::MAX))
        });
        if let Some(place) = self.accounts.get_mut(slot.0 as usize) {
            *place = account;
        }
        slot
    }

    /// Looks at a few entries, each time at others, and drops those that are idle.
    fn make_room(&mut self, now: Time) {
        for _ in 0..CLOCK_STEPS {
            self.hand += 1;
            if self.hand >= self.accounts.len() {
                // The first two stay.
                self.hand = 2;
            }
            let Some(account) = self.accounts.get_mut(self.hand) else {
                return;
            };
            let Some(caller) = account.caller.filter(|_| account.is_idle(now)) else {
                continue;
            };
            account.caller = None;
            let slot = CallerSlot(u32::try_from(self.hand).unwrap_or(u32::MAX));
            self.by_caller.remove(self.hash(caller), slot.0);
            self.free.push(slot);
        }
    }

    /// Keyed: addresses come from outside, and must not be made to collide.
    fn hash(&self, caller: Caller) -> u32 {
        let mut hasher = SipHasher13::new_with_keys(self.seed, 0x6361_6c6c_6572_7321);
        hasher.write(&caller.get().to_le_bytes());
        // The low half.
        hasher.finish() as u32
    }
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroU32;

    use super::*;
    use crate::admission::limits::Rate;

    const RATE: Rate = Rate::new(NonZeroU32::new(1).unwrap(), 1);

    fn enter(callers: &mut Callers, number: u128, second: u64) -> CallerSlot {
        callers.enter(Some(Caller::new(number)), Time::from_secs(second))
    }

    #[test]
    fn a_caller_is_found_again_and_an_absent_one_has_the_first_slot() {
        let mut callers = Callers::new(7);
        let first = enter(&mut callers, 1, 0);
        let account = callers.get_mut(first).unwrap();
        account.bytes = 1;
        let second = enter(&mut callers, 2, 0);
        assert_ne!(first, second);
        assert_eq!(enter(&mut callers, 1, 0), first);
        assert_eq!(callers.enter(None, Time::ZERO), CallerSlot::NOBODY);
        assert!(callers.get_mut(CallerSlot::NOBODY).is_none());
    }

    #[test]
    fn a_caller_that_has_nothing_and_did_nothing_lately_leaves() {
        let mut callers = Callers::of_at_most(10, 7);
        for number in 0..1_000 {
            let slot = enter(&mut callers, number, 0);
            assert_ne!(slot, CallerSlot::SHARED, "caller {number}");
        }
        assert!(callers.count() <= 10);
    }

    #[test]
    fn callers_that_have_something_or_were_busy_stay_and_newcomers_share_an_entry() {
        let mut callers = Callers::of_at_most(10, 7);
        let mut slots = Vec::new();
        for number in 0..10 {
            let slot = enter(&mut callers, number, 0);
            let account = callers.get_mut(slot).unwrap();
            if number % 2 == 0 {
                account.bytes = 1;
            } else {
                account.newcomers.take(RATE, Time::ZERO).unwrap();
            }
            slots.push(slot);
        }
        for number in 100..200 {
            assert_eq!(enter(&mut callers, number, 0), CallerSlot::SHARED);
        }
        for (number, slot) in (0..).zip(&slots) {
            assert_eq!(enter(&mut callers, number, 0), *slot);
        }
        // A second later, the callers that were only busy may leave.
        let late: Vec<_> = (200..205).map(|it| enter(&mut callers, it, 1)).collect();
        assert!(late.iter().any(|slot| *slot != CallerSlot::SHARED));
        for number in [0, 2, 4, 6, 8] {
            let slot = enter(&mut callers, number, 1);
            assert_eq!(slot, slots[usize::try_from(number).unwrap()]);
        }
    }
}
