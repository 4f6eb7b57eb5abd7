//! What the demonstration measures, from the clients' side.

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::time::Time;

use crate::demo::crowd::Member;

/// The span over which use is counted.
const WINDOW: Duration = Duration::from_secs(1);

/// Everything measured so far.
#[derive(Clone, Debug)]
pub(super) struct Figures {
    /// What there is to share.
    pub(super) capacity: f64,
    pub(super) clients: Vec<ClientFigures>,
    /// The most that all leases together ever allowed at one moment.
    pub(super) most_granted: f64,
    /// The most that all clients together ever used in one second.
    pub(super) most_used: f64,
    /// ∫ min(capacity, Σ wants): what could have been used.
    pub(super) usable: f64,
    began: Time,
    now: Time,
}

/// What is measured of one client.
#[derive(Clone, Debug)]
pub(super) struct ClientFigures {
    pub(super) name: String,
    /// Now, per second.
    pub(super) wants: f64,
    /// Now, per second.
    pub(super) granted: f64,
    /// In the last second.
    pub(super) used: f64,
    /// ∫ wants and ∫ granted since the start.
    pub(super) wanted_total: f64,
    pub(super) granted_total: f64,
    /// Requests since the start.
    pub(super) used_total: f64,
    /// Times and counts within the window.
    history: VecDeque<(Time, f64)>,
}

impl Figures {
    pub(super) fn new(capacity: f64, members: &[Member], now: Time) -> Self {
        let clients = members.iter().map(|member| ClientFigures {
            name: member.name.clone(),
            wants: 0.0,
            granted: 0.0,
            used: 0.0,
            wanted_total: 0.0,
            granted_total: 0.0,
            used_total: 0.0,
            history: VecDeque::from([(now, 0.0)]),
        });
        Self {
            capacity,
            clients: clients.collect(),
            most_granted: 0.0,
            most_used: 0.0,
            usable: 0.0,
            began: now,
            now,
        }
    }

    /// Looks at everyone.
    pub(super) fn measure(&mut self, members: &[Member], now: Time) {
        let span = now.since(self.now).as_secs_f64();
        self.now = now;
        for (client, member) in self.clients.iter_mut().zip(members) {
            client.measure(member, span, now);
        }
        self.usable += self.capacity.min(self.wants()) * span;
        self.most_granted = self.most_granted.max(self.granted());
        if now.since(self.began) >= WINDOW {
            self.most_used = self.most_used.max(self.used());
        }
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.began)
    }

    /// Σ wants now.
    pub(super) fn wants(&self) -> f64 {
        self.clients.iter().map(|client| client.wants).sum()
    }

    /// Σ granted now.
    pub(super) fn granted(&self) -> f64 {
        self.clients.iter().map(|client| client.granted).sum()
    }

    /// Σ used in the last second.
    pub(super) fn used(&self) -> f64 {
        self.clients.iter().map(|client| client.used).sum()
    }

    /// What was used of what could have been, from 0 to about 1.
    pub(super) fn utilisation(&self) -> f64 {
        let used: f64 = self.clients.iter().map(|client| client.used_total).sum();
        if self.usable > 0.0 {
            used / self.usable
        } else {
            1.0
        }
    }
}

impl ClientFigures {
    fn measure(&mut self, member: &Member, span: f64, now: Time) {
        self.wants = member.wants();
        self.granted = member.granted();
        self.wanted_total += self.wants * span;
        self.granted_total += self.granted * span;
        self.used_total = member.used();
        self.history.push_back((now, self.used_total));
        while self
            .history
            .get(1)
            .is_some_and(|(time, _)| now.since(*time) >= WINDOW)
        {
            self.history.pop_front();
        }
        if let Some((since, count)) = self.history.front() {
            let span = now.since(*since).as_secs_f64();
            self.used = if span > 0.0 {
                (self.used_total - count) / span
            } else {
                0.0
            };
        }
    }
}
