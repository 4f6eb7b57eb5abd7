//! A client on a stream: pushes of its leases, and the end of the stream.

use std::time::Duration;

use crate::state::{ClientState, Response, Streams};
use crate::time::Time;

/// Time for which a client asks by calls after a server refused a stream, or a stream did not last.
const STREAM_AGAIN: Duration = Duration::from_secs(60);

/// Shortest life of a stream that lasted.
const STREAM_LASTS: Duration = Duration::from_secs(10);

/// Longest wait after a stream broke. It spreads the clients of a server that was restarted.
const RETURN_WITHIN: Duration = Duration::from_secs(1);

/// The client's stream.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Streaming {
    /// Whether the server pushes changes.
    pub(super) is_open: bool,
    /// Time from which a stream may be opened. A proxy may accept streams and break them, so the time is set when one is
    /// opened, and reset when it has lasted.
    from: Time,
    lasts_at: Time,
}

impl Streaming {
    fn end(&mut self, now: Time) {
        if std::mem::take(&mut self.is_open) && self.lasts_at <= now {
            self.from = Time::ZERO;
        }
    }
}

impl ClientState {
    /// Returns whether the next request goes on a stream, which may be a new one.
    pub(super) fn asks_on_stream(&self, now: Time) -> bool {
        let may_open = || match self.config.streams {
            Streams::Always => true,
            Streams::OnceLeased => self.leases_end(now).is_some(),
            Streams::Never => false,
        };
        self.streaming.is_open || self.streaming.from <= now && may_open()
    }

    /// Notes that a stream is being opened to a server that answers.
    pub fn handle_opening(&mut self, now: Time) {
        if !self.streaming.is_open {
            self.streaming.from = now + STREAM_AGAIN;
            self.streaming.lasts_at = now + STREAM_LASTS;
        }
    }

    /// Notes whether the server pushes changes from now on. Then a lease that became smaller is acknowledged at once,
    /// because no one invites the client to do so. Resources that a new stream has not named yet are asked for.
    pub fn set_streaming(&mut self, is_streaming: bool, now: Time) {
        if !is_streaming {
            return self.streaming.end(now);
        }
        if !self.streaming.is_open {
            let under_way = self.under_way.as_ref();
            for (id, state) in &mut self.resources {
                if under_way.is_none_or(|it| !it.wanted.contains_key(&**id)) {
                    state.refresh_at = state.refresh_at.min(now);
                    state.replan(&mut self.agenda, Some(Time::ZERO));
                }
            }
        }
        self.streaming.is_open = true;
    }

    /// After a first call: opens the stream within a second, and not at the next refresh.
    pub(super) fn open_stream_soon(&mut self, chance: f64, now: Time) {
        let opens_later = self.config.streams == Streams::OnceLeased && !self.streaming.is_open;
        if opens_later && self.asks_on_stream(now) {
            self.handle_disconnected(chance, now);
        }
    }

    /// Handles the end of the stream: each resource is asked for again, within a second. `chance` is uniform in 0…1.
    pub fn handle_disconnected(&mut self, chance: f64, now: Time) {
        self.streaming.end(now);
        let by = now + RETURN_WITHIN.mul_f64(chance.clamp(0.0, 1.0));
        for state in self.resources.values_mut() {
            state.refresh_at = state.refresh_at.min(by);
            state.replan(&mut self.agenda, Some(Time::ZERO));
        }
    }

    /// Handles a push of the master. A lease counts only if it takes the newest request for its resource into account.
    pub fn handle_push(&mut self, push: &Response, now: Time) {
        for granted in &push.granted {
            let under_way = self.under_way.as_ref();
            let is_asked = under_way.is_some_and(|it| it.wanted.contains_key(&granted.resource));
            if !is_asked {
                self.change(&granted.resource, |state| {
                    let before = state.leased(now);
                    if state.handle_push(granted, now) {
                        state.acknowledge_soon(before, now);
                    }
                });
            }
        }
    }
}
