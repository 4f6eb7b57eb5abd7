//! When a holder should ask again.
//!
//! The template's refresh interval is what holders get when nothing is going on. But capacity that
//! is to move from one holder to another moves only when both have asked: the one acknowledges that
//! it has shrunk, the other takes what is free. So holders whose acknowledgement others wait for,
//! and holders that wait, are told to come back soon: not before the floor, and not all at once.

use std::time::Duration;

/// How many early refreshes a second a server invites for one resource, at most. With more holders
/// than that waiting, they are spread over a longer time.
pub const EARLY_PER_SECOND_MAX: u32 = 2_000;

/// Spreads refreshes over time, the same way each time for the same seed.
#[derive(Clone, Debug)]
pub struct Spread {
    state: u64,
}

impl Spread {
    /// One that is different for different seeds.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// A part of `range`, uniformly.
    pub fn within(&mut self, range: Duration) -> Duration {
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

/// How long a holder that waits, or is waited for, is told to stay away: a little above the floor,
/// spread so that `waiting` holders do not come at once, and never longer than `interval`.
pub fn soon(interval: Duration, floor: Duration, waiting: usize, spread: &mut Spread) -> Duration {
    // A request that comes right at the floor may arrive a little before it. Without a floor, a
    // small part of the interval is soon enough.
    let base = (floor + floor / 16).max(interval / 32);
    let waiting = u32::try_from(waiting).unwrap_or(u32::MAX);
    let range = base / 4 + Duration::from_secs(u64::from(waiting)) / EARLY_PER_SECOND_MAX;
    interval.min(base + spread.within(range))
}

/// How long a holder that learning mode leaves wanting is told to stay away: until learning is over
/// in `remaining`, and a little, so that all of them do not come at once.
pub fn after_learning(
    interval: Duration,
    floor: Duration,
    remaining: Duration,
    spread: &mut Spread,
) -> Duration {
    let range = interval / 8 + floor / 4;
    interval.min((remaining + spread.within(range)).max(floor))
}

/// An interval that is shorter than what remains of the lease: itself, or just shorter.
pub fn within_lease(interval: Duration, remaining: Duration) -> Duration {
    interval.min(remaining - remaining / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn soon_is_above_the_floor_and_not_beyond_the_interval() {
        let mut spread = Spread::new(7);
        for waiting in [0, 1, 100, 1_000_000] {
            for _ in 0..100 {
                let soon = soon(15 * SECOND, SECOND, waiting, &mut spread);
                assert!(soon > SECOND && soon <= 15 * SECOND, "{soon:?}");
            }
        }
        assert_eq!(soon(SECOND / 2, SECOND, 3, &mut spread), SECOND / 2);
    }

    #[test]
    fn many_who_wait_are_spread_over_a_longer_time() {
        let mut spread = Spread::new(7);
        let latest = (0..1000)
            .map(|_| soon(60 * SECOND, SECOND, 20_000, &mut spread))
            .max()
            .unwrap();
        assert!(latest > 10 * SECOND, "{latest:?}");
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
