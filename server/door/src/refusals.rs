//! Refusals, counted and logged: one line a minute for each reason.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use parking_lot::Mutex;

/// Largest number of reasons that are logged in a minute.
const REASONS_MAX: usize = 20;

/// Refusals of one kind.
#[derive(Debug, Default)]
pub struct Refusals {
    count: AtomicU64,
    /// A minute, and the reasons logged in it.
    logged: Mutex<(u64, BTreeSet<String>)>,
}

impl Refusals {
    /// Counts a refusal. Returns the number of all, if the log should tell this one. `now`: since any fixed time.
    pub fn note(&self, reason: &str, now: Duration) -> Option<u64> {
        let count = self.count.fetch_add(1, Ordering::Relaxed) + 1;
        let minute = now.as_secs() / 60;
        let mut logged = self.logged.lock();
        if logged.0 != minute {
            *logged = (minute, BTreeSet::new());
        }
        let is_first = logged.1.len() < REASONS_MAX && logged.1.insert(reason.to_owned());
        is_first.then_some(count)
    }

    /// Returns the number of refusals.
    pub fn count(&self) -> u64 {
        self.count.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_log_tells_each_reason_once_a_minute() {
        let refusals = Refusals::default();
        for (reason, second, expected) in [
            ("expired", 0, Some(1)),
            ("expired", 59, None),
            ("revoked", 59, Some(3)),
            ("expired", 60, Some(4)),
        ] {
            let told = refusals.note(reason, Duration::from_secs(second));
            assert_eq!(told, expected, "{reason} {second}");
        }
        for number in 0..100 {
            refusals.note(&number.to_string(), Duration::from_secs(120));
        }
        assert_eq!(refusals.note("one more", Duration::from_secs(120)), None);
        assert_eq!(refusals.count(), 105);
    }
}
