//! How an identity's lease of one resource is shared: max-min among its names, and then among the streams of a name, in
//! proportion to their wants. So neither names nor streams give an identity a larger share. Pure.
//!
//! Requests that are answered here hold nothing: above the level, a name's requests pass at the level's rate, and the
//! limiter of the lease bounds all names together. Assignments of streams are used elsewhere, so each is held until it
//! ends, or until a smaller one is sent.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Duration;

use doorward::capacity::{Allowance, Capacity, Source};
use doorward::time::Time;
use doorward_engine::amount::Amount;
use doorward_engine::claims::{Claim, ClaimIndex, Level, Subclients};

use super::changes::Changes;
use super::demand::Demand;
use super::unleased::UnleasedPart;
use super::{BURST, By, IDLE, RETRY_IN};
use crate::records::Records;

/// Span in which a name's requests are counted.
const SPAN: Duration = Duration::from_secs(1);

/// Rest of an assignment from which on its stream looks at it again: half of the longest one.
const RUNS_OUT: Duration = Duration::from_millis(7_500);

/// Time that a lease lasts longer than an assignment that can be sent anew. An assignment ends a second before its lease.
const LONGER: Duration = Duration::from_secs(2);

/// No assignment.
const NOTHING: (f64, Time) = (0.0, Time::ZERO);

/// Time for which a smaller assignment may be under way in this process. If the process is killed meanwhile, its Envoy goes
/// on with the larger one, so that counts until then.
const UNDER_WAY: Duration = Duration::from_millis(100);

/// Largest number of names, since all of them are looked at when a lease is divided. Beyond it, new ones are one.
const NAMES_MAX: usize = 10_000;

/// Estimated bytes of a name without its text.
const NAME_BYTES: usize = 192;

/// A resource's users of one identity.
#[derive(Debug)]
pub(super) struct Sharing {
    pub(super) demand: Demand,
    pub(super) unleased: UnleasedPart,
    /// Time until which the lease pays a debt.
    pub(super) owes_until: Time,
    names: HashMap<Box<str>, Name>,
    streams: BTreeMap<u64, Stream>,
    /// Level that each name may reach, for each unit of weight.
    pub(super) level: Level,
    /// Largest weight of those that use it.
    pub(super) weight: u32,
}

/// A name of the identity.
#[derive(Debug)]
pub(super) struct Name {
    weight: u32,
    /// Start of the present span, the amount asked for in it, and in the one before.
    span: (Time, f64, f64),
    used_at: Time,
    /// Time until which the level has paid for the requests that passed.
    paid_until: Time,
    /// Amount that requests took of leases: no more is given back.
    pub(super) counted: u64,
    /// Amount that the next lease pays.
    pub(super) debt: u64,
}

/// A stream of an Envoy.
#[derive(Debug)]
struct Stream {
    name: Box<str>,
    weight: u32,
    wants: f64,
    assigned: f64,
    /// Rate that the Envoy may use, and its end.
    sent: (f64, Time),
    /// The same before the last change, while that may be under way.
    before: (f64, Time),
    is_over: bool,
    changes: Arc<Changes>,
}

impl Sharing {
    pub(super) fn new(weight: u32, now: Time) -> Self {
        Self {
            demand: Demand::new(now),
            unleased: UnleasedPart::default(),
            owes_until: now,
            names: HashMap::new(),
            streams: BTreeMap::new(),
            level: Level::AboveAll,
            weight,
        }
    }

    /// Returns a name. `has_room` is asked for the bytes of a new one; without room it is one of several.
    pub(super) fn name(
        &mut self,
        by: &By<'_>,
        has_room: impl Fn(usize) -> bool,
        now: Time,
    ) -> (&mut Name, Level) {
        let may_come = || self.names.len() < NAMES_MAX && has_room(bytes(by.name));
        let name = match self.names.contains_key(by.name) || may_come() {
            true => by.name,
            false => "",
        };
        let known = self.names.entry(name.into()).or_insert(Name {
            weight: by.weight,
            span: (now, 0.0, 0.0),
            used_at: now,
            paid_until: now,
            counted: 0,
            debt: 0,
        });
        known.weight = by.weight;
        known.used_at = now;
        (known, self.level)
    }

    /// Returns a name that is known.
    pub(super) fn known(&mut self, name: &str) -> Option<&mut Name> {
        let name = match self.names.contains_key(name) {
            true => name,
            false => "",
        };
        self.names.get_mut(name)
    }

    /// Takes the amount that a new lease pays.
    pub(super) fn take_debts(&mut self) -> u64 {
        let debts = self.names.values_mut().map(|name| {
            name.counted = name.counted.saturating_add(name.debt);
            std::mem::take(&mut name.debt)
        });
        debts.fold(0, u64::saturating_add)
    }

    /// Changes the wants of a stream, or adds it. `is_named`: the name is that of one Envoy. If its only stream broke, the
    /// new one goes on with what that was assigned.
    pub(super) fn set_stream(
        &mut self,
        number: u64,
        by: &By<'_>,
        is_named: bool,
        wants: f64,
        to: &Arc<Changes>,
    ) {
        if let Some(stream) = self.streams.get_mut(&number) {
            (stream.weight, stream.wants) = (by.weight, wants);
            return;
        }
        let of_name = self.streams.iter().filter(|(_, it)| &*it.name == by.name);
        let of_name: Vec<_> = of_name.map(|(number, it)| (*number, it.is_over)).collect();
        let former = match of_name[..] {
            [(number, true)] if is_named => self.streams.remove(&number),
            _ => None,
        };
        let new = || Stream::ended(by.name.into(), NOTHING);
        let former = former.unwrap_or_else(new);
        let stream = Stream {
            weight: by.weight,
            wants: wants.max(former.wants),
            is_over: false,
            changes: Arc::clone(to),
            ..former
        };
        self.streams.insert(number, stream);
    }

    /// Adds what Envoys were assigned by a former process, as if their streams had just broken. Returns the sum.
    pub(super) fn take_over(&mut self, former: BTreeMap<Box<str>, f64>, until: Time) -> f64 {
        for ((name, rate), number) in former.into_iter().zip((0..u64::MAX).rev()) {
            let stream = Stream::ended(name, (rate, until));
            self.streams.insert(number, stream);
        }
        self.streams.values().map(|it| it.wants).sum()
    }

    /// Returns the wants of a stream.
    pub(super) fn stream_wants(&self, number: u64) -> f64 {
        self.streams.get(&number).map_or(0.0, |it| it.wants)
    }

    /// Notes what an Envoy may use.
    pub(super) fn set_sent(&mut self, number: u64, rate: f64, until: Time, now: Time) {
        if let Some(stream) = self.streams.get_mut(&number) {
            let before = stream.in_use(now);
            if rate < before {
                stream.before = (before, now + UNDER_WAY);
            }
            stream.sent = (rate, until);
        }
    }

    /// Ends a stream. `is_told`: its Envoy uses nothing any more. Otherwise its assignment is held until it ends, and still
    /// wanted, since the Envoy may come back.
    pub(super) fn end_stream(&mut self, number: u64, is_told: bool) {
        if is_told {
            self.streams.remove(&number);
        } else if let Some(stream) = self.streams.get_mut(&number) {
            (stream.is_over, stream.wants, stream.assigned) = (true, stream.sent.0, 0.0);
        }
    }

    /// Returns the allowance of a stream, of that of the identity.
    pub(super) fn of_stream(&self, number: u64, allowance: Allowance) -> Allowance {
        let assigned = self.streams.get(&number).map_or(0.0, |it| it.assigned);
        Allowance {
            capacity: Capacity::Limited(assigned),
            then: Capacity::NONE,
            safe: None,
            ..allowance
        }
    }

    /// Returns the number of streams of a name, and of all; each at least 1.
    pub(super) fn count_streams(&self, name: &str) -> [usize; 2] {
        let all = self.streams.values().filter(|it| !it.is_over);
        let of_name = all.clone().filter(|it| &*it.name == name);
        [of_name.count().max(1), all.count().max(1)]
    }

    /// Notes a debt that a lease of this rate pays.
    pub(super) fn owe(&mut self, amount: f64, rate: f64, now: Time) {
        let lasts = Duration::try_from_secs_f64(amount / rate).unwrap_or_default();
        self.owes_until = self.owes_until.max(now) + lasts;
    }

    /// Returns whether something is in use or owed although no request comes.
    pub(super) fn stays(&self, now: Time) -> bool {
        !self.streams.is_empty() || self.owes_until.max(self.unleased.paid_until) > now
    }

    /// Forgets all names. Returns their bytes.
    pub(super) fn forget(&mut self) -> usize {
        let names = self.names.drain().filter(|(name, _)| !name.is_empty());
        names.map(|(name, _)| bytes(&name)).sum()
    }

    /// Returns the amount that streams hold.
    pub(super) fn held(&self, now: Time) -> f64 {
        self.streams.values().map(|it| it.held(now)).sum()
    }

    /// Returns the wants of the identity.
    pub(super) fn wants(&mut self, now: Time) -> f64 {
        let streams: f64 = self.streams.values().map(|it| it.wants).sum();
        self.demand.wants(now) + streams
    }

    /// Divides an allowance anew, and forgets idle names and ended streams. Returns the bytes of these names. `records`
    /// have the amounts that Envoys may use before these hear of them.
    pub(super) fn divide(
        &mut self,
        allowance: Allowance,
        resource: &str,
        (records, holder): (&Records, &str),
        now: Time,
    ) -> usize {
        let idle = self
            .names
            .extract_if(|name, it| now.since(it.used_at) >= IDLE && !name.is_empty());
        let freed = idle.map(|(name, _)| bytes(&name)).sum();
        self.streams.retain(|_, it| !it.is_over || it.sent.1 > now);
        let mut wants = BTreeMap::<&str, (f64, u32)>::new();
        let names = self.names.iter();
        let names = names.map(|(name, it)| (&**name, it.wants(now), it.weight));
        let streams = self.streams.values();
        let streams = streams.map(|it| (&*it.name, it.wants, it.weight));
        let mut weight_max = None;
        for (name, more, weight) in names.chain(streams).filter(|it| it.1 > 0.0) {
            let (sum, heaviest) = wants.entry(name).or_default();
            (*sum, *heaviest) = (*sum + more, weight.max(*heaviest));
            weight_max = weight_max.max(Some(weight));
        }
        self.weight = weight_max.unwrap_or(self.weight);
        let capacity = allowance.at(now).get();
        let mut index = ClaimIndex::default();
        wants.values().for_each(|it| index.insert(claim(*it)));
        let former = std::mem::replace(&mut self.level, index.level_for(capacity));
        let targets = self.streams.values().map(|it| {
            let of_name = wants.get(&*it.name).filter(|_| it.wants > 0.0);
            of_name.map_or(0.0, |all| {
                self.level.share_of(claim(*all)) * (it.wants / all.0)
            })
        });
        let targets: Vec<f64> = targets.collect();
        let names = self.names.values_mut();
        names.for_each(|it| it.change_level(former, self.level, now));
        let mut free = (capacity - self.held(now)).max(0.0);
        let is_lease = allowance.seen_at(now).source == Source::Lease;
        let (mut all, mut in_use) = (Vec::new(), BTreeMap::<&str, f64>::new());
        for (stream, target) in self.streams.values().zip(targets) {
            let grows = (target - stream.held(now)).clamp(0.0, free);
            free -= grows;
            let assigned = target.min(stream.held(now) + grows);
            let amount = stream.in_use(now).max(assigned);
            *in_use.entry(&stream.name).or_default() += amount;
            all.push(assigned);
        }
        in_use.retain(|_, amount| *amount > 0.0);
        let may_grow = records.set(resource, holder, &in_use);
        for (stream, assigned) in self.streams.values_mut().zip(all) {
            let most = match may_grow {
                true => f64::INFINITY,
                false => stream.in_use(now),
            };
            let assigned = assigned.min(most);
            // Only if the lease lasts longer than what was sent: else the same would be sent again and again.
            let is_longer = |sent: Time| allowance.until.is_none_or(|it| it.since(sent) > LONGER);
            let sent = stream.sent.1;
            let runs_out = is_lease && sent.since(now) < RUNS_OUT && is_longer(sent);
            if stream.assigned != assigned || runs_out {
                stream.assigned = assigned;
                stream.changes.add(resource);
            }
        }
        freed
    }
}

impl Stream {
    /// Returns a stream that ended with an assignment.
    fn ended(name: Box<str>, sent: (f64, Time)) -> Self {
        Self {
            name,
            weight: 1,
            wants: sent.0,
            assigned: 0.0,
            sent,
            before: NOTHING,
            is_over: true,
            changes: Arc::default(),
        }
    }

    /// Returns the amount that the Envoy may use.
    fn in_use(&self, now: Time) -> f64 {
        let all = [self.sent, self.before].into_iter();
        let lasting = all.filter(|(_, until)| *until > now);
        lasting.map(|(rate, _)| rate).fold(0.0, f64::max)
    }

    fn held(&self, now: Time) -> f64 {
        self.in_use(now).max(self.assigned)
    }
}

impl Name {
    /// Records a request.
    pub(super) fn asked(&mut self, cost: f64, now: Time) {
        let (since, recent, before) = self.span;
        self.span = match now.since(since) {
            age if age < SPAN => (since, recent + cost, before),
            age if age < 2 * SPAN => (since + SPAN, cost, recent),
            _ => (now, cost, 0.0),
        };
        self.used_at = now;
    }

    fn wants(&self, now: Time) -> f64 {
        let (since, recent, before) = self.span;
        let part = now.since(since).as_secs_f64() / SPAN.as_secs_f64();
        // A sliding counter: of the span before, the part that is less than a span ago.
        match part {
            0.0..1.0 => recent + before * (1.0 - part),
            1.0..2.0 => recent * (2.0 - part),
            _ => 0.0,
        }
    }

    /// Returns the time until a request passes the level; none now. GCRA.
    pub(super) fn wait(&self, level: Level, now: Time) -> Option<Duration> {
        let Level::At(level) = level else {
            return None;
        };
        if level * f64::from(self.weight) <= 0.0 {
            return Some(RETRY_IN);
        }
        let ahead = self.paid_until.since(now);
        (ahead > BURST.span).then(|| ahead - BURST.span)
    }

    /// Counts a request that passed.
    pub(super) fn pass(&mut self, cost: f64, level: Level, now: Time) {
        self.paid_until = self.paid_until.max(now) + self.lasts(cost, level);
    }

    /// Gives back what a request took.
    pub(super) fn give_back(&mut self, cost: f64, level: Level) {
        self.paid_until = self.paid_until - self.lasts(cost, level);
    }

    /// Follows another level: the amount that is not paid yet stays.
    fn change_level(&mut self, before: Level, after: Level, now: Time) {
        let ratio = match (before, after) {
            (Level::At(before), Level::At(after)) if before == after => return,
            (Level::At(before), Level::At(after)) if after > 0.0 => before / after,
            // Without a level, nothing is owed; at one of 0, nothing passes.
            _ => 0.0,
        };
        let ahead = self.paid_until.since(now).as_secs_f64() * ratio;
        let ahead = Duration::try_from_secs_f64(ahead).unwrap_or(IDLE);
        self.paid_until = now + ahead.min(IDLE);
    }

    /// Returns the time for which the level pays a cost.
    fn lasts(&self, cost: f64, level: Level) -> Duration {
        let Level::At(level) = level else {
            return Duration::ZERO;
        };
        let seconds = cost / (level * f64::from(self.weight));
        Duration::try_from_secs_f64(seconds)
            .unwrap_or(IDLE)
            .min(IDLE)
    }
}

/// Returns the estimated bytes of a name.
fn bytes(name: &str) -> usize {
    NAME_BYTES + name.len()
}

fn claim((wants, weight): (f64, u32)) -> Claim {
    Claim {
        wants: Amount::new(wants).unwrap_or(Amount::MAX),
        subclients: Subclients::new(weight.into()).unwrap_or(Subclients::ONE),
    }
}

#[cfg(test)]
mod tests;
