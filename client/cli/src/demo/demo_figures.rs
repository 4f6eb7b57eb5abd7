//! Measurements of the demonstration: figures that servers report, and the use by clients.
//!
//! Use is counted where it happens, at the clients, and a server's use is that of the clients below it. The usable
//! amount is, at every moment, the smaller of the capacity and the whole demand. It makes no allowance for the time
//! that a change takes to spread, nor for the start, when no client has a lease.

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::time::Time;

use crate::demo::outline::{Outline, SERVERS};

/// The span over which all amounts are averaged.
const WINDOW: Duration = Duration::from_secs(1);

/// Everything measured so far.
#[derive(Clone, Debug)]
pub(super) struct DemoFigures {
    /// Capacity of the resource.
    pub(super) capacity: f64,
    /// Tree whose indices the parts below share.
    pub(super) outline: Outline,
    pub(super) parts: Vec<Measured>,
    /// All clients together.
    pub(super) whole: Measured,
    /// The most that all leases of clients together ever allowed at one moment.
    pub(super) most_granted: f64,
    /// The most that all clients together ever used in one second.
    pub(super) most_used: f64,
    /// ∫ min(capacity, Σ wants): what could have been used.
    usable: f64,
    began: Time,
    now: Time,
}

/// Amounts of one server or client, or of all clients: at a moment, per second, or since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Amounts {
    pub(super) wants: f64,
    /// Amount leased; of the root, the capacity.
    pub(super) has: f64,
    /// Amount that a server has granted; 0 for clients.
    pub(super) granted: f64,
    /// Requests; at a moment, those since the start.
    pub(super) used: f64,
}

/// Measurements of one server or client, or of all clients.
#[derive(Clone, Debug, Default)]
pub(super) struct Measured {
    /// Per second, on average over the last second. All amounts are of the same time.
    pub(super) last_second: Amounts,
    /// Since the start.
    pub(super) total: Amounts,
    /// Totals at times within the last second.
    window: VecDeque<(Time, Amounts)>,
    /// The last reading.
    reading: Amounts,
}

impl DemoFigures {
    pub(super) fn new(outline: Outline, capacity: f64, now: Time) -> Self {
        let measured = Measured {
            window: VecDeque::from([(now, Amounts::default())]),
            ..Measured::default()
        };
        Self {
            capacity,
            parts: vec![measured.clone(); SERVERS.len() + outline.clients.len()],
            whole: measured,
            outline,
            most_granted: 0.0,
            most_used: 0.0,
            usable: 0.0,
            began: now,
            now,
        }
    }

    /// Adds a reading of all servers and clients, in the order of the outline. Servers know nothing of use.
    pub(super) fn measure(&mut self, servers: &[Amounts], clients: &[Amounts], now: Time) {
        let since = std::mem::replace(&mut self.now, now);
        // Before the new reading: the last one holds until now.
        let wants = self.whole.reading.wants;
        self.usable += self.capacity.min(wants) * now.since(since).as_secs_f64();
        let sum = |sum: Amounts, it: &Amounts| sum.with(*it, |sum, of_client| sum + of_client);
        let whole = clients.iter().fold(Amounts::default(), sum);
        self.whole.take(whole, since, now);
        let servers = servers.iter().zip(self.used_below(clients));
        let servers = servers.map(|(reading, used)| Amounts { used, ..*reading });
        let readings = servers.chain(clients.iter().copied());
        for (part, reading) in self.parts.iter_mut().zip(readings) {
            part.take(reading, since, now);
        }
        self.most_granted = self.most_granted.max(whole.has);
        if now.since(self.began) >= WINDOW {
            self.most_used = self.most_used.max(self.whole.last_second.used);
        }
    }

    /// Requests of the clients below each server since the start.
    fn used_below(&self, clients: &[Amounts]) -> [f64; SERVERS.len()] {
        let mut used = [0.0; SERVERS.len()];
        for (client, place) in clients.iter().zip(&self.outline.clients) {
            let mut above = Some(place.leaf);
            while let Some(index) = above {
                if let Some(used) = used.get_mut(index) {
                    *used += client.used;
                }
                above = SERVERS.get(index).and_then(|server| server.parent);
            }
        }
        used
    }

    /// Since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.now.since(self.began)
    }

    /// Returns use as a share of the usable amount, from 0 to about 1. None: nothing was usable yet.
    pub(super) fn utilisation(&self) -> Option<f64> {
        (self.usable > 0.0).then(|| self.whole.total.used / self.usable)
    }
}

impl Measured {
    /// Adds a reading, whose `used` counts since the start. Between two readings the larger one counts: otherwise a
    /// client could seem to use more than its lease, if that grew in between.
    fn take(&mut self, reading: Amounts, since: Time, now: Time) {
        let span = now.since(since).as_secs_f64();
        let before = std::mem::replace(&mut self.reading, reading);
        let larger = before.with(reading, f64::max);
        let total = self.total;
        self.total = total.with(larger, |total, amount| total + amount * span);
        self.total.used = reading.used;
        self.window.push_back((now, self.total));
        let is_old = |entry: &(Time, Amounts)| now.since(entry.0) >= WINDOW;
        while self.window.get(1).is_some_and(is_old) {
            self.window.pop_front();
        }
        if let Some((time, total)) = self.window.front()
            && *time < now
        {
            let span = now.since(*time).as_secs_f64();
            self.last_second = self.total.with(*total, |now, before| (now - before) / span);
        }
    }
}

impl Amounts {
    /// Combines each amount with that of another.
    fn with(self, other: Self, combine: impl Fn(f64, f64) -> f64) -> Self {
        Self {
            wants: combine(self.wants, other.wants),
            has: combine(self.has, other.has),
            granted: combine(self.granted, other.granted),
            used: combine(self.used, other.used),
        }
    }
}

#[cfg(test)]
mod tests;
