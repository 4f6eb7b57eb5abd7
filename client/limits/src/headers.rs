//! Decisions as HTTP headers: text, byte for byte.
//!
//! `RateLimit-Policy` and `RateLimit` are structured fields of the IETF draft (httpapi-ratelimit-headers), in a
//! [`Dialect`]. The first lists all policies that apply; the second has the strictest one ([`several::strictest`]).
//! `Retry-After` is at least a second, and absent if no wait helps. `X-RateLimit-*` are for clients that know no other
//! headers; `X-RateLimit-Reset` has the seconds of `Retry-After` for a refusal, otherwise those until the full reset.
//!
//! Amounts are rounded down, times up. A time that never comes is absent.

use std::fmt::Write as _;
use std::time::Duration;

use crate::decision::{Answer, Decision, Reason};
use crate::several;
use crate::units::Units;

/// A limit as callers see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Policy<'a> {
    /// Name of the limit.
    pub name: &'a str,
    /// Amount.
    pub quota: Units,
    /// Time of the amount; none for a limit of permits at once.
    pub window: Option<Duration>,
}

/// Names of the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Dialect {
    /// Revision 11 of the draft: `RateLimit` has `r` and `t`.
    #[default]
    Draft11,
    /// The proposal for its next revision: `a` (available) instead of `r`, and `w` (window) instead of `t`.
    Next,
    /// `X-RateLimit-*` alone, with the reset in seconds from now, as in Envoy.
    Legacy,
}

/// Form of the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Time that is added to the wait of a refused caller.
    pub jitter: Duration,
    /// Names of the headers.
    pub dialect: Dialect,
}

/// Largest integer of a structured field.
const INTEGER_MAX: u128 = 999_999_999_999_999;

/// Returns the headers, by name. `answers` has one answer for each policy.
pub fn headers(
    policies: &[Policy<'_>],
    answers: &[Answer],
    form: Form,
) -> Vec<(&'static str, String)> {
    let mut headers = Vec::new();
    let place = several::strictest(answers);
    let strictest = place.and_then(|place| Some((policies.get(place)?, answers.get(place)?)));
    let Some((policy, answer)) = strictest else {
        return headers;
    };
    let (until, is_refused) = match answer.decision {
        Decision::After(wait) => (wait.saturating_add(form.jitter), true),
        Decision::Never(Reason::RateIsZero) => (Duration::MAX, false),
        Decision::Allowed(_) | Decision::Never(_) => (answer.standing.reset, false),
    };
    let ever = until != Duration::MAX && policy.quota > Units::ZERO;
    let in_seconds = ever.then(|| seconds(until).max(u128::from(is_refused)));
    let remaining = integer(answer.standing.remaining);
    let names = match form.dialect {
        Dialect::Draft11 => Some(('r', 't')),
        Dialect::Next => Some(('a', 'w')),
        Dialect::Legacy => None,
    };
    if let Some((available, window)) = names {
        let all: Vec<String> = policies.iter().map(policy_item).collect();
        headers.push(("RateLimit-Policy", all.join(", ")));
        let mut item = format!("{};{available}={remaining}", quoted(policy.name));
        if let Some(in_seconds) = in_seconds {
            // Writing to a text cannot fail.
            let _ = write!(item, ";{window}={in_seconds}");
        }
        headers.push(("RateLimit", item));
    }
    if let Some(in_seconds) = in_seconds.filter(|_| is_refused) {
        headers.push(("Retry-After", in_seconds.to_string()));
    }
    if form.dialect == Dialect::Legacy {
        let quota = integer(policy.quota);
        headers.push(("X-RateLimit-Limit", quota.to_string()));
        headers.push(("X-RateLimit-Remaining", remaining.to_string()));
        let reset = in_seconds.map(|it| ("X-RateLimit-Reset", it.to_string()));
        headers.extend(reset);
    }
    headers
}

fn policy_item(policy: &Policy<'_>) -> String {
    let mut item = quoted(policy.name);
    // Writing to a text cannot fail.
    let _ = write!(item, ";q={}", integer(policy.quota));
    if let Some(window) = policy.window {
        let _ = write!(item, ";w={}", seconds(window));
    }
    item
}

fn integer(units: Units) -> u128 {
    u128::from(units.floor()).min(INTEGER_MAX)
}

/// Returns whole seconds, rounded up.
fn seconds(span: Duration) -> u128 {
    span.as_nanos().div_ceil(1_000_000_000).min(INTEGER_MAX)
}

/// Returns a name as the headers have it: printable ASCII. Other bytes, and percent signs, are percent-encoded, so
/// different names stay different.
pub fn printable(name: &str) -> String {
    let mut printable = String::with_capacity(name.len());
    for byte in name.bytes() {
        if matches!(byte, b' '..=b'~') && byte != b'%' {
            printable.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(printable, "%{byte:02X}");
        }
    }
    printable
}

fn quoted(text: &str) -> String {
    let escaped = printable(text).replace('\\', "\\\\").replace('"', "\\\"");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Standing;

    fn policy(name: &str, quota: Units) -> Policy<'_> {
        Policy {
            name,
            quota,
            window: None,
        }
    }

    fn answer(decision: Decision, reset: Duration) -> Answer {
        Answer {
            decision,
            standing: Standing {
                remaining: Units::ZERO,
                reset,
                debt: Units::ZERO,
            },
            cost: Units::ONE,
        }
    }

    #[track_caller]
    fn check(policy: Policy<'_>, answer: Answer, form: Form, expected: &[(&str, &str)]) {
        let made = headers(&[policy], &[answer], form);
        let made: Vec<_> = made.iter().map(|(name, value)| (*name, &**value)).collect();
        assert_eq!(made, expected);
    }

    #[test]
    fn a_refusal_says_a_second_at_least() {
        let form = Form::default();
        let refused = answer(Decision::After(Duration::ZERO), Duration::ZERO);
        let expected = [
            ("RateLimit-Policy", "\"a%0Ab\";q=1"),
            ("RateLimit", "\"a%0Ab\";r=0;t=1"),
            ("Retry-After", "1"),
        ];
        check(policy("a\nb", Units::ONE), refused, form, &expected);
    }

    #[test]
    fn different_names_stay_different() {
        for (name, expected) in [
            ("größe", "gr%C3%B6%C3%9Fe"),
            ("gr%C3%B6%C3%9Fe", "gr%25C3%25B6%25C3%259Fe"),
            ("日", "%E6%97%A5"),
            ("月", "%E6%9C%88"),
            ("a \"b\" \\", "a \"b\" \\"),
        ] {
            assert_eq!(printable(name), expected);
        }
    }

    #[test]
    fn a_time_that_never_comes_is_absent() {
        let zero = Decision::Never(Reason::RateIsZero);
        let above = Decision::Never(Reason::CostAboveLimit);
        let cases = [
            (Units::ONE, zero, Duration::ZERO),
            (Units::ZERO, above, Duration::ZERO),
            (Units::ONE, above, Duration::MAX),
            (Units::ONE, Decision::After(Duration::MAX), Duration::MAX),
        ];
        for (quota, decision, reset) in cases {
            let quota_text = quota.floor().to_string();
            let expected = [
                ("RateLimit-Policy", &*format!("\"p\";q={quota_text}")),
                ("RateLimit", "\"p\";r=0"),
            ];
            check(
                policy("p", quota),
                answer(decision, reset),
                Form::default(),
                &expected,
            );
        }
    }

    #[test]
    fn each_dialect_has_its_names() {
        let refused = answer(Decision::After(Duration::from_secs(7)), Duration::ZERO);
        let check = |dialect, expected: &[(&str, &str)]| {
            let form = Form {
                dialect,
                ..Form::default()
            };
            check(policy("p", Units::ONE), refused, form, expected);
        };
        let of_ietf = |item| {
            [
                ("RateLimit-Policy", "\"p\";q=1"),
                ("RateLimit", item),
                ("Retry-After", "7"),
            ]
        };
        check(Dialect::Draft11, &of_ietf("\"p\";r=0;t=7"));
        check(Dialect::Next, &of_ietf("\"p\";a=0;w=7"));
        let legacy = [
            ("Retry-After", "7"),
            ("X-RateLimit-Limit", "1"),
            ("X-RateLimit-Remaining", "0"),
            ("X-RateLimit-Reset", "7"),
        ];
        check(Dialect::Legacy, &legacy);
    }
}
