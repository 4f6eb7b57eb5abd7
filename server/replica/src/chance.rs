//! Random numbers of a replica, all from one seed. They spread retries of many servers over time.

use doorward_engine::id::split_mix;

/// Stream of random numbers: the seed, and how many were drawn.
#[derive(Clone, Debug)]
pub(crate) struct Chance(u64, u64);

impl Chance {
    /// Returns the stream of a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed, 0)
    }

    /// Draws a number, uniform from 0, inclusive, to 1, exclusive.
    pub(crate) const fn draw(&mut self) -> f64 {
        self.1 = self.1.wrapping_add(1);
        // The upper 53 bits are the fraction.
        (split_mix(self.0, self.1) >> 11) as f64 / (1_u64 << 53) as f64
    }
}
