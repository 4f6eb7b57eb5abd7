//! Checkers: they look on, and know only what was asked, what was granted and what could be used.
//!
//! A [`Watched`] resource keeps the books of its clients: what each wants, may use by a valid lease,
//! and may use besides. Every change is looked at when it happens, so no instant is missed between
//! samples. What ideal allocation would be is computed by [`ideal()`], which shares nothing with the
//! engine.

mod convergence;
pub mod ideal;
mod judge;

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{Algorithm, AlgorithmKind, Template};
use doorward_engine::time::Time;

use crate::checker::convergence::Convergence;
use crate::checker::ideal::{Wish, ideal};
use crate::recording::Sample;

pub use judge::judge;

/// What rounding may add to a sum, relative to it.
const ROUNDING: f64 = 1e-9;

/// A turn of a grant by less than this is no oscillation, as a part of the grant.
const TURN: f64 = 0.01;

/// The books of one client.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    wants: f64,
    lease: Amount,
    fallback: f64,
    priority: i64,
    /// Since when it has nothing though it wants something.
    hungry_since: Option<Time>,
    /// The last extreme of its grant, and whether it rises from there.
    extreme: f64,
    rises: bool,
}

/// A resource that is watched.
#[derive(Debug)]
pub struct Watched {
    /// Its id.
    pub resource: ResourceId,
    /// How it is divided; of the template in force.
    pub algorithm: Algorithm,
    capacity: f64,
    /// What was in force before the capacity was lowered, and until when that may still be in use.
    lowered_from: Option<(f64, Time)>,
    /// When the last lease ends that may be out by an earlier template, which had longer ones perhaps.
    former_leases_end: Time,
    /// What an overshoot may be by the template: `shrink: immediate`, NO_ALGORITHM and STATIC promise
    /// no total.
    promises: bool,
    accounts: Vec<Account>,
    leases: ExactSum,
    holders: usize,
    peak: f64,
    /// The largest part of what there was that was granted, and when.
    worst: (f64, Time),
    over_since: Option<Time>,
    over_for: Duration,
    /// The longest time that a client had nothing, and when that ended.
    starved: (Duration, Time),
    turns: u64,
    quiet_for: Duration,
    quiet_since: Time,
    convergence: Convergence,
    settled_after: Time,
    sums: Sums,
    /// The largest part by which a subtree used more than its node had, and when.
    nesting: (f64, Time),
}

/// What averages are made of, from when all is settled.
#[derive(Debug, Default)]
struct Sums {
    samples: u32,
    used: f64,
    granted: f64,
    unfair: f64,
}

impl Watched {
    /// Nobody has asked for anything yet.
    pub(crate) fn new(resource: ResourceId, template: &Template, settled_after: Time) -> Self {
        let mut watched = Self {
            resource,
            algorithm: template.algorithm.clone(),
            capacity: template.capacity.get(),
            lowered_from: None,
            former_leases_end: Time::ZERO,
            promises: true,
            accounts: Vec::new(),
            leases: ExactSum::ZERO,
            holders: 0,
            peak: 0.0,
            worst: (0.0, Time::ZERO),
            over_since: None,
            over_for: Duration::ZERO,
            starved: (Duration::ZERO, Time::ZERO),
            turns: 0,
            quiet_for: Duration::ZERO,
            quiet_since: Time::ZERO,
            convergence: Convergence::default(),
            settled_after,
            sums: Sums::default(),
            nesting: (0.0, Time::ZERO),
        };
        watched.note_algorithm(template);
        watched
    }

    fn note_algorithm(&mut self, template: &Template) {
        self.algorithm = template.algorithm.clone();
        self.promises = !matches!(
            self.algorithm.kind,
            AlgorithmKind::NoAlgorithm | AlgorithmKind::Static
        );
    }

    /// Another client. Returns its number here.
    pub(crate) fn join(&mut self, priority: i64) -> usize {
        self.accounts.push(Account {
            priority,
            ..Account::default()
        });
        self.accounts.len() - 1
    }

    /// The templates were edited; None: nothing matches this any more.
    pub(crate) fn note_template(&mut self, template: Option<&Template>, now: Time) {
        let (before, lease_length) = (self.capacity, self.algorithm.lease_length);
        if let Some(template) = template {
            self.capacity = template.capacity.get();
            self.note_algorithm(template);
        } else {
            self.capacity = 0.0;
        }
        self.former_leases_end = self.former_leases_end.max(now + lease_length);
        if self.capacity < before {
            // What is out comes down as holders refresh, at the latest when its leases end.
            let from = self.allowed(now).max(before);
            let until = self
                .former_leases_end
                .max(now + self.algorithm.lease_length);
            self.lowered_from = Some((from, until));
        }
        let change = (self.capacity - before).abs();
        self.convergence
            .note_change(change, self.capacity.max(before), now);
        self.note_unrest(now);
        self.look(now);
    }

    /// Another root was elected, which begins to learn.
    pub(crate) fn note_learning(&mut self, now: Time) {
        // It does not know what was in force before: it learns from the holders what is out, and
        // confirms it, for leases that begin now. If that is still what was out before the capacity
        // was lowered, it has the length of another lease to come down; and as long as it learns, if
        // that is longer, for it confirms until then.
        if let Some((_, until)) = &mut self.lowered_from
            && now < *until
        {
            let learns = self.algorithm.learning_mode_duration;
            *until = (*until).max(now + self.algorithm.lease_length.max(learns));
        }
    }

    /// What may be granted at a time, at most.
    fn allowed(&self, now: Time) -> f64 {
        match self.lowered_from {
            Some((from, until)) if now < until => from.max(self.capacity),
            _ => self.capacity,
        }
    }

    /// A client wants something else now.
    pub(crate) fn note_wants(&mut self, client: usize, wants: f64, now: Time) {
        let Some(account) = self.accounts.get_mut(client) else {
            return;
        };
        let change = (wants - account.wants).abs();
        if change == 0.0 {
            return;
        }
        account.wants = wants;
        account.note_hunger(now);
        self.convergence.note_change(change, self.capacity, now);
        self.note_unrest(now);
    }

    fn note_unrest(&mut self, now: Time) {
        let from = self.quiet_since.max(self.settled_after);
        self.quiet_for += now.since(from);
        self.quiet_since = now + self.algorithm.refresh_interval * 2;
    }

    /// What a client may use, by a valid lease and besides.
    pub(crate) fn note_usable(&mut self, client: usize, lease: f64, fallback: f64, now: Time) {
        let Some(account) = self.accounts.get_mut(client) else {
            return;
        };
        account.fallback = fallback;
        let lease = Amount::new(lease).unwrap_or(Amount::ZERO);
        let before = account.lease;
        if lease == before {
            account.note_hunger(now);
            return;
        }
        account.lease = lease;
        let fed = account.note_hunger(now);
        let is_quiet = now >= self.quiet_since && now >= self.settled_after;
        if account.note_turn() && is_quiet {
            self.turns += 1;
        }
        self.leases.replace(before, lease);
        match (before.is_zero(), lease.is_zero()) {
            (true, false) => self.holders += 1,
            (false, true) => self.holders -= 1,
            _ => {}
        }
        if let Some(since) = fed {
            self.note_starved(since, now);
        }
        self.look(now);
    }

    fn note_starved(&mut self, since: Time, now: Time) {
        let lasted = now.since(since.max(self.settled_after));
        if lasted > self.starved.0 {
            self.starved = (lasted, now);
        }
    }

    /// Looks at the sum of all leases.
    fn look(&mut self, now: Time) {
        let sum = self.leases.rounded_down();
        self.peak = self.peak.max(sum);
        let allowed = self.allowed(now);
        let is_over = self.promises && sum > allowed * (1.0 + ROUNDING);
        match (is_over, self.over_since) {
            (true, None) => self.over_since = Some(now),
            (false, Some(since)) => {
                self.over_for += now.since(since);
                self.over_since = None;
            }
            _ => {}
        }
        let part = if allowed > 0.0 {
            sum / allowed
        } else if sum > 0.0 {
            f64::MAX
        } else {
            0.0
        };
        if part > self.worst.0 {
            self.worst = (part, now);
        }
    }

    /// What everybody would have, and half the sum of the distances from that.
    fn compare(&self) -> (Vec<f64>, f64) {
        let wishes: Vec<Wish> = self
            .accounts
            .iter()
            .map(|account| Wish {
                wants: account.wants,
                priority: account.priority,
            })
            .collect();
        let ideal = ideal(&self.algorithm, self.capacity, &wishes);
        let off: f64 = self
            .accounts
            .iter()
            .zip(&ideal)
            .map(|(account, ideal)| (account.lease.get() - ideal).abs())
            .sum();
        (ideal, off / 2.0)
    }

    /// Everything at this moment, but for the nodes; and what everybody would have ideally.
    pub(crate) fn sample(&mut self, now: Time) -> (Sample, Vec<f64>) {
        self.look(now);
        let (ideal, unfair) = self.compare();
        for (account, ideal) in self.accounts.iter_mut().zip(&ideal) {
            // There is nothing for it: those with a higher priority take all.
            if *ideal <= 0.0 {
                account.hungry_since = None;
            }
        }
        let accounts = self.accounts.iter();
        let demand: f64 = accounts.clone().map(|account| account.wants).sum();
        let used = accounts
            .clone()
            .map(|account| account.wants.min(account.lease.get()));
        let used: f64 = used.sum();
        let fallback: f64 = accounts.map(|account| account.fallback).sum();
        let granted = self.leases.rounded_down();
        let usable = if self.promises {
            demand.min(self.capacity)
        } else {
            ideal.iter().sum()
        };
        if now >= self.settled_after && usable > 0.0 {
            self.sums.samples += 1;
            self.sums.used += used / usable;
            self.sums.granted += if self.capacity > 0.0 {
                granted / self.capacity
            } else {
                0.0
            };
            self.sums.unfair += unfair / usable;
        }
        self.convergence.note_unfairness(unfair, usable);
        let peak = std::mem::replace(&mut self.peak, granted);
        let sample = Sample {
            at_s: now.since(Time::ZERO).as_secs_f64(),
            capacity: self.capacity,
            demand,
            granted,
            fallback,
            used,
            usable,
            peak,
            unfair,
            holders: self.holders,
            nodes: Vec::new(),
        };
        (sample, ideal)
    }

    /// What a client wants, may use by a lease, and may use besides.
    pub(crate) fn of_client(&self, client: usize) -> (f64, f64, f64) {
        let account = self.accounts.get(client).copied().unwrap_or_default();
        (account.wants, account.lease.get(), account.fallback)
    }

    /// Whether somebody waits to see all at rest again after a shift of demand.
    pub(crate) fn is_restless(&self) -> bool {
        self.convergence.is_pending()
    }

    /// Looks whether all is at rest again.
    pub(crate) fn settle(&mut self, now: Time) {
        if !self.convergence.is_pending() {
            return;
        }
        let demand: f64 = self.accounts.iter().map(|account| account.wants).sum();
        let (_, unfair) = self.compare();
        let counts = now >= self.settled_after;
        self.convergence
            .settle(unfair, demand.min(self.capacity), counts, now);
    }

    /// What all below a node use, and the most that may be in use there by its parent's books.
    pub(crate) fn note_nesting(&mut self, used: f64, reserved: f64, now: Time) {
        let over = if used <= reserved * (1.0 + ROUNDING) {
            0.0
        } else {
            (used - reserved) / reserved.max(f64::MIN_POSITIVE)
        };
        if over > self.nesting.0 {
            self.nesting = (over, now);
        }
    }

    /// It is over.
    pub(crate) fn finish(&mut self, now: Time) {
        self.look(now);
        if let Some(since) = self.over_since.take() {
            self.over_for += now.since(since);
        }
        let hungry: Vec<Time> = self
            .accounts
            .iter()
            .filter_map(|account| account.hungry_since)
            .collect();
        for since in hungry {
            self.note_starved(since, now);
        }
        self.quiet_for += now.since(self.quiet_since.max(self.settled_after));
    }
}

impl Account {
    /// Returns since when it was hungry, if it is not any more.
    fn note_hunger(&mut self, now: Time) -> Option<Time> {
        let is_hungry = self.wants > 0.0 && self.lease.is_zero();
        if is_hungry {
            self.hungry_since.get_or_insert(now);
            None
        } else {
            self.hungry_since.take()
        }
    }

    /// Whether its grant has turned.
    fn note_turn(&mut self) -> bool {
        let now = self.lease.get();
        let goes_on = if self.rises {
            now >= self.extreme
        } else {
            now <= self.extreme
        };
        if goes_on {
            self.extreme = now;
            return false;
        }
        let turns = (now - self.extreme).abs() > TURN * self.extreme.max(now);
        if turns {
            self.rises = !self.rises;
            self.extreme = now;
        }
        turns
    }
}
