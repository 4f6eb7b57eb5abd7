//! Checkers: they look on, and know only what was asked, what was granted and what could be used.
//!
//! A [`Watched`] resource keeps the books of its clients: what each wants, may use by a valid lease,
//! and may use besides. Every change is looked at when it happens, so no instant is missed between
//! samples. What the allocation would be ideally is computed by [`Ideal`], which shares nothing with
//! the engine.
//!
//! There may be a million clients and thousands of changes a second, so a change costs the same
//! however many there are; only samples, and the looks for rest after a shift, go over all of them.

mod convergence;
pub mod ideal;
mod judge;
mod mastership;
mod rest;
mod shortage;

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{Algorithm, AlgorithmKind, Template};
use doorward_engine::time::Time;

use crate::checker::convergence::Convergence;
use crate::checker::ideal::{Ideal, Wish};
use crate::checker::mastership::Mastership;
use crate::checker::shortage::{At, Shortage};
use crate::recording::{ClientFigures, Sample};

pub use judge::judge;

/// What rounding may add to a sum, relative to it.
const ROUNDING: f64 = 1e-9;

/// A turn of a grant by less than this is no oscillation, as a part of the grant.
const TURN: f64 = 0.01;

/// What a client wants and may use by a lease. Apart from the rest of its books, since this is what
/// is gone over for all clients.
#[derive(Clone, Copy, Debug)]
struct Standing {
    wish: Wish,
    lease: Amount,
}

/// The other books of a client.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    fallback: f64,
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
    standings: Vec<Standing>,
    accounts: Vec<Account>,
    wishes: ExactSum,
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
    shortage: Shortage,
    /// The largest part by which a subtree used more than its node had, and when.
    nesting: (f64, Time),
    /// What was decided by servers that may not.
    pub(crate) mastership: Mastership,
    /// The largest distance from the ideal when all had to be right, and when that was.
    pub(crate) rest: (f64, Time),
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
            standings: Vec::new(),
            accounts: Vec::new(),
            wishes: ExactSum::ZERO,
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
            shortage: Shortage::default(),
            nesting: (0.0, Time::ZERO),
            mastership: Mastership::default(),
            rest: (0.0, Time::ZERO),
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
        self.standings.push(Standing {
            wish: Wish {
                wants: 0.0,
                priority,
            },
            lease: Amount::ZERO,
        });
        self.accounts.push(Account::default());
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

    /// The root hears only now of the template in force: until now it granted by this one.
    pub(crate) fn note_known_late(&mut self, former: &Template, now: Time) {
        let capacity = former.capacity.get();
        let lease_length = former.algorithm.lease_length;
        self.former_leases_end = self.former_leases_end.max(now + lease_length);
        if capacity > self.capacity {
            let from = self.allowed(now).max(capacity);
            self.lowered_from = Some((from, self.former_leases_end));
        } else if let Some((_, until)) = &mut self.lowered_from
            && now < *until
        {
            *until = (*until).max(self.former_leases_end);
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
        let (Some(standing), Some(account)) = (
            self.standings.get_mut(client),
            self.accounts.get_mut(client),
        ) else {
            return;
        };
        let before = standing.wish.wants;
        let change = (wants - before).abs();
        if change == 0.0 {
            return;
        }
        standing.wish.wants = wants;
        self.wishes.replace(amount(before), amount(wants));
        account.note_hunger(standing, now);
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
        let (Some(standing), Some(account)) = (
            self.standings.get_mut(client),
            self.accounts.get_mut(client),
        ) else {
            return;
        };
        account.fallback = fallback;
        let lease = amount(lease);
        let before = standing.lease;
        if lease == before {
            account.note_hunger(standing, now);
            return;
        }
        standing.lease = lease;
        let fed = account.note_hunger(standing, now);
        let is_quiet = now >= self.quiet_since && now >= self.settled_after;
        if account.note_turn(lease) && is_quiet {
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

    fn ideal(&self) -> Ideal {
        let wishes = self.standings.iter().map(|standing| standing.wish);
        Ideal::of(&self.algorithm, self.capacity, wishes)
    }

    /// Half the sum of the distances of all clients from the ideal.
    fn distance(&self, ideal: &Ideal) -> f64 {
        let off = |standing: &Standing| (standing.lease.get() - ideal.share(standing.wish)).abs();
        self.standings.iter().map(off).sum::<f64>() / 2.0
    }

    /// What that distance is at least: what is granted too much or too little in all is so for
    /// somebody.
    fn distance_min(&self) -> f64 {
        if !self.promises {
            return 0.0;
        }
        let ideally = self.wishes.rounded_down().min(self.capacity);
        (self.leases.rounded_down() - ideally).abs() / 2.0 * (1.0 - ROUNDING)
    }

    /// Everything at this moment, but for the nodes; and what everybody would have ideally.
    pub(crate) fn sample(&mut self, now: Time) -> (Sample, Ideal) {
        self.look(now);
        let ideal = self.ideal();
        let unfair = self.distance(&ideal);
        let demand = self.wishes.rounded_down();
        let (mut used, mut fallback, mut ideally) = (0.0, 0.0, 0.0);
        for (standing, account) in self.standings.iter().zip(&mut self.accounts) {
            let share = ideal.share(standing.wish);
            if share <= 0.0 {
                // There is nothing for it: those with a higher priority take all.
                account.hungry_since = None;
            }
            ideally += share;
            used += standing.wish.wants.min(standing.lease.get());
            fallback += account.fallback;
        }
        let granted = self.leases.rounded_down();
        let usable = if self.promises {
            demand.min(self.capacity)
        } else {
            ideally
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
        let clients = self.standings.iter().map(|standing| At {
            wants: standing.wish.wants,
            lease: standing.lease.get(),
            ideal: ideal.share(standing.wish),
        });
        let counts = now >= self.settled_after;
        let (wanting, short) = self.shortage.note(clients, self.capacity, counts);
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
            wanting,
            short,
            nodes: Vec::new(),
        };
        (sample, ideal)
    }

    /// How a client did, all in all; without its name.
    pub(crate) fn figures_of(&self, client: usize) -> ClientFigures {
        self.shortage.of_client(client)
    }

    /// What a client wants, may use by a lease, and may use besides.
    pub(crate) fn of_client(&self, client: usize) -> (Wish, f64, f64) {
        let account = self.accounts.get(client).copied().unwrap_or_default();
        let standing = self.standings.get(client);
        let wish = standing.map_or(Wish::NONE, |standing| standing.wish);
        let lease = standing.map_or(0.0, |standing| standing.lease.get());
        (wish, lease, account.fallback)
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
        let usable = self.wishes.rounded_down().min(self.capacity);
        // While too little is out, as in learning mode, there is no need to look at everybody.
        if !self.convergence.is_rest(self.distance_min(), usable) {
            return;
        }
        let unfair = self.distance(&self.ideal());
        let counts = now >= self.settled_after;
        self.convergence.settle(unfair, usable, counts, now);
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
    fn note_hunger(&mut self, standing: &Standing, now: Time) -> Option<Time> {
        let is_hungry = standing.wish.wants > 0.0 && standing.lease.is_zero();
        if is_hungry {
            self.hungry_since.get_or_insert(now);
            None
        } else {
            self.hungry_since.take()
        }
    }

    /// Whether its grant has turned.
    fn note_turn(&mut self, lease: Amount) -> bool {
        let now = lease.get();
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

/// What is no amount is nothing.
fn amount(amount: f64) -> Amount {
    Amount::new(amount).unwrap_or(Amount::ZERO)
}
