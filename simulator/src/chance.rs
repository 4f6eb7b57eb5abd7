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
mod tests;
