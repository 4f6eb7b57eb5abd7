//! Amounts that callers took of the keys of a rule. A refund gives back what the same caller took in the same window.
//!
//! They are counted as the rule counts, so an amount that the key has back is no longer there. A caller may give back
//! whole requests up to the rule's amount in a window; a unit of each further one stays. Otherwise a caller that gives
//! back each request would have no limit. Callers without room get nothing back.

use doorward_limits::{Algorithm as _, FixedWindow, Key, Keyed, Moment, Rate, TokenBucket, Units};

use crate::rules::counting::Counting;
use crate::rules::limiter::{Counters, Limiter};
use crate::rules::rule::Counted;
use crate::rules::shared::Leases;
use crate::rules::tree::Entry;
use crate::rules::value::add_to_key;

/// Amounts of the callers of one rule.
#[derive(Debug)]
pub(super) struct Taken(pub(super) Keyed<Counting>);

impl Taken {
    fn new(limit: &Counted, keys_max: usize) -> Self {
        let nothing = FixedWindow::new(Rate::per_second(Units::ZERO));
        let nothing = Counting::FixedWindow(nothing);
        // A caller has two keys.
        let keys_max = keys_max.saturating_mul(2);
        Self(Keyed::new(counting(limit), keys_max).with_overflow(nothing))
    }

    pub(super) fn set_limit(&self, next: &Counted, now: Moment) {
        self.0.set_limit(&counting(next), now);
    }

    /// Notes a request that passed.
    pub(super) fn note(&self, [amounts, requests]: [Key; 2], cost: Units, now: Moment) {
        if cost > Units::ZERO {
            let is_whole = self.0.take(requests, Units::ONE, now).is_allowed();
            let stays = if is_whole { Units::ZERO } else { Units::ONE };
            self.0.charge(amounts, cost.saturating_sub(stays), now);
        }
    }

    /// Removes an amount. Returns the part that was there.
    pub(super) fn give_back(&self, amounts: Key, cost: Units, now: Moment) -> Units {
        self.0.update(amounts, now, |limit, state, now| {
            let standing = limit.standing(state, now);
            let used = limit.limit().saturating_sub(standing.remaining);
            let back = match limit.limit() {
                Units::ZERO => Units::ZERO,
                _ => cost.min(used.saturating_add(standing.debt)),
            };
            limit.refund(state, back, now);
            back
        })
    }
}

impl Limiter {
    /// Returns the amounts of the callers of a rule, and the keys of this one. `None`: there is no caller, or no room.
    pub(super) fn taken_by<'a>(
        &self,
        (limit, counters): (&Counted, &'a Counters),
        entries: &[Entry<'_>],
        leases: &dyn Leases,
        now: Moment,
    ) -> Option<(&'a Taken, [Key; 2])> {
        let keys = self.caller_keys(entries, leases.caller()?);
        let new = || Taken::new(limit, self.keys_max);
        let taken = counters.taken.get_or_init(new);
        let wait = self.newcomer_wait((limit, counters), (&taken.0, keys[0]), Some(leases), now);
        wait.is_none().then_some((taken, keys))
    }

    /// Returns the keys of a caller's use of a descriptor: of its amounts, and of its requests.
    fn caller_keys(&self, entries: &[Entry<'_>], caller: &str) -> [Key; 2] {
        let add = |key, entry: &Entry<'_>| add_to_key(key, entry.value);
        [0, 1].map(|kind| {
            let key = entries.iter().fold(self.keys.key(), add);
            key.text(caller.as_bytes()).number(kind).finish()
        })
    }
}

/// Returns the way in which a rule counts. A queue with a deadline counts as a bucket.
fn counting(limit: &Counted) -> Counting {
    let counting = limit.settings.hard().limit;
    match (counting, TokenBucket::new(counting.limit(), limit.rate)) {
        (Counting::LeakyQueue(_), Ok(bucket)) => Counting::TokenBucket(bucket),
        (counting, _) => counting,
    }
}
