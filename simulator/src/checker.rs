//! Checkers. They watch a run from outside: they know only what clients asked for, what they were
//! granted and what they could use.
//!
//! A [`Watched`] resource keeps the books of its clients: what each wants, what it may use by a
//! valid lease, and what it may use without one. The checkers see every change when it happens, so
//! the total granted and the clients without a lease are known at every instant, and averages are
//! integrals over time. [`Ideal`] computes the ideal allocation and shares no code with the engine.
//!
//! A run may have a million clients and thousands of changes a second. A change therefore costs the
//! same with any number of clients. Only samples, comparisons with the ideal and checks for rest
//! after a shift go over all clients.

mod averages;
mod comebacks;
mod convergence;
mod extreme;
mod fairness;
pub mod ideal;
mod immediate;
mod judge;
mod mastership;
mod nesting;
mod oscillation;
mod overshoot;
mod requests;
mod safe_use;
mod shortage;
mod starvation;
#[cfg(test)]
mod tests;
mod waits;
mod wanted;

use std::time::Duration;

use doorward::capacity::{Capacity, Source};
use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::id::ResourceId;
use doorward_engine::templates::{Algorithm, AlgorithmKind, Template};
use doorward_engine::time::Time;

use crate::checker::averages::Averages;
use crate::checker::comebacks::Comebacks;
use crate::checker::convergence::Convergence;
pub(crate) use crate::checker::extreme::Extreme;
use crate::checker::fairness::Fairness;
use crate::checker::ideal::{Ideal, Wish};
use crate::checker::immediate::Immediate;
pub(crate) use crate::checker::mastership::{MasterClaim, MastershipChecker, may_decide};
use crate::checker::nesting::Nesting;
use crate::checker::oscillation::{Course, Oscillation};
use crate::checker::overshoot::Overshoot;
pub(crate) use crate::checker::requests::Asked;
use crate::checker::safe_use::SafeUse;
use crate::checker::shortage::MissingOverTime;
use crate::checker::starvation::Starvation;
use crate::checker::waits::WaitSums;
use crate::local_clock::LocalClock;
use crate::numbered::Numbered;
use crate::recording::{ClientFigures, Sample, Wait};

pub use judge::judge;
pub(crate) use nesting::NodeBook;

/// Relative error that rounding may add to a sum.
const ROUNDING: f64 = 1e-9;

/// Smallest shortage that counts, as a part of the wants.
const NEGLIGIBLE: f64 = 0.01;

/// Wants and lease of a client. Kept apart from the rest of its books because loops over all
/// clients read it.
#[derive(Clone, Copy, Debug, Default)]
struct ClientStanding {
    wish: Wish,
    lease: Amount,
    /// True once the client has ended for good; the ideal no longer counts it.
    is_gone: bool,
}

/// Rest of the books of a client.
#[derive(Clone, Copy, Debug, Default)]
struct Account {
    place: u32,
    /// Wants as the client asked for them, before a template's maximum applies.
    asked: f64,
    wait: Wait,
    fallback: Amount,
    /// Start of the time in which it wants something and has nothing.
    hungry_since: Option<Time>,
    course: Course,
    shortage: MissingOverTime,
    asked_of_servers: Asked,
}

/// Sums over all clients. Every change of a client updates them.
#[derive(Debug, Default)]
struct AllClients {
    wishes: ExactSum,
    leases: ExactSum,
    fallback: ExactSum,
    /// Sum of the smaller of wants and lease.
    used: ExactSum,
    /// Sum of the smaller of wants and capacity, which is what STATIC promises.
    capped: ExactSum,
    holders: usize,
    wanting: usize,
    short: usize,
}

/// Resource under watch.
#[derive(Debug)]
pub struct Watched {
    /// Id of the resource.
    pub resource: ResourceId,
    /// Algorithm of the template in force.
    pub algorithm: Algorithm,
    /// Largest amount that one client can have, if the template in force limits it.
    wants_max: Option<f64>,
    settled_after: Time,
    standings: Numbered<ClientStanding>,
    accounts: Numbered<Account>,
    sums: AllClients,
    overshoot: Overshoot,
    pub(crate) immediate: Immediate,
    nesting: Nesting,
    averages: Averages,
    /// Largest total granted since the last sample.
    peak: f64,
    starvation: Starvation,
    oscillation: Oscillation,
    convergence: Convergence,
    fairness: Fairness,
    waits: WaitSums,
    pub(crate) safe_use: SafeUse,
    pub(crate) comebacks: Comebacks,
    /// Decisions by servers that were not master.
    pub(crate) mastership: MastershipChecker,
    /// Most requests of one client within a second, and the start of that second.
    requests: Extreme<u32>,
}

impl Watched {
    /// Creates the books of a resource that has no clients yet.
    pub fn new(resource: ResourceId, template: &Template, settled_after: Time) -> Self {
        let learns = template.algorithm.learning_mode_duration;
        Self {
            resource,
            algorithm: (*template.algorithm).clone(),
            wants_max: template.holder_bounds.wants_max.map(Amount::get),
            settled_after,
            standings: Numbered::default(),
            accounts: Numbered::default(),
            sums: AllClients::default(),
            overshoot: Overshoot::new(template),
            immediate: with(|it: &mut Immediate| (it.levels, it.allowed) = (1, f64::INFINITY)),
            nesting: with(|it: &mut Nesting| it.learns_until = Time::ZERO + learns),
            averages: with(|it: &mut Averages| it.since = settled_after),
            peak: 0.0,
            starvation: with(|it: &mut Starvation| it.settled_after = settled_after),
            oscillation: with(|it: &mut Oscillation| it.settled_after = settled_after),
            convergence: with(|it: &mut Convergence| it.settled_after = settled_after),
            fairness: Fairness::default(),
            waits: WaitSums::default(),
            safe_use: SafeUse::default(),
            comebacks: with(|it: &mut Comebacks| it.settled_after = settled_after),
            mastership: MastershipChecker::default(),
            requests: Extreme::default(),
        }
    }

    fn capacity(&self) -> f64 {
        self.overshoot.capacity
    }

    /// Returns the total that clients can use.
    fn usable(&self) -> f64 {
        match self.algorithm.kind {
            AlgorithmKind::NoAlgorithm => self.sums.wishes.rounded_down(),
            AlgorithmKind::Static => self.sums.capped.rounded_down(),
            _ => self.sums.wishes.rounded_down().min(self.capacity()),
        }
    }

    /// Adds a client at a node, and returns its number here.
    pub fn join(&mut self, priority: i64, place: u32) -> u32 {
        let standing = with(|it: &mut ClientStanding| it.wish.priority = priority);
        self.standings.push(standing);
        self.safe_use.join();
        self.starvation
            .note_wants(priority, Amount::ZERO, Amount::ZERO);
        self.accounts.push(Account {
            place,
            shortage: with(|it: &mut MissingOverTime| it.since = self.settled_after),
            ..Account::default()
        })
    }

    /// Counts the time until now with the present state. Every change calls it first.
    fn advance(&mut self, now: Time) {
        self.pass_span(now);
        let (leases, fallback) = (&self.sums.leases, &self.sums.fallback);
        self.overshoot
            .pass(now, || (leases.rounded_down(), fallback.rounded_down()));
        if now > self.averages.since {
            let (sums, has_total) = (self.present(now), self.overshoot.has_total());
            let lost = self.averages.add(&sums, has_total, now);
            self.waits.pass(lost);
        }
    }

    /// Notes a changed template; `None` if no template matches the resource any more.
    pub(crate) fn note_template(&mut self, template: Option<&Template>, now: Time) {
        self.advance(now);
        let (before, lease_length) = (self.capacity(), self.algorithm.lease_length);
        self.overshoot.note_template(template, lease_length, now);
        self.pass_span(now);
        if let Some(template) = template {
            self.algorithm = (*template.algorithm).clone();
            self.wants_max = template.holder_bounds.wants_max.map(Amount::get);
            for client in self.accounts.numbers() {
                self.note_wants(client, self.accounts[client].asked, now);
            }
        }
        let former = self.overshoot.former_leases_end;
        self.nesting
            .note_template(template.is_some(), &self.algorithm, former);
        self.sums.capped = ExactSum::ZERO;
        self.waits.clear();
        let capacity = self.capacity();
        for (standing, account) in self.standings.iter().zip(self.accounts.iter()) {
            let capped = amount(standing.wish.wants.min(capacity));
            self.sums.capped.add(capped);
            let missing = standing.missing(&self.algorithm, capacity);
            self.waits.replace(account.wait, Amount::ZERO, missing);
        }
        self.safe_use.begin_round(now);
        let change = (self.capacity() - before).abs();
        self.convergence
            .note_change(change, self.capacity().max(before), now);
        self.oscillation.note_unrest(&self.algorithm, now);
        self.look(now);
        self.look_at_bands(now);
    }

    /// Notes that the root's clock changed its speed or jumped.
    pub(crate) fn note_clock(&mut self, clock: LocalClock, now: Time) {
        self.advance(now);
        self.overshoot.clock = clock;
    }

    /// Notes that a new master of the root starts learning mode. It lasts at least as long as
    /// leases of its predecessors.
    pub(crate) fn note_learning(&mut self, longer_leases: Duration, now: Time) {
        self.advance(now);
        self.overshoot.note_learning(&self.algorithm, now);
        let local = self.overshoot.clock.shows(now);
        let learns = self.algorithm.learning_mode_duration.max(longer_leases);
        self.nesting.note_learning(learns, local);
    }

    /// Notes a decision of the root by a template that the operator has replaced.
    pub(crate) fn note_known_late(&mut self, former: &Template, now: Time) {
        self.advance(now);
        self.overshoot.note_known_late(former, now);
    }

    /// Notes what a client may use, by a valid lease and without one.
    pub fn note_usable(&mut self, client: u32, lease: f64, fallback: f64, now: Time) {
        let standing = self.standings[client];
        let (lease, fallback) = (amount(lease), amount(fallback));
        let (before, fell_back) = (standing.lease, self.accounts[client].fallback);
        if lease == before && fallback == fell_back {
            return;
        }
        self.replace(client, ClientStanding { lease, ..standing }, now);
        let account = &mut self.accounts[client];
        account.fallback = fallback;
        self.oscillation.note(&mut account.course, lease, now);
        self.nesting.replace(account.place, before, lease);
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

    /// Notes that a client has ended for good.
    pub(crate) fn note_ended(&mut self, client: u32) {
        self.standings[client].is_gone = true;
    }

    /// Replaces the standing of a client, and updates every figure that depends on both its wants
    /// and its lease.
    fn replace(&mut self, client: u32, after: ClientStanding, now: Time) {
        self.advance(now);
        let before = std::mem::replace(&mut self.standings[client], after);
        let account = &mut self.accounts[client];
        let missing =
            [before, after].map(|it| it.missing(&self.algorithm, self.overshoot.capacity));
        self.waits.replace(account.wait, missing[0], missing[1]);
        let (wants, lease) = (before.wish.wants, before.lease.get());
        account.shortage.advance(wants, lease, now);
        self.sums.used.replace(before.used(), after.used());
        let sums = &mut self.sums;
        sums.wanting = sums.wanting + usize::from(after.wants()) - usize::from(before.wants());
        sums.short = sums.short + usize::from(after.is_short()) - usize::from(before.is_short());
        if after.wants() && after.lease.is_zero() {
            account.hungry_since.get_or_insert(now);
        } else if let Some(since) = account.hungry_since.take() {
            self.starvation.note(since, after.wish.priority, now);
        }
    }

    /// Checks the sum of all leases.
    fn look(&mut self, now: Time) {
        let leases = self.sums.leases.rounded_down();
        self.peak = self.peak.max(leases);
        self.overshoot
            .look(leases, self.sums.fallback.rounded_down(), now);
    }

    /// Returns the state at this moment without the nodes, and the ideal allocation.
    pub(crate) fn sample(&mut self, now: Time) -> (Sample, Ideal) {
        self.advance(now);
        self.look(now);
        let ideal = self.ideal();
        let present = self.present(now);
        let sample = Sample {
            fallback: self.sums.fallback.rounded_down(),
            safe: self.safe_use.used(),
            peak: std::mem::replace(&mut self.peak, present.granted),
            unfair: self.distance(&ideal),
            ..present
        };
        (sample, ideal)
    }

    /// Returns the sums that every change may need.
    fn present(&self, now: Time) -> Sample {
        Sample {
            at_s: now.since(Time::ZERO).as_secs_f64(),
            capacity: self.capacity(),
            demand: self.sums.wishes.rounded_down(),
            granted: self.sums.leases.rounded_down(),
            used: self.sums.used.rounded_down(),
            usable: self.usable(),
            holders: self.sums.holders,
            wanting: self.sums.wanting,
            short: self.sums.short,
            ..Sample::default()
        }
    }

    /// Returns the figures of a client over the whole run, without its name.
    pub(crate) fn figures_of(&self, client: u32) -> ClientFigures {
        let seconds = self.averages.since.since(self.settled_after).as_secs_f64();
        let shortage = &self.accounts[client].shortage;
        shortage.figures(seconds, self.fairness.count)
    }

    /// Returns the wish of a client, its lease, and what it may use without one.
    pub(crate) fn of_client(&self, client: u32) -> (Wish, f64, f64) {
        let standing = &self.standings[client];
        let fallback = self.accounts[client].fallback;
        (standing.wish, standing.lease.get(), fallback.get())
    }

    /// Ends the run.
    pub fn finish(&mut self, now: Time) {
        self.advance(now);
        self.look(now);
        self.overshoot.finish(now);
        // A short run gets one look at the end, so that its averages have a value.
        if self.fairness.count == 0 {
            self.look_at_all(now);
        }
        self.settle(now);
        self.convergence.finish(now);
        for (standing, account) in self.standings.iter().zip(self.accounts.iter_mut()) {
            let (wants, lease) = (standing.wish.wants, standing.lease.get());
            account.shortage.advance(wants, lease, now);
            if let Some(since) = account.hungry_since {
                self.starvation.note(since, standing.wish.priority, now);
            }
        }
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

    fn is_short(&self) -> bool {
        self.lease.get() < self.wish.wants * (1.0 - NEGLIGIBLE)
    }
}

/// Converts a number to an amount; an invalid number becomes zero.
fn amount(amount: f64) -> Amount {
    Amount::new(amount).unwrap_or(Amount::ZERO)
}

/// Returns a default in which something is set.
fn with<T: Default>(set: impl FnOnce(&mut T)) -> T {
    let mut it = T::default();
    set(&mut it);
    it
}

/// Splits a client's capacity into what it may use by a lease and what it uses without one.
pub fn by_source(capacity: Capacity, source: Source, wants: f64) -> (f64, f64) {
    let capacity = match capacity {
        Capacity::Limited(capacity) => capacity,
        Capacity::Unlimited => wants,
    };
    match source {
        Source::Lease => (capacity, 0.0),
        Source::Mode => (0.0, capacity.min(wants)),
    }
}
