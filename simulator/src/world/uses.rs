//! Use of a resource by one client.

use std::time::Duration;

use doorward::state::BudgetAsk;
use doorward_engine::amount::Amount;
use doorward_engine::time::Time;

use crate::chance::Chance;
use crate::local_clock::LocalClock;
use crate::numbered::Numbered;
use crate::scenario::{DemandChange, DemandPlayer, Usage};
use crate::world::work::LimiterWork;

/// Use of one resource by a client.
#[derive(Debug)]
pub(crate) struct Use<'a> {
    pub(crate) usage: &'a Usage,
    /// Number of the resource, and of the client's account there.
    pub(crate) resource: u32,
    pub(crate) account: u32,
    pub(crate) player: DemandPlayer,
    /// Present value of its demand curve.
    pub(crate) curve: f64,
    /// Amount that a fault added.
    pub(crate) extra: f64,
    /// Amount that a fault sets in place of the curve.
    pub(crate) fixed: Option<f64>,
    /// Start of the time without a lease.
    pub(crate) without_since: Option<Time>,
    /// End of the time in which it does not use the resource.
    pub(crate) closed_until: Time,
    /// Amounts of a budget that processes that have died took, and the ends of their windows.
    pub(crate) spent: Vec<(f64, Option<Time>)>,
    /// Its limiter, while the client runs and has one.
    pub(crate) work: Option<Box<LimiterWork>>,
}

/// Its use of all resources.
pub(crate) type Uses<'a> = Numbered<Use<'a>>;

impl<'a> Use<'a> {
    /// Creates a use that wants nothing yet.
    pub(crate) fn new(usage: &'a Usage, resource: u32, account: u32, player: DemandPlayer) -> Self {
        Self {
            usage,
            resource,
            account,
            player,
            curve: 0.0,
            extra: 0.0,
            fixed: None,
            without_since: None,
            closed_until: Time::ZERO,
            spent: Vec::new(),
            work: None,
        }
    }

    /// Ends its process.
    pub(crate) fn crash(&mut self, clock: &LocalClock) {
        let work = self.work.take();
        let spent = work.and_then(|work| work.spent(clock));
        self.spent.extend(spent);
    }

    /// Returns what dead processes took of the present window.
    pub(crate) fn spent(&mut self, now: Time) -> f64 {
        self.spent
            .retain(|(_, ends)| ends.is_none_or(|ends| ends > now));
        self.spent.iter().map(|(amount, _)| amount).sum()
    }

    /// Returns the id of the resource.
    pub(crate) fn id(&self) -> &'a str {
        self.usage.resource.as_str()
    }

    /// Returns its load, at most what a request can ask for.
    pub(crate) fn load(&self) -> f64 {
        let load = self.fixed.unwrap_or(self.curve) + self.extra;
        load.clamp(0.0, Amount::MAX.get())
    }

    /// Returns what it asks for: its load, or its measured demand.
    pub(crate) fn wants(&self) -> f64 {
        let measured = self.work.as_ref().and_then(|work| work.measured());
        measured.unwrap_or_else(|| self.load())
    }

    /// Returns what is in use whether or not a lease allows it.
    pub(crate) fn in_flight(&self) -> f64 {
        self.work.as_ref().map_or(0.0, |work| work.in_flight())
    }

    /// Follows the demand curve up to now. Returns its next change.
    pub(crate) fn follow(&mut self, now: Time) -> Option<DemandChange> {
        loop {
            let next = self.player.next_change(&self.usage.demand)?;
            if Time::ZERO + next.at > now {
                return Some(next);
            }
            self.curve = next.wants;
        }
    }
}

/// Returns the amounts that a client has in use whether or not a lease allows it, by resource.
pub(crate) fn in_flight(uses: &Uses<'_>) -> impl Fn(&str) -> f64 {
    move |id| {
        let used = uses.iter().find(|it| it.id() == id);
        used.map_or(0.0, Use::in_flight)
    }
}

/// Returns the words that a client says about its budgets.
pub(crate) fn words(
    uses: &Numbered<Use<'_>>,
    local: Time,
) -> impl Fn(&str, (Duration, bool)) -> Option<BudgetAsk> {
    move |id, pace| {
        let used = uses.iter().find(|it| it.id() == id)?;
        used.work.as_ref()?.say(pace, local)
    }
}

/// Returns the random stream for a client's demand for one of its resources.
pub(crate) fn chance_of(chance: &Chance, client: u32, which: u32) -> Chance {
    chance.fork(u64::from(client) | u64::from(which) << 32)
}

#[cfg(test)]
mod tests {
    use doorward::state::Mode;
    use doorward_engine::id::ResourceId;

    use super::*;
    use crate::scenario::demand::Demand;
    use crate::scenario::forms;

    #[test]
    fn a_load_is_at_most_the_largest_amount() {
        let usage = Usage {
            resource: ResourceId::new("shared").unwrap(),
            priority: 0,
            mode: Mode::Safe,
            demand: Demand::Constant(forms::Amount(1.0)),
            limiter: None,
        };
        let mut it = Use::new(&usage, 0, 0, DemandPlayer::new(0, Chance::new(1)));
        (it.curve, it.extra) = (Amount::MAX.get(), 5.0);
        assert_eq!(it.wants(), Amount::MAX.get());
        (it.curve, it.extra) = (3.0, -5.0);
        assert_eq!(it.wants(), 0.0);
    }
}
