//! What checkers are told of a client: what it may use, by a lease, in safe mode and otherwise; if it
//! wants more, what it waits for; and when it is back after it had lost its server.

use doorward_client::state::{ClientState, LimitedBy, Mode, ResourceState};
use doorward_client::time::Time as ClientTime;
use doorward_engine::time::Time;

use crate::checker::Wait;
use crate::checker::real_run::by_source;
use crate::world::World;
use crate::world::clients::client_time;
use crate::world::place::Place;

/// What is remembered of a client for that; nothing that it decides by.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Seen {
    /// Its newest request, and when it was sent.
    sequence: u64,
    asked_at: Time,
    /// Its server keeps that until its parent has answered.
    is_kept: bool,
    /// Since when it has no lease.
    without_since: Option<Time>,
    /// It found no server since it last had an answer with a lease.
    has_lost_server: bool,
}

impl Seen {
    /// It asks.
    pub(super) fn note_request(&mut self, sequence: u64, now: Time) {
        (self.sequence, self.asked_at, self.is_kept) = (sequence, now, false);
    }
}

impl World<'_> {
    /// Tells the checkers what a client may use now.
    pub(super) fn publish(&mut self, number: u32) {
        let (scenario, now) = (self.scenario, self.now);
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let Some(group) = scenario.clients.get(client.group as usize) else {
            return;
        };
        let Some(watched) = self.watched.get_mut(client.resource as usize) else {
            return;
        };
        let account = client.account as usize;
        let (mut lease, mut fallback) = (0.0, 0.0);
        let wants = client.wants();
        if let Some(state) = &client.state {
            let local = client_time(client.clock.shows(now));
            let allowance = state.allowance(group.resource.as_str(), local);
            (lease, fallback) = by_source(allowance.capacity, allowance.source, wants);
            client.seen.has_lost_server |= state.failures() > 0;
            if let Some(resource) = state.resource(group.resource.as_str()) {
                let wait = wait_of(state, resource, client.seen.is_kept, local);
                watched.note_wait(account, wait, now);
                if resource.lease(local).is_some() {
                    client.seen.without_since = None;
                } else if client.seen.without_since.is_none() {
                    client.seen.without_since = Some(now);
                    watched.note_lapse(account);
                }
            }
        } else {
            client.seen = Seen::default();
            watched.note_gone(account);
        }
        watched.note_usable(account, lease, fallback, now);
        let safe = match group.mode {
            Mode::Safe => fallback,
            Mode::Pessimistic | Mode::Optimistic => 0.0,
        };
        watched.note_safe_use(account, safe, now);
    }

    /// A client was answered, with a lease perhaps.
    pub(super) fn note_answer(&mut self, number: u32) {
        let (scenario, now) = (self.scenario, self.now);
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        let Some(group) = scenario.clients.get(client.group as usize) else {
            return;
        };
        let (Some(watched), Some(place)) = (
            self.watched.get_mut(client.resource as usize),
            self.places.get(client.place as usize),
        ) else {
            return;
        };
        let local = client_time(client.clock.shows(now));
        let state = client.state.as_ref();
        let resource = state.and_then(|state| state.resource(group.resource.as_str()));
        let Some(resource) = resource.filter(|it| it.lease(local).is_some()) else {
            return;
        };
        if let (Mode::Safe, Some(safe)) = (group.mode, resource.safe_capacity()) {
            let (account, asked_at) = (client.account as usize, client.seen.asked_at);
            watched.note_safe_told(account, safe.get(), asked_at, now);
        }
        let was_lost = std::mem::take(&mut client.seen.has_lost_server);
        if let Some(without_since) = client.seen.without_since.filter(|_| was_lost) {
            watched.note_comeback(without_since.max(place.reachable_since(now)), now);
        }
    }

    /// A client sends a request, for a lease or for who the master is.
    pub(super) fn count_request(&mut self, number: u32) {
        let now = self.now;
        let client = self.clients.get(number as usize);
        let client = client.map(|it| (it.resource as usize, it.account as usize));
        if let Some((resource, account)) = client
            && let Some(watched) = self.watched.get_mut(resource)
        {
            watched.note_request(account, now);
        }
    }

    /// A server keeps the request of a client until its own parent has answered.
    pub(super) fn note_kept(&mut self, number: u32, sequence: u64) {
        let client = self.clients.get_mut(number as usize);
        if let Some(client) = client.filter(|it| it.seen.sequence == sequence) {
            client.seen.is_kept = true;
            self.publish(number);
        }
    }

    /// It is over: tells who is not back.
    pub(super) fn note_not_back(&mut self) {
        let now = self.end;
        for client in &self.clients {
            let Some(without_since) = client.seen.without_since else {
                continue;
            };
            let place = self.places.get(client.place as usize);
            let place = place.filter(|place| place.is_reachable(now));
            if let (Some(place), Some(watched), true) = (
                place,
                self.watched.get_mut(client.resource as usize),
                client.seen.has_lost_server,
            ) {
                watched.note_not_back(without_since.max(place.reachable_since(now)), now);
            }
        }
    }
}

impl Place {
    /// Whether clients find somebody there who decides.
    fn is_reachable(&self, now: Time) -> bool {
        let master = self.master(now);
        self.cut_below_until <= now && master.is_some_and(|master| !master.is_frozen(now))
    }

    /// Since when that is so, if it is.
    fn reachable_since(&self, now: Time) -> Time {
        match self.cut_below_until {
            until if until <= now => self.up_since.max(until),
            _ => self.up_since,
        }
    }
}

/// What a client waits for that wants more than it may use. `is_kept`: its server waits for its parent
/// before it answers.
fn wait_of(state: &ClientState, resource: &ResourceState, is_kept: bool, now: ClientTime) -> Wait {
    let is_asking = state.is_asking();
    if state.failures() > 0 {
        return Wait::NoServer;
    }
    if resource.trouble().is_some() || is_asking && is_kept {
        return Wait::Refused;
    }
    let has_news = resource.answered() != Some(resource.wants());
    if resource.lease(now).is_none() || has_news {
        return match () {
            () if is_asking => Wait::Answer,
            () if resource.lease(now).is_none() => Wait::Refused,
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
