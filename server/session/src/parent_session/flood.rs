//! The limit on messages from a parent on a stream.
//!
//! A parent answers requests, and pushes changes once a round of 50 ms. That is some forty messages a second, and more
//! only if one message would be too large. Each message takes the node's lock, so a parent that sends without end would
//! starve this server's holders.

use std::time::Duration;

use crate::time::Time;

/// Largest number of messages each second.
pub const MESSAGES_PER_SECOND_MAX: u32 = 2_000;

const SECOND: Duration = Duration::from_secs(1);

/// Counts messages, second by second.
#[derive(Clone, Debug)]
pub(super) struct FloodGuard {
    second: Time,
    messages: u32,
}

impl FloodGuard {
    pub(super) const fn new(now: Time) -> Self {
        Self {
            second: now,
            messages: 0,
        }
    }

    /// Counts a message. Returns whether there are too many.
    pub(super) fn note_message(&mut self, now: Time) -> bool {
        if now.since(self.second) >= SECOND {
            *self = Self::new(now);
        }
        self.messages = self.messages.saturating_add(1);
        self.messages > MESSAGES_PER_SECOND_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_parent_that_floods_is_detected_and_a_busy_one_is_not() {
        let mut busy = FloodGuard::new(Time::ZERO);
        for number in 0..10_000 {
            let now = Time::ZERO + Duration::from_millis(number);
            assert!(!busy.note_message(now), "1,000 a second");
        }
        let mut flood = FloodGuard::new(Time::ZERO);
        let too_many = (0..3_000).position(|_| flood.note_message(Time::ZERO));
        assert_eq!(too_many, Some(2_000));
    }
}
