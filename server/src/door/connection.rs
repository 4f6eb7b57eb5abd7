//! A connection, as everybody knows it who counts: whose it is, what is in progress on it, and what it has
//! not read yet.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use doorward_session::time::millis;
use tokio::sync::Notify;

use crate::door::budget::Budget;
use crate::door::caller_address::CallerAddress;
use crate::door::rate::{AtomicRate, WorkRate};
use crate::door::registry::AddressSettings;

/// What all connections from one address share.
#[derive(Debug)]
pub struct AddressState {
    /// How many calls there may be.
    pub calls: AtomicRate,
    /// The same, of calls that go on whatever others there are.
    pub vital_calls: AtomicRate,
    /// How long pages and the status may take.
    pub looks: WorkRate,
    /// Bytes of messages that have not arrived in full.
    pub incoming: Budget,
    /// Bytes of answers that were not read yet.
    pub outgoing: Budget,
}

impl AddressState {
    /// Nothing is in use.
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
    /// Whether nothing is lost by forgetting it, if it has no connections.
    pub fn is_at_rest(&self, now: Duration) -> bool {
        self.calls.is_full(now) && self.vital_calls.is_full(now) && self.looks.is_made_up(now)
    }
}

/// A connection. Its numbers are read on the strength of nothing else, so their order does not matter.
#[derive(Debug)]
pub struct Connection {
    id: u64,
    address: CallerAddress,
    of_address: Arc<AddressState>,
    /// It was answered a call.
    proven: AtomicBool,
    calls: AtomicU32,
    /// In milliseconds since the start.
    active_at: AtomicU64,
    /// Bytes of answers that are not written yet.
    unread: AtomicU64,
    /// Bytes of answers that were written.
    written: AtomicU64,
    /// Since when something has begun to arrive and has not in full.
    midway: Since,
    /// Since when the other side takes nothing.
    blocked: Since,
    /// Nothing is read before, in milliseconds since the start.
    paused_until: AtomicU64,
    /// Nothing is counted any more.
    closed: AtomicBool,
    /// It was asked to go.
    goes: AtomicBool,
    /// It has to go.
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

    /// Its number.
    pub fn id(&self) -> u64 {
        self.id
    }

    /// Whose it is.
    pub fn address(&self) -> CallerAddress {
        self.address
    }

    /// What it shares with others from its address.
    pub fn of_address(&self) -> &AddressState {
        &self.of_address
    }

    /// A call begins.
    pub fn begin_call(&self, now: Duration) {
        self.calls.fetch_add(1, Ordering::Relaxed);
        self.active_at.store(millis(now), Ordering::Relaxed);
    }

    /// A call is over.
    pub fn end_call(&self, now: Duration) {
        let before = self.calls.fetch_sub(1, Ordering::Relaxed);
        debug_assert!(before > 0, "a call ends that never began");
        self.active_at.store(millis(now), Ordering::Relaxed);
    }

    /// A call is answered, in part or in whole.
    pub fn prove(&self) {
        if !self.is_proven() {
            self.proven.store(true, Ordering::Relaxed);
        }
    }

    /// Whether it was answered a call.
    pub fn is_proven(&self) -> bool {
        self.proven.load(Ordering::Relaxed)
    }

    /// Whether a call is in progress.
    pub fn is_busy(&self) -> bool {
        self.calls.load(Ordering::Relaxed) > 0
    }

    /// When a call began or ended last, in milliseconds since the start.
    pub fn active_at(&self) -> u64 {
        self.active_at.load(Ordering::Relaxed)
    }

    /// An answer of so many bytes is on its way.
    pub fn note_answer(&self, bytes: u64) {
        self.unread.fetch_add(bytes, Ordering::SeqCst);
    }

    /// So many bytes of answers were written. Returns how many of them are counted.
    pub fn note_written(&self, bytes: u64) -> u64 {
        self.written.fetch_add(bytes, Ordering::Relaxed);
        let before = self
            .unread
            .update(Ordering::Relaxed, Ordering::Relaxed, |unread| {
                unread.saturating_sub(bytes)
            });
        before.min(bytes)
    }

    /// Bytes of answers that are not written yet.
    pub fn unread(&self) -> u64 {
        self.unread.load(Ordering::Relaxed)
    }

    /// Bytes of answers that were written.
    pub fn written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Since when something has begun to arrive and has not in full.
    pub fn midway(&self) -> &Since {
        &self.midway
    }

    /// Since when the other side takes nothing of what is to be written.
    pub fn blocked(&self) -> &Since {
        &self.blocked
    }

    /// Nothing more is read from it for a while: who asks too much is served slowly.
    pub fn pause(&self, until: Duration) {
        self.paused_until
            .fetch_max(millis(until), Ordering::Relaxed);
    }

    /// How long nothing is read from it, should `now` say that it is not over.
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

    /// It is closed: whatever is counted from now on is given back at once.
    pub fn close(&self) {
        // In one order with what `note_answer` counts, for everybody.
        self.closed.store(true, Ordering::SeqCst);
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// Whether it was asked to go.
    pub fn goes(&self) -> bool {
        self.goes.load(Ordering::Relaxed)
    }

    /// It has to go.
    pub fn evict(&self) {
        self.goes.store(true, Ordering::Relaxed);
        self.evicted.notify_one();
    }

    /// Waits until it has to go. Cancel safe.
    pub async fn evicted(&self) {
        self.evicted.notified().await;
    }
}

/// Since when something lasts, if it does.
#[derive(Debug, Default)]
pub struct Since(
    /// In milliseconds since the start, and one more. 0: it does not last.
    AtomicU64,
);

impl Since {
    /// It lasts, since now if it did not before.
    pub fn begin(&self, now: impl FnOnce() -> Duration) {
        if self.0.load(Ordering::Relaxed) == 0 {
            self.begin_anew(now());
        }
    }

    /// It lasts since now, whatever was before.
    pub fn begin_anew(&self, now: Duration) {
        self.0
            .store(millis(now).saturating_add(1), Ordering::Relaxed);
    }

    /// It is over.
    pub fn end(&self) {
        if self.0.load(Ordering::Relaxed) != 0 {
            self.0.store(0, Ordering::Relaxed);
        }
    }

    /// Whether it has lasted for as long.
    pub fn has_lasted(&self, span: Duration, now: Duration) -> bool {
        let since = self.0.load(Ordering::Relaxed);
        since != 0 && millis(now).saturating_add(1).saturating_sub(since) >= millis(span)
    }
}
