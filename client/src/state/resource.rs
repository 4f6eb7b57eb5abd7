//! A client's state of one resource: its lease, and the time of the next request.
//!
//! **News** means that the wants differ from those that were answered. News does not wait for the refresh, but for a
//! gap after the client's last request. The gap is short if the server sends `decided`, and above the server's usual
//! floor if it does not. If the server did *not* decide about these wants, it also sent a time for them: until then
//! they are not news, and count as unanswered.

use std::sync::Arc;
use std::time::Duration;

use crate::capacity::{Allowance, Capacity, GrantedSafeCapacity, InSafeMode, Source};
use crate::state::agenda::{Agenda, Kind, Plan};
use crate::state::former::Former;
use crate::state::lease::Lease;
use crate::state::message::{Granted, Has, LimitedBy, RefusalKind, Trouble};
use crate::state::mode::Mode;
use crate::state::retry::{REFRESH_MAX, Retry};
use crate::state::{BudgetAnswer, ClientConfig, SPAN_MAX};
use crate::time::Time;
use doorward_session::time::tolerance::at_least;

/// Time until the next report of work in flight beyond the lease, on a stream.
const REPORT_AGAIN: Duration = Duration::from_secs(1);

/// A resource that a client uses.
#[derive(Clone, Debug, Default)]
pub struct ResourceState {
    id: Arc<str>,
    /// Its place in the agenda.
    plan: Option<Plan>,
    pub(super) priority: i64,
    pub(super) mode: Mode,
    pub(super) wants: f64,
    /// Whether these wants wait for the refresh.
    is_patient: bool,
    /// Newest request for it, and the amount that it reported.
    told: (u64, f64),
    /// Wants of the newest request that was answered with a decision.
    wants_answered: Option<f64>,
    lease: Option<Lease>,
    /// Former leases that have not ended: they may have allowed work in flight.
    former: Former,
    /// Length of leases, by the newest ones.
    lease_length: Duration,
    /// Reason why the newest lease is not larger, if the server sent it.
    limited_by: Option<LimitedBy>,
    /// Latest end of learning mode, if the server sent one.
    learning_until: Option<Time>,
    /// Safe capacity of the newest lease.
    safe_capacity: Option<GrantedSafeCapacity>,
    pub(super) refresh_at: Time,
    /// Wait that the server last asked for.
    refresh_in: Duration,
    /// Refresh interval of the newest lease.
    interval: Duration,
    /// Whether the server sends `decided`: then news needs no gap above its floor.
    tells_decided: bool,
    /// Whether the server did not decide about the wants of the last request. It considers them at `refresh_at`.
    is_held: bool,
    /// Whether the server refused and sent a time, or waits for its own parent. It would refuse any earlier request
    /// again.
    is_asked_to_wait: bool,
    trouble: Option<Trouble>,
    /// Time of the newest request for it.
    told_at: Time,
    /// Newest answer about a budget.
    budget: Option<BudgetAnswer>,
}

impl ResourceState {
    pub(super) fn new(id: Arc<str>, priority: i64, mode: Mode, wants: f64, now: Time) -> Self {
        Self {
            id,
            priority,
            mode,
            wants,
            refresh_at: now,
            ..Self::default()
        }
    }

    /// Returns the lease, if it is valid.
    pub fn lease(&self, now: Time) -> Option<Lease> {
        self.lease.filter(|lease| lease.expires_at > now)
    }

    /// Returns the amount of the lease, or zero.
    pub(super) fn leased(&self, now: Time) -> f64 {
        self.lease(now).map_or(0.0, |lease| lease.capacity)
    }

    /// Returns the wants.
    pub fn wants(&self) -> f64 {
        self.wants
    }

    pub(super) fn want(&mut self, wants: f64, is_patient: bool) {
        (self.wants, self.is_patient) = (wants, is_patient);
    }

    /// Returns the wants of the newest answered request. A request that came too early for a decision is not answered
    /// yet.
    pub fn answered(&self) -> Option<f64> {
        self.wants_answered
    }

    /// Returns whether the server answered the last request without a decision, and considers its wants at the next
    /// refresh.
    pub fn is_held(&self) -> bool {
        self.is_held
    }

    /// Returns the reason why the lease is not larger, if the lease is valid and the server sent it.
    pub fn limited_by(&self, now: Time) -> Option<LimitedBy> {
        self.lease(now).and(self.limited_by)
    }

    /// Returns the latest end of learning mode of the server, or of one above it, as sent with a valid lease.
    pub fn learning_until(&self, now: Time) -> Option<Time> {
        let until = self.learning_until.filter(|until| *until > now);
        self.lease(now).and(until)
    }

    /// Returns the last safe capacity that the server sent.
    pub fn safe_capacity(&self) -> Option<Capacity> {
        self.safe_capacity.map(|safe| safe.granted)
    }

    /// Returns the reason why there is no fresh lease, if the last answer brought none.
    pub fn trouble(&self) -> Option<&Trouble> {
        self.trouble.as_ref()
    }

    /// Returns the rule for the time of the next request.
    pub(super) fn kind(&self) -> Kind {
        if self.wants_answered.is_none() && self.trouble.is_none() && self.lease.is_none() {
            return Kind::New;
        }
        // A refusal decides nothing, so no gap counts. With a gap, many clients would return together.
        if self.wants_answered == Some(self.wants) || self.is_asked_to_wait {
            return Kind::Refresh;
        }
        // A refusal does not tell the floor.
        let is_told = self.tells_decided && self.trouble.is_none();
        match self.is_held {
            true => Kind::Held { is_told },
            false if self.is_patient => Kind::Refresh,
            false => Kind::News { is_told },
        }
    }

    /// Plans the next request, and replaces the plan in the agenda. `changes_at` is the time of the next change of the
    /// view, zero if it has changed.
    pub(super) fn replan(&mut self, agenda: &mut Agenda, changes_at: Option<Time>) {
        // An earlier request would bring no decision either.
        let is_told_when = self.is_held || self.is_asked_to_wait;
        let early = if is_told_when { 0 } else { 4 };
        let plan = Plan {
            kind: self.kind(),
            refresh_at: self.refresh_at,
            // With others that are due, it is sent a little early.
            along_at: self.refresh_at - self.refresh_in.checked_div(early).unwrap_or_default(),
            changes_at,
        };
        if self.plan != Some(plan) {
            agenda.replan(&self.id, self.plan, Some(plan));
            self.plan = Some(plan);
        }
    }

    /// Removes the plan from the agenda.
    pub(super) fn forget(&self, agenda: &mut Agenda) {
        agenda.replan(&self.id, self.plan, None);
    }

    /// Returns the allowance from now on.
    pub fn allowance(&self, now: Time) -> Allowance {
        let Some(lease) = self.lease(now) else {
            return self.fallback(now);
        };
        let then = self.fallback(lease.expires_at).capacity;
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

    /// Returns the time at which the allowance changes by itself: its [`Allowance::until`].
    pub(super) fn changes_at(&self, now: Time) -> Option<Time> {
        self.allowance(now).until
    }

    /// Returns the allowance of the mode without a lease.
    fn fallback(&self, now: Time) -> Allowance {
        match self.mode {
            Mode::Pessimistic => Allowance::NONE,
            Mode::Optimistic => Allowance::by_mode(Capacity::Limited(self.wants)),
            Mode::Safe => self
                .in_safe_mode()
                .map_or(Allowance::NONE, |safe| safe.allowance(now)),
        }
    }

    /// Returns the use without a lease in safe mode, if a safe capacity was granted.
    fn in_safe_mode(&self) -> Option<InSafeMode> {
        let is_so = self.mode == Mode::Safe;
        let wants = self.wants;
        let safe = self.safe_capacity.filter(|_| is_so)?;
        Some(InSafeMode { safe, wants })
    }

    /// Returns whether the lease is 0 only because the server is in learning mode: it confirms reported leases, and
    /// this client reported none. The client then uses the safe capacity that came with the lease.
    fn is_safe_beside(&self, lease: Lease) -> bool {
        self.mode == Mode::Safe
            && lease.capacity == 0.0
            && self.limited_by.is_some_and(LimitedBy::is_learning)
    }

    /// Notes a lease of a former process.
    pub(super) fn note_former(&mut self, capacity: f64, expires_at: Time) {
        let lease = Lease {
            capacity,
            expires_at,
            granted_by: None,
        };
        self.former.push(lease, 0.0, Time::ZERO);
    }

    /// Returns `has` of a request that is sent now. It is an upper bound of the use of leases until the answer is
    /// applied: the lease does not grow meanwhile, and work in flight beyond it only shrinks. Work in flight that no
    /// lease allowed was admitted by the mode. It is not reported, because a server in learning mode would confirm it
    /// as a lease. From now on, no former lease counts for more than the reported amount.
    pub(super) fn tell(&mut self, sequence: u64, in_flight: f64, now: Time) -> Option<Has> {
        let lease = self.lease(now);
        let leased = self.leased(now);
        // A lease of 0, beside which it uses its safe capacity.
        let empty = lease.filter(|lease| self.is_safe_beside(*lease));
        let beside = empty.map_or(0.0, |it| self.fallback(it.expires_at).capacity.get());
        let allowed = self.former.beyond(leased, now);
        let in_flight = allowed.map_or(0.0, |allowed| allowed.capacity.min(in_flight - beside));
        let beyond = allowed.filter(|_| in_flight > leased).map(|it| Lease {
            capacity: in_flight,
            expires_at: lease.map_or(it.expires_at, |lease| lease.expires_at.max(it.expires_at)),
            granted_by: lease.unwrap_or(it).granted_by,
        });
        let reported = beyond.or(lease).map(|it| Has {
            capacity: it.capacity,
            expires_in: it.expires_at.since(now),
            granted_by: it.granted_by,
        });
        let amount = reported.map_or(0.0, |reported| reported.capacity);
        (self.told, self.told_at) = ((sequence, amount), now);
        self.former.lower(amount, leased, now);
        reported
    }

    /// Applies a pushed lease, which ends when the present one does. Returns whether it counts.
    pub(super) fn handle_push(&mut self, granted: &Granted, now: Time) -> bool {
        let is_newest = granted.sequence == Some(self.told.0) && granted.check().is_ok();
        let Some(before) = self.lease(now).filter(|_| is_newest) else {
            return false;
        };
        let lease = Lease {
            capacity: granted.capacity,
            ..before
        };
        self.lease = Some(lease);
        self.note_budget(granted, self.told_at);
        self.former.push(before, lease.capacity, now);
        self.limited_by = granted.limited_by;
        self.learning_until = granted.learning_for.map(|span| now + span.min(SPAN_MAX));
        true
    }

    /// Plans an early request if the server counts more as in use than the lease, because others wait for that: at once
    /// if the lease was larger `before`, and later while work in flight exceeds it.
    pub(super) fn acknowledge_soon(&mut self, before: f64, now: Time) {
        let Some(lease) = self.lease(now) else {
            return;
        };
        let wait = if lease.capacity < before {
            Duration::ZERO
        } else if lease.capacity < self.told.1 {
            REPORT_AGAIN
        } else {
            return;
        };
        self.refresh_at = self.refresh_at.min(now + wait);
    }

    /// Applies a lease for a request with `wanted`, sent at `sent_at`. By this clock the lease lasts as long as the
    /// tolerance allows.
    pub(super) fn grant(
        &mut self,
        granted: &Granted,
        wanted: f64,
        sent_at: Time,
        config: &ClientConfig,
        chance: f64,
        now: Time,
    ) {
        if let Err(message) = granted.check() {
            let (kind, retry) = (RefusalKind::Other, Retry { told: None, chance });
            self.refuse(Trouble { kind, message }, retry, now);
            return;
        }
        let tolerance = config.clock_tolerance.unwrap_or_default();
        let lasts = at_least(tolerance.promise(granted.expires_in.min(SPAN_MAX)));
        let expires_at = sent_at + lasts;
        // A server that is cut off from its parent grants shorter and shorter leases, up to one end. Such leases count
        // as long as the one that moved that end.
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
            // Otherwise it would halve as often as leases of a millisecond end.
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
        self.note_budget(granted, sent_at);
        // Always in time, whatever the server asks for, unless the lease is shorter than the floor: see `due`.
        let remaining = expires_at.since(now);
        let refresh_in = granted.refresh_in.min(REFRESH_MAX);
        self.refresh_in = refresh_in.min(remaining - remaining / 8);
        self.interval = self.refresh_in;
        self.refresh_at = now + self.refresh_in;
    }

    /// Notes an answer about a budget, to a request of that time.
    fn note_budget(&mut self, granted: &Granted, sent_at: Time) {
        let number = self.budget.map_or(0, |before| before.number) + 1;
        self.budget = granted.budget.map(|state| BudgetAnswer {
            state,
            ceiling: granted.capacity as u64,
            granted_by: granted.granted_by,
            limited_by: granted.limited_by,
            sent_at,
            number,
        });
    }

    /// Returns the newest answer about a budget.
    pub fn budget(&self) -> Option<BudgetAnswer> {
        self.budget
    }

    /// Returns the refresh interval of the newest lease.
    pub(super) fn interval(&self) -> Duration {
        self.interval
    }

    /// Returns the amount of a lease. A server in learning mode confirms the reported amount, for the reported time. A
    /// request reports one amount and one end. So for work in flight beyond the lease, which a former lease allowed, it
    /// reports too late an end. If the client took that as its lease, it would still use it when other clients have it
    /// already. So that work stays within the former lease, and ends with it.
    fn confirmed(&self, granted: &Granted, sent_at: Time) -> f64 {
        // Without a lease, the reported end is the former lease's.
        let lease = self
            .lease(sent_at)
            .filter(|_| granted.learning_for.is_some());
        let Some(lease) = lease else {
            return granted.capacity;
        };
        // With a lease of 0 it would use its safe capacity in addition.
        let is_safe = self.mode == Mode::Safe && lease.capacity == 0.0;
        let reported = self.former.beyond(lease.capacity, sent_at);
        let is_reported = reported.is_some_and(|reported| granted.capacity <= reported.capacity);
        if is_reported && !is_safe {
            granted.capacity.min(lease.capacity)
        } else {
            granted.capacity
        }
    }

    /// Records a refusal, perhaps with a time. A valid lease stays valid.
    pub(super) fn refuse(&mut self, trouble: Trouble, retry: Retry, now: Time) {
        let is_not_ready = trouble.kind == RefusalKind::NotReady;
        let usual = self.lease(now).map_or(Duration::ZERO, |_| self.interval);
        self.refresh_in = retry.wait(is_not_ready, usual);
        self.trouble = Some(trouble);
        self.wants_answered = Some(self.wants);
        self.is_held = false;
        self.is_asked_to_wait = retry.told.is_some() || is_not_ready;
        self.refresh_at = now + self.refresh_in;
    }

    /// Ends the lease now, before its expiry. Its refresh is due.
    #[cfg(feature = "leases")]
    pub(super) fn end_lease(&mut self, now: Time) {
        if let Some(lease) = self.lease.as_mut().filter(|lease| lease.expires_at > now) {
            lease.expires_at = now;
            self.refresh_at = self.refresh_at.min(now);
            if let Some(safe) = &mut self.safe_capacity {
                safe.since = now;
            }
        }
    }

    /// Returns the end of the lease, if it is valid.
    pub(super) fn expiry(&self, now: Time) -> Option<Time> {
        self.lease(now).map(|lease| lease.expires_at)
    }
}
