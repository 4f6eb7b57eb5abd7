//! Detection whether streams work at the present server.
//!
//! A proxy may hold streams back, or end them. So the session polls a server for a while after the failure of a young
//! stream (of less than ten seconds): it never answered, or swallowed a request, or was the third young one in a row
//! that broke. If an older stream that answered breaks, the server or the network failed, and streams work. If the
//! server is unreachable, it died, which shows nothing about its streams.

use std::time::Duration;

use crate::time::Time;

/// Polling time of a server: the first time, and at most. Each time is twice as long as the last.
pub(super) const POLL_LENGTH: (Duration, Duration) =
    (Duration::from_secs(30), Duration::from_secs(300));

/// Shortest life of a stream that works.
pub(super) const WORKS_AFTER: Duration = Duration::from_secs(10);

/// Number of young streams in a row that broke, though they answered, before the session polls.
pub(super) const YOUNG_MAX: u32 = 3;

/// Reason for polling a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollReason {
    /// It does not support streams.
    NoStreams,
    /// Its streams break, or do not answer.
    StreamsBreak,
    /// Another live process of this node has the stream.
    AnotherProcess,
}

/// Facts about streams at the present server.
#[derive(Clone, Debug)]
pub(super) struct StreamHealth {
    polled: Option<(PollReason, Time)>,
    /// Length of the next polling time.
    poll_length: Duration,
    /// Number of young streams in a row that broke.
    young: u32,
}

impl Default for StreamHealth {
    fn default() -> Self {
        Self {
            polled: None,
            poll_length: POLL_LENGTH.0,
            young: 0,
        }
    }
}

impl StreamHealth {
    /// Returns the reason for polling the server, and the end of it.
    pub(super) fn polled(&self, now: Time) -> Option<(PollReason, Time)> {
        self.polled.filter(|(_, until)| *until > now)
    }

    /// Polls the server from now on, for a while.
    pub(super) fn poll(&mut self, why: PollReason, now: Time) {
        let length = match why {
            PollReason::NoStreams => POLL_LENGTH.1,
            PollReason::StreamsBreak | PollReason::AnotherProcess => {
                let length = self.poll_length;
                self.poll_length = (length * 2).min(POLL_LENGTH.1);
                length
            }
        };
        self.polled = Some((why, now + length));
    }

    /// Notes that a stream broke, which had begun at `began`. `is_sound`: it answered every request. Returns whether
    /// the session polls the server now.
    pub(super) fn note_broken(&mut self, began: Time, is_sound: bool, now: Time) -> bool {
        if now.since(began) >= WORKS_AFTER {
            *self = Self::default();
            return false;
        }
        self.young = self.young.saturating_add(1);
        if is_sound && self.young < YOUNG_MAX {
            return false;
        }
        self.poll(PollReason::StreamsBreak, now);
        true
    }

    /// Notes that the server is unreachable, which explains its broken stream.
    pub(super) fn note_unreachable(&mut self) {
        if matches!(self.polled, Some((PollReason::StreamsBreak, _))) {
            self.polled = None;
        }
    }

    /// Lets the session try a stream next.
    pub(super) fn try_again(&mut self) {
        self.polled = None;
    }
}

#[cfg(test)]
mod tests;
