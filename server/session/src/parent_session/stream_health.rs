//! Whether streams work at the server that is asked.
//!
//! A proxy may hold streams back, or end them. So a server is polled for a while if a young stream (of less than
//! ten seconds) never answered, or swallowed a request, or was the third young one in a row that broke. If an
//! older stream that answered breaks, the server or the network failed, and streams work. If the server is
//! unreachable, it died, which shows nothing about its streams.

use std::time::Duration;

use crate::time::Time;

/// How long a server is polled: the first time, and at most. Each time twice as long as the last.
pub(super) const POLL_LENGTH: (Duration, Duration) =
    (Duration::from_secs(30), Duration::from_secs(300));

/// A stream that lasts this long works.
pub(super) const WORKS_AFTER: Duration = Duration::from_secs(10);

/// The server is polled once this many young streams in a row broke, though they answered.
pub(super) const YOUNG_MAX: u32 = 3;

/// Why a server is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PollReason {
    /// It does not support streams.
    NoStreams,
    /// Its streams break, or do not answer.
    StreamsBreak,
    /// Another live process of this node has the stream.
    AnotherProcess,
}

/// What is known about streams at the server that is asked.
#[derive(Clone, Debug)]
pub(super) struct StreamHealth {
    polled: Option<(PollReason, Time)>,
    /// How long to poll next time.
    poll_length: Duration,
    /// Young streams in a row that broke.
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
    /// Why the server is polled, and until when.
    pub(super) fn polled(&self, now: Time) -> Option<(PollReason, Time)> {
        self.polled.filter(|(_, until)| *until > now)
    }

    /// Polls it from now on, for a while.
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

    /// A stream broke, which had begun at `began`. `is_sound`: it answered every request. Returns whether the
    /// server is polled now.
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

    /// The server is unreachable, which is why its stream broke.
    pub(super) fn note_unreachable(&mut self) {
        if matches!(self.polled, Some((PollReason::StreamsBreak, _))) {
            self.polled = None;
        }
    }

    /// Tries a stream next.
    pub(super) fn try_again(&mut self) {
        self.polled = None;
    }
}

#[cfg(test)]
mod tests;
