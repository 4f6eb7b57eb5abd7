//! Decisions as answers: headers, a problem document, and the details of gRPC.
//!
//! A caller's own quota is answered with 429 or RESOURCE_EXHAUSTED, a shortage of all with 503 or UNAVAILABLE. The
//! random part of a wait is an argument.

use std::time::Duration;

use doorward_limits::Answer;
use doorward_limits::headers::{self, Form, Policy};
use doorward_limits::rate::Period;
use serde_json::json;

use crate::decision::{Decision, Status, Why};

/// Media type of [`Decision::problem`].
pub const PROBLEM_TYPE: &str = "application/problem+json";

/// Start of the problem types that IANA registers.
const PROBLEM_TYPES: &str = "https://iana.org/assignments/http-problem-types";

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

impl Decision {
    /// Returns `RateLimit-Policy`, `RateLimit`, `Retry-After` of a refusal, and `X-RateLimit-*` if wanted, by name.
    /// There are none without a limited rule. Shadow rules do not show.
    pub fn headers(&self, form: Form) -> Vec<(&'static str, String)> {
        let shown = self.statuses.iter().filter_map(policy);
        let (policies, answers): (Vec<_>, Vec<_>) = shown.unzip();
        headers::headers(&policies, &answers, form)
    }

    /// Returns the body of a refusal, as RFC 9457 describes it; `None` if the request passes. The types of problems are
    /// those of the IETF draft on rate limit headers.
    pub fn problem(&self) -> Option<String> {
        let status = self.http_status()?;
        let (kind, title) = match self.why {
            Why::Unmatched | Why::NoLease => (
                "temporary-reduced-capacity",
                "The service has no capacity for this request",
            ),
            Why::Banned => ("abnormal-usage-detected", "Too many attempts"),
            _ => ("quota-exceeded", "The request exceeds a quota"),
        };
        let body = json!({
            "type": format!("{PROBLEM_TYPES}#{kind}"),
            "title": title,
            "status": status,
            "detail": self.why.to_string(),
            "violated-policies": self.violations(),
        });
        Some(body.to_string())
    }

    /// Returns the details of a refusal; `None` if the request passes.
    pub fn grpc(&self, jitter: Duration) -> Option<GrpcRefusal> {
        let code = if self.http_status()? == 429 { 8 } else { 14 };
        Some(GrpcRefusal {
            code,
            retry_delay: self.retry_after().map(|wait| wait.saturating_add(jitter)),
            violations: self.violations().into_iter().map(str::to_owned).collect(),
        })
    }

    /// Returns the paths of the rules that refuse.
    fn violations(&self) -> Vec<&str> {
        let over = self.statuses.iter().filter(|status| status.is_over);
        over.filter_map(|status| Some(status.rule.as_ref()?.path.as_str()))
            .collect()
    }
}

/// Returns the policy of a rule that may refuse, and its answer.
fn policy(status: &Status) -> Option<(Policy<'_>, Answer)> {
    let rule = status.rule.as_ref()?;
    let counted = rule.counted().filter(|_| rule.is_binding())?;
    let window = match counted.rate.period() {
        Period::Nanos(nanos) => Some(Duration::from_nanos(nanos.get())),
        Period::Month | Period::Year => None,
    };
    let policy = Policy {
        name: &rule.path,
        quota: counted.rate.amount(),
        window,
        unit: None,
        partition_key: None,
    };
    Some((policy, status.answer?))
}
