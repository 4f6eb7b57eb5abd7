//! What one client uses: a resource, or several.

use doorward_engine::amount::Amount;
use doorward_engine::time::Time;

use crate::chance::Chance;
use crate::scenario::demand::demand_player::{DemandChange, DemandPlayer};
use crate::scenario::usage::Usage;
use crate::world::work::Working;

/// What a client has to do with one resource.
#[derive(Debug)]
pub(crate) struct Use {
    /// Which resource, and which account there.
    pub(crate) resource: u32,
    pub(crate) account: u32,
    pub(crate) player: DemandPlayer,
    /// What its curve says next, and when.
    pub(crate) next: Option<DemandChange>,
    /// What its curve says.
    pub(crate) curve: f64,
    /// What a fault added to that.
    pub(crate) extra: f64,
    /// What a fault says, whatever its curve says.
    pub(crate) fixed: Option<f64>,
    /// Since when it has no lease.
    pub(crate) without_since: Option<Time>,
    /// Until then it does not use this.
    pub(crate) closed_until: Time,
    /// Its limiter, while it has one and runs.
    pub(crate) work: Option<Box<Working>>,
}

impl Use {
    /// One that wants nothing yet.
    pub(crate) fn new(resource: u32, account: u32, player: DemandPlayer) -> Self {
        Self {
            resource,
            account,
            player,
            next: None,
            curve: 0.0,
            extra: 0.0,
            fixed: None,
            without_since: None,
            closed_until: Time::ZERO,
            work: None,
        }
    }

    /// The load that comes to it: no more than can be asked for.
    pub(crate) fn load(&self) -> f64 {
        let load = self.fixed.unwrap_or(self.curve) + self.extra;
        load.clamp(0.0, Amount::MAX.get())
    }

    /// What it asks for: its load, or what it measured of that.
    pub(crate) fn wants(&self) -> f64 {
        let measured = self.work.as_ref().and_then(|work| work.measured());
        measured.unwrap_or_else(|| self.load())
    }

    /// What of it is in use whether or not a lease allows that.
    pub(crate) fn in_flight(&self) -> f64 {
        self.work.as_ref().map_or(0.0, |work| work.in_flight())
    }

    /// Begins to follow its curve: what that says by now is wanted from the start. Returns when it changes
    /// next.
    pub(crate) fn begin(&mut self, usage: &Usage, now: Time) -> Option<Time> {
        self.next = self.player.next_change(&usage.demand);
        self.follow(usage, now)
    }

    /// Follows its curve up to now. Returns when it changes next.
    pub(crate) fn follow(&mut self, usage: &Usage, now: Time) -> Option<Time> {
        while let Some(change) = self.next {
            let at = Time::ZERO + change.at;
            if at > now {
                return Some(at);
            }
            self.curve = change.wants;
            self.next = self.player.next_change(&usage.demand);
        }
        None
    }
}

/// All that a client uses, in the order of its group: mostly one.
#[derive(Debug)]
pub(crate) struct Uses {
    first: Use,
    also: Vec<Use>,
}

impl Uses {
    pub(crate) fn new(first: Use, also: Vec<Use>) -> Self {
        Self { first, also }
    }

    pub(crate) fn first(&self) -> &Use {
        &self.first
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Use> {
        std::iter::once(&self.first).chain(&self.also)
    }

    pub(crate) fn iter_mut(&mut self) -> impl Iterator<Item = &mut Use> {
        std::iter::once(&mut self.first).chain(&mut self.also)
    }

    pub(crate) fn get(&self, which: usize) -> Option<&Use> {
        match which.checked_sub(1) {
            None => Some(&self.first),
            Some(which) => self.also.get(which),
        }
    }

    pub(crate) fn get_mut(&mut self, which: usize) -> Option<&mut Use> {
        match which.checked_sub(1) {
            None => Some(&mut self.first),
            Some(which) => self.also.get_mut(which),
        }
    }

    /// That of a resource.
    pub(crate) fn of(&self, resource: usize) -> Option<&Use> {
        self.iter().find(|it| it.resource as usize == resource)
    }
}

/// Chance for what a client wants of one of the resources that it uses.
pub(crate) fn chance_of(chance: &Chance, client: u32, which: usize) -> Chance {
    chance.fork(u64::from(client) | (which as u64) << 32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nobody_wants_more_than_can_be_asked_for() {
        let mut it = Use::new(0, 0, DemandPlayer::new(0, Chance::new(1)));
        (it.curve, it.extra) = (Amount::MAX.get(), 5.0);
        assert_eq!(it.wants(), Amount::MAX.get());
        (it.curve, it.extra) = (3.0, -5.0);
        assert_eq!(it.wants(), 0.0);
    }
}
