//! New keys of an identity in the maps of a rule.
//!
//! A map has a bounded number of keys, and at the bound all new keys share one limit. So from half of it on, an identity
//! brings at most an eighth of the keys within the time that a key stays: a quarter at once. Further new keys of that
//! identity are refused, and there is room for those of others.

use std::num::NonZeroU64;
use std::time::Duration;

use doorward_limits::{Algorithm, FixedWindow, Key, Keyed, Moment, Rate, Units};

use crate::rules::limiter::{Counters, Limiter};
use crate::rules::rule::Counted;
use crate::rules::shared::Leases;

/// Part of the keys that an identity brings within the time that a key stays.
const PART: usize = 8;

/// Largest number of identities whose new keys are counted apart.
const IDENTITIES_MAX: usize = 10_000;

/// Time that a key of a limit stays, if it has no rate.
const STAYS: Duration = Duration::from_secs(86_400);

/// Numbers of new keys, by identity.
pub(super) type Newcomers = Keyed<FixedWindow>;

impl Limiter {
    /// Counts a key of an identity, if it is a new one of a crowded map. Returns the time until the identity may bring
    /// it; `None`: now.
    pub(super) fn newcomer_wait<A: Algorithm + Clone>(
        &self,
        (limit, counters): (&Counted, &Counters),
        (map, key): (&Keyed<A>, Key),
        leases: Option<&dyn Leases>,
        now: Moment,
    ) -> Option<Duration> {
        let identity = leases?.identity()?;
        if !map.is_crowded_for(key) {
            return None;
        }
        let new = || newcomers(limit, self.keys_max);
        let newcomers = counters.newcomers.get_or_init(new);
        // Each map has an account.
        let map = std::ptr::from_ref(map).addr() as u64;
        let identity = self
            .keys
            .key()
            .text(identity.as_bytes())
            .number(map)
            .finish();
        newcomers.take(identity, Units::ONE, now).retry_after()
    }
}

fn newcomers(limit: &Counted, keys_max: usize) -> Newcomers {
    let amount = Units::whole((keys_max / PART).max(1) as u64);
    let seconds = limit.debt_max().as_f64() / limit.rate.as_per_second();
    let stays = Duration::try_from_secs_f64(seconds).unwrap_or(STAYS);
    let bans = limit.settings.hard().bans.as_ref();
    let stays = stays.max(bans.map_or(Duration::ZERO, |bans| bans.longest));
    let nanos = NonZeroU64::new(u64::try_from(stays.as_nanos()).unwrap_or(u64::MAX));
    let period = nanos.unwrap_or(NonZeroU64::MIN);
    Keyed::new(FixedWindow::new(Rate::per(amount, period)), IDENTITIES_MAX)
}
