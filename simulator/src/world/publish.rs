//! Reports clients to the checkers: what a client may use by a lease, in safe mode and otherwise;
//! the reason for which it waits; and its comeback after it lost its server.

use doorward_client::state::{ClientState, LimitedBy, Mode, ResourceState};
use doorward_engine::request::GetCapacityReply;
use doorward_engine::time::Time;

use crate::checker::Wait;
use crate::checker::real_run::by_source;
use crate::scenario::usage::Usage;
use crate::world::World;
use crate::world::agenda::EventKind;
use crate::world::place::Place;

/// Facts about a client for the checkers; the client decides nothing by them.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct LastPublished {
    /// Its newest request, and when it was sent.
    sequence: u64,
    asked_at: Time,
    /// True while its server holds that request until the parent answers.
    is_kept: bool,
    /// True if it found no server since its last answer with a lease.
    has_lost_server: bool,
}

impl LastPublished {
    /// Notes a request of the client.
    pub(super) fn note_request(&mut self, sequence: u64, now: Time) {
        (self.sequence, self.asked_at, self.is_kept) = (sequence, now, false);
    }
}

impl World<'_> {
    /// Reports to the checkers and to a client's limiters what it may use now.
    pub(super) fn publish(&mut self, number: u32) {
        let scenario = self.scenario;
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let Some(group) = scenario.clients.get(client.group as usize) else {
            return;
        };
        if let Some(state) = &client.state {
            client.seen.has_lost_server |= state.failures() > 0;
        } else {
            client.seen = LastPublished::default();
        }
        for (which, usage) in group.usages().enumerate() {
            self.publish_use(number, which, usage);
        }
    }

    fn publish_use(&mut self, number: u32, which: usize, usage: &Usage) {
        let now = self.now;
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let Some(it) = client.uses.get_mut(which) else {
            return;
        };
        let Some(watched) = self.watched.get_mut(it.resource as usize) else {
            return;
        };
        let account = it.account as usize;
        let (mut lease, mut fallback) = (0.0, 0.0);
        let wants = it.wants();
        let id = usage.resource.as_str();
        let state = client.state.as_ref();
        if let Some((state, resource)) = state.and_then(|it| Some((it, it.resource(id)?))) {
            let local = client.clock.shows(now);
            let allowance = resource.allowance(local);
            let newest = resource.lease(local);
            (lease, fallback) = by_source(allowance.capacity, allowance.source, wants);
            let load = it.load();
            if let Some(work) = &mut it.work {
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
                    self.events.put(due, EventKind::Work(number, which as u8));
                }
            }
            let wait = wait_of(state, resource, client.seen.is_kept, local);
            watched.note_wait(account, wait, now);
            if newest.is_some() {
                it.without_since = None;
            } else if it.without_since.is_none() {
                it.without_since = Some(now);
                watched.note_lapse(account);
            }
        } else {
            it.without_since = None;
            watched.note_gone(account);
        }
        watched.note_usable(account, lease, fallback, now);
        let safe = match usage.mode {
            Mode::Safe => fallback,
            Mode::Pessimistic | Mode::Optimistic => 0.0,
        };
        watched.note_safe_use(account, safe, now);
    }

    /// Reports an answer to a client, which may contain leases.
    pub(super) fn note_answer(&mut self, number: u32, reply: &GetCapacityReply) {
        let (scenario, now) = (self.scenario, self.now);
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let Some(group) = scenario.clients.get(client.group as usize) else {
            return;
        };
        let Some(place) = self.places.get(client.place as usize) else {
            return;
        };
        let local = client.clock.shows(now);
        let Some(state) = &client.state else {
            return;
        };
        let is_reported = |usage: &Usage| {
            let resource = state.resource(usage.resource.as_str());
            let resource = resource.filter(|it| it.lease(local).is_some())?;
            let mut leases = reply.leases.iter();
            leases.find(|lease| lease.resource == usage.resource)?;
            Some(resource)
        };
        let mut was_lost = None;
        for (it, usage) in client.uses.iter().zip(group.usages()) {
            let watched = self.watched.get_mut(it.resource as usize);
            let (Some(watched), Some(resource)) = (watched, is_reported(usage)) else {
                continue;
            };
            if let (Mode::Safe, Some(safe)) = (usage.mode, resource.safe_capacity()) {
                let asked_at = client.seen.asked_at;
                watched.note_safe_capacity_of(it.account as usize, safe.get(), asked_at, now);
            }
            let seen = &mut client.seen;
            let was_lost =
                *was_lost.get_or_insert_with(|| std::mem::take(&mut seen.has_lost_server));
            if let Some(without_since) = it.without_since.filter(|_| was_lost) {
                watched.note_comeback(without_since.max(place.reachable_since(now)), now);
            }
        }
    }

    /// Counts a request of a client, for a lease or for the master's address.
    pub(super) fn count_request(&mut self, number: u32) {
        let now = self.now;
        let client = self.clients.get(number as usize);
        if let Some(first) = client.and_then(|client| client.uses.first())
            && let Some(watched) = self.watched.get_mut(first.resource as usize)
        {
            watched.note_request(first.account as usize, now);
        }
    }

    /// Notes that a server holds a client's request until its own parent has answered.
    pub(super) fn note_kept(&mut self, number: u32, sequence: u64) {
        let client = self.clients.get_mut(number as usize);
        if let Some(client) = client.filter(|it| it.seen.sequence == sequence) {
            client.seen.is_kept = true;
            self.publish(number);
        }
    }

    /// Reports at the end the clients that are not back.
    pub(super) fn note_not_back(&mut self) {
        let now = self.end;
        for client in self.clients.iter().filter(|it| it.seen.has_lost_server) {
            let place = self.places.get(client.place as usize);
            let Some(place) = place.filter(|place| place.is_reachable(now)) else {
                continue;
            };
            for it in client.uses.iter() {
                let watched = self.watched.get_mut(it.resource as usize);
                if let (Some(without_since), Some(watched)) = (it.without_since, watched) {
                    watched.note_not_back(without_since.max(place.reachable_since(now)), now);
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
