//! A connection: its address, its calls in progress, and the bytes of answers that its client has not read.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use doorward_session::time::millis;
use tokio::sync::Notify;

use crate::door::budget::Budget;
use crate::door::caller_address::CallerAddress;
use crate::door::rate::{AtomicRate, WorkRate};
use crate::door::registry::AddressSettings;

/// State that all connections from one address share.
#[derive(Debug)]
pub struct AddressState {
    /// Rate of calls.
    pub calls: AtomicRate,
    /// Rate of vital calls, which other calls cannot use up.
    pub vital_calls: AtomicRate,
    /// Time for pages and the status.
    pub looks: WorkRate,
    /// Bytes in incomplete messages.
    pub incoming: Budget,
    /// Bytes in unread answers.
    pub outgoing: Budget,
}

impl AddressState {
    /// Makes the state of an address that uses nothing.
    pub fn new(settings: &AddressSettings) -> Self {
        Self {
            calls: AtomicRate::new(settings.calls_per_second),
            vital_calls: AtomicRate::new(settings.vital_calls_per_second),
            looks: WorkRate::new(settings.look_time_per_second),
            incoming: Budget::new(settings.incoming_bytes),
            outgoing: Budget::new(settings.outgoing_bytes),
        }
    }
}

impl AddressState {
    /// Returns whether it equals a new state, so that an address without connections can be forgotten.
    pub fn is_at_rest(&self, now: Duration) -> bool {
        self.calls.is_full(now) && self.vital_calls.is_full(now) && self.looks.is_made_up(now)
    }
}

/// A connection. Its numbers order no other memory access, so relaxed ordering is enough.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    address: CallerAddress,
    of_address: Arc<AddressState>,
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
    midway: Since,
    /// Start of the time in which the client takes no bytes.
    blocked: Since,
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
        address: CallerAddress,
        of_address: Arc<AddressState>,
        now: Duration,
    ) -> Self {
        Self {
            id,
            address,
            of_address,
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

    /// Returns its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Returns the address of its client.
    pub fn address(&self) -> CallerAddress {
        self.address
    }

    /// Returns the state that it shares with other connections from its address.
    pub fn of_address(&self) -> &AddressState {
        &self.of_address
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

    /// Returns the start of a frame, or of a call's headers, of which a part has arrived.
    pub fn midway(&self) -> &Since {
        &self.midway
    }

    /// Returns the start of the time in which the client takes no bytes.
    pub fn blocked(&self) -> &Since {
        &self.blocked
    }

    /// Pauses reading until `until`, so that a client that asks too much is served slowly.
    pub fn pause(&self, until: Duration) {
        self.paused_until
            .fetch_max(millis(until), Ordering::Relaxed);
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
