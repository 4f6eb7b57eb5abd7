//! Checkers: they look on, and know only what was asked, what was granted and what could be used.
//!
//! A [`Watched`] resource keeps the books of its clients: what each wants, may use by a valid lease,
//! and may use besides. Every change is looked at when it happens: what is granted in all, and who
//! has nothing, is known at every instant, and averages of it are integrals over time. What the
//! allocation would be ideally is computed by [`Ideal`], which shares nothing with the engine.
//!
//! There may be a million clients and thousands of changes a second, so a change costs the same
//! however many there are; only samples, the looks at what would be ideal, and those for rest after
//! a shift go over all of them.

mod averages;
mod comebacks;
mod convergence;
mod fairness;
pub mod ideal;
mod immediate;
mod judge;
mod mastership;
mod nesting;
mod oscillation;
mod overshoot;
pub mod real_run;
mod requests;
mod safe_use;
mod shortage;
#[cfg(any(test, feature = "planted"))]
pub mod small_worlds;
mod starvation;
#[cfg(test)]
mod tests;
mod waits;
mod wanted;

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::ResourceId;
use doorward_engine::template::{Algorithm, AlgorithmKind, Template};
use doorward_engine::time::Time;

use crate::checker::averages::{Averages, ClientSums};
use crate::checker::comebacks::Comebacks;
use crate::checker::convergence::Convergence;
use crate::checker::fairness::Fairness;
use crate::checker::ideal::{Ideal, Wish};
use crate::checker::immediate::Immediate;
pub(crate) use crate::checker::mastership::{MasterClaim, MastershipChecker, may_decide};
use crate::checker::nesting::Nesting;
use crate::checker::oscillation::{Course, Oscillation};
use crate::checker::overshoot::Overshoot;
use crate::checker::requests::Asked;
use crate::checker::safe_use::{InformedClient, SafeUse};
use crate::checker::shortage::{MissingOverTime, is_short};
use crate::checker::starvation::Starvation;
use crate::checker::waits::WaitSums;
use crate::planted::{self, Blunt};
use crate::recording::{ClientFigures, Sample};
use crate::world::clock::LocalClock;

pub use judge::judge;
pub(crate) use nesting::NodeBook;
pub(crate) use waits::Wait;

/// What rounding may add to a sum, relative to it.
const ROUNDING: f64 = 1e-9;

/// What a client wants and may use by a lease. Apart from the rest of its books, since this is what
/// is gone over for all clients.
#[derive(Clone, Copy, Debug)]
struct ClientStanding {
    wish: Wish,
    lease: Amount,
    /// It will never ask again: nobody counts it any more.
    is_gone: bool,
}

/// The other books of a client.
#[derive(Clone, Copy, Debug)]
struct Account {
    place: u32,
    /// What it wants, however much of that counts.
    asked: f64,
    wait: Wait,
    fallback: Amount,
    informed: InformedClient,
    /// Since when it has nothing though it wants something.
    hungry_since: Option<Time>,
    course: Course,
    shortage: MissingOverTime,
    asked_of_servers: Asked,
}

/// AllClients over all clients, which every change of one brings up to date.
#[derive(Debug, Default)]
struct AllClients {
    wishes: ExactSum,
    leases: ExactSum,
    fallback: ExactSum,
    /// Of each the smaller of what it wants and may use by a lease.
    used: ExactSum,
    /// Of each the smaller of what it wants and the capacity: what STATIC promises.
    capped: ExactSum,
    holders: usize,
    wanting: usize,
    short: usize,
}

/// A resource that is watched.
#[derive(Debug)]
pub struct Watched {
    /// Its id.
    pub resource: ResourceId,
    /// How it is divided; of the template in force.
    pub algorithm: Algorithm,
    /// The most that one client can have, if the template in force says so.
    wants_max: Option<f64>,
    settled_after: Time,
    standings: Vec<ClientStanding>,
    accounts: Vec<Account>,
    sums: AllClients,
    overshoot: Overshoot,
    immediate: Immediate,
    nesting: Nesting,
    averages: Averages,
    /// The most that was granted since the last sample.
    peak: f64,
    starvation: Starvation,
    oscillation: Oscillation,
    convergence: Convergence,
    fairness: Fairness,
    waits: WaitSums,
    safe_use: SafeUse,
    comebacks: Comebacks,
    end: Time,
    /// What was decided by servers that may not.
    pub(crate) mastership: MastershipChecker,
    /// The most requests of a client within a second, and when.
    requests: (u32, Time),
}

impl Watched {
    /// Nobody has asked for anything yet.
    pub(crate) fn new(resource: ResourceId, template: &Template, settled_after: Time) -> Self {
        Self {
            resource,
            algorithm: template.algorithm.clone(),
            wants_max: wanted::most(template),
            settled_after,
            standings: Vec::new(),
            accounts: Vec::new(),
            sums: AllClients::default(),
            overshoot: Overshoot::new(template),
            immediate: Immediate::new(),
            nesting: Nesting::new(template.algorithm.learning_mode_duration),
            averages: Averages::new(settled_after),
            peak: 0.0,
            starvation: Starvation::new(settled_after),
            oscillation: Oscillation::new(settled_after),
            convergence: Convergence::new(settled_after),
            fairness: Fairness::default(),
            waits: WaitSums::default(),
            safe_use: SafeUse::default(),
            comebacks: Comebacks::new(settled_after),
            end: settled_after,
            mastership: MastershipChecker::default(),
            requests: (0, Time::ZERO),
        }
    }

    fn capacity(&self) -> f64 {
        self.overshoot.capacity
    }

    /// What can be used.
    fn usable(&self) -> f64 {
        match self.algorithm.kind {
            AlgorithmKind::NoAlgorithm => self.sums.wishes.rounded_down(),
            AlgorithmKind::Static => self.sums.capped.rounded_down(),
            _ => self.sums.wishes.rounded_down().min(self.capacity()),
        }
    }

    /// Another client, at that node. Returns its number here.
    pub(crate) fn join(&mut self, priority: i64, place: u32) -> usize {
        self.standings.push(ClientStanding {
            wish: Wish {
                wants: 0.0,
                priority,
            },
            lease: Amount::ZERO,
            is_gone: false,
        });
        self.accounts.push(Account {
            place,
            asked: 0.0,
            wait: Wait::default(),
            fallback: Amount::ZERO,
            informed: InformedClient::default(),
            hungry_since: None,
            course: Course::default(),
            shortage: MissingOverTime::new(self.settled_after),
            asked_of_servers: Asked::default(),
        });
        self.starvation
            .note_wants(priority, Amount::ZERO, Amount::ZERO);
        self.accounts.len() - 1
    }

    /// Before anything changes: all that has been so until now is taken into account.
    fn advance(&mut self, now: Time) {
        self.pass_span(now);
        let (leases, fallback) = (&self.sums.leases, &self.sums.fallback);
        self.overshoot
            .pass(now, || (leases.rounded_down(), fallback.rounded_down()));
        let mut averages = std::mem::take(&mut self.averages);
        let lost = averages.advance(now, || ClientSums {
            capacity: self.capacity(),
            has_total: self.overshoot.has_total(),
            demand: self.sums.wishes.rounded_down(),
            granted: self.sums.leases.rounded_down(),
            used: self.sums.used.rounded_down(),
            usable: self.usable(),
            wanting: self.sums.wanting,
            short: self.sums.short,
        });
        self.averages = averages;
        self.waits.pass(lost);
    }

    /// The templates were edited; None: nothing matches this any more.
    pub(crate) fn note_template(&mut self, template: Option<&Template>, now: Time) {
        self.advance(now);
        let (before, lease_length) = (self.capacity(), self.algorithm.lease_length);
        self.overshoot.note_template(template, lease_length, now);
        self.pass_span(now);
        if let Some(template) = template {
            self.algorithm = template.algorithm.clone();
            self.note_wants_max(wanted::most(template), now);
        }
        let former = self.overshoot.former_leases_end();
        self.nesting
            .note_template(template.is_some(), &self.algorithm, former);
        self.sums.capped = ExactSum::ZERO;
        for standing in &self.standings {
            let most = standing.wish.wants.min(self.overshoot.capacity);
            self.sums.capped.add(amount(most));
        }
        self.weigh_waits();
        self.safe_use.begin_round(now);
        let mut change = (self.capacity() - before).abs();
        if planted::is(Blunt::ConvergenceOfDemandOnly) {
            change = 0.0;
        }
        self.convergence
            .note_change(change, self.capacity().max(before), now);
        self.oscillation.note_unrest(&self.algorithm, now);
        self.look(now);
        self.look_at_bands(now);
    }

    /// The root's clock runs at another speed from now on, or has jumped.
    pub(crate) fn note_clock(&mut self, clock: LocalClock, now: Time) {
        self.advance(now);
        self.overshoot.note_clock(clock);
    }

    /// Another root was elected, which begins to learn; for so long at least, as leases of its
    /// predecessors may last.
    pub(crate) fn note_learning(&mut self, longer_leases: Duration, now: Time) {
        self.advance(now);
        self.overshoot.note_learning(&self.algorithm, now);
        let local = self.overshoot.local(now);
        let learns = self.algorithm.learning_mode_duration.max(longer_leases);
        self.nesting.note_learning(learns, local);
    }

    /// The root does not go by the template in force: until then, by its clock, it may grant by this
    /// one.
    pub(crate) fn note_known_late(&mut self, former: &Template, granted_until: Time, now: Time) {
        self.advance(now);
        self.overshoot.note_known_late(former, granted_until, now);
    }

    /// What a client may use, by a valid lease and besides.
    pub(crate) fn note_usable(&mut self, client: usize, lease: f64, fallback: f64, now: Time) {
        let (Some(standing), Some(account)) = (
            self.standings.get(client).copied(),
            self.accounts.get(client),
        ) else {
            return;
        };
        let (lease, fallback) = (amount(lease), amount(fallback));
        let (before, fell_back) = (standing.lease, account.fallback);
        if lease == before && fallback == fell_back {
            return;
        }
        self.replace(client, ClientStanding { lease, ..standing }, now);
        if let Some(account) = self.accounts.get_mut(client) {
            account.fallback = fallback;
            self.oscillation.note(&mut account.course, lease, now);
            self.nesting.replace(account.place, before, lease);
        }
        self.immediate.note(client, lease.get());
        self.sums.fallback.replace(fell_back, fallback);
        self.sums.leases.replace(before, lease);
        match (before.is_zero(), lease.is_zero()) {
            (true, false) => self.sums.holders += 1,
            (false, true) => self.sums.holders -= 1,
            _ => {}
        }
        self.look(now);
    }

    /// A client has ended for good.
    pub(crate) fn note_ended(&mut self, client: usize) {
        if let Some(standing) = self.standings.get_mut(client) {
            standing.is_gone = true;
        }
    }

    /// A client stands otherwise from now on: brings up to date what depends on both of what it wants
    /// and has.
    fn replace(&mut self, client: usize, after: ClientStanding, now: Time) {
        self.advance(now);
        let (Some(standing), Some(account)) = (
            self.standings.get_mut(client),
            self.accounts.get_mut(client),
        ) else {
            return;
        };
        let before = std::mem::replace(standing, after);
        let missing =
            [before, after].map(|it| it.missing(&self.algorithm, self.overshoot.capacity));
        self.waits.replace(account.wait, missing[0], missing[1]);
        let (wants, lease) = (before.wish.wants, before.lease.get());
        account.shortage.advance(wants, lease, now);
        self.sums.used.replace(before.used(), after.used());
        let sums = &mut self.sums;
        sums.wanting = sums.wanting + usize::from(after.wants()) - usize::from(before.wants());
        sums.short = sums.short + usize::from(after.is_short()) - usize::from(before.is_short());
        if after.is_hungry() {
            account.hungry_since.get_or_insert(now);
        } else if let Some(since) = account.hungry_since.take()
            && (after.wants() || !planted::is(Blunt::StarvationForgivenByGivingUp))
        {
            self.starvation.note(since, after.wish.priority, now);
        }
    }

    /// Looks at the sum of all leases.
    fn look(&mut self, now: Time) {
        let leases = self.sums.leases.rounded_down();
        self.peak = self.peak.max(leases);
        self.overshoot
            .look(leases, self.sums.fallback.rounded_down(), now);
    }

    /// Everything at this moment, but for the nodes; and what everybody would have ideally.
    pub(crate) fn sample(&mut self, now: Time) -> (Sample, Ideal) {
        self.advance(now);
        self.look(now);
        let ideal = self.ideal();
        let granted = self.sums.leases.rounded_down();
        let sample = Sample {
            at_s: now.since(Time::ZERO).as_secs_f64(),
            capacity: self.capacity(),
            demand: self.sums.wishes.rounded_down(),
            granted,
            fallback: self.sums.fallback.rounded_down(),
            safe: self.safe_use.used(),
            used: self.sums.used.rounded_down(),
            usable: self.usable(),
            peak: std::mem::replace(&mut self.peak, granted),
            unfair: self.distance(&ideal),
            holders: self.sums.holders,
            wanting: self.sums.wanting,
            short: self.sums.short,
            nodes: Vec::new(),
        };
        (sample, ideal)
    }

    /// How a client did, all in all; without its name.
    pub(crate) fn figures_of(&self, client: usize) -> ClientFigures {
        let seconds = self.end.since(self.settled_after).as_secs_f64();
        let account = self.accounts.get(client);
        account.map_or_else(ClientFigures::default, |account| {
            account.shortage.figures(seconds, self.fairness.count)
        })
    }

    /// What a client wants, may use by a lease, and may use besides.
    pub(crate) fn of_client(&self, client: usize) -> (Wish, f64, f64) {
        let standing = self.standings.get(client);
        let wish = standing.map_or(Wish::NONE, |standing| standing.wish);
        let lease = standing.map_or(0.0, |standing| standing.lease.get());
        let account = self.accounts.get(client);
        (wish, lease, account.map_or(0.0, |it| it.fallback.get()))
    }

    /// It is over.
    pub(crate) fn finish(&mut self, now: Time) {
        self.end = now;
        self.advance(now);
        self.look(now);
        self.overshoot.finish(now);
        // Rather one look at the end than none.
        if self.fairness.count == 0 {
            self.look_at_all(now);
        }
        self.settle(now);
        self.convergence.finish(now);
        for (standing, account) in self.standings.iter().zip(&mut self.accounts) {
            let (wants, lease) = (standing.wish.wants, standing.lease.get());
            account.shortage.advance(wants, lease, now);
        }
        self.end_starvation(now);
        self.oscillation.finish(now);
    }
}

impl ClientStanding {
    fn used(&self) -> Amount {
        amount(self.wish.wants.min(self.lease.get()))
    }

    fn wants(&self) -> bool {
        self.wish.wants > 0.0
    }

    fn is_hungry(&self) -> bool {
        self.wants() && self.lease.is_zero()
    }

    fn is_short(&self) -> bool {
        is_short(self.wish.wants, self.lease.get())
    }
}

/// What is no amount is nothing.
fn amount(amount: f64) -> Amount {
    Amount::new(amount).unwrap_or(Amount::ZERO)
}
