//! Measurements of the demonstration: figures that servers report, and the use by clients.
//!
//! Use is counted where it happens, at the clients, and a server's use is that of the clients below it. The usable
//! amount is, at every moment, the smaller of the capacity and the whole demand. It makes no allowance for the time
//! that a change takes to spread, nor for the start, when no client has a lease.

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::time::Time;

use crate::demo::outline::Outline;

/// The span over which use is counted.
const WINDOW: Duration = Duration::from_secs(1);

/// State of a server at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ServerReading {
    /// Demand of all clients below it.
    pub(super) wants: f64,
    /// Amount it may grant: the capacity at the root, else its own lease.
    pub(super) has: f64,
    /// Amount it has granted.
    pub(super) granted: f64,
}

/// State of a client at a moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct ClientReading {
    pub(super) wants: f64,
    /// Amount of its lease.
    pub(super) has: f64,
    /// Requests since the start.
    pub(super) used_total: f64,
}

/// Everything measured so far.
#[derive(Clone, Debug)]
pub(super) struct DemoFigures {
    /// Capacity of the resource.
    pub(super) capacity: f64,
    /// Tree whose indices the servers and clients below share.
    pub(super) outline: Outline,
    pub(super) servers: Vec<Measured>,
    pub(super) clients: Vec<Measured>,
    /// The most that all leases of clients together ever allowed at one moment.
    pub(super) most_granted: f64,
    /// The most that all clients together ever used in one second.
    pub(super) most_used: f64,
    /// ∫ min(capacity, Σ wants): what could have been used.
    usable: f64,
    /// For each client, times and counts within the window.
    history: Vec<VecDeque<(Time, f64)>>,
    /// ∫ Σ wants and ∫ Σ has of clients, at times within the window.
    totals: [VecDeque<(Time, f64)>; 2],
    /// Σ wants and Σ has of clients in the last second, on average: over the same time as what they used.
    pub(super) last_second: [f64; 2],
    began: Time,
    now: Time,
}

/// Measurements of one server or client.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Measured {
    /// Now, per second.
    pub(super) wants: f64,
    /// Now, per second: what it leased.
    pub(super) has: f64,
    /// Now, per second: what a server handed out; 0 for clients.
    pub(super) granted: f64,
    /// In the last second.
    pub(super) used: f64,
    /// ∫ wants and ∫ has since the start.
    pub(super) wanted_total: f64,
    pub(super) had_total: f64,
    /// Requests since the start.
    pub(super) used_total: f64,
}

impl DemoFigures {
    pub(super) fn new(outline: Outline, capacity: f64, now: Time) -> Self {
        Self {
            capacity,
            servers: vec![Measured::default(); outline.servers.len()],
            clients: vec![Measured::default(); outline.clients.len()],
            history: vec![VecDeque::from([(now, 0.0)]); outline.clients.len()],
            totals: [(); 2].map(|()| VecDeque::from([(now, 0.0)])),
            last_second: [0.0; 2],
            outline,
            most_granted: 0.0,
            most_used: 0.0,
            usable: 0.0,
            began: now,
            now,
        }
    }

    /// Takes in what everyone says now, in the order of the outline.
    pub(super) fn measure(
        &mut self,
        servers: &[ServerReading],
        clients: &[ClientReading],
        now: Time,
    ) {
        let span = now.since(self.now).as_secs_f64();
        self.now = now;
        // The last reading holds until now.
        let held = [self.wants(), self.granted()];
        self.usable += self.capacity.min(self.wants()) * span;
        let histories = self.clients.iter_mut().zip(&mut self.history);
        for ((client, history), reading) in histories.zip(clients) {
            client.take(reading.wants, reading.has, span);
            client.used_total = reading.used_total;
            client.used = mean_within(history, reading.used_total, now);
        }
        for (server, reading) in self.servers.iter_mut().zip(servers) {
            server.take(reading.wants, reading.has, span);
            server.granted = reading.granted;
            (server.used, server.used_total) = (0.0, 0.0);
        }
        self.add_up_use();
        let means = self.last_second.iter_mut().zip(&mut self.totals);
        for ((mean, history), per_second) in means.zip(held) {
            let before = history.back().map_or(0.0, |(_, total)| *total);
            *mean = mean_within(history, before + per_second * span, now);
        }
        self.most_granted = self.most_granted.max(self.granted());
        if now.since(self.began) >= WINDOW {
            self.most_used = self.most_used.max(self.used());
        }
    }

    /// Every client's use is that of its leaf, and of all servers above.
    fn add_up_use(&mut self) {
        for (client, place) in self.clients.iter().zip(&self.outline.clients) {
            let mut above = Some(place.leaf);
            while let Some(index) = above {
                if let Some(server) = self.servers.get_mut(index) {
                    server.used += client.used;
                    server.used_total += client.used_total;
                }
                above = self.outline.servers.get(index).and_then(|s| s.parent);
            }
        }
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.began)
    }

    /// Σ wants of clients now.
    pub(super) fn wants(&self) -> f64 {
        self.clients.iter().map(|client| client.wants).sum()
    }

    /// Σ of what the clients' leases allow now.
    pub(super) fn granted(&self) -> f64 {
        self.clients.iter().map(|client| client.has).sum()
    }

    /// Σ used by clients in the last second.
    pub(super) fn used(&self) -> f64 {
        self.clients.iter().map(|client| client.used).sum()
    }

    /// Returns use as a share of the usable amount, from 0 to about 1.
    pub(super) fn utilisation(&self) -> f64 {
        let used: f64 = self.clients.iter().map(|client| client.used_total).sum();
        if self.usable > 0.0 {
            used / self.usable
        } else {
            1.0
        }
    }
}

impl Measured {
    fn take(&mut self, wants: f64, has: f64, span: f64) {
        self.wanted_total += self.wants * span;
        self.had_total += self.has * span;
        self.wants = wants;
        self.has = has;
    }
}

/// Per second, on average over the last window, with the newest total.
fn mean_within(history: &mut VecDeque<(Time, f64)>, total: f64, now: Time) -> f64 {
    history.push_back((now, total));
    while history
        .get(1)
        .is_some_and(|(time, _)| now.since(*time) >= WINDOW)
    {
        history.pop_front();
    }
    let Some((since, before)) = history.front() else {
        return 0.0;
    };
    let span = now.since(*since).as_secs_f64();
    if span > 0.0 {
        (total - before) / span
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests;
