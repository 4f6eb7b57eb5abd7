//! What a client holds of one resource, and when it asks for it.
//!
//! **News** is that something else is wanted than was answered for. It does not wait for the refresh,
//! but for a gap after the client's last request: a short one if the server tells whether it decided,
//! and one above the server's usual floor if it does not. If it said that it did *not* decide about
//! these wants, it also said when it will hear them: they are no news until then, and count as
//! unanswered.

use std::time::Duration;

use crate::capacity::{Allowance, Capacity, GrantedSafeCapacity, InSafeMode, Source};
use crate::state::former::Former;
use crate::state::lease::Lease;
use crate::state::message::{Granted, Has, LimitedBy};
use crate::state::mode::Mode;
use crate::state::retry::{REFRESH_MAX, Retry};
use crate::state::trouble::Trouble;
use crate::state::{ClientConfig, SPAN_MAX};
use crate::time::Time;
use doorward_session::time::tolerance::at_least;

/// A resource a client uses.
#[derive(Clone, Debug)]
pub struct ResourceState {
    pub(super) priority: i64,
    pub(super) mode: Mode,
    pub(super) wants: f64,
    /// The wants of the newest request that was answered, and decided about.
    wants_answered: Option<f64>,
    lease: Option<Lease>,
    /// Leases before it that have not ended: work may be in flight that they allowed.
    former: Former,
    /// How long leases last, as far as the newest ones tell.
    lease_length: Duration,
    /// Why the newest lease is no larger, if the server said so.
    limited_by: Option<LimitedBy>,
    /// Until when learning mode lasts at most, if the server said that there is one.
    learning_until: Option<Time>,
    /// With the newest lease.
    safe_capacity: Option<GrantedSafeCapacity>,
    refresh_at: Time,
    /// How long it was last asked to wait.
    refresh_in: Duration,
    /// How often to refresh the newest lease.
    interval: Duration,
    /// Whether the server tells if it decided: then news need not keep a gap above its floor.
    tells_decided: bool,
    /// It did not decide about the wants of the last request, and hears them at `refresh_at`.
    is_held: bool,
    /// It refused, and said when to ask again, or waits for its own parent: who comes earlier is refused again,
    /// whatever it wants.
    is_asked_to_wait: bool,
    trouble: Option<Trouble>,
}

/// No client sets a lower floor.
const REFRESH_MIN: Duration = Duration::from_millis(10);

impl ClientConfig {
    fn refresh_floor(&self) -> Duration {
        self.refresh_floor.clamp(REFRESH_MIN, REFRESH_MAX)
    }
}

impl ResourceState {
    pub(super) fn new(priority: i64, mode: Mode, wants: f64, now: Time) -> Self {
        Self {
            priority,
            mode,
            wants,
            wants_answered: None,
            lease: None,
            former: Former::default(),
            lease_length: Duration::ZERO,
            limited_by: None,
            learning_until: None,
            safe_capacity: None,
            refresh_at: now,
            refresh_in: Duration::ZERO,
            interval: Duration::ZERO,
            tells_decided: false,
            is_held: false,
            is_asked_to_wait: false,
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

    /// What was wanted in the newest request that was answered. One that came too early for the
    /// server to decide about it is not answered yet.
    pub fn answered(&self) -> Option<f64> {
        self.wants_answered
    }

    /// Whether the server answered the wants of the last request without a decision, and hears them
    /// at the next refresh.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Why the lease is no larger, if it is valid and the server said so.
    pub fn limited_by(&self, now: Time) -> Option<LimitedBy> {
        self.lease(now).and(self.limited_by)
    }

    /// Until when the server, or one above it, is in learning mode at most, as it said with a lease
    /// that is valid.
    pub fn learning_until(&self, now: Time) -> Option<Time> {
        let until = self.learning_until.filter(|until| *until > now);
        self.lease(now).and(until)
    }

    /// What the server last said about safe capacity.
    pub fn safe_capacity(&self) -> Option<Capacity> {
        self.safe_capacity.map(|safe| safe.granted)
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

    /// When to send it: at its refresh, or earlier because of news. `last_sent` is when the client sent
    /// anything.
    pub(super) fn due(&self, last_sent: Option<Time>, config: &ClientConfig) -> Time {
        if self.is_new() && self.lease.is_none() {
            return self.refresh_at;
        }
        // One that has many resources does not ask more often for that.
        let since_sent = |gap: Duration| last_sent.map_or(Time::ZERO, |sent| sent + gap);
        let refresh_at = self.refresh_at.max(since_sent(config.refresh_floor()));
        // Nothing was decided at a refusal, so no gap counts: by it many would come back together.
        if !self.has_news() || self.is_asked_to_wait {
            return refresh_at;
        }
        // A refusal tells nothing of a floor.
        let gap = if self.tells_decided && self.trouble.is_none() {
            config.news_gap
        } else {
            config.early_gap
        };
        if self.is_held {
            refresh_at.max(since_sent(gap))
        } else {
            refresh_at.min(since_sent(gap))
        }
    }

    /// Whether a valid lease gives something.
    pub(super) fn is_served(&self, now: Time) -> bool {
        self.lease(now).is_some_and(|lease| lease.capacity > 0.0)
    }

    /// What may be used from now on.
    pub fn allowance(&self, now: Time) -> Allowance {
        let Some(lease) = self.lease(now) else {
            return self.fallback(now);
        };
        let then = self.fallback_capacity(lease.expires_at);
        let (capacity, source) = if self.is_safe_beside(lease) && then != Capacity::NONE {
            (then, Source::Mode)
        } else {
            (Capacity::Limited(lease.capacity), Source::Lease)
        };
        Allowance {
            capacity,
            source,
            until: Some(lease.expires_at),
            then,
            safe: self.in_safe_mode(),
        }
    }

    /// When what may be used changes by itself: [`Allowance::until`] of the allowance.
    pub(super) fn changes_at(&self, now: Time) -> Option<Time> {
        match self.lease(now) {
            Some(lease) => Some(lease.expires_at),
            None => self.fallback(now).until,
        }
    }

    /// What the mode allows without a lease.
    fn fallback(&self, now: Time) -> Allowance {
        match self.mode {
            // The other process uses what there is for this client.
            _ if self.is_given_way() => Allowance::NONE,
            Mode::Pessimistic => Allowance::NONE,
            Mode::Optimistic => Allowance::by_mode(Capacity::Limited(self.wants)),
            Mode::Safe => self
                .in_safe_mode()
                .map_or(Allowance::NONE, |safe| safe.allowance(now)),
        }
    }

    /// How much of that it is: a lease is in force nearly always, and this is all that is asked then.
    fn fallback_capacity(&self, now: Time) -> Capacity {
        match self.in_safe_mode() {
            Some(safe) => safe.capacity(now),
            None => self.fallback(now).capacity,
        }
    }

    /// What is used without a lease in safe mode, if a safe capacity was granted.
    fn in_safe_mode(&self) -> Option<InSafeMode> {
        let is_so = self.mode == Mode::Safe && !self.is_given_way();
        let wants = self.wants;
        let safe = self.safe_capacity.filter(|_| is_so)?;
        Some(InSafeMode { safe, wants })
    }

    fn is_given_way(&self) -> bool {
        matches!(self.trouble, Some(Trouble::AnotherProcess { .. }))
    }

    /// Whether the lease is only that a learning server cannot tell yet what there is: it confirms
    /// what a client says that it has, and this one had nothing. What safe capacity it tells with it
    /// is meant to be used until it knows.
    fn is_safe_beside(&self, lease: Lease) -> bool {
        self.mode == Mode::Safe
            && lease.capacity == 0.0
            && self.limited_by.is_some_and(LimitedBy::is_learning)
    }

    /// What is used besides a lease, of which nothing is had.
    fn beside(&self, lease: Lease) -> f64 {
        if self.is_safe_beside(lease) {
            self.fallback_capacity(lease.expires_at).get()
        } else {
            0.0
        }
    }

    /// What is said in a request that is sent now. An upper bound of what is used of leases until its answer is
    /// applied: the lease does not grow meanwhile, and what is in flight beyond it only shrinks. What is in
    /// flight that no lease allowed was admitted by the mode: it is nobody's promise, and a server in learning
    /// mode would confirm it as a lease. From now on no former lease is worth more than what is said.
    pub(super) fn tell(&mut self, in_flight: f64, now: Time) -> Option<Has> {
        let lease = self.lease(now);
        let leased = lease.map_or(0.0, |lease| lease.capacity);
        let beside = lease.map_or(0.0, |lease| self.beside(lease));
        let allowed = self.former.beyond(leased, now);
        let in_flight = allowed.map_or(0.0, |allowed| allowed.capacity.min(in_flight - beside));
        let reported = match (lease, allowed) {
            (Some(lease), Some(allowed)) if in_flight > leased => Some(Has {
                capacity: in_flight,
                expires_in: lease.expires_at.max(allowed.expires_at).since(now),
                granted_by: lease.granted_by,
            }),
            (Some(lease), _) => Some(Has {
                capacity: leased,
                expires_in: lease.expires_at.since(now),
                granted_by: lease.granted_by,
            }),
            (None, Some(allowed)) if in_flight > 0.0 => Some(Has {
                capacity: in_flight,
                expires_in: allowed.expires_at.since(now),
                granted_by: allowed.granted_by,
            }),
            (None, _) => None,
        };
        self.former.lower(
            reported.map_or(0.0, |reported| reported.capacity),
            leased,
            now,
        );
        reported
    }

    /// Whether to send it along with others that are due: it is due itself, or nearly.
    pub(super) fn goes_along(&self, now: Time) -> bool {
        if self.is_held || self.is_asked_to_wait {
            // A little earlier it would not be decided about again.
            return self.refresh_at <= now;
        }
        self.refresh_at <= now + self.refresh_in / 4 || self.has_news()
    }

    /// A lease came for a request that wanted `wanted` and was sent at that time. By our clock the
    /// lease lasts as long as the tolerance says.
    pub(super) fn grant(
        &mut self,
        granted: &Granted,
        wanted: f64,
        sent_at: Time,
        config: &ClientConfig,
        chance: f64,
        now: Time,
    ) {
        if let Err(problem) = granted.check() {
            self.refuse(Trouble::Malformed(problem), Retry::untold(chance), now);
            return;
        }
        let tolerance = config.clock_tolerance.unwrap_or_default();
        let lasts = at_least(tolerance.promise(granted.expires_in.min(SPAN_MAX)));
        let expires_at = sent_at + lasts;
        // What a server is cut off from itself it leases for less and less, up to the same end. Such
        // leases are as long as the one that moved the end there.
        let moved = self
            .lease
            .map_or(Duration::MAX, |before| expires_at.since(before.expires_at));
        self.lease_length = lasts.max(self.lease_length.saturating_sub(moved));
        let lease = Lease {
            capacity: self.confirmed(granted, sent_at),
            expires_at,
            granted_by: granted.granted_by,
        };
        if let Some(before) = self.lease.replace(lease) {
            self.former.push(before, lease.capacity, now);
        }
        self.limited_by = granted.limited_by;
        self.learning_until = granted.learning_for.map(|span| now + span.min(SPAN_MAX));
        self.safe_capacity = granted.safe_capacity.map(|granted| GrantedSafeCapacity {
            granted,
            // It would be halved as often as leases of a millisecond end.
            length: self.lease_length.max(config.refresh_floor()),
            since: expires_at,
        });
        self.tells_decided = granted.decided.is_some();
        self.is_held = granted.decided == Some(false) && self.wants_answered != Some(wanted);
        self.is_asked_to_wait = false;
        if !self.is_held {
            self.wants_answered = Some(wanted);
        }
        self.trouble = None;
        // Always in time, whatever the server says, but where a lease is shorter than the floor: see `due`.
        let remaining = expires_at.since(now);
        let refresh_in = granted.refresh_in.min(REFRESH_MAX);
        self.refresh_in = refresh_in.min(remaining - remaining / 8);
        self.interval = self.refresh_in;
        self.refresh_at = now + self.refresh_in;
    }

    /// What a lease gives. A server in learning mode confirms what was reported to it, for as long as that was said to
    /// last. A request says one amount and one end, so of work in flight beyond the lease, which a former one allowed,
    /// it says too long an end. Confirmed for so long it would be in use when others have it already: it stays
    /// what a former lease allows, and ends with that.
    fn confirmed(&self, granted: &Granted, sent_at: Time) -> f64 {
        // Without a lease, the end that it reported is the former one's.
        let lease = self
            .lease(sent_at)
            .filter(|_| granted.learning_for.is_some());
        let Some(lease) = lease else {
            return granted.capacity;
        };
        // Beside a lease of nothing it would use its safe capacity, too.
        let is_safe = self.mode == Mode::Safe && lease.capacity == 0.0;
        let reported = self.former.beyond(lease.capacity, sent_at);
        let is_reported = reported.is_some_and(|reported| granted.capacity <= reported.capacity);
        if is_reported && !is_safe {
            granted.capacity.min(lease.capacity)
        } else {
            granted.capacity
        }
    }

    /// Another live process has the lease under this client id: what this one has is not its own.
    pub(super) fn give_way(
        &mut self,
        message: String,
        retry: Retry,
        config: &ClientConfig,
        now: Time,
    ) {
        if let Some(before) = self.lease.take() {
            self.former.push(before, 0.0, now);
        }
        let (since, before) = match self.trouble {
            Some(Trouble::AnotherProcess {
                since,
                may_be_gone_for,
                ..
            }) => (since, may_be_gone_for),
            _ => (now, Duration::ZERO),
        };
        let may_be_gone_for = before.max(retry.told.unwrap_or_default().min(REFRESH_MAX));
        // A refusal does not show that the other process is alive now: only that it is not missed yet.
        let overlap = config.restart_overlap;
        let lasts =
            overlap.is_zero() || now.since(since) >= overlap.saturating_add(may_be_gone_for);
        let another = Trouble::AnotherProcess {
            message,
            since,
            may_be_gone_for,
            lasts,
        };
        self.refuse(another, retry, now);
    }

    /// The resource got no lease, and perhaps a time to ask again. The one it has stays valid.
    pub(super) fn refuse(&mut self, trouble: Trouble, retry: Retry, now: Time) {
        let is_not_ready = matches!(trouble, Trouble::NotReady(_));
        let usual = self.lease(now).map_or(Duration::ZERO, |_| self.interval);
        self.refresh_in = retry.wait(is_not_ready, usual);
        self.trouble = Some(trouble);
        self.wants_answered = Some(self.wants);
        self.is_held = false;
        self.is_asked_to_wait = retry.told.is_some() || is_not_ready;
        self.refresh_at = now + self.refresh_in;
    }

    /// The lease ends now, and not when it was to.
    #[cfg(feature = "transport")]
    pub(super) fn end_lease(&mut self, now: Time) {
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.expires_at > now) {
            lease.expires_at = now;
            if let Some(safe) = &mut self.safe_capacity {
                safe.since = now;
            }
        }
    }

    /// When the lease ends, if it has not.
    pub(super) fn expiry(&self, now: Time) -> Option<Time> {
        self.lease(now).map(|lease| lease.expires_at)
    }
}
