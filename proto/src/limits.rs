//! The judgement of a limit: nearly reached or not, the same on pages and in the command line's
//! tables.

use crate::admin::v1::LimitStatus;

impl LimitStatus {
    /// Use in percent from which a limit is nearly reached.
    pub const NEARLY_PERCENT: u64 = 80;

    /// Returns the used part of the bound in whole percent, rounded down, or `None` if it is not
    /// known.
    pub fn percent(&self) -> Option<u64> {
        let (used, max) = (u128::from(self.used?), u128::from(self.max?));
        match max {
            0 => Some(100),
            _ => Some(u64::try_from(used * 100 / max).unwrap_or(u64::MAX)),
        }
    }

    /// Returns whether an operator should look at the limit: it is nearly reached, or has caused
    /// refusals.
    pub fn stands_out(&self) -> bool {
        self.refused_count > 0 || self.percent().is_some_and(|it| it >= Self::NEARLY_PERCENT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_stands_out_if_it_is_nearly_reached_or_has_refused_something() {
        for (used, max, refused_count, percent, stands_out) in [
            (Some(0), Some(10), 0, Some(0), false),
            (Some(799), Some(1_000), 0, Some(79), false),
            (Some(800), Some(1_000), 0, Some(80), true),
            (Some(u64::MAX - 1), Some(u64::MAX), 0, Some(99), true),
            (Some(12), Some(10), 0, Some(120), true),
            (Some(0), Some(0), 0, Some(100), true),
            (Some(0), Some(10), 1, Some(0), true),
            (None, Some(10), 0, None, false),
            (Some(10), None, 0, None, false),
            (None, None, 1, None, true),
        ] {
            let limit = LimitStatus {
                used,
                max,
                refused_count,
                ..LimitStatus::default()
            };
            assert_eq!(limit.percent(), percent, "{limit:?}");
            assert_eq!(limit.stands_out(), stands_out, "{limit:?}");
        }
    }
}
