//! The buckets of one Envoy: its reports become wants, and leases become assignments. Pure.
//!
//! A bucket is limited by the rule whose keys are those of the bucket, and is a use of the rule's resource. No message
//! of Envoy says that an assignment has arrived, but it counts within a millisecond, so a smaller one counts as arrived
//! 100 ms later. If the stream breaks, what was assigned stays reserved until its time to live is over. A new stream of
//! the same Envoy, by its name, goes on with it.
//!
//! A new agent without [a record](crate::records) does not know what its predecessor assigned. The counts of a report
//! do not tell it: a rate may have been larger earlier in the window. So its node is in learning mode until all former
//! assignments have ended, and assigns nothing before.

mod limit;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorward::capacity::Source;
use doorward::rules::{Limiter, OnFailure, Scope};
use doorward::time::Time;
use doorward_limits::Units;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::{BucketId, USAGES_MAX};

use crate::asker::Asker;
use crate::caller::{Caller, Changes, Part};
use crate::rlqs::assignment::{self, Assignment, TTL_MAX};
use crate::rlqs::buckets::limit::{Leased, Limit};
use crate::rlqs::demand::{self, Window};
use crate::room::Room;

/// Largest number of buckets of a stream.
pub const BUCKETS_MAX: usize = USAGES_MAX;

/// Largest id of a bucket, in bytes and in keys. Reports of larger ones are ignored.
const ID_BYTES_MAX: usize = 1_024;
const ENTRIES_MAX: usize = 32;

/// Time without requests after which Envoy is told to forget a bucket.
pub const IDLE: Duration = Duration::from_secs(60);

/// Part of the reported use by which wants are above it, so that growth need not wait.
const HEADROOM: f64 = 1.02;

/// Smallest wants of a bucket that is in use.
const WANTS_LEAST: f64 = 1.0;

/// Part of a rule's rate that a new bucket wants until its next report.
const NEW_PART: f64 = 0.1;

/// Shortest time between two reports from which a rate can be told.
const SPAN_MIN: Duration = Duration::from_millis(2_500);

/// Time that a lease outlasts an assignment.
const MARGIN: Duration = Duration::from_secs(1);

/// Largest number of requests of a report that counts.
const REQUESTS_MAX: u64 = 1_000_000_000_000;

/// Estimated bytes of a bucket, and of each of its keys, without their text.
const BUCKET_BYTES: usize = 512;
const ENTRY_BYTES: usize = 128;

/// The buckets of a stream.
#[derive(Debug)]
pub struct Buckets {
    domain: String,
    /// The Envoy.
    asker: Asker,
    /// Number of the stream.
    number: u64,
    by_id: BTreeMap<Id, Bucket>,
    by_resource: BTreeMap<Arc<str>, Id>,
    /// Buckets for which an assignment may be due.
    due: BTreeSet<Id>,
    /// Resources whose part has changed.
    changes: Arc<Changes>,
    /// Buckets to forget.
    abandoned: Vec<Id>,
    room: Arc<Room>,
    /// Number of the first strategy of a new bucket.
    generation: u32,
}

/// Keys and values of a bucket.
type Entries = BTreeMap<String, String>;

/// The same, which several maps have.
type Id = Arc<Entries>;

#[derive(Debug)]
struct Bucket {
    limit: Limit,
    /// Time of the last report.
    reported_at: Time,
    /// Time of the last report of a request.
    used_at: Time,
    /// Requests per second at the last report.
    demand: f64,
    sent: Option<Sent>,
    generation: u32,
    /// Whether the next assignment renews the time to live.
    renews: bool,
}

#[derive(Clone, Copy, Debug)]
struct Sent {
    assignment: Assignment,
    /// Time since which no assignment differed noticeably from the one before.
    since: Time,
    until: Time,
}

/// Returns the leases of the identity for a priority.
pub type Callers<'a> = &'a dyn Fn(i64) -> Option<Arc<Caller>>;

impl Buckets {
    /// Creates a stream without buckets. `generation` should differ from that of an earlier stream of the same Envoy,
    /// which would not take a strategy that equals its former one.
    pub fn new(
        domain: String,
        asker: Asker,
        number: u64,
        room: Arc<Room>,
        generation: u32,
    ) -> Self {
        Self {
            domain,
            asker,
            number,
            by_id: BTreeMap::new(),
            by_resource: BTreeMap::new(),
            due: BTreeSet::new(),
            changes: Arc::default(),
            abandoned: Vec::new(),
            room,
            generation,
        }
    }

    /// Returns the domain of the rules.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Waits until an assignment may have changed. Cancel safe.
    pub async fn changed(&self) {
        self.changes.changed().await;
    }

    /// Returns the number of buckets.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there is no bucket.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Handles the report of a bucket. A bucket without room is ignored.
    pub fn handle_usage(
        &mut self,
        usage: BucketQuotaUsage,
        limiter: &Limiter,
        callers: Callers<'_>,
        now: Time,
    ) {
        let Some(id) = usage.bucket_id.map(|it| it.bucket) else {
            return;
        };
        let limit = self.limit_of(&id, limiter, callers);
        let allowed = usage.num_requests_allowed.min(REQUESTS_MAX);
        let denied = usage.num_requests_denied.min(REQUESTS_MAX);
        let count = allowed + denied;
        let told = usage.time_elapsed.map(Duration::try_from);
        let told = told.and_then(Result::ok).unwrap_or_default();
        let Some(id) = self.enter(id, rate(count, told), now) else {
            return;
        };
        self.due.insert(Arc::clone(&id));
        let Some(bucket) = self.by_id.get_mut(&id) else {
            return;
        };
        let span = now.since(bucket.reported_at);
        if span >= SPAN_MIN {
            bucket.demand = bucket.demand_in(allowed, denied, span);
        }
        bucket.reported_at = now;
        bucket.renews = true;
        if count > 0 {
            bucket.used_at = now;
        }
        if let Limit::Leased(before) = &bucket.limit
            && !limit.is_of(before)
        {
            self.by_resource.remove(&before.resource);
            before.end(self.number, true, now);
        }
        if let Limit::Leased(leased) = &limit {
            let wants = leased.wants(self.number, bucket.demand, count, span);
            leased.caller.set_stream(
                &leased.resource,
                self.number,
                (&leased.by(&self.asker), self.asker.is_named()),
                wants,
                &self.changes,
                now,
            );
            self.by_resource.insert(Arc::clone(&leased.resource), id);
        }
        bucket.limit = limit;
    }

    /// Returns the id of a bucket, which is added if it is new and there is room.
    fn enter(&mut self, id: Entries, demand: f64, now: Time) -> Option<Id> {
        if let Some((known, _)) = self.by_id.get_key_value(&id) {
            return Some(Arc::clone(known));
        }
        let bytes = bytes_of(&id).filter(|_| self.by_id.len() < BUCKETS_MAX)?;
        if !self.room.take(self.asker.identity(), bytes) {
            return None;
        }
        let id = Arc::new(id);
        let bucket = Bucket {
            demand,
            limit: Limit::None,
            reported_at: now,
            used_at: now,
            sent: None,
            generation: self.generation,
            renews: true,
        };
        self.by_id.insert(Arc::clone(&id), bucket);
        Some(id)
    }

    fn limit_of(&self, id: &Entries, limiter: &Limiter, callers: Callers<'_>) -> Limit {
        match limiter.find_unordered(&self.domain, id) {
            None if limiter.rejects_unmatched(&self.domain) => Limit::Rejected,
            None => Limit::None,
            Some((_, rule)) if rule.shadow || rule.counted().is_none() => Limit::None,
            Some((descriptor, rule)) => {
                let leased = Leased::of(&self.domain, &self.asker, &descriptor, &rule, callers);
                leased.map_or(Limit::Rejected, Limit::Leased)
            }
        }
    }

    /// Notes that the stream has ended. Assignments count until their time to live is over.
    pub fn handle_end(&mut self, now: Time) {
        for bucket in self.by_id.values() {
            if let Limit::Leased(leased) = &bucket.limit {
                leased.end(self.number, false, now);
            }
        }
    }

    /// Forgets buckets that have been idle.
    pub fn forget_idle(&mut self, now: Time) {
        let is_idle = |_: &Id, bucket: &mut Bucket| now.since(bucket.used_at) >= IDLE;
        for (id, bucket) in self.by_id.extract_if(.., is_idle) {
            if let Limit::Leased(leased) = &bucket.limit {
                self.by_resource.remove(&leased.resource);
                leased.end(self.number, true, now);
            }
            let bytes = bytes_of(&id).unwrap_or_default();
            self.room.free(self.asker.identity(), bytes);
            self.abandoned.push(id);
        }
    }

    /// Returns the assignments to send now.
    pub fn actions(&mut self, now: Time) -> Vec<BucketAction> {
        for resource in self.changes.take() {
            if let Some(id) = self.by_resource.get(&*resource) {
                self.due.insert(Arc::clone(id));
            }
        }
        let abandoned = std::mem::take(&mut self.abandoned).into_iter();
        let abandoned = abandoned.map(|id| assignment::abandon(bucket_id(&id)));
        let mut actions: Vec<_> = abandoned.collect();
        for id in std::mem::take(&mut self.due) {
            let Some(bucket) = self.by_id.get_mut(&id) else {
                continue;
            };
            let action = bucket.action(&id, &self.asker, self.number, now);
            actions.extend(action);
        }
        actions
    }
}

impl Drop for Buckets {
    fn drop(&mut self) {
        let bytes = self.by_id.keys().filter_map(|id| bytes_of(id)).sum();
        self.room.free(self.asker.identity(), bytes);
    }
}

impl Bucket {
    /// Returns the demand at the end of a window of reports.
    fn demand_in(&self, allowed: u64, denied: u64, span: Duration) -> f64 {
        let count = |requests| Units::whole(requests).as_f64();
        let window = Window {
            allowed: count(allowed),
            denied: count(denied),
            seconds: span.as_secs_f64(),
        };
        let assigned = self.sent.and_then(|sent| match sent.assignment {
            Assignment::Rate(rate) if sent.since <= self.reported_at => Some(rate),
            _ => None,
        });
        demand::estimate(window, self.demand, assigned)
    }

    fn action(&mut self, id: &Id, asker: &Asker, number: u64, now: Time) -> Option<BucketAction> {
        let (assignment, ttl) = self.assignment(asker, number, now)?;
        let is_same = self.sent.is_some_and(|sent| sent.assignment == assignment);
        let is_running_out = |sent: &Sent| sent.until.since(now) < TTL_MAX / 2;
        let renews = self.renews || self.sent.as_ref().is_none_or(is_running_out);
        if is_same && !renews || ttl < Duration::from_secs(1) {
            return None;
        }
        self.renews = false;
        if !is_same {
            self.generation = self.generation.wrapping_add(1);
        }
        let since = match self.sent {
            Some(sent) if sent.assignment.is_about(assignment) => sent.since,
            _ => now,
        };
        let until = now + ttl;
        self.sent = Some(Sent {
            assignment,
            since,
            until,
        });
        if let (Limit::Leased(leased), Assignment::Rate(rate)) = (&self.limit, assignment) {
            let (caller, resource) = (&leased.caller, &leased.resource);
            caller.set_sent(resource, number, rate, until, now);
        }
        Some(assignment.action(bucket_id(id), ttl, self.size(), self.generation))
    }

    /// Returns the assignment, and its time to live. None: Envoy keeps what it has.
    fn assignment(&self, asker: &Asker, number: u64, now: Time) -> Option<(Assignment, Duration)> {
        let leased = match &self.limit {
            Limit::None => return Some((Assignment::AllowAll, TTL_MAX)),
            Limit::Rejected => return Some((Assignment::Rate(0.0), TTL_MAX)),
            Limit::Leased(leased) => leased,
        };
        let by = leased.by(asker);
        match leased.caller.of_stream(&leased.resource, number, &by, now) {
            Part::Known(allowance) => {
                let left = allowance.until.map_or(TTL_MAX, |until| until.since(now));
                let margin = match allowance.source {
                    Source::Lease => MARGIN,
                    Source::Mode => Duration::ZERO,
                };
                let ttl = left.saturating_sub(margin).min(TTL_MAX);
                Some((Assignment::Rate(allowance.capacity.get()), ttl))
            }
            // Until the parent has answered, and in learning mode, Envoy keeps what it has.
            Part::Pending => None,
            Part::Unknown {
                identities,
                streams,
            } => {
                // A local rule is each Envoy's own.
                let [of_envoy, of_identity] = streams.map(|it| it as f64);
                let sharers = match leased.scope {
                    Scope::Local => of_envoy,
                    Scope::Shared | Scope::Budget => {
                        f64::from(identities) * f64::from(leased.processes) * of_identity
                    }
                };
                let assignment = match leased.on_failure {
                    OnFailure::Open => Assignment::AllowAll,
                    OnFailure::Closed => Assignment::Rate(0.0),
                    OnFailure::Safe => Assignment::Rate(leased.rate / sharers),
                };
                Some((assignment, TTL_MAX))
            }
        }
    }

    /// Returns the constant size of the bucket: the tenth of a second of the rule's rate.
    fn size(&self) -> u32 {
        let Limit::Leased(Leased { rate, .. }) = self.limit else {
            return 1;
        };
        // The cast saturates.
        let size = (rate / 10.0).ceil() as u32;
        size.max(1)
    }
}

fn bucket_id(id: &Id) -> BucketId {
    BucketId {
        bucket: BTreeMap::clone(id),
    }
}

/// Returns the estimated bytes of a bucket. None: its id is too long.
fn bytes_of(id: &Entries) -> Option<usize> {
    let text: usize = id.iter().map(|(key, value)| key.len() + value.len()).sum();
    let is_short = text <= ID_BYTES_MAX && id.len() <= ENTRIES_MAX;
    is_short.then(|| BUCKET_BYTES + id.len() * ENTRY_BYTES + text)
}

/// Returns requests per second; zero for a span that is too short to tell.
fn rate(count: u64, span: Duration) -> f64 {
    if span < Duration::from_secs(1) {
        return 0.0;
    }
    Units::whole(count).as_f64() / span.as_secs_f64()
}
