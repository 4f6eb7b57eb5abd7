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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_used_part_is_rounded_down() {
        for (used, max, percent) in [
            (Some(0), Some(10), Some(0)),
            (Some(799), Some(1_000), Some(79)),
            (Some(800), Some(1_000), Some(80)),
            (Some(u64::MAX - 1), Some(u64::MAX), Some(99)),
            (Some(12), Some(10), Some(120)),
            (Some(0), Some(0), Some(100)),
            (None, Some(10), None),
            (Some(10), None, None),
            (None, None, None),
        ] {
            let limit = LimitStatus {
                used,
                max,
                ..LimitStatus::default()
            };
            assert_eq!(limit.percent(), percent, "{limit:?}");
        }
    }
}
