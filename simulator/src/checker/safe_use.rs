//! What clients use in safe mode, apart from what they use by leases.
//!
//! It is no overshoot: nobody promised that it fits beside leases, or beside what others use in other
//! modes. What is promised is less. With every client informed since the last one joined, what all of them may
//! use in safe mode, together and whatever they will want, is no more than the capacity (unless templates
//! say otherwise, by a static safe capacity). That is looked at whenever it is so, whether anybody is in safe
//! mode then or not: nobody knows when all leases end at once.
//!
//! It is so when everybody was answered to a request that was sent a second after somebody joined, or the
//! templates were edited, the last time: for so long it may take to get through the tree. And not
//! while a client's lease has ended unrenewed and others get more since: it left, as far as its server
//! knows.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::time::Time;

use crate::checker::{Watched, amount};
use crate::planted::{self, Blunt};
use crate::recording::Checker;

/// For so long it may take until all servers know that a client has joined: a few rounds, and what
/// messages between them take.
const HEARD_WITHIN: Duration = Duration::from_secs(1);

/// The books of one client.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InformedClient {
    /// The safe capacity of its last answer; infinite if there is no limit. None: it never got one, or is gone.
    safe: Option<f64>,
    /// Since which round.
    round: u32,
    has_lapsed: bool,
    /// What it may use in safe mode if its lease ends now; without a limit, what it wants.
    may: Amount,
    /// What it uses in safe mode.
    uses: Amount,
}

#[derive(Debug, Default)]
pub(super) struct SafeUse {
    used: ExactSum,
    /// The largest part of the capacity that was used in safe mode.
    pub(super) peak: f64,
    may: ExactSum,
    informed: usize,
    lapsed: usize,
    /// Rounds in which everybody is informed: the number of the present one, since when it is, and how many were
    /// informed in it.
    round: u32,
    since: Time,
    informed_in_round: usize,
    /// Somebody's lease had ended when others were informed.
    is_mixed: bool,
    /// Something has changed since the sums were looked at.
    is_changed: bool,
    /// The largest part of the capacity that all may use, with everybody informed, and when.
    pub(super) worst: (f64, Time),
}

impl SafeUse {
    /// What all use in safe mode now.
    pub(super) fn used(&self) -> f64 {
        self.used.rounded_down()
    }

    /// Everybody has to be informed anew.
    pub(super) fn begin_round(&mut self, now: Time) {
        self.round += 1;
        self.since = now;
        self.informed_in_round = 0;
        self.is_mixed = false;
    }

    /// A client got its safe capacity in the answer to a request that was sent then.
    pub(super) fn note_safe_capacity(
        &mut self,
        client: &mut InformedClient,
        safe: f64,
        asked_at: Time,
        now: Time,
    ) {
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

    /// Its lease has ended unrenewed.
    pub(super) fn note_lapse(&mut self, client: &mut InformedClient) {
        if client.safe.is_some() && !client.has_lapsed {
            client.has_lapsed = true;
            self.lapsed += 1;
        }
    }

    /// Its process is gone, and with it what it got.
    pub(super) fn note_gone(&mut self, client: &mut InformedClient) {
        if client.safe.take().is_none() {
            return;
        }
        self.informed -= 1;
        self.lapsed -= usize::from(std::mem::take(&mut client.has_lapsed));
        self.informed_in_round -= usize::from(client.round == self.round);
        client.round = 0;
    }

    /// What it wants, and uses in safe mode; or what it got may be something else now.
    pub(super) fn note_use(&mut self, client: &mut InformedClient, wants: f64, uses: Amount) {
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

    /// Looks at the sums, if there is anything new to see.
    pub(super) fn look(&mut self, capacity: f64, now: Time) {
        if capacity <= 0.0 || !std::mem::take(&mut self.is_changed) {
            return;
        }
        self.peak = self.peak.max(self.used() / capacity);
        let are_all_informed =
            self.informed > 0 && self.informed_in_round == self.informed && !self.is_mixed;
        let mut part = self.may.rounded_down() / capacity;
        if planted::is(Blunt::SafeUseOfThoseInSafeMode) {
            part = self.used() / capacity;
        }
        let is_seen = planted::sees(Checker::SafeUse, now)
            && !(planted::is(Blunt::SafeUseOfFirstRound) && self.worst.0 > 0.0);
        if are_all_informed && is_seen && part > self.worst.0 {
            self.worst = (part, now);
        }
    }
}

impl Watched {
    /// A client in safe mode got its safe capacity in the answer to a request that was sent then;
    /// infinite if there is no limit.
    pub(crate) fn note_safe_capacity_of(
        &mut self,
        client: usize,
        safe: f64,
        asked_at: Time,
        now: Time,
    ) {
        if let Some(account) = self.accounts.get_mut(client) {
            let informed = &mut account.informed;
            self.safe_use
                .note_safe_capacity(informed, safe, asked_at, now);
        }
    }

    /// The lease of a client has ended unrenewed.
    pub(crate) fn note_lapse(&mut self, client: usize) {
        if let Some(account) = self.accounts.get_mut(client) {
            self.safe_use.note_lapse(&mut account.informed);
        }
    }

    /// The process of a client is gone.
    pub(crate) fn note_gone(&mut self, client: usize) {
        if let Some(account) = self.accounts.get_mut(client) {
            self.safe_use.note_gone(&mut account.informed);
        }
    }

    /// What a client uses in safe mode now, and may use if its lease ends.
    pub(crate) fn note_safe_use(&mut self, client: usize, uses: f64, now: Time) {
        let (capacity, wants) = (self.capacity(), self.standings.get(client));
        let wants = wants.map_or(0.0, |standing| standing.wish.wants);
        if let Some(account) = self.accounts.get_mut(client) {
            self.safe_use
                .note_use(&mut account.informed, wants, amount(uses));
            // Without a total there is nothing that it could be a part of.
            if self.overshoot.has_total() {
                self.safe_use.look(capacity, now);
            }
        }
    }
}

#[cfg(test)]
mod tests;
