//! So many bytes at once, for many threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in use, of which there is a limit.
#[derive(Debug)]
pub struct Budget {
    max: u64,
    used: AtomicU64,
}

impl Budget {
    /// Nothing is in use.
    pub const fn new(max: u64) -> Self {
        Self {
            max,
            used: AtomicU64::new(0),
        }
    }

    /// Uses more. Returns whether there is as much; if not, nothing is used.
    pub fn charge(&self, bytes: u64) -> bool {
        // Only the sum matters: nothing else is read on the strength of it.
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = used.saturating_add(bytes) <= self.max;
        if !fits {
            self.refund(bytes);
        }
        fits
    }

    /// Uses more, whether there is as much or not: somebody else is about to use less.
    pub fn overcharge(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Uses less.
    pub fn refund(&self, bytes: u64) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(used >= bytes, "more was given back than was taken");
    }

    /// What is in use.
    pub fn used(&self) -> u64 {
        self.used.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_used_than_there_is() {
        let budget = Budget::new(10);
        assert!(budget.charge(6));
        assert!(!budget.charge(5));
        assert!(budget.charge(4));
        budget.refund(6);
        assert_eq!(budget.used(), 4);
        assert!(!budget.charge(u64::MAX - 100));
        assert_eq!(budget.used(), 4);
    }
}
