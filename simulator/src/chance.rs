//! Chance that can be repeated: everything by chance in a simulation comes from one seed.
//!
//! SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number generators*, 2014): eight
//! bytes of state, so that each of millions of clients has its own. Streams are made by
//! [`Chance::fork`], so that what one part draws does not change what another one gets. Logarithms
//! are computed in software: those of the platform differ in the last bit from one to the next.

use std::time::Duration;

/// 2⁶⁴ divided by the golden ratio: states walk over all 64-bit numbers in steps of it.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2⁻⁵³: what separates the numbers that [`Chance::uniform`] gives.
const ULP: f64 = 1.0 / (1_u64 << 53) as f64;

/// A stream of random numbers. The same seed gives the same stream on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// The stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// An independent stream. It depends on the tag and on where this one is, which stays there.
    pub const fn fork(&self, tag: u64) -> Self {
        Self {
            state: mixed(mixed(self.state.wrapping_add(STEP)) ^ mixed(tag.wrapping_mul(STEP))),
        }
    }

    /// Any 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mixed(self.state)
    }

    /// From 0, inclusive, to 1, exclusive.
    pub const fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * ULP
    }

    /// Whether something of that probability happens.
    pub const fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// A whole number below `n`; 0 if there is none. The smallest ones come more often by less than
    /// n in 2⁶⁴.
    pub const fn below(&mut self, n: usize) -> usize {
        ((self.bits() as u128 * n as u128) >> 64) as usize
    }

    /// One of some things, each as likely as the others.
    #[expect(
        clippy::indexing_slicing,
        reason = "it is below their number, which is not 0"
    )]
    pub const fn pick<T: Copy, const N: usize>(&mut self, things: [T; N]) -> T {
        const { assert!(N > 0, "there is nothing to pick from") };
        things[self.below(N)]
    }

    /// From `least` to `most`.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        (least + (most - least) * self.uniform()).min(most)
    }

    /// From `least` to `most`, in whole nanoseconds; but not more than 584 years above `least`.
    pub fn duration(&mut self, least: Duration, most: Duration) -> Duration {
        let range = most.saturating_sub(least).as_nanos().saturating_add(1);
        let range = range.min(u128::from(u64::MAX));
        let nanos = (u128::from(self.bits()) * range) >> 64;
        least + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Exponentially distributed around a mean: the time to the next of events that come alone.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 − u is never 0.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Exponentially distributed around a mean.
    pub fn exponential_duration(&mut self, mean: Duration) -> Duration {
        let seconds = self.exponential(mean.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }

    /// The place of one of some weights, each as likely as it is heavy. None if nothing weighs
    /// anything.
    pub fn weighted(&mut self, weights: impl Iterator<Item = f64> + Clone) -> Option<usize> {
        let mut left = self.uniform() * weights.clone().sum::<f64>();
        let mut last = None;
        for (place, weight) in weights.enumerate().filter(|(_, weight)| *weight > 0.0) {
            if left < weight {
                return Some(place);
            }
            left -= weight;
            // What rounding leaves over goes to the last one.
            last = Some(place);
        }
        last
    }
}

/// The finalizer of SplitMix64: every bit depends on every other.
const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_the_published_generator() {
        // The first numbers of the seed 1234567, as other implementations of it give them.
        let mut chance = Chance::new(1_234_567);
        let first = [chance.bits(), chance.bits(), chance.bits()];
        assert_eq!(
            first,
            [
                6_457_827_717_110_365_317,
                3_203_168_211_198_807_973,
                9_817_491_932_198_370_423
            ]
        );
    }

    #[test]
    fn what_it_gives_is_within_bounds_and_spread_over_them() {
        let mut chance = Chance::new(1);
        let (short, long) = (Duration::from_secs(2), Duration::from_secs(3));
        let (mut sum, mut exponential, mut counts) = (0.0, 0.0, [0; 7]);
        for _ in 0..70_000 {
            let u = chance.uniform();
            assert!((0.0..1.0).contains(&u));
            sum += u;
            counts[chance.below(7)] += 1;
            assert!((0.9..=1.1).contains(&chance.between(0.9, 1.1)));
            assert!((short..=long).contains(&chance.duration(short, long)));
            exponential += chance.exponential(5.0);
        }
        assert!((sum / 70_000.0 - 0.5).abs() < 0.01);
        assert!((exponential / 70_000.0 - 5.0).abs() < 0.1);
        assert!(
            counts.iter().all(|n| (9_500..10_500).contains(n)),
            "{counts:?}"
        );
    }

    #[test]
    fn bounds_may_be_one_and_the_same_or_as_far_apart_as_can_be() {
        let mut chance = Chance::new(1);
        assert_eq!(chance.below(0), 0);
        assert_eq!(chance.below(1), 0);
        assert_eq!(chance.between(3.0, 3.0), 3.0);
        let second = Duration::from_secs(1);
        assert_eq!(chance.duration(second, second), second);
        assert!(chance.duration(Duration::ZERO, Duration::MAX) <= Duration::MAX);
        assert_eq!(chance.exponential_duration(Duration::ZERO), Duration::ZERO);
    }

    #[test]
    fn weights_say_how_likely_each_is() {
        let mut chance = Chance::new(2);
        let mut counts = [0; 4];
        for _ in 0..10_000 {
            counts[chance.weighted([37.0, 0.0, 3.0, 60.0].into_iter()).unwrap()] += 1;
        }
        assert!((3_500..3_900).contains(&counts[0]), "{counts:?}");
        assert_eq!(counts[1], 0);
        assert!((200..400).contains(&counts[2]), "{counts:?}");
        assert_eq!(chance.weighted([0.0].into_iter()), None);
        assert_eq!(chance.weighted([].into_iter()), None);
    }

    #[test]
    fn everything_is_picked_as_often() {
        let mut chance = Chance::new(5);
        let mut counts = [0; 3];
        for _ in 0..9_000 {
            counts[chance.pick([0, 1, 2])] += 1;
        }
        assert!(
            counts.iter().all(|n| (2_800..3_200).contains(n)),
            "{counts:?}"
        );
        assert_eq!(chance.pick(["the only one"]), "the only one");
    }

    #[test]
    fn streams_are_different_and_leave_each_other_alone() {
        let mut whole = Chance::new(3);
        let (mut a, mut b) = (whole.fork(0), whole.fork(1));
        assert_eq!(whole.fork(0), a);
        let streams = [whole.bits(), a.bits(), b.bits()];
        assert_eq!(Chance::new(3).bits(), streams[0]);
        assert!(streams[0] != streams[1] && streams[1] != streams[2] && streams[0] != streams[2]);
    }
}
