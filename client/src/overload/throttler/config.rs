//! Settings of a throttler.

use std::time::Duration;

/// Settings, which few services need.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Config {
    /// Longest wait of a request without a deadline. Default: 1 s.
    pub max_wait: Duration,
    /// Largest number of waiting requests, at most 2²⁴. Default: 10,000.
    pub waiting_max: usize,
    /// First concurrency limit. A service whose requests are short finds a lower one before it is reached. Set it higher
    /// if more long requests than that run at once. Default: 256.
    pub first_limit: u32,
    /// Concurrency limit that never changes, for comparisons. Default: none.
    pub fixed_limit: Option<u32>,
    /// Whether all requests are admitted at once, and the decisions are only told. Default: no.
    pub is_shadow: bool,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            max_wait: Duration::from_secs(1),
            waiting_max: 10_000,
            first_limit: 256,
            fixed_limit: None,
            is_shadow: false,
        }
    }
}
