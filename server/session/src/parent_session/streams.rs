//! Whether streams work at the server that is asked.
//!
//! A stream that answered has shown that it works: if it breaks, the server died, or the network. A server is
//! polled for a while if a young stream (of less than ten seconds) never answered, or swallowed a request
//! while it stood, or was the third in a row that broke: there is a proxy that holds streams back, or ends
//! them. A server that cannot be reached at all has died: that says nothing of its streams.

use std::time::Duration;

use crate::time::Time;

/// How long a server is polled whose streams do not work. Twice as long each time, up to the second.
pub(super) const POLL_LENGTH: (Duration, Duration) =
    (Duration::from_secs(30), Duration::from_secs(300));

/// A stream that lasted so long works.
pub(super) const WORKS_AFTER: Duration = Duration::from_secs(10);

/// Streams in a row that answered and broke young: so many, and the next is taken for a sign.
pub(super) const YOUNG_MAX: u32 = 3;

/// Why a server is polled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polled {
    /// It knows no streams.
    NoStreams,
    /// Its streams break, or do not answer.
    StreamsBreak,
    /// Another live process of this node has the stream.
    AnotherProcess,
}

/// What is known of the streams of the server that is asked.
#[derive(Clone, Debug)]
pub(super) struct Streams {
    polled: Option<(Polled, Time)>,
    /// For how long next time.
    poll_length: Duration,
    /// Streams that broke young, in a row.
    young: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Self {
            polled: None,
            poll_length: POLL_LENGTH.0,
            young: 0,
        }
    }
}

impl Streams {
    /// Until when the server is polled, and why.
    pub(super) fn polled(&self, now: Time) -> Option<(Polled, Time)> {
        self.polled.filter(|(_, until)| *until > now)
    }

    /// It is polled from now on, for a while.
    pub(super) fn poll(&mut self, why: Polled, now: Time) {
        let length = match why {
            Polled::NoStreams => POLL_LENGTH.1,
            Polled::StreamsBreak | Polled::AnotherProcess => {
                let length = self.poll_length;
                self.poll_length = (length * 2).min(POLL_LENGTH.1);
                length
            }
        };
        self.polled = Some((why, now + length));
    }

    /// A stream that began then broke. `is_sound`: it answered all that it was asked. Returns whether the server
    /// is polled for that.
    pub(super) fn note_broken(&mut self, began: Time, is_sound: bool, now: Time) -> bool {
        if now.since(began) >= WORKS_AFTER {
            *self = Self::default();
            return false;
        }
        self.young = self.young.saturating_add(1);
        if is_sound && self.young < YOUNG_MAX {
            return false;
        }
        self.poll(Polled::StreamsBreak, now);
        true
    }

    /// The server cannot be reached: that is why its stream broke.
    pub(super) fn note_unreachable(&mut self) {
        if matches!(self.polled, Some((Polled::StreamsBreak, _))) {
            self.polled = None;
        }
    }

    /// It is time to try a stream again.
    pub(super) fn try_again(&mut self) {
        self.polled = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Time {
        Time::after_origin(Duration::from_secs(seconds))
    }

    /// Streams that begin one second after the one before broke: how long each lasts, whether it answers, and
    /// whether the server is polled then.
    #[track_caller]
    fn check(what: &str, all: &[(u64, bool, bool)]) {
        let mut streams = Streams::default();
        let mut now = at(1);
        for (number, (lasts, answers, polled)) in all.iter().enumerate() {
            let broken = now + Duration::from_secs(*lasts);
            let is_polled = streams.note_broken(now, *answers, broken);
            assert_eq!(is_polled, *polled, "{what}: stream {number}");
            assert_eq!(
                streams.polled(broken).is_some(),
                *polled,
                "{what}: {number}"
            );
            streams.try_again();
            now = broken + Duration::from_secs(1);
        }
    }

    #[test]
    fn streams_that_answer_are_tried_again_and_others_are_not() {
        check("it died after 4 s", &[(4, true, false)]);
        check("nothing comes through", &[(2, false, true)]);
        check(
            "a proxy ends each after 5 s",
            &[
                (5, true, false),
                (5, true, false),
                (5, true, true),
                (5, true, true),
            ],
        );
        check(
            "it died young, and later again",
            &[
                (4, true, false),
                (4, true, false),
                (10, true, false),
                (4, true, false),
            ],
        );
    }

    #[test]
    fn each_time_it_is_polled_for_twice_as_long_up_to_five_minutes() {
        let mut streams = Streams::default();
        for seconds in [30, 60, 120, 240, 300, 300] {
            streams.poll(Polled::StreamsBreak, at(0));
            let until = streams.polled(at(0)).map(|(_, until)| until);
            assert_eq!(until, Some(at(seconds)));
            assert_eq!(streams.polled(at(seconds)), None);
        }
        streams.poll(Polled::NoStreams, at(0));
        let polled = streams.polled(at(0));
        assert_eq!(polled, Some((Polled::NoStreams, at(300))));
    }

    #[test]
    fn who_cannot_be_reached_is_not_polled_for_the_stream_that_broke() {
        for (why, is_polled) in [
            (Polled::StreamsBreak, false),
            (Polled::NoStreams, true),
            (Polled::AnotherProcess, true),
        ] {
            let mut streams = Streams::default();
            streams.poll(why, at(0));
            streams.note_unreachable();
            assert_eq!(streams.polled(at(1)).is_some(), is_polled, "{why:?}");
        }
    }
}
