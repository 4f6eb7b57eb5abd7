//! So many at once: what is counted while it lasts, not by time.
//!
//! A limit that shrinks below what is out takes nothing away: it takes effect as permits come back.

/// Permits that are out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct InFlight(u64);

impl InFlight {
    /// None are out.
    pub const NONE: Self = Self(0);

    /// Takes so many if no more than `limit` are out then; none is no limit. Returns whether they were taken.
    #[inline]
    pub fn take(&mut self, permits: u64, limit: Option<u64>) -> bool {
        let wanted = self.0.saturating_add(permits);
        let fits = limit.is_none_or(|limit| wanted <= limit);
        if fits {
            self.0 = wanted;
        }
        fits
    }

    /// Gives back so many that were taken.
    #[inline]
    pub fn release(&mut self, permits: u64) {
        debug_assert!(permits <= self.0, "more given back than was taken");
        self.0 = self.0.saturating_sub(permits);
    }

    /// How many are out.
    #[inline]
    pub const fn get(&self) -> u64 {
        self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_that_shrinks_takes_effect_as_permits_come_back() {
        let mut out = InFlight::NONE;
        assert!(out.take(3, Some(3)));
        assert!(!out.take(1, Some(3)));
        out.release(1);
        assert!(!out.take(1, Some(2)));
        out.release(1);
        assert!(out.take(1, Some(2)));
        assert!(out.take(u64::MAX, None));
        assert_eq!(out.get(), u64::MAX);
    }
}
