//! Reports clients to the checkers: what a client may use by a lease, in safe mode and otherwise;
//! the reason for which it waits; and its comeback after it lost its server.

use doorward::state::{ClientState, LimitedBy, Mode, ResourceState};
use doorward_engine::messages::GetCapacityReply;
use doorward_engine::time::Time;

use crate::checker::by_source;
use crate::recording::Wait;
use crate::world::{CallId, Place, World};

/// Facts about a client for the checkers; the client decides nothing by them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastPublished {
    /// Its newest request, and when it was sent.
    pub(super) sequence: u64,
    pub(super) asked_at: Time,
    /// True while its server holds that request until the parent answers.
    pub(super) is_kept: bool,
    /// True if it found no server since its last answer with a lease.
    has_lost_server: bool,
}

impl World<'_> {
    /// Reports to the checkers and to a client's limiters what it may use now.
    pub(super) fn publish(&mut self, number: u32) {
        let client = &mut self.clients[number];
        if let Some(state) = &client.state {
            client.seen.has_lost_server |= state.failures() > 0;
        } else {
            client.seen = LastPublished::default();
        }
        for which in client.uses.numbers() {
            self.publish_use(number, which);
        }
    }

    fn publish_use(&mut self, number: u32, which: u32) {
        let now = self.now;
        let client = &mut self.clients[number];
        let it = &mut client.uses[which];
        let watched = &mut self.watched[it.resource];
        let account = it.account;
        let (mut lease, mut fallback) = (0.0, 0.0);
        let wants = it.wants();
        let state = client.state.as_ref();
        let used = state.and_then(|state| Some((state, state.resource(it.id())?)));
        if let Some((state, resource)) = used {
            let local = client.clock.shows(now);
            let allowance = resource.allowance(local);
            let newest = resource.lease(local);
            (lease, fallback) = by_source(allowance.capacity, allowance.source, wants);
            let is_open = it.closed_until <= now;
            let load = if is_open { it.load() } else { 0.0 };
            if let Some(work) = &mut it.work {
                if let Some(answer) = resource.budget() {
                    work.handle_budget(&answer);
                }
                work.handle_load(load, now);
                work.handle_allowance(allowance, newest, &client.clock, now);
                let (by_leases, besides) = work.used(lease, local);
                (lease, fallback) = (by_leases, fallback.max(besides));
                assert!(
                    !self.asserts || work.admission.worst <= 0.0,
                    "a limiter admits too much: {:?}",
                    work.admission
                );
                let due = work.due(&client.clock, !self.is_healed);
                if let Some(due) = due.map(|due| due.max(now))
                    && work.wake_at.is_none_or(|at| due < at || at < now)
                {
                    work.wake_at = Some(due);
                    let pass = move |world: &mut World<'_>| world.pass_work(number, which);
                    self.events.put(due, Box::new(pass));
                }
            }
            let wait = wait_of(state, resource, client.seen.is_kept, local);
            watched.note_wait(account, wait, now);
            if newest.is_some() {
                it.without_since = None;
            } else if it.without_since.is_none() {
                it.without_since = Some(now);
                watched.safe_use.note_lapse(account);
            }
        } else {
            it.without_since = None;
            watched.safe_use.note_gone(account);
        }
        if it
            .usage
            .limiter
            .is_some_and(|limiter| limiter.budget.is_some())
        {
            let spent = it.spent(now);
            lease += spent;
            let taken = it.work.as_ref().and_then(|work| work.taken());
            watched.note_wants(account, taken.unwrap_or(0.0) + spent, now);
        }
        watched.note_usable(account, lease, fallback, now);
        let safe = match it.usage.mode {
            Mode::Safe => fallback,
            Mode::Pessimistic | Mode::Optimistic => 0.0,
        };
        watched.note_safe_use(account, safe, now);
    }

    /// Reports an answer to a client, which may contain leases.
    pub(super) fn note_answer(&mut self, number: u32, reply: &GetCapacityReply) {
        let now = self.now;
        let client = &mut self.clients[number];
        let place = &self.places[client.place];
        let local = client.clock.shows(now);
        let Some(state) = &client.state else {
            return;
        };
        let mut was_lost = None;
        for it in client.uses.iter() {
            let mut leases = reply.leases.iter();
            let is_reported = leases.any(|lease| lease.resource == it.usage.resource);
            let resource = state.resource(it.id()).filter(|_| is_reported);
            let Some(resource) = resource.filter(|it| it.lease(local).is_some()) else {
                continue;
            };
            let watched = &mut self.watched[it.resource];
            if let (Mode::Safe, Some(safe)) = (it.usage.mode, resource.safe_capacity()) {
                let (safe_use, asked_at) = (&mut watched.safe_use, client.seen.asked_at);
                safe_use.note_safe_capacity(it.account, safe.get(), asked_at, now);
            }
            let seen = &mut client.seen;
            let was_lost =
                *was_lost.get_or_insert_with(|| std::mem::take(&mut seen.has_lost_server));
            if let Some(without_since) = it.without_since.filter(|_| was_lost) {
                let since = without_since.max(place.reachable_since(now));
                watched.comebacks.note(since, now);
            }
        }
    }

    /// Counts a request of a client, for a lease or for the master's address.
    pub(super) fn count_request(&mut self, number: u32) {
        let first = &self.clients[number].uses[0];
        self.watched[first.resource].note_request(first.account, self.now);
    }

    /// Notes that a server holds a client's request until its own parent has answered.
    pub(super) fn note_kept(&mut self, (number, sequence): CallId) {
        let seen = &mut self.clients[number].seen;
        if seen.sequence == sequence {
            seen.is_kept = true;
            self.publish(number);
        }
    }

    /// Reports at the end the clients that are not back.
    pub(super) fn note_not_back(&mut self) {
        let now = self.end;
        for client in self.clients.iter().filter(|it| it.seen.has_lost_server) {
            let place = &self.places[client.place];
            if !place.is_reachable(now) {
                continue;
            }
            for it in client.uses.iter() {
                if let Some(without_since) = it.without_since {
                    let since = without_since.max(place.reachable_since(now));
                    self.watched[it.resource].comebacks.note_missing(since, now);
                }
            }
        }
    }
}

impl Place {
    /// Returns whether clients can reach a master there.
    fn is_reachable(&self, now: Time) -> bool {
        let master = self.master(now);
        self.cut_below_until <= now && master.is_some_and(|master| !master.is_frozen(now))
    }

    /// Returns since when that holds, if it does.
    fn reachable_since(&self, now: Time) -> Time {
        match self.cut_below_until {
            until if until <= now => self.up_since.max(until),
            _ => self.up_since,
        }
    }
}

/// Returns the reason for which a client waits, if it wants more than it may use. `is_kept`: its
/// server waits for the parent before it answers.
fn wait_of(state: &ClientState, resource: &ResourceState, is_kept: bool, now: Time) -> Wait {
    let is_asking = state.is_asking();
    if state.failures() > 0 {
        return Wait::NoServer;
    }
    if resource.trouble().is_some() || is_asking && is_kept {
        return Wait::Refused;
    }
    let has_news = resource.answered() != Some(resource.wants());
    let has_lease = resource.lease(now).is_some();
    if !has_lease || has_news {
        return match () {
            () if is_asking => Wait::Answer,
            () if !has_lease => Wait::Refused,
            () if resource.is_held() => Wait::Floor,
            () => Wait::Gap,
        };
    }
    match resource.limited_by(now) {
        Some(LimitedBy::Others | LimitedBy::CapacityLowered | LimitedBy::Parent) => Wait::Others,
        Some(LimitedBy::Learning | LimitedBy::ParentLearning) => Wait::Learning,
        Some(LimitedBy::Share | LimitedBy::Wants) | None => Wait::Share,
    }
}
