//! Refresh intervals of holders.
//!
//! Without changes, holders get the template's refresh interval. But capacity moves from one holder to another only
//! when both have asked: one confirms that it has shrunk, and the other takes the free capacity. So the server invites
//! two kinds of holders back soon, spread over time: holders that wait, and holders whose confirmation others wait for.

use std::time::Duration;

use crate::time::Time;

/// Longest refresh interval that a server sends, whatever the template says. Doorman's own clients obey any interval.
/// After a mistake in a template they would notice the correction only when a long interval is over.
pub(crate) const REFRESH_IN_MAX: Duration = Duration::from_secs(60);

/// Length of a lease for a report that was cut.
pub(crate) fn short_lease(refresh_interval: Duration) -> Duration {
    2 * refresh_interval.min(REFRESH_IN_MAX)
}

/// Largest number of early refreshes a second that a server invites for one resource. While demand changes, most
/// holders of an overloaded resource wait or are waited for most of the time. This bound keeps a hundred thousand of
/// them from asking every second.
pub(crate) const EARLY_PER_SECOND_MAX: u32 = 2_000;

/// Part of the floor. The floor protects a server from holders that ask faster than their refresh interval. Invited
/// holders may be faster, because the server limits their number.
const FLOOR_PART: u32 = 8;

/// Part of the refresh interval. Capacity moves from one holder to another in two requests. With a small part of the
/// interval for each, leases follow demand that changes about as fast as holders refresh.
const INTERVAL_PART: u32 = 32;

/// Spreads refreshes over time, the same way each time for the same seed.
#[derive(Clone, Debug)]
struct Spread {
    state: u64,
}

impl Spread {
    /// Returns a sequence that differs for different seeds.
    const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Returns a part of `range`, uniformly.
    fn within(&mut self, range: Duration) -> Duration {
        // SplitMix64 (Steele, Lea, Flood, 2014).
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        let nanos = (u128::from(bits) * range.as_nanos()) >> 64;
        Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }
}

/// Invites holders back before their refresh interval is over, a limited number a second.
#[derive(Clone, Debug)]
pub(crate) struct Invitations {
    spread: Spread,
    /// Time at which all invited holders would have come, one after the other as fast as they may.
    busy_until: Time,
}

impl Invitations {
    /// Starts without invitations.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            spread: Spread::new(seed),
            busy_until: Time::ZERO,
        }
    }

    /// Returns the refresh interval of a holder that waits, or is waited for: a small part of the usual interval, or of
    /// the floor. A holder that already `waited` in vain gets twice that time, up to a little above the floor, since it
    /// may wait for the lease of a holder that has ended. The interval is longer if many holders are invited already,
    /// and never longer than `interval`.
    pub(crate) fn soon(
        &mut self,
        interval: Duration,
        floor: Duration,
        waited: Option<Duration>,
        now: Time,
    ) -> Duration {
        let least = (floor / FLOOR_PART).max(interval / INTERVAL_PART);
        let most = least.max(floor + floor / 16);
        let base = waited.map_or(least, |waited| (2 * waited).clamp(least, most));
        let soon = base + self.spread.within(base / 4) + self.busy_until.since(now);
        if soon >= interval {
            return interval;
        }
        self.busy_until = self.busy_until.max(now) + Duration::from_secs(1) / EARLY_PER_SECOND_MAX;
        soon
    }

    /// Returns the refresh interval of a holder that gets less because of learning mode: until learning ends in
    /// `remaining`, plus a random part, so that holders do not come at once.
    pub(crate) fn after_learning(
        &mut self,
        interval: Duration,
        floor: Duration,
        remaining: Duration,
    ) -> Duration {
        let range = interval / 8 + floor / 4;
        interval.min((remaining + self.spread.within(range)).max(floor))
    }
}

/// Returns the interval, or a part of the `remaining` lease if that is shorter.
pub(crate) fn within_lease(interval: Duration, remaining: Duration) -> Duration {
    interval.min(remaining - remaining / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn soon_is_a_small_part_of_the_interval_and_not_beyond_it() {
        let mut invitations = Invitations::new(7);
        for _ in 0..10_000 {
            let soon = invitations.soon(15 * SECOND, SECOND, None, Time::from_secs(100));
            assert!(soon > SECOND / 4 && soon <= 15 * SECOND, "{soon:?}");
        }
        let soon = invitations.soon(SECOND / 10, SECOND, None, Time::from_secs(200));
        assert_eq!(soon, SECOND / 10);
    }

    #[test]
    fn invitations_a_second_are_bounded() {
        let mut invitations = Invitations::new(7);
        let (now, interval) = (Time::from_secs(100), 15 * SECOND);
        let mut in_second = [0_u32; 16];
        for _ in 0..100_000 {
            let soon = invitations.soon(interval, SECOND, None, now);
            if soon < interval {
                in_second[usize::try_from(soon.as_secs()).unwrap()] += 1;
            }
        }
        // A spread of a quarter of a second may move some of them into the next second.
        let most = EARLY_PER_SECOND_MAX + EARLY_PER_SECOND_MAX / 3;
        assert!(
            in_second.iter().all(|count| *count <= most),
            "{in_second:?}"
        );
        assert!(
            in_second[10] >= EARLY_PER_SECOND_MAX * 2 / 3,
            "{in_second:?}"
        );
    }

    #[test]
    fn a_refresh_always_comes_before_the_lease_ends() {
        for remaining in [Duration::from_nanos(10), SECOND / 1000, SECOND, 60 * SECOND] {
            assert!(within_lease(15 * SECOND, remaining) < remaining);
        }
        assert_eq!(within_lease(15 * SECOND, 60 * SECOND), 15 * SECOND);
    }

    #[test]
    fn the_same_seed_spreads_the_same_way() {
        let draw = |seed| {
            let mut spread = Spread::new(seed);
            [0; 5].map(|_| spread.within(SECOND))
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
