//! Random numbers from a seed, the same on every machine.

use std::ops::RangeInclusive;
use std::time::Duration;

/// Returns a number from the environment.
fn given(variable: &str) -> Option<u64> {
    std::env::var(variable).ok()?.parse().ok()
}

/// Returns the number of runs: that of `DOORWARD_CASES` if it is given.
pub fn cases(default: u64) -> u64 {
    given("DOORWARD_CASES").unwrap_or(default)
}

/// Returns the seeds of that many runs, or that of `DOORWARD_SEED` if it is given.
pub fn seeds(default: u64) -> RangeInclusive<u64> {
    given("DOORWARD_SEED").map_or(1..=cases(default), |seed| seed..=seed)
}

/// SplitMix64 (Steele, Lea, Flood, 2014).
#[derive(Clone, Debug)]
pub struct Chance(pub u64);

impl Chance {
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^ (bits >> 31)
    }

    /// Returns a number between 0 and 1, uniformly.
    pub fn uniform(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns true with that probability.
    pub fn happens(&mut self, probability: f64) -> bool {
        self.uniform() < probability
    }

    /// Returns a number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    pub fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }

    /// Returns a time of up to `most`.
    pub fn span(&mut self, most: Duration) -> Duration {
        most.mul_f64(self.uniform())
    }

    /// Returns wants: nothing, a few, or anything over nine orders of magnitude.
    pub fn wants(&mut self) -> f64 {
        match self.below(6) {
            0 => 0.0,
            1 => 10.0,
            2 => self.uniform() * 10.0,
            3 => 10f64.powf(self.uniform() * 9.0 - 4.0),
            _ => self.uniform() * 100.0,
        }
    }
}
