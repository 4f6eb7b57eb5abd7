//! Counts a node's requests by the second, and keeps the busiest second.

use std::time::Duration;

use doorward_engine::time::Time;

/// Requests of clients and child servers in each second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCounts {
    second: u64,
    requests: u64,
    /// Largest count, and its second.
    most: (u64, u64),
}

impl RequestCounts {
    /// Counts a request.
    pub(crate) fn note(&mut self, settled_after: Duration, now: Time) {
        let since_start = now.since(Time::ZERO);
        if since_start < settled_after {
            return;
        }
        let second = since_start.as_secs();
        if second != self.second {
            (self.second, self.requests) = (second, 0);
        }
        self.requests += 1;
        if self.requests > self.most.0 {
            self.most = (self.requests, second);
        }
    }

    /// Returns the most requests in a second, and that second.
    pub(crate) const fn most(&self) -> (u64, u64) {
        self.most
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_of_the_busiest_seconds_is_reported() {
        let mut load = RequestCounts::default();
        for tenths in [1, 2, 3, 4, 21, 25, 38, 39, 41, 49] {
            let now = Time::ZERO + Duration::from_millis(100 * tenths);
            load.note(Duration::from_secs(1), now);
        }
        assert_eq!(load.most(), (2, 2));
    }
}
