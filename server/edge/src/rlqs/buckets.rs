//! The buckets of one Envoy: its reports become wants, and leases become assignments. Pure.
//!
//! A bucket is limited by the rule whose keys are those of the bucket, and is a use of the rule's resource. No message of
//! Envoy says that an assignment has arrived, but it counts within a millisecond, so a smaller one counts as arrived. If
//! the stream breaks, what was assigned stays reserved until its time to live is over.
//!
//! A new agent does not know what its predecessor assigned. The counts of a report do not tell it: a rate may have been
//! larger earlier in the window. So its node is in learning mode until all former assignments have ended, and assigns
//! nothing before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use doorward_client::capacity::{Allowance, Source};
use doorward_client::time::Time;
use doorward_engine::messages::{GetCapacity, ReleaseCapacity};
use doorward_limits::Units;
use doorward_proto::envoy::rate_limit_quota::BucketId;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_rules::{Limiter, OnFailure, Rank, Rule, Scope};

use crate::holder::Holder;
use crate::ids;
use crate::rlqs::assignment::{self, Assignment, TTL_MAX};
use crate::rlqs::demand::{self, Window};

/// Largest number of buckets of a stream.
pub const BUCKETS_MAX: usize = 20_000;

/// Largest id of a bucket, in bytes. Reports of larger ones are ignored.
const ID_BYTES_MAX: usize = 1_024;

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

/// The buckets of a stream.
#[derive(Debug)]
pub struct Buckets {
    domain: String,
    /// Name of the Envoy.
    caller: String,
    holder: Holder,
    by_id: BTreeMap<Id, Bucket>,
    by_resource: BTreeMap<Arc<str>, Id>,
    /// Buckets for which an assignment may be due.
    due: BTreeSet<Id>,
    /// Buckets to forget.
    abandoned: Vec<Id>,
    is_over: bool,
    /// Number of the first strategy of a new bucket.
    generation: u32,
}

/// Keys and values of a bucket. Several maps have it.
type Id = Arc<BTreeMap<String, String>>;

#[derive(Debug)]
struct Bucket {
    limit: Limit,
    /// Time of the last report.
    reported_at: Time,
    /// Time of the last report of a request.
    used_at: Time,
    /// Requests per second at the last report.
    demand: f64,
    allowance: Allowance,
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

/// Limit of a bucket.
#[derive(Clone, Debug, PartialEq)]
enum Limit {
    /// None, or one that never refuses.
    None,
    /// No rule, in a domain that rejects such requests.
    Rejected,
    /// By the lease of a resource.
    Leased {
        resource: Arc<str>,
        /// Requests per second of the rule.
        rate: f64,
        on_failure: OnFailure,
        rank: Rank,
    },
}

impl Limit {
    const fn resource(&self) -> Option<&Arc<str>> {
        match self {
            Self::Leased { resource, .. } => Some(resource),
            Self::None | Self::Rejected => None,
        }
    }
}

impl Buckets {
    /// Creates a stream without buckets. `generation` should differ from that of an earlier stream of the same Envoy,
    /// which would not take a strategy that equals its former one.
    pub fn new(domain: String, caller: String, holder: Holder, generation: u32) -> Self {
        Self {
            domain,
            caller,
            holder,
            by_id: BTreeMap::new(),
            by_resource: BTreeMap::new(),
            due: BTreeSet::new(),
            abandoned: Vec::new(),
            is_over: false,
            generation,
        }
    }

    /// Returns the domain of the rules.
    pub fn domain(&self) -> &str {
        &self.domain
    }

    /// Returns the holder of the buckets' leases.
    pub const fn holder(&self) -> &Holder {
        &self.holder
    }

    /// Returns the holder, for the outcome of a request.
    pub const fn holder_mut(&mut self) -> &mut Holder {
        &mut self.holder
    }

    /// Returns the number of buckets.
    pub fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Returns whether there is no bucket.
    pub fn is_empty(&self) -> bool {
        self.by_id.is_empty()
    }

    /// Handles the report of a bucket. Returns a release, if the rule of the bucket has gone.
    pub fn handle_usage(
        &mut self,
        usage: BucketQuotaUsage,
        limiter: &Limiter,
        now: Time,
    ) -> Option<ReleaseCapacity> {
        let id = usage.bucket_id?.bucket;
        let bytes: usize = id.iter().map(|(key, value)| key.len() + value.len()).sum();
        if bytes > ID_BYTES_MAX {
            return None;
        }
        let limit = self.limit_of(&id, limiter);
        let known = self.by_id.get_key_value(&id).map(|(known, _)| known);
        let id = known.map_or_else(|| Arc::new(id), Arc::clone);
        let (allowed, denied) = (usage.num_requests_allowed, usage.num_requests_denied);
        let told = usage
            .time_elapsed
            .and_then(|it| Duration::try_from(it).ok());
        if !self.by_id.contains_key(&id) {
            if self.by_id.len() >= BUCKETS_MAX {
                return None;
            }
            let count = allowed.saturating_add(denied);
            let demand = rate(count, told.unwrap_or_default());
            let bucket = Bucket::new(demand, self.generation, now);
            self.by_id.insert(Arc::clone(&id), bucket);
        }
        self.due.insert(Arc::clone(&id));
        let bucket = self.by_id.get_mut(&id)?;
        let span = now.since(bucket.reported_at);
        if span >= SPAN_MIN {
            bucket.demand = bucket.demand_in(allowed, denied, span);
        }
        bucket.reported_at = now;
        bucket.renews = true;
        let count = allowed.saturating_add(denied);
        if count > 0 {
            bucket.used_at = now;
        }
        let release = match &bucket.limit {
            Limit::Leased { resource, .. } if limit.resource() != Some(resource) => {
                self.by_resource.remove(resource);
                self.holder.close(resource, now)
            }
            _ => None,
        };
        if let Limit::Leased {
            resource,
            rate: of_rule,
            rank,
            ..
        } = &limit
        {
            let wanted = self.holder.wants(resource);
            let wants = match () {
                () if span >= SPAN_MIN => bucket.demand * HEADROOM,
                () if wanted > 0.0 => wanted.max(rate(count, span.max(Duration::from_secs(1)))),
                () => (of_rule * NEW_PART).max(bucket.demand * HEADROOM),
            };
            let wants = if count > 0 {
                wants.max(WANTS_LEAST)
            } else {
                wants
            };
            self.holder.open(resource, *rank, wants, now);
            self.holder.ask(resource, wants);
            self.by_resource.insert(Arc::clone(resource), id);
        }
        bucket.limit = limit;
        release
    }

    fn limit_of(&self, id: &BTreeMap<String, String>, limiter: &Limiter) -> Limit {
        match limiter.find_unordered(&self.domain, id) {
            None if limiter.rejects_unmatched(&self.domain) => Limit::Rejected,
            None => Limit::None,
            Some((descriptor, rule)) => limit(&self.domain, &self.caller, &descriptor, &rule),
        }
    }

    /// Notes that the stream has ended. Assignments count until their time to live is over.
    pub fn handle_end(&mut self) {
        self.is_over = true;
        for resource in self.by_resource.keys() {
            self.holder.ask(resource, 0.0);
        }
    }

    /// Returns the request for leases to send now.
    pub fn request(&mut self, now: Time) -> GetCapacity {
        let (by_id, by_resource, is_over) = (&self.by_id, &self.by_resource, self.is_over);
        let outstanding = |resource: &str| {
            let bucket = by_resource.get(resource).and_then(|id| by_id.get(id));
            bucket.map_or(0.0, |it| it.outstanding(is_over, now))
        };
        self.holder.request(outstanding, now)
    }

    /// Forgets buckets that have been idle. Returns the releases of their leases.
    pub fn forget_idle(&mut self, now: Time) -> Vec<ReleaseCapacity> {
        let mut releases = Vec::new();
        let (holder, by_resource, abandoned) =
            (&mut self.holder, &mut self.by_resource, &mut self.abandoned);
        self.by_id.retain(|id, bucket| {
            let is_used = now.since(bucket.used_at) < IDLE;
            if !is_used {
                if let Limit::Leased { resource, .. } = &bucket.limit {
                    by_resource.remove(resource);
                    releases.extend(holder.close(resource, now));
                }
                abandoned.push(Arc::clone(id));
            }
            is_used
        });
        releases
    }

    /// Returns the releases of all leases, after the end of the stream.
    pub fn release_all(&mut self, now: Time) -> Vec<ReleaseCapacity> {
        let resources = std::mem::take(&mut self.by_resource).into_keys();
        resources
            .filter_map(|resource| self.holder.close(&resource, now))
            .collect()
    }

    /// Returns when the last assignment ends.
    pub fn assigned_until(&self) -> Option<Time> {
        let sent = self.by_id.values().filter_map(|it| it.sent);
        let reserved =
            sent.filter(|it| matches!(it.assignment, Assignment::Rate(rate) if rate > 0.0));
        reserved.map(|it| it.until).max()
    }

    /// Returns the assignments to send now.
    pub fn actions(&mut self, now: Time) -> Vec<BucketAction> {
        for (resource, allowance) in self.holder.changes(now) {
            let Some(id) = self.by_resource.get(&resource) else {
                continue;
            };
            if let Some(bucket) = self.by_id.get_mut(id) {
                bucket.allowance = allowance;
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
            let action = bucket.action(&id, &self.holder, now);
            actions.extend(action);
        }
        actions
    }
}

impl Bucket {
    fn new(demand: f64, generation: u32, now: Time) -> Self {
        Self {
            demand,
            limit: Limit::None,
            reported_at: now,
            used_at: now,
            allowance: Allowance::NONE,
            sent: None,
            generation,
            renews: true,
        }
    }

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

    /// Returns the rate that an Envoy without a stream may still use.
    fn outstanding(&self, is_over: bool, now: Time) -> f64 {
        match self.sent {
            Some(Sent {
                assignment: Assignment::Rate(rate),
                until,
                ..
            }) if is_over && until > now => rate,
            _ => 0.0,
        }
    }

    fn action(&mut self, id: &Id, holder: &Holder, now: Time) -> Option<BucketAction> {
        let (assignment, ttl) = self.assignment(holder, now)?;
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
        self.sent = Some(Sent {
            assignment,
            since,
            until: now + ttl,
        });
        Some(assignment.action(bucket_id(id), ttl, self.size(), self.generation))
    }

    /// Returns the assignment, and its time to live. None: Envoy keeps what it has.
    fn assignment(&self, holder: &Holder, now: Time) -> Option<(Assignment, Duration)> {
        let (resource, rate, on_failure) = match &self.limit {
            Limit::None => return Some((Assignment::AllowAll, TTL_MAX)),
            Limit::Rejected => return Some((Assignment::Rate(0.0), TTL_MAX)),
            Limit::Leased {
                resource,
                rate,
                on_failure,
                ..
            } => (resource, *rate, on_failure),
        };
        let allowance = self.allowance.seen_at(now);
        if allowance.source == Source::Lease {
            let left = allowance.until.map_or(TTL_MAX, |until| until.since(now));
            let ttl = left.saturating_sub(MARGIN).min(TTL_MAX);
            return Some((Assignment::Rate(allowance.capacity.get()), ttl));
        }
        // In learning mode, and until the parent has answered, Envoy keeps what it has.
        if !holder.is_unknown(resource) {
            return None;
        }
        let assignment = match on_failure {
            OnFailure::Open => Assignment::AllowAll,
            OnFailure::Closed => Assignment::Rate(0.0),
            OnFailure::Safe => Assignment::Rate(rate),
        };
        Some((assignment, TTL_MAX))
    }

    /// Returns the constant size of the bucket: the tenth of a second of the rule's rate.
    fn size(&self) -> u32 {
        let Limit::Leased { rate, .. } = self.limit else {
            return 1;
        };
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "the cast saturates"
        )]
        let size = (rate / 10.0).ceil() as u32;
        size.max(1)
    }
}

fn bucket_id(id: &Id) -> BucketId {
    BucketId {
        bucket: BTreeMap::clone(id),
    }
}

fn limit(domain: &str, caller: &str, descriptor: &str, rule: &Rule) -> Limit {
    let Some(counted) = rule.counted().filter(|_| !rule.shadow) else {
        return Limit::None;
    };
    Limit::Leased {
        resource: ids::resource(domain, descriptor).into(),
        rate: counted.rate.as_per_second(),
        on_failure: match rule.scope {
            Scope::Local => OnFailure::Safe,
            Scope::Shared => rule.on_failure,
        },
        rank: rule.ranks.of(caller),
    }
}

/// Returns requests per second; zero for a span that is too short to tell.
fn rate(count: u64, span: Duration) -> f64 {
    if span < Duration::from_secs(1) {
        return 0.0;
    }
    Units::whole(count).as_f64() / span.as_secs_f64()
}
