//! One key of a map as a limit.

use std::fmt;

use super::Keyed;
use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::key::Key;
use crate::limit::Limit;
use crate::moment::Moment;
use crate::units::Units;

/// Limit of one key of a map.
#[derive(Clone, Copy)]
pub struct AtKey<'a, A: Algorithm> {
    pub(super) map: &'a Keyed<A>,
    pub(super) key: Key,
}

impl<A: Algorithm> fmt::Debug for AtKey<'_, A> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("AtKey").field(&self.key).finish()
    }
}

impl<A> Limit for AtKey<'_, A>
where
    A: Algorithm<State: Send> + Clone + Send,
{
    fn take(&self, cost: Units, now: Moment) -> Decision {
        self.map.take(self.key, cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        self.map.peek(self.key, cost, now)
    }

    fn standing(&self, now: Moment) -> Standing {
        self.map.standing(self.key, now)
    }

    fn charge(&self, cost: Units, now: Moment) {
        self.map.charge(self.key, cost, now);
    }

    fn refund(&self, cost: Units, now: Moment) {
        self.map.refund(self.key, cost, now);
    }

    fn attempt(&self, cost: Units, now: Moment) {
        self.map.update(self.key, now, |limit, state, now| {
            limit.attempt(state, cost, now);
        });
    }
}
