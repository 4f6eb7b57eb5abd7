//! A connection: its caller, its calls in progress, and the bytes of answers that its client has not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use doorward_limits::{AtomicBucket, Units};
use doorward_time::millis;
use doorward_tls::identity::Identity;
use doorward_tls::server::Certificate;
use doorward_tls::tokens::Holder;
use parking_lot::Mutex;
use tokio::sync::Notify;

use crate::caller_id::CallerId;
use crate::door_limits::DoorLimits;
use crate::limit::Limit;
use crate::proofs::Proofs;
use crate::rate::{bucket, moment, seconds, units};

/// Pause in reading from a client that asks too much.
const PAUSE: Duration = Duration::from_millis(100);

/// Seconds whose time for looks may be used at once.
const LOOKS_AT_ONCE_SECS: u32 = 4;

/// State that all connections of one caller share.
#[derive(Debug)]
pub struct CallerState {
    calls: AtomicBucket,
    /// Vital calls, which other calls cannot use up.
    vital_calls: AtomicBucket,
    /// Time for looks, in seconds. It is charged afterwards.
    looks: AtomicBucket,
    /// Rates of handshakes and unknown tokens.
    pub(crate) proofs: Proofs,
    /// Bytes in incomplete messages.
    pub incoming: AtomicU64,
    /// Bytes in unread answers.
    pub outgoing: AtomicU64,
}

impl CallerState {
    /// Makes the state of a caller that uses nothing.
    pub fn new(limits: &DoorLimits) -> Self {
        let calls = |limit: &Limit| AtomicBucket::new(bucket(units(limit.max()), 1));
        let look_time = limits.look_time_per_caller.span();
        let look_time = look_time.clamp(Duration::from_micros(1), Duration::from_secs(1));
        Self {
            calls: calls(&limits.calls_per_caller),
            vital_calls: calls(&limits.vital_calls_per_caller),
            looks: AtomicBucket::new(bucket(seconds(look_time), LOOKS_AT_ONCE_SECS)),
            proofs: Proofs::new(limits, false),
            incoming: AtomicU64::new(0),
            outgoing: AtomicU64::new(0),
        }
    }

    /// Takes a call from the rate. Returns whether there was one left. `now` is the time since the start.
    pub fn takes_call(&self, is_vital: bool, now: Duration) -> bool {
        let calls = if is_vital {
            &self.vital_calls
        } else {
            &self.calls
        };
        calls.take(Units::ONE, moment(now)).is_allowed()
    }

    /// Returns whether a look may begin.
    pub fn may_look(&self, now: Duration) -> bool {
        self.looks.peek(Units::ZERO, moment(now)).is_allowed()
    }

    /// Charges a look that took `took`.
    pub fn charge_look(&self, took: Duration, now: Duration) {
        self.looks.charge(seconds(took), moment(now));
    }

    /// Returns whether it equals a new state, so that a caller without connections can be forgotten.
    pub fn is_at_rest(&self, now: Duration) -> bool {
        let mut buckets = [&self.calls, &self.vital_calls, &self.looks].into_iter();
        buckets.all(|bucket| bucket.is_fresh(moment(now))) && self.proofs.are_at_rest(now)
    }
}

/// A connection. Its numbers order no other memory access, so relaxed ordering is enough.
#[derive(Debug)]
pub struct Connection {
    pub(crate) id: u64,
    pub(crate) caller: CallerId,
    /// The caller's certificate, if it has one.
    pub(crate) certificate: Option<Certificate>,
    /// Holders whose tokens were proved on it.
    pub(crate) holders: Mutex<Vec<Arc<Holder>>>,
    pub(crate) of_caller: Arc<CallerState>,
    /// Whether a call on it was answered, in part or in whole.
    proven: AtomicBool,
    calls: AtomicU32,
    /// Last time when a call began or ended, in milliseconds since the start.
    active_at: AtomicU64,
    /// Bytes of answers that are not written to the socket yet.
    unread: AtomicU64,
    /// Bytes of answers written to the socket.
    written: AtomicU64,
    /// Start of a frame, or of a call's headers, of which a part has arrived.
    pub(crate) midway: Since,
    /// Start of the time in which the client takes no bytes.
    pub(crate) blocked: Since,
    /// End of a pause in reading, in milliseconds since the start. 0: no pause.
    paused_until: AtomicU64,
    /// Whether it is closed. Bytes counted after that are returned at once.
    closed: AtomicBool,
    /// Whether it was asked to close.
    goes: AtomicBool,
    /// Wakes its task when it has to close.
    evicted: Notify,
}

impl Connection {
    pub(super) fn new(
        id: u64,
        caller: CallerId,
        certificate: Option<Certificate>,
        of_caller: Arc<CallerState>,
        now: Duration,
    ) -> Self {
        Self {
            id,
            caller,
            certificate,
            holders: Mutex::default(),
            of_caller,
            proven: AtomicBool::new(false),
            calls: AtomicU32::new(0),
            active_at: AtomicU64::new(millis(now)),
            unread: AtomicU64::new(0),
            written: AtomicU64::new(0),
            midway: Since::default(),
            blocked: Since::default(),
            paused_until: AtomicU64::new(0),
            closed: AtomicBool::new(false),
            goes: AtomicBool::new(false),
            evicted: Notify::new(),
        }
    }

    /// Returns the identity of the caller's certificate, if it has one.
    pub fn identity(&self) -> Option<&Identity> {
        self.certificate.as_ref().map(|it| &it.identity)
    }

    /// Notes that a call begins.
    pub fn begin_call(&self, now: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.active_at.store(millis(now), Ordering::Relaxed);
    }

    /// Notes that a call ends.
    pub fn end_call(&self, now: Duration) {
        let before = self.calls.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a call ends that never began");
        self.active_at.store(millis(now), Ordering::Relaxed);
    }

    /// Notes that a call is answered, in part or in whole.
    pub fn prove(&self) {
        if !self.is_proven() {
            self.proven.store(true, Ordering::Relaxed);
        }
    }

    /// Returns whether a call on it was answered.
    pub fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Returns whether a call is in progress.
    pub fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// Returns when a call last began or ended, in milliseconds since the start.
    pub fn active_at(&self) -> u64 {
        self.active_at.load(Ordering::Relaxed)
    }

    /// Counts `bytes` of an answer on its way.
    pub fn note_answer(&self, bytes: u64) {
        self.unread.fetch_add(bytes, Ordering::SeqCst);
    }

    /// Notes that `bytes` of answers are written. Returns how many of them were counted.
    pub fn note_written(&self, bytes: u64) -> u64 {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let before = self
            .unread
            .update(Ordering::Relaxed, Ordering::Relaxed, |unread| {
                unread.saturating_sub(bytes)
            });
        before.min(bytes)
    }

    /// Returns the bytes of answers that are not written yet.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// Returns the bytes of answers that were written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Takes a call from the rate of its caller. If there is none left, reading pauses for a moment.
    pub fn takes_call(&self, is_vital: bool, now: Duration) -> bool {
        let takes = self.of_caller.takes_call(is_vital, now);
        if !takes {
            self.pause(now);
        }
        takes
    }

    /// Pauses reading for a moment, since its client asks too much.
    pub(crate) fn pause(&self, now: Duration) {
        let until = millis(now + PAUSE);
        self.paused_until.fetch_max(until, Ordering::Relaxed);
    }

    /// Returns the rest of a pause in reading, if it is not over at `now`.
    pub fn paused_for(&self, now: impl FnOnce() -> Duration) -> Option<Duration> {
        let until = self.paused_until.load(Ordering::Relaxed);
        if until == 0 {
            return None;
        }
        let left = until.saturating_sub(millis(now()));
        if left == 0 {
            self.paused_until.store(0, Ordering::Relaxed);
            return None;
        }
        Some(Duration::from_millis(left))
    }

    /// Notes that it is closed. Bytes counted from now on are returned at once.
    pub fn close(&self) {
        // Sequentially consistent with `note_answer`: all threads see both in one order.
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Returns whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Returns whether it was asked to close.
    pub fn goes(&self) -> bool {
        self.goes.load(Ordering::Relaxed)
    }

    /// Asks it to close.
    pub fn evict(&self) {
        self.goes.store(true, Ordering::Relaxed);
        self.evicted.notify_one();
    }

    /// Waits until it is asked to close. Cancel safe.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// Start of a state, if the state lasts.
#[derive(Debug, Default)]
pub struct Since(
    /// In milliseconds since the start, plus 1. 0: the state does not last.
    AtomicU64,
);

impl Since {
    /// Starts the state now, if it does not last already.
    pub fn begin(&self, now: impl FnOnce() -> Duration) {
        if self.0.load(Ordering::Relaxed) == 0 {
            self.begin_anew(now());
        }
    }

    /// Starts the state now, even if it lasts already.
    pub fn begin_anew(&self, now: Duration) {
        self.0
            .store(millis(now).saturating_add(1), Ordering::Relaxed);
    }

    /// Ends the state.
    pub fn end(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Returns whether the state has lasted for `span`.
    pub fn has_lasted(&self, span: Duration, now: Duration) -> bool {
        let since = self.0.load(Ordering::Relaxed);
        since != 0 && millis(now).saturating_add(1).saturating_sub(since) >= millis(span)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::door_limits::testing::limits;

    #[test]
    fn a_second_brings_as_many_calls_as_are_allowed_and_no_more() {
        let caller = CallerState::new(&limits(1, 1));
        let start = Duration::from_secs(7);
        for _ in 0..10 {
            assert!(caller.takes_call(false, start));
        }
        assert!(!caller.takes_call(false, start));
        assert!(caller.takes_call(true, start), "vital calls have their own");
        assert!(!caller.is_at_rest(start));
        let later = start + Duration::from_millis(250);
        assert!(caller.takes_call(false, later));
        assert!(caller.takes_call(false, later));
        assert!(!caller.takes_call(false, later));
        assert!(caller.is_at_rest(start + Duration::from_secs(2)));
    }

    #[test]
    fn looks_are_made_up_for_before_there_are_more() {
        let limits = limits(1, 1);
        limits.look_time_per_caller.set_max(250);
        let caller = CallerState::new(&limits);
        let at = Duration::from_secs;
        // The time of four seconds may be used at once.
        for _ in 0..5 {
            assert!(caller.may_look(at(0)));
            caller.charge_look(Duration::from_millis(240), at(0));
        }
        assert!(!caller.may_look(at(0)));
        assert!(caller.may_look(at(1)));
    }
}
