//! A client on a stream: pushes of its leases, and the end of the stream.

use std::time::Duration;

use crate::state::{ClientState, Response};
use crate::time::Time;

/// Longest wait after a stream broke. It spreads the clients of a server that was restarted.
const RETURN_WITHIN: Duration = Duration::from_secs(1);

impl ClientState {
    /// Notes whether the server pushes changes from now on. Then a lease that became smaller is acknowledged at once,
    /// because no one invites the client to do so. Resources that a new stream has not named yet are asked for.
    pub fn set_streaming(&mut self, is_streaming: bool, now: Time) {
        if is_streaming && !self.is_streaming {
            let under_way = self.under_way.as_ref();
            for (id, state) in &mut self.resources {
                if under_way.is_none_or(|it| !it.wanted.contains_key(&**id)) {
                    state.refresh_at = state.refresh_at.min(now);
                    state.replan(&mut self.agenda, Some(Time::ZERO));
                }
            }
        }
        self.is_streaming = is_streaming;
    }

    /// Handles the end of the stream: each resource is asked for again, within a second. `chance` is uniform in 0…1.
    pub fn handle_disconnected(&mut self, chance: f64, now: Time) {
        self.is_streaming = false;
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
