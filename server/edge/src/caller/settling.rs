//! Amounts that requests used in fact, or did not use.

use doorward::time::Time;
use doorward_limits::Units;

use super::{By, Caller, WANTS_FIRST};

impl Caller {
    /// Takes `cost` of a resource, available or not, up to a debt. Without a lease, the next one pays. Returns the amount
    /// that the lease took.
    pub fn charge(&self, resource: &str, by: &By<'_>, cost: u64, debt_max: u64, now: Time) -> u64 {
        let Some(used) = self.use_of(resource, by.weight, WANTS_FIRST, now) else {
            return 0;
        };
        let mut sharing = used.sharing.lock();
        let (name, level) = sharing.name(by, |bytes| self.room.take(&self.identity, bytes), now);
        if !used.decides(by, now) {
            name.debt = name.debt.saturating_add(cost).min(debt_max);
            return 0;
        }
        let most = self.most(resource, &used, by, now).min(debt_max as f64);
        let more = (most - used.debt(now)).max(0.0);
        let cost = cost.min(more as u64);
        name.counted = name.counted.saturating_add(cost);
        let units = Units::whole(cost);
        name.pass(units.as_f64(), level, now);
        used.limiter
            .settle(now, Units::ZERO, units, Units::ZERO, now);
        sharing.owe(units.as_f64(), used.rate(now), now);
        cost
    }

    /// Gives back `cost` of a resource, up to the amount that requests of this caller took. Without a lease, the next
    /// one pays less. Returns the amount that was given back.
    pub fn give_back(&self, resource: &str, by: &By<'_>, cost: u64, now: Time) -> u64 {
        let Some(used) = self.used(resource) else {
            return 0;
        };
        let mut sharing = used.sharing.lock();
        let level = sharing.level;
        let Some(name) = sharing.known(by.name) else {
            return 0;
        };
        if !used.decides(by, now) {
            let given = name.debt.min(cost);
            name.debt -= given;
            return given;
        }
        let given = name.counted.min(cost);
        name.counted -= given;
        let units = Units::whole(given);
        name.give_back(units.as_f64(), level);
        used.limiter
            .settle(now, units, Units::ZERO, Units::ZERO, now);
        given
    }
}
