//! How often a client asks: the most requests of one within a second, for leases and for who the master is.
//!
//! Whatever goes wrong, a client keeps its gaps, follows a few redirects and waits after each failure. How long
//! it waits for an answer while servers send it from one to the other is up to chance and to how many there
//! are; that it does not run in circles all that time is not.

use doorward_engine::time::Time;

use crate::checker::Watched;
use crate::planted;
use crate::recording::Checker;

/// Those of a client in the present second.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Asked {
    second: u32,
    requests: u32,
}

impl Asked {
    /// Another one. Returns how many there are in this second.
    fn note(&mut self, now: Time) -> u32 {
        let second = u32::try_from(now.since(Time::ZERO).as_secs()).unwrap_or(u32::MAX);
        if second != self.second {
            *self = Self {
                second,
                requests: 0,
            };
        }
        self.requests += 1;
        self.requests
    }
}

impl Watched {
    /// A client sends a request, for a lease or for who the master is.
    pub(crate) fn note_request(&mut self, client: usize, now: Time) {
        let Some(account) = self.accounts.get_mut(client) else {
            return;
        };
        let requests = account.asked_of_servers.note(now);
        if requests > self.requests.0 && planted::sees(Checker::Requests, now) {
            self.requests = (requests, now);
        }
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
