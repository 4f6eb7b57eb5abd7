//! A limit on bytes in use, shared by many threads.

use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes in use, and their limit.
#[derive(Debug)]
pub struct Budget {
    max: u64,
    used: AtomicU64,
}

impl Budget {
    /// Makes an unused budget.
    pub const fn new(max: u64) -> Self {
        Self {
            max,
            used: AtomicU64::new(0),
        }
    }

    /// Uses `bytes` more. Returns whether they fit; if not, uses nothing.
    pub fn charge(&self, bytes: u64) -> bool {
        // Only the sum matters: it orders no other memory access.
        let used = self.used.fetch_add(bytes, Ordering::Relaxed);
        let fits = used.saturating_add(bytes) <= self.max;
        if !fits {
            self.refund(bytes);
        }
        fits
    }

    /// Uses `bytes` more even beyond the limit. The caller makes another user return bytes.
    pub fn overcharge(&self, bytes: u64) {
        self.used.fetch_add(bytes, Ordering::Relaxed);
    }

    /// Returns `bytes` to the budget.
    pub fn refund(&self, bytes: u64) {
        let used = self.used.fetch_sub(bytes, Ordering::Relaxed);
        debug_assert!(used >= bytes, "more was given back than was taken");
    }

    /// Returns the bytes in use.
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
