//! Counts the requests of one client within a second: for leases and for the master's address.
//!
//! A client keeps its gaps, follows a few redirects and waits after each failure, whatever the fault.
//! The number of redirects in that time depends on the fault; a client must not follow a loop of
//! redirects without end.

use doorward_engine::time::Time;

use crate::checker::Watched;

/// Requests of a client, or at a node, in the present second.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Asked {
    second: u32,
    requests: u32,
}

impl Asked {
    /// Counts one more request, and returns the number in this second.
    pub(crate) fn note(&mut self, now: Time) -> u32 {
        let second = u32::try_from(now.since(Time::ZERO).as_secs()).unwrap_or(u32::MAX);
        if second != self.second {
            (self.second, self.requests) = (second, 0);
        }
        self.requests += 1;
        self.requests
    }
}

impl Watched {
    /// Notes a request of a client, for a lease or for the master's address.
    pub(crate) fn note_request(&mut self, client: u32, now: Time) {
        let requests = self.accounts[client].asked_of_servers.note(now);
        self.requests.note(requests, now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_counted_by_the_second() {
        let mut asked = Asked::default();
        let counts = [1, 2, 9, 10, 19, 25]
            .map(|tenths| asked.note(Time::ZERO + std::time::Duration::from_millis(100 * tenths)));
        assert_eq!(counts, [1, 2, 3, 1, 2, 1]);
    }
}
