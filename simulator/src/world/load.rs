//! How many requests a node got in one second: the second in which it got most.

use std::time::Duration;

use doorward_engine::time::Time;

/// Requests of clients and child servers, second by second of the world's time.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct RequestCounts {
    second: u64,
    requests: u64,
    /// The most, and the second of it.
    most: (u64, u64),
}

impl RequestCounts {
    /// A request has come.
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

    /// The most requests in a second, and when that second began.
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
