//! The assignment of a bucket: Envoy may let all requests pass, or a rate, or none, for a time.
//!
//! These facts about Envoy were measured with version 1.40:
//!
//! - It takes a fill interval below a second for no limit, and cuts others to whole seconds. So the interval is about
//!   1,000 s, and rates are exact to a thousandth of a request a second.
//! - It does not take a strategy that equals the former one. The nanoseconds of the interval number the strategies.
//! - A fresh bucket starts full, and a larger bucket is as full as the smaller one was. So a bucket keeps its size.
//! - Without a time to live of at least a second, an assignment ends at once.

use std::time::Duration;

use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::{
    AbandonAction, BucketAction as Action, QuotaAssignmentAction,
};
use doorward_proto::envoy::rate_limit_quota::rate_limit_strategy::{BlanketRule, Strategy};
use doorward_proto::envoy::rate_limit_quota::{BucketId, RateLimitStrategy, TokenBucket};

/// Longest time for which Envoy may use an assignment that is not renewed. Envoy reports every five seconds, and each
/// report renews it.
pub const TTL_MAX: Duration = Duration::from_secs(15);

/// Fill interval, in seconds.
const FILL_SECONDS: u32 = 1_000;

/// Number of strategies that differ by their number.
const GENERATIONS: u32 = 1_000_000;

/// Amount that Envoy may use of a bucket.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Assignment {
    /// Everything passes.
    AllowAll,
    /// Requests per second.
    Rate(f64),
}

impl Assignment {
    /// Returns whether both are the same, or rates that differ by less than a twentieth.
    pub fn is_about(self, other: Self) -> bool {
        match (self, other) {
            (Self::AllowAll, Self::AllowAll) => true,
            (Self::Rate(one), Self::Rate(other)) => (one - other).abs() <= one.max(other) / 20.0,
            _ => false,
        }
    }

    /// Returns the action that assigns it. `size` is the constant size of the bucket, and `generation` grows with each
    /// change.
    pub fn action(
        self,
        bucket: BucketId,
        ttl: Duration,
        size: u32,
        generation: u32,
    ) -> BucketAction {
        let bucket_of = |tokens| TokenBucket {
            max_tokens: size,
            tokens_per_fill: Some(tokens),
            fill_interval: Some(prost_types::Duration {
                seconds: FILL_SECONDS.into(),
                nanos: i32::try_from(generation % GENERATIONS).unwrap_or_default(),
            }),
        };
        let strategy = match self {
            Self::AllowAll => Strategy::BlanketRule(BlanketRule::AllowAll.into()),
            Self::Rate(rate) => match tokens(rate) {
                0 => Strategy::BlanketRule(BlanketRule::DenyAll.into()),
                tokens => Strategy::TokenBucket(bucket_of(tokens)),
            },
        };
        let assignment = QuotaAssignmentAction {
            assignment_time_to_live: Some(prost_types::Duration {
                seconds: i64::try_from(ttl.as_secs()).unwrap_or_default(),
                nanos: 0,
            }),
            rate_limit_strategy: Some(RateLimitStrategy {
                strategy: Some(strategy),
            }),
        };
        action(bucket, Action::QuotaAssignmentAction(assignment))
    }
}

/// Returns the action by which Envoy forgets a bucket.
pub fn abandon(bucket: BucketId) -> BucketAction {
    action(bucket, Action::AbandonAction(AbandonAction {}))
}

fn action(bucket: BucketId, action: Action) -> BucketAction {
    BucketAction {
        bucket_id: Some(bucket),
        bucket_action: Some(action),
    }
}

/// Returns the tokens of a fill interval, rounded down.
fn tokens(rate: f64) -> u32 {
    let tokens = (rate * f64::from(FILL_SECONDS)).floor();
    // The cast saturates.
    tokens as u32
}
