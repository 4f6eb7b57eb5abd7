//! Use of capacity in safe mode, apart from the use by leases.
//!
//! Such use is no overshoot: Doorward does not promise that it fits beside leases or beside other
//! modes. It promises less. Once every client has been informed since the last one joined, all
//! clients together may use at most the capacity in safe mode, whatever they want later (unless a
//! template has a static safe capacity). The checker tests this whenever it holds, even if no
//! client is in safe mode at the time, because all leases may end at once later.
//!
//! All clients are informed when each got an answer to a request sent at least one second after the
//! last join or edit of templates; the news may take that long through the tree. They do not count
//! as informed while the lease of a client has ended without renewal and others get more since: for
//! its server, that client has left.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::time::Time;

use crate::checker::{Extreme, Watched, amount};
use crate::numbered::Numbered;

/// Time until all servers know that a client joined: a few rounds, and the messages between the
/// servers.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// Books of one client.
#[derive(Clone, Copy, Debug, Default)]
struct InformedClient {
    /// Safe capacity of its last answer; infinite without a limit. `None` before the first answer
    /// and after its end.
    safe: Option<f64>,
    /// Round in which it was last informed.
    round: u32,
    has_lapsed: bool,
    /// Most it may use in safe mode if its lease ends now; its wants if there is no limit.
    may: Amount,
    /// Present use in safe mode.
    uses: Amount,
}

#[derive(Debug, Default)]
pub(crate) struct SafeUse {
    clients: Numbered<InformedClient>,
    used: ExactSum,
    /// Largest part of the capacity that clients used in safe mode.
    pub(super) peak: f64,
    may: ExactSum,
    informed: usize,
    lapsed: usize,
    /// Present round in which all clients must be informed: its number, its start, and the clients
    /// informed so far.
    round: u32,
    since: Time,
    informed_in_round: usize,
    /// True if the lease of a client had ended when others were informed.
    is_mixed: bool,
    /// True if the sums changed since the last look.
    is_changed: bool,
    /// Largest part of the capacity that all clients may use once all are informed, and when.
    pub(super) worst: Extreme<f64>,
}

impl SafeUse {
    /// Returns the total use in safe mode.
    pub(super) fn used(&self) -> f64 {
        self.used.rounded_down()
    }

    /// Starts a round in which all clients have to be informed again.
    pub(super) fn begin_round(&mut self, now: Time) {
        self.round += 1;
        self.since = now;
        self.informed_in_round = 0;
        self.is_mixed = false;
    }

    /// Adds a client.
    pub(super) fn join(&mut self) {
        self.clients.push(InformedClient::default());
    }

    /// Notes the safe capacity in the answer to a request that a client sent at `asked_at`;
    /// infinite without a limit.
    pub(crate) fn note_safe_capacity(&mut self, client: u32, safe: f64, asked_at: Time, now: Time) {
        let client = &mut self.clients[client];
        let joins = client.safe.is_none() || client.has_lapsed;
        self.informed += usize::from(client.safe.is_none());
        self.lapsed -= usize::from(std::mem::take(&mut client.has_lapsed));
        client.safe = Some(safe);
        if joins {
            self.begin_round(now);
        } else if client.round != self.round && asked_at >= self.since + HEARD_WITHIN {
            client.round = self.round;
            self.informed_in_round += 1;
        }
        self.is_mixed |= self.lapsed > 0;
        self.is_changed = true;
    }

    /// Notes that the lease of a client ended without renewal.
    pub(crate) fn note_lapse(&mut self, client: u32) {
        let client = &mut self.clients[client];
        if client.safe.is_some() && !client.has_lapsed {
            client.has_lapsed = true;
            self.lapsed += 1;
        }
    }

    /// Notes that the process of a client has ended and lost its safe capacity.
    pub(crate) fn note_gone(&mut self, client: u32) {
        let client = &mut self.clients[client];
        if client.safe.take().is_none() {
            return;
        }
        self.informed -= 1;
        self.lapsed -= usize::from(std::mem::take(&mut client.has_lapsed));
        self.informed_in_round -= usize::from(client.round == self.round);
        client.round = 0;
    }

    /// Updates the present and possible use of a client in safe mode.
    fn note_use(&mut self, client: u32, wants: f64, uses: Amount) {
        let client = &mut self.clients[client];
        let may = match client.safe {
            Some(safe) if safe.is_finite() => safe,
            Some(_) => wants,
            None => 0.0,
        };
        let may = amount(may);
        if (client.may, client.uses) == (may, uses) {
            return;
        }
        self.is_changed = true;
        self.may.replace(client.may, may);
        self.used.replace(client.uses, uses);
        (client.may, client.uses) = (may, uses);
    }

    /// Checks the sums if they have changed.
    pub(super) fn look(&mut self, capacity: f64, now: Time) {
        if capacity <= 0.0 || !std::mem::take(&mut self.is_changed) {
            return;
        }
        self.peak = self.peak.max(self.used() / capacity);
        let are_all_informed =
            self.informed > 0 && self.informed_in_round == self.informed && !self.is_mixed;
        let part = self.may.rounded_down() / capacity;
        if are_all_informed {
            self.worst.note(part, now);
        }
    }
}

impl Watched {
    /// Notes what a client uses in safe mode now, and may use if its lease ends.
    pub(crate) fn note_safe_use(&mut self, client: u32, uses: f64, now: Time) {
        let wants = self.standings[client].wish.wants;
        self.safe_use.note_use(client, wants, amount(uses));
        // Without a total there is no whole to compare with.
        if self.overshoot.has_total() {
            self.safe_use.look(self.overshoot.capacity, now);
        }
    }
}

#[cfg(test)]
mod tests;
