//! Repeatable random numbers: a simulation draws them all from one seed.
//!
//! The generator is SplitMix64 (Steele, Lea and Flood, *Fast splittable pseudorandom number
//! generators*, 2014). Its state has eight bytes, so that each of millions of clients can have its
//! own. [`Chance::fork`] makes independent streams: draws by one part do not change what another
//! part gets. Logarithms are computed in software, because platforms differ in the last bit.

use std::time::Duration;

/// 2⁶⁴ divided by the golden ratio, the step between states. All 64-bit states occur.
const STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// 2⁻⁵³, the distance between the numbers of [`Chance::uniform`].
const ULP: f64 = 1.0 / (1_u64 << 53) as f64;

/// Stream of random numbers. A seed gives the same stream on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chance {
    state: u64,
}

impl Chance {
    /// Creates the stream of a seed.
    pub const fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    /// Creates an independent stream. It depends on the tag and on this stream's state, which stays
    /// unchanged.
    pub const fn fork(&self, tag: u64) -> Self {
        Self {
            state: mixed(mixed(self.state.wrapping_add(STEP)) ^ mixed(tag.wrapping_mul(STEP))),
        }
    }

    /// Draws 64 bits.
    pub const fn bits(&mut self) -> u64 {
        self.state = self.state.wrapping_add(STEP);
        mixed(self.state)
    }

    /// Draws a number from 0, inclusive, to 1, exclusive.
    pub const fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * ULP
    }

    /// Returns true with this probability.
    pub const fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Draws a whole number below `n`; 0 if `n` is 0. The bias is less than n in 2⁶⁴.
    pub const fn below(&mut self, n: usize) -> usize {
        ((self.bits() as u128 * n as u128) >> 64) as usize
    }

    /// Picks one of several things with equal probability.
    #[expect(clippy::indexing_slicing, reason = "it is below N, which is not 0")]
    pub const fn pick<T: Copy, const N: usize>(&mut self, things: [T; N]) -> T {
        const { assert!(N > 0, "there is nothing to pick from") };
        things[self.below(N)]
    }

    /// Draws a number from `least` to `most`.
    pub fn between(&mut self, least: f64, most: f64) -> f64 {
        (least + (most - least) * self.uniform()).min(most)
    }

    /// Draws a duration from `least` to `most` in whole nanoseconds, at most 584 years above
    /// `least`.
    pub fn duration(&mut self, least: Duration, most: Duration) -> Duration {
        let range = most.saturating_sub(least).as_nanos().saturating_add(1);
        let range = range.min(u128::from(u64::MAX));
        let nanos = (u128::from(self.bits()) * range) >> 64;
        least + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
    }

    /// Draws from the exponential distribution: the time to the next of independent events.
    pub fn exponential(&mut self, mean: f64) -> f64 {
        // 1 − u is never 0.
        -mean * libm::log(1.0 - self.uniform())
    }

    /// Draws an exponentially distributed duration.
    pub fn exponential_duration(&mut self, mean: Duration) -> Duration {
        let seconds = self.exponential(mean.as_secs_f64());
        Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX)
    }
}

/// Finalizes a state, as SplitMix64 does: every bit depends on every other.
const fn mixed(mut bits: u64) -> u64 {
    bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    bits ^ (bits >> 31)
}

#[cfg(test)]
mod tests;
