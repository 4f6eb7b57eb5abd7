//! Decisions as answers: headers, and what gRPC details need.
//!
//! A caller's own quota is answered with 429 or RESOURCE_EXHAUSTED. A domain that refuses requests without a rule
//! answers 503 or UNAVAILABLE. The random part of a wait is an argument.

use std::time::Duration;

use doorward_limits::headers::{self, Legacy, Policy};
use doorward_limits::rate::Period;
use doorward_limits::{Allowed, Answer, Decision as Taken, Standing, Units};

use crate::decide::{Decision, Outcome, Status};
use crate::rule::Limit;

/// Details of a refusal for gRPC: `RetryInfo` and `QuotaFailure`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GrpcRefusal {
    /// Status code: 8 (RESOURCE_EXHAUSTED), or 14 (UNAVAILABLE).
    pub code: i32,
    /// `retry_delay` of `RetryInfo`. `None`: no wait is known to help.
    pub retry_delay: Option<Duration>,
    /// `subject` of each violation of `QuotaFailure`: the paths of the rules that refuse.
    pub violations: Vec<String>,
}

impl Decision<'_> {
    /// Returns `RateLimit-Policy`, `RateLimit`, `Retry-After` of a refusal, and `X-RateLimit-*` if wanted, by name.
    /// There are none without a limited rule. `jitter` is added to the wait.
    pub fn headers(&self, jitter: Duration, legacy: Legacy) -> Vec<(&'static str, String)> {
        let (policies, answers): (Vec<_>, Vec<_>) = self.statuses.iter().filter_map(entry).unzip();
        headers::headers(&policies, &answers, jitter, legacy)
    }

    /// Returns the details of a refusal; `None` if the request passes.
    pub fn grpc(&self, jitter: Duration) -> Option<GrpcRefusal> {
        let over = || self.statuses.iter().filter(|status| status.is_over);
        let code = match self.outcome {
            Outcome::Allowed => return None,
            Outcome::OverLimit => 8,
            Outcome::Unmatched => 14,
        };
        Some(GrpcRefusal {
            code,
            retry_delay: over().map(|it| it.reset.saturating_add(jitter)).max(),
            violations: over()
                .filter_map(|it| Some(it.rule?.path.clone()))
                .collect(),
        })
    }
}

/// Returns the policy of a limited rule, and its answer.
fn entry<'a>(status: &Status<'a>) -> Option<(Policy<'a>, Answer)> {
    let rule = status.rule.filter(|rule| !rule.shadow)?;
    let Limit::Window(rate) = rule.limit else {
        return None;
    };
    let window = match rate.period() {
        Period::Nanos(nanos) => Some(Duration::from_nanos(nanos.get())),
        Period::Month | Period::Year => None,
    };
    let (remaining, reset) = (Units::whole(status.remaining), status.reset);
    let policy = Policy {
        name: &rule.path,
        quota: rate.amount(),
        window,
        unit: None,
        partition_key: None,
    };
    let decision = if status.is_over {
        Taken::After(reset)
    } else {
        Taken::Allowed(Allowed {
            remaining,
            reset,
            delay: Duration::ZERO,
            warn: false,
        })
    };
    let answer = Answer {
        decision,
        standing: Standing { remaining, reset },
        cost: Units::ONE,
    };
    Some((policy, answer))
}
