//! A streaming estimate of a mean.
//!
//! The estimate is a moving average over about 32 values. It begins with a prior, which counts as two values. A change
//! is found by blocks: if the mean of the last eight values is over twice the estimate, or below half of it, that mean
//! becomes the estimate. A plain moving average that is as fast after a change would be much noisier before it.

/// Number of values over which the estimate averages.
const MEMORY: u16 = 32;

/// Number of values that a prior counts as.
const PRIOR: u16 = 2;

/// Number of values in a block.
const BLOCK: u16 = 8;

/// Largest value, so that no sum is infinite.
const VALUE_MAX: f64 = 1e30;

/// Estimate of the mean of values that are at least 0.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    // Short numbers, so that 10,000 operations fit into a cache.
    mean: f32,
    block_sum: f32,
    /// Number of values in the mean, at most `MEMORY`.
    weight: u16,
    block_len: u16,
}

impl Estimate {
    /// Creates an estimate that begins with a prior.
    pub const fn new(prior: f64) -> Self {
        Self {
            mean: prior as f32,
            weight: PRIOR,
            block_sum: 0.0,
            block_len: 0,
        }
    }

    /// Returns the estimated mean.
    pub const fn mean(&self) -> f64 {
        self.mean as f64
    }

    /// Takes a value into account. Negative values and those that are no number are ignored.
    pub fn record(&mut self, value: f64) {
        if !value.is_finite() || value < 0.0 {
            return;
        }
        let value = value.min(VALUE_MAX) as f32;
        self.weight = (self.weight + 1).min(MEMORY);
        self.mean += (value - self.mean) / f32::from(self.weight);
        self.block_sum += value;
        self.block_len += 1;
        if self.block_len == BLOCK {
            let block = self.block_sum / f32::from(BLOCK);
            if block > 2.0 * self.mean || block < self.mean / 2.0 {
                self.mean = block;
                self.weight = BLOCK;
            }
            (self.block_sum, self.block_len) = (0.0, 0);
        }
    }
}
