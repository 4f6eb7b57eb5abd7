//! What a client holds of one resource, and what it falls back to.

use std::time::Duration;

use crate::capacity::{Allowance, Capacity, Source};
use crate::state::message::{Granted, Has};
use crate::time::Time;

/// What a client uses when its lease has ended unrenewed, or before the first one. While a lease is
/// valid, every mode obeys it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing. For what must never be overrun.
    Pessimistic,
    /// What it wants. For what is better overrun than not used.
    Optimistic,
    /// The safe capacity it was last told; nothing if it was never told one.
    #[default]
    Safe,
}

/// Why a resource has no fresh lease.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// No template matches it: no server will ever grant it until an operator adds one.
    UnknownResource(String),
    /// The server waits for its own parent: it will have a lease to give soon, or when its parent
    /// is back.
    NotReady(String),
    /// Another live process has the lease under the same client id. Nothing is used then.
    AnotherProcess(String),
    /// The server refused it for another reason.
    Refused(String),
    /// The server answered what makes no sense.
    Malformed(String),
}

impl Trouble {
    /// What is wrong, for people.
    pub fn message(&self) -> &str {
        match self {
            Self::UnknownResource(message)
            | Self::NotReady(message)
            | Self::AnotherProcess(message)
            | Self::Refused(message)
            | Self::Malformed(message) => message,
        }
    }

    /// Whether it is over by itself soon, so that waiting for a lease makes sense.
    pub fn passes(&self) -> bool {
        matches!(self, Self::NotReady(_))
    }
}

/// A valid lease.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Lease {
    /// How much may be used; finite, not negative.
    pub capacity: f64,
    /// Until when, counted from when the request was sent.
    pub expires_at: Time,
    /// Which mastership granted it, if the server said so.
    pub granted_by: Option<u64>,
}

/// A resource a client uses.
#[derive(Clone, Debug)]
pub struct ResourceState {
    pub(super) priority: i64,
    pub(super) mode: Mode,
    pub(super) wants: f64,
    /// The wants of the newest request that was answered.
    wants_answered: Option<f64>,
    lease: Option<Lease>,
    /// What the server last told; −1 in the wire's words is no limit.
    safe_capacity: Option<Capacity>,
    pub(super) refresh_at: Time,
    /// How long it was last told to wait.
    refresh_in: Duration,
    trouble: Option<Trouble>,
}

/// Never refreshed faster, whatever a server says.
const REFRESH_MIN: Duration = Duration::from_millis(10);

/// How long to wait after a resource was refused, when no lease says so.
const RETRY_REFUSED: Duration = Duration::from_secs(5);

/// The longest wait that a refusal may ask for.
const RETRY_MAX: Duration = Duration::from_secs(60);

/// How long to wait for a server that waits for its parent.
const RETRY_NOT_READY: Duration = Duration::from_secs(1);

impl ResourceState {
    pub(super) fn new(priority: i64, mode: Mode, wants: f64, now: Time) -> Self {
        Self {
            priority,
            mode,
            wants,
            wants_answered: None,
            lease: None,
            safe_capacity: None,
            refresh_at: now,
            refresh_in: Duration::ZERO,
            trouble: None,
        }
    }

    /// The lease, if it is valid.
    pub fn lease(&self, now: Time) -> Option<Lease> {
        self.lease.filter(|lease| lease.expires_at > now)
    }

    /// What is wanted.
    pub fn wants(&self) -> f64 {
        self.wants
    }

    /// What was wanted in the newest request that was answered.
    pub fn answered(&self) -> Option<f64> {
        self.wants_answered
    }

    /// What the server last told about safe capacity.
    pub fn safe_capacity(&self) -> Option<Capacity> {
        self.safe_capacity
    }

    /// Why there is no fresh lease, if the last answer was none.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Whether the server has not heard yet what is wanted.
    pub(super) fn has_news(&self) -> bool {
        self.wants_answered != Some(self.wants)
    }

    /// Whether nothing was ever answered.
    pub(super) fn is_new(&self) -> bool {
        self.wants_answered.is_none() && self.trouble.is_none()
    }

    /// What may be used from now on.
    pub fn allowance(&self, now: Time) -> Allowance {
        let fallback = match self.mode {
            // The other process uses what there is for this client.
            _ if matches!(self.trouble, Some(Trouble::AnotherProcess(_))) => Capacity::NONE,
            Mode::Pessimistic => Capacity::NONE,
            Mode::Optimistic => Capacity::Limited(self.wants),
            Mode::Safe => self.safe_capacity.unwrap_or(Capacity::NONE),
        };
        match self.lease(now) {
            Some(lease) => Allowance {
                capacity: Capacity::Limited(lease.capacity),
                source: Source::Lease,
                until: Some(lease.expires_at),
                then: fallback,
            },
            None => Allowance {
                capacity: fallback,
                source: Source::Mode,
                until: None,
                then: fallback,
            },
        }
    }

    /// What to say in a request that is sent now. An upper bound of what may be used until its
    /// answer is applied: the lease does not grow meanwhile, and what is in flight beyond it only
    /// shrinks.
    pub(super) fn has(&self, in_flight: f64, now: Time) -> Option<Has> {
        match self.lease(now) {
            Some(lease) => Some(Has {
                capacity: lease.capacity.max(in_flight),
                expires_in: lease.expires_at.since(now),
                granted_by: lease.granted_by,
            }),
            None if in_flight > 0.0 => Some(Has {
                capacity: in_flight,
                expires_in: Duration::ZERO,
                // What the last lease allowed.
                granted_by: self.lease.and_then(|lease| lease.granted_by),
            }),
            None => None,
        }
    }

    /// Whether to send it along with others that are due: it is due itself, or nearly.
    pub(super) fn goes_along(&self, now: Time) -> bool {
        self.refresh_at <= now + self.refresh_in / 4 || self.has_news()
    }

    /// A lease came that ends then, for a request that wanted `wanted`.
    pub(super) fn grant(&mut self, granted: &Granted, wanted: f64, expires_at: Time, now: Time) {
        if let Err(problem) = granted.check() {
            self.refuse(Trouble::Malformed(problem), now);
            return;
        }
        self.lease = Some(Lease {
            capacity: granted.capacity,
            expires_at,
            granted_by: granted.granted_by,
        });
        self.safe_capacity = granted.safe_capacity;
        self.wants_answered = Some(wanted);
        self.trouble = None;
        // Always in time, whatever the server says.
        let remaining = expires_at.since(now);
        let refresh_in = granted.refresh_in.max(REFRESH_MIN);
        self.refresh_in = refresh_in.min(remaining - remaining / 8);
        self.refresh_at = now + self.refresh_in;
    }

    /// Another live process has the lease under this client id: what this one has is not its own.
    pub(super) fn give_way(&mut self, message: String, retry_in: Option<Duration>, now: Time) {
        self.lease = None;
        self.refuse(Trouble::AnotherProcess(message), now);
        let retry_in = retry_in.map(|wait| wait.clamp(RETRY_NOT_READY, RETRY_MAX));
        self.refresh_in = retry_in.unwrap_or(self.refresh_in);
        self.refresh_at = now + self.refresh_in;
    }

    /// The resource got no lease. The one it has stays valid.
    pub(super) fn refuse(&mut self, trouble: Trouble, now: Time) {
        self.refresh_in = if trouble.passes() {
            RETRY_NOT_READY
        } else {
            self.refresh_in.max(RETRY_REFUSED)
        };
        self.trouble = Some(trouble);
        self.wants_answered = Some(self.wants);
        self.refresh_at = now + self.refresh_in;
    }

    /// When the lease ends, if it has not.
    pub(super) fn expiry(&self, now: Time) -> Option<Time> {
        self.lease(now).map(|lease| lease.expires_at)
    }
}
