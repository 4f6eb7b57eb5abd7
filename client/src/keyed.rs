//! Leases of many resources of one kind, such as one for each tenant.
//!
//! A key's resource opens at its first use and is released when the key is idle. The number of open keys is bounded.
//! The first request of a key waits for its lease, but not for long; without a lease, [`OnFailure`] decides.
//!
//! ```
//! use doorward::{Client, OnFailure};
//!
//! # #[tokio::main(flavor = "current_thread")] async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let (client, _server) = Client::fake("api-1");
//! let tenants = client.keyed("tenants/{}").on_failure(OnFailure::UpTo(5.0)).open()?;
//! let permit = tenants.acquire("acme", 3).await?;    // an estimate
//! // The call; then its true cost:
//! permit.settle(2);
//! # Ok(()) }
//! ```

use std::collections::HashMap;
use std::fmt::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock, PoisonError, RwLock, Weak};
use std::time::Duration;

use doorward_limits::{AtomicBucket, Decision, Moment, Rate, TokenBucket, Units};

use crate::client::{Client, ID_BYTES_MAX};
use crate::clock::Clock;
use crate::error::ResourceError;
use crate::keyed::entry::Entry;
use crate::limiter::demand::AdaptiveWants;
use crate::limiter::rate::{Burst, LeasedRate};
#[cfg(feature = "tower")]
use crate::rate_permit::Payer as _;
use crate::rate_permit::RatePermit;
use crate::refusal::Refusal;
use crate::state::Mode;

mod entry;

/// Time after which a refused caller may find room for a new key.
const ROOM_IN: Duration = Duration::from_secs(1);

/// Number of keys that are released under one lock.
const RELEASED_MAX: usize = 100;

/// Answer for a key without a lease: before its first one, after its end, and beyond the largest number of keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum OnFailure {
    /// Everything passes. The capacity may be exceeded by all that the callers ask for.
    Open,
    /// Everything is refused, with the time until the next answer.
    #[default]
    Closed,
    /// Each process admits at most this amount per second of each key, from 1e-9 up, with a burst of one second. New
    /// keys beyond the largest number share one such limit.
    UpTo(f64),
}

/// Settings of keyed leases before they open.
#[must_use = "nothing happens until `open`"]
pub struct KeyedBuilder<'a> {
    client: &'a Client,
    pattern: String,
    settings: Settings,
}

struct Settings {
    priority: i64,
    wants: AdaptiveWants,
    burst: Burst,
    on_failure: OnFailure,
    max_wait: Duration,
    idle: Duration,
    keys_max: usize,
}

/// Rate limiters of many resources, one for each key. Cheap to clone; clones share everything. When the last clone is
/// dropped, the client releases all of their leases.
#[derive(Clone)]
pub struct Keyed {
    inner: Arc<Inner>,
}

struct Inner {
    client: Client,
    /// Text of the id before and after the key.
    pattern: (String, String),
    settings: Settings,
    fallback: Option<TokenBucket>,
    keys: RwLock<HashMap<Box<str>, Arc<Entry>>>,
    /// Limit of the keys that find no room.
    overflow: OnceLock<AtomicBucket>,
}

debug_by_name!(Keyed, KeyedBuilder<'_>);

impl Client {
    /// Creates a builder for resources whose ids are `pattern` with a key instead of `{}`, such as `tenants/{}`. Bytes
    /// of a key other than ASCII letters, digits and `-._~=,:@+` are percent-encoded, so no key reaches another
    /// template.
    pub fn keyed(&self, pattern: impl Into<String>) -> KeyedBuilder<'_> {
        KeyedBuilder {
            client: self,
            pattern: pattern.into(),
            settings: Settings {
                priority: 0,
                wants: AdaptiveWants {
                    least: 10.0,
                    ..AdaptiveWants::default()
                },
                burst: Burst {
                    span: Duration::from_millis(200),
                    least: 2.0,
                },
                on_failure: OnFailure::default(),
                max_wait: Duration::from_millis(250),
                idle: Duration::from_secs(60),
                keys_max: 10_000,
            },
        }
    }
}

impl KeyedBuilder<'_> {
    /// Sets the priority of all keys.
    pub fn priority(mut self, priority: i64) -> Self {
        self.settings.priority = priority;
        self
    }

    /// Sets how the wants of a key follow its calls. The least wants are those of a new key. Default: at least 10.
    pub fn adaptive_wants(mut self, wants: AdaptiveWants) -> Self {
        self.settings.wants = wants;
        self
    }

    /// Sets the burst of each key, with which its lease begins. Default: two, and the amount of 200 ms.
    pub fn burst(mut self, burst: Burst) -> Self {
        self.settings.burst = burst;
        self
    }

    /// Sets the answer for a key without a lease. Default: closed.
    pub fn on_failure(mut self, on_failure: OnFailure) -> Self {
        self.settings.on_failure = on_failure;
        self
    }

    /// Sets the longest wait of a new key for its lease. Default: 250 ms.
    pub fn max_wait(mut self, max_wait: Duration) -> Self {
        self.settings.max_wait = max_wait;
        self
    }

    /// Sets the time after which an unused key is released: within twice that time, and not before its lease has brought
    /// in a whole burst, so that no caller gains one by a pause. Default: a minute.
    pub fn idle(mut self, idle: Duration) -> Self {
        self.settings.idle = idle.max(Duration::from_millis(1));
        self
    }

    /// Sets the largest number of open keys. Default: 10,000. A server accepts 25,000 resources of one address unless
    /// its flags allow more.
    pub fn keys_max(mut self, keys_max: usize) -> Self {
        self.settings.keys_max = keys_max;
        self
    }

    /// Opens the keyed leases. A task of the client's runtime releases idle keys; for a fake client outside a runtime,
    /// [`Keyed::release_idle`] does.
    ///
    /// # Errors
    ///
    /// If the pattern has not exactly one `{}`, the least wants are invalid, or the amount of [`OnFailure::UpTo`] is no
    /// rate.
    pub fn open(self) -> Result<Keyed, ResourceError> {
        let parts: Vec<&str> = self.pattern.split("{}").collect();
        let [before, after] = parts.as_slice() else {
            return Err(ResourceError::BadPattern(self.pattern));
        };
        crate::resource::check_wants(self.settings.wants.least)?;
        let fallback = match self.settings.on_failure {
            OnFailure::Open | OnFailure::Closed => None,
            OnFailure::UpTo(amount) => {
                let burst = Units::try_from(amount.max(1.0)).ok();
                let rate = Rate::from_per_second(amount).ok().filter(|_| amount > 0.0);
                let bucket = rate.zip(burst);
                let bucket = bucket.and_then(|(rate, burst)| TokenBucket::new(burst, rate).ok());
                Some(bucket.ok_or(ResourceError::BadWants(amount))?)
            }
        };
        let idle = self.settings.idle;
        let inner = Arc::new(Inner {
            client: self.client.clone(),
            pattern: ((*before).to_owned(), (*after).to_owned()),
            settings: self.settings,
            fallback,
            keys: RwLock::default(),
            overflow: OnceLock::new(),
        });
        if let Some(runtime) = self.client.runtime() {
            runtime.spawn(release_idle(Arc::downgrade(&inner), idle));
        }
        Ok(Keyed { inner })
    }
}

/// Releases idle keys until the last user is gone.
async fn release_idle(inner: Weak<Inner>, idle: Duration) {
    loop {
        tokio::time::sleep(idle).await;
        let Some(inner) = inner.upgrade() else {
            return;
        };
        for slice in inner.idle_keys().chunks(RELEASED_MAX) {
            inner.release(slice);
            tokio::task::yield_now().await;
        }
    }
}

impl Keyed {
    /// Uses `cost` of a key if its limiter admits it now. Opens a new key, but does not wait for its lease: without one,
    /// [`OnFailure`] decides. See [`Keyed::ready`].
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::try_acquire`](crate::RateLimiter::try_acquire). A key that makes too long an id has no lease.
    pub fn try_acquire(
        &self,
        key: &str,
        cost: impl Into<Units>,
    ) -> Result<RatePermit<'static>, Refusal> {
        let cost = cost.into();
        self.try_leased(key, cost, false)
            .unwrap_or_else(|| self.without_lease(key, cost, cost))
    }

    /// Uses `cost` of a key, and waits for it in the order of arrival. Without a lease, it waits as long as
    /// [`OnFailure`] refuses. Safe to cancel.
    ///
    /// # Errors
    ///
    /// As [`RateLimiter::acquire`](crate::RateLimiter::acquire).
    pub async fn acquire(
        &self,
        key: &str,
        cost: impl Into<Units>,
    ) -> Result<RatePermit<'static>, Refusal> {
        let cost = cost.into();
        // A call counts once in the demand, however often it looks.
        let mut asked = cost;
        loop {
            self.ready(key).await;
            if let Some(entry) = self.inner.entry(key).filter(|entry| entry.has_lease()) {
                let taken_at = tokio::select! {
                    answer = entry.limiter.acquire(cost) => answer?.taken_at(),
                    () = entry.lease_lost() => continue,
                };
                return Ok(RatePermit::of_key(entry, cost, taken_at));
            }
            match self.without_lease(key, cost, std::mem::take(&mut asked)) {
                Err(refusal) if let Some(time) = refusal.retry_after => {
                    let clock = self.inner.clock();
                    clock.sleep_until(clock.now() + time).await;
                }
                answer => return answer,
            }
        }
    }

    /// Opens a key, and waits for its first lease, for as long as [`KeyedBuilder::max_wait`] after the key was opened.
    pub async fn ready(&self, key: &str) {
        if let Some(wait) = self.wait_for(key, self.inner.settings.max_wait) {
            wait.await;
        }
    }

    /// Returns the wait for the first lease of a key, until `max_wait` has passed since the key was opened. None: it has one,
    /// or that time has passed. Opens a new key.
    pub(crate) fn wait_for(
        &self,
        key: &str,
        max_wait: Duration,
    ) -> Option<impl Future<Output = ()> + Send + use<>> {
        let entry = self.inner.entry(key)?;
        let waits = !self.inner.wait_left(&entry, max_wait).is_zero() && !entry.has_lease();
        waits.then(|| {
            let inner = Arc::clone(&self.inner);
            async move {
                let left = inner.wait_left(&entry, max_wait);
                // An answer that is no lease ends the wait too.
                let _outcome = entry.resource.wait_for_lease(left).await;
            }
        })
    }

    /// Uses `cost` of a key if it has a lease that admits it. None: the key has no lease now. Opens a new key. `is_safe`:
    /// after the end of a lease, its safe capacity counts, which [decays](crate::capacity).
    pub(crate) fn try_leased(
        &self,
        key: &str,
        cost: Units,
        is_safe: bool,
    ) -> Option<Result<RatePermit<'static>, Refusal>> {
        let entry = self.inner.entry(key)?;
        let decides = entry.has_lease() || is_safe && entry.has_safe.load(Ordering::Relaxed);
        decides.then(|| entry.try_acquire(cost))
    }

    /// Corrects the amount of a call without a permit: `used` instead of `estimate`. `took`: time since the call was
    /// admitted.
    #[cfg(feature = "tower")]
    pub(crate) fn settle(&self, key: &str, estimate: Units, used: Units, took: Duration) {
        let keys = self.inner.keys.read();
        let keys = keys.unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = keys.get(key).filter(|entry| entry.has_lease()) {
            let taken_at = self.inner.clock().now() - took;
            entry.limiter.settle(taken_at, estimate, used);
        }
    }

    /// Returns the id of a key's resource.
    pub(crate) fn resource_id(&self, key: &str) -> String {
        self.inner.id(key)
    }

    /// Returns the number of open keys.
    pub fn len(&self) -> usize {
        let keys = self.inner.keys.read();
        keys.unwrap_or_else(PoisonError::into_inner).len()
    }

    /// Returns whether no key is open.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Releases the keys that no call has used since the last such call. Within a tokio runtime, a task does so.
    pub fn release_idle(&self) {
        for slice in self.inner.idle_keys().chunks(RELEASED_MAX) {
            self.inner.release(slice);
        }
    }

    /// Decides about a key without a lease. `asked`: the cost that counts in the demand.
    fn without_lease(
        &self,
        key: &str,
        cost: Units,
        asked: Units,
    ) -> Result<RatePermit<'static>, Refusal> {
        let inner = &*self.inner;
        if inner.client.is_closed() {
            return Err(Refusal::CLOSED);
        }
        let entry = inner.entry(key);
        match (inner.settings.on_failure, inner.fallback) {
            (OnFailure::Open, _) => Ok(RatePermit::without_lease(cost)),
            (OnFailure::UpTo(_), Some(bucket)) => {
                let cell = entry.as_ref().map_or(&inner.overflow, |it| &it.fallback);
                let now = Moment::ORIGIN.after(inner.clock().now().since_origin());
                let limit = cell.get_or_init(|| AtomicBucket::new(bucket));
                match limit.take(cost, now) {
                    Decision::Allowed(_) => Ok(RatePermit::without_lease(cost)),
                    Decision::After(retry_after) => Err(Refusal::over(Some(retry_after))),
                    Decision::Never(_) => Err(Refusal::over(None)),
                }
            }
            (OnFailure::Closed | OnFailure::UpTo(_), _) => match entry {
                Some(entry) => Err(entry.limiter.refuse(asked)),
                None if !inner.is_short(key) => Err(Refusal::over(None)),
                None => Err(Refusal::over(Some(ROOM_IN))),
            },
        }
    }
}

impl Inner {
    /// Returns the open resource of a key, and opens it if there is room. None: there is no room, or the client is
    /// closed, or the id is too long.
    fn entry(&self, key: &str) -> Option<Arc<Entry>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = keys.get(key) {
            // Writes only once between two looks, so that threads share the line.
            if !entry.is_used.load(Ordering::Relaxed) {
                entry.is_used.store(true, Ordering::Relaxed);
            }
            return Some(entry.clone());
        }
        let has_room = keys.len() < self.settings.keys_max;
        drop(keys);
        (has_room && self.is_short(key))
            .then(|| self.open(key))
            .flatten()
    }

    /// Returns whether the id of a key is short enough.
    fn is_short(&self, key: &str) -> bool {
        let (before, after) = &self.pattern;
        before.len() + key.len() + after.len() <= ID_BYTES_MAX
    }

    #[cold]
    fn open(&self, key: &str) -> Option<Arc<Entry>> {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(entry) = keys.get(key) {
            return Some(entry.clone());
        }
        if keys.len() >= self.settings.keys_max {
            return None;
        }
        let resource = self
            .client
            .resource(self.id(key))
            .priority(self.settings.priority)
            // Without a lease, `on_failure` decides. The mode is that of `try_leased`.
            .mode(Mode::Safe)
            .adaptive_wants(self.settings.wants)
            .open()
            .ok()?;
        let entry = Arc::new(Entry {
            limiter: resource
                .limiter(|now| LeasedRate::new(self.settings.burst, now).starting_full()),
            resource,
            opened_at: self.clock().now(),
            has_safe: AtomicBool::new(false),
            is_used: AtomicBool::new(true),
            fallback: OnceLock::new(),
        });
        keys.insert(key.into(), entry.clone());
        Some(entry)
    }

    /// Returns the rest of a wait that began when a key was opened.
    fn wait_left(&self, entry: &Entry, max_wait: Duration) -> Duration {
        max_wait.saturating_sub(self.clock().now().since(entry.opened_at))
    }

    /// Returns the keys that no call has used since the last such call.
    fn idle_keys(&self) -> Vec<Box<str>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        let idle = keys
            .iter()
            .filter(|(_, entry)| !entry.is_used.swap(false, Ordering::Relaxed));
        idle.map(|(key, _)| key.clone()).collect()
    }

    /// Releases keys that are still idle.
    fn release(&self, idle: &[Box<str>]) {
        let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
        for key in idle {
            // A call that waits, and a permit, have a reference of their own. Without this check, the next call could
            // not open the key.
            let is_idle = |entry: &Arc<Entry>| {
                !entry.is_used.load(Ordering::Relaxed)
                    && Arc::strong_count(entry) == 1
                    && !(entry.has_lease() && entry.limiter.is_filling())
            };
            if keys.get(key).is_some_and(is_idle) {
                // Releases it under the lock: a new call opens the key only after that.
                keys.remove(key);
            }
        }
        if keys.len() < keys.capacity() / 4 {
            let room = keys.len() * 2;
            keys.shrink_to(room);
        }
    }

    fn id(&self, key: &str) -> String {
        let (before, after) = &self.pattern;
        let mut id = before.clone();
        for byte in key.bytes() {
            if byte.is_ascii_alphanumeric() || b"-._~=,:@+".contains(&byte) {
                id.push(char::from(byte));
            } else {
                // Writing to a text cannot fail.
                let _ = write!(id, "%{byte:02X}");
            }
        }
        id + after
    }

    fn clock(&self) -> &Clock {
        self.client.clock()
    }
}
