//! When a holder should ask again.
//!
//! The template's refresh interval is what holders get when nothing is going on. But capacity that
//! is to move from one holder to another moves only when both have asked: the one acknowledges that
//! it has shrunk, the other takes what is free. So holders whose acknowledgement others wait for,
//! and holders that wait, are invited back soon, and not all at once.

use std::time::Duration;

use crate::time::Time;

/// The longest refresh interval that is sent, whatever the template says. Doorman's own clients obey any interval: with a
/// long one, set by mistake, they would not notice the correction for that long.
pub(crate) const REFRESH_IN_MAX: Duration = Duration::from_secs(60);

/// How many early refreshes a second a server invites for one resource, at most. With demand in
/// motion, most holders of an overloaded resource wait or are waited for most of the time; this is
/// what keeps a hundred thousand of them from coming every second.
pub(crate) const EARLY_PER_SECOND_MAX: u32 = 2_000;

/// The floor protects a server from holders that ask faster than their refresh interval. Invited holders may be faster,
/// because the server limits their number.
const FLOOR_PART: u32 = 8;

/// What moves from one holder to another takes two requests; with a small part of the interval for each,
/// demand that changes about as fast as holders refresh is followed.
const INTERVAL_PART: u32 = 32;

/// Spreads refreshes over time, the same way each time for the same seed.
#[derive(Clone, Debug)]
struct Spread {
    state: u64,
}

impl Spread {
    /// One that is different for different seeds.
    const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A part of `range`, uniformly.
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

/// Invites holders back before their refresh interval is over, so many a second and no more.
#[derive(Clone, Debug)]
pub(crate) struct Invitations {
    spread: Spread,
    /// When all that were invited would have come, had they come one after the other as fast as
    /// they may.
    busy_until: Time,
}

impl Invitations {
    /// None given yet.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            spread: Spread::new(seed),
            busy_until: Time::ZERO,
        }
    }

    /// The refresh interval of a holder that waits, or is waited for: a small part of the usual interval,
    /// or of the floor. If it `waited` so long already and nothing came of it, twice as long, up to a little
    /// above the floor: what it waits for may belong to a holder that has ended. Later if many are invited
    /// already, and never longer than `interval`.
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

    /// The refresh interval of a holder that gets less because of learning mode: until learning is
    /// over in `remaining`, and a little, so that all of them do not come at once.
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

/// An interval that is shorter than what remains of the lease: itself, or just shorter.
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
    fn no_more_are_invited_a_second_than_may_be() {
        let mut invitations = Invitations::new(7);
        let (now, interval) = (Time::from_secs(100), 15 * SECOND);
        let mut in_second = [0_u32; 16];
        for _ in 0..100_000 {
            let soon = invitations.soon(interval, SECOND, None, now);
            if soon < interval {
                in_second[usize::try_from(soon.as_secs()).unwrap()] += 1;
            }
        }
        // Spread over a quarter of a second, so a second may get a little of its neighbours'.
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
