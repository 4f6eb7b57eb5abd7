//! Decisions as answers: headers, a problem document, and the details of gRPC.
//!
//! A caller's own quota is answered with 429 or RESOURCE_EXHAUSTED, a shortage of all with 503 or UNAVAILABLE. The
//! random part of a wait is an argument.

use std::time::Duration;

use doorward_limits::headers::{self, Dialect, Form, Policy};
use doorward_limits::{Answer, Rate, Units};
use serde_json::json;

use crate::rules::decision::{Decision, Status, Why};

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
    /// Returns the headers in the dialect of the domain, by name: `RateLimit-Policy` and `RateLimit`, or `X-RateLimit-*`,
    /// and `Retry-After` of a refusal. There are none without a limited rule. Shadow rules do not show. `jitter`: time
    /// that is added to the wait of a refused caller.
    pub fn headers(&self, jitter: Duration) -> Vec<(&'static str, String)> {
        let shown = self
            .statuses
            .iter()
            .filter_map(|status| policy(status, self.dialect));
        let (policies, answers): (Vec<_>, Vec<_>) = shown.unzip();
        let form = Form {
            jitter,
            dialect: self.dialect,
        };
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
            "violated-policies": self.violations().into_iter().map(headers::printable).collect::<Vec<_>>(),
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
fn policy(status: &Status, dialect: Dialect) -> Option<(Policy<'_>, Answer)> {
    let rule = status.rule.as_ref()?;
    let counted = rule.counted().filter(|_| rule.is_binding())?;
    let (quota, window) = match dialect {
        // It tells no window, so another amount would be another limit.
        Dialect::Legacy => (counted.rate.amount(), None),
        Dialect::Draft11 | Dialect::Next => {
            let (quota, window) = in_seconds(counted.rate);
            (quota, Some(window))
        }
    };
    let policy = Policy {
        name: &rule.path,
        quota,
        window,
    };
    Some((policy, status.answer?))
}

/// Returns the same rate as whole units in whole seconds, because headers have no others: 50 in a second for 5/100ms.
/// The amount is rounded down if a thousand windows are not enough for that.
fn in_seconds(rate: Rate) -> (Units, Duration) {
    const SECOND: u128 = 1_000_000_000;
    let (amount, window) = (rate.amount().parts(), u128::from(rate.period().get()));
    let is_whole = |times: &u128| {
        let is_whole = (window * times).is_multiple_of(SECOND);
        is_whole
            && amount
                .saturating_mul(*times)
                .is_multiple_of(Units::ONE.parts())
    };
    let (amount, seconds) = match (1..=1_000).find(is_whole) {
        Some(times) => (amount.saturating_mul(times), window * times / SECOND),
        None => {
            let seconds = window.div_ceil(SECOND);
            let scaled = amount.checked_mul(seconds * SECOND);
            (scaled.map_or(amount, |it| it / window), seconds)
        }
    };
    let seconds = u64::try_from(seconds).unwrap_or(u64::MAX);
    (Units::from_parts(amount), Duration::from_secs(seconds))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rate_of_headers_is_the_same_rate_in_whole_seconds() {
        for (rate, quota, seconds) in [
            ("5/100ms", 50, 1),
            ("1/1500ms", 2, 3),
            ("0.5/s", 1, 2),
            ("2.5/min", 5, 120),
            ("10/min", 10, 60),
            ("0/100ms", 0, 1),
            // No thousand windows of these are whole seconds.
            ("1000000/333333333ns", 3_000_000, 1),
            ("1000/1000000007ns", 1_999, 2),
        ] {
            let (units, window) = in_seconds(rate.parse().unwrap());
            assert_eq!(
                (units.floor(), window.as_secs()),
                (quota, seconds),
                "{rate}"
            );
        }
    }
}
