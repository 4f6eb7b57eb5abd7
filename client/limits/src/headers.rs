//! Decisions as HTTP headers: text, byte for byte.
//!
//! `RateLimit-Policy` and `RateLimit` are structured fields as in the IETF draft (httpapi-ratelimit-headers, -11). The
//! first lists all policies that apply; the second has the strictest one ([`several::strictest`]). `Retry-After` is at
//! least a second, and absent if no wait helps. `X-RateLimit-*` are for clients that know no other headers;
//! `X-RateLimit-Reset` is the instant of `Retry-After` for a refusal, otherwise that of the full reset.
//!
//! Amounts are rounded down, times up. A character of a name that is not printable ASCII becomes a question mark,
//! because a structured field cannot contain it.

use std::fmt::Write as _;
use std::time::Duration;

use crate::decision::{Answer, Decision};
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
    /// Unit; none for requests.
    pub unit: Option<&'a str>,
    /// Partition key of the caller.
    pub partition_key: Option<&'a [u8]>,
}

/// Form of the `X-RateLimit-*` headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Legacy {
    /// No such headers.
    #[default]
    Off,
    /// The reset in seconds from now, as in Envoy.
    Delta,
    /// The reset as a second since 1970, as in GitHub's API.
    Epoch {
        /// Time now, since 1970.
        now: Duration,
    },
}

/// Form of the headers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Form {
    /// Time that is added to the wait of a refused caller.
    pub jitter: Duration,
    /// Form of `X-RateLimit-Limit`, `-Remaining` and `-Reset`.
    pub legacy: Legacy,
    /// Whether a refusal has `X-RateLimit-Retry-After`, with the value of `Retry-After`.
    pub legacy_retry_after: bool,
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
    let all: Vec<String> = policies.iter().map(policy_item).collect();
    headers.push(("RateLimit-Policy", all.join(", ")));
    let (until, is_refused) = match answer.decision {
        Decision::After(wait) => (wait.saturating_add(form.jitter), true),
        Decision::Allowed(_) | Decision::Never(_) => (answer.standing.reset, false),
    };
    let remaining = integer(answer.standing.remaining);
    let mut item = quoted(policy.name);
    let in_seconds = seconds(until).max(u128::from(is_refused));
    let _ = write!(item, ";r={remaining};t={in_seconds}");
    item.push_str(&partition(policy));
    headers.push(("RateLimit", item));
    if is_refused {
        headers.push(("Retry-After", in_seconds.to_string()));
        if form.legacy_retry_after {
            headers.push(("X-RateLimit-Retry-After", in_seconds.to_string()));
        }
    }
    let reset = match form.legacy {
        Legacy::Off => return headers,
        Legacy::Delta => in_seconds,
        Legacy::Epoch { now } => seconds(now.saturating_add(until)),
    };
    let quota = integer(policy.quota);
    headers.push(("X-RateLimit-Limit", quota.to_string()));
    headers.push(("X-RateLimit-Remaining", remaining.to_string()));
    headers.push(("X-RateLimit-Reset", reset.to_string()));
    headers
}

fn policy_item(policy: &Policy<'_>) -> String {
    let mut item = quoted(policy.name);
    // Writing to a text cannot fail.
    let _ = write!(item, ";q={}", integer(policy.quota));
    if let Some(window) = policy.window {
        let _ = write!(item, ";w={}", seconds(window));
    }
    if let Some(unit) = policy.unit.filter(|unit| *unit != "requests") {
        let _ = write!(item, ";qu={}", quoted(unit));
    }
    item.push_str(&partition(policy));
    item
}

fn partition(policy: &Policy<'_>) -> String {
    policy
        .partition_key
        .map(|key| format!(";pk=:{}:", base64(key)))
        .unwrap_or_default()
}

fn integer(units: Units) -> u128 {
    u128::from(units.floor()).min(INTEGER_MAX)
}

/// Returns whole seconds, rounded up.
fn seconds(span: Duration) -> u128 {
    span.as_nanos().div_ceil(1_000_000_000).min(INTEGER_MAX)
}

fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            ' '..='~' => quoted.push(letter),
            _ => quoted.push('?'),
        }
    }
    quoted.push('"');
    quoted
}

/// Returns bytes as a structured field has them: base64 with padding.
fn base64(bytes: &[u8]) -> String {
    let letter = |six: u32| {
        let six = u8::try_from(six & 63).unwrap_or(0);
        char::from(match six {
            0..26 => b'A' + six,
            26..52 => b'a' + (six - 26),
            52..62 => b'0' + (six - 52),
            62 => b'+',
            _ => b'/',
        })
    };
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for three in bytes.chunks(3) {
        let byte = |at: usize| u32::from(three.get(at).copied().unwrap_or(0));
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        let letters = [18, 12, 6, 0].map(|shift| letter(bits >> shift));
        let has = three.len() + 1;
        text.extend(letters.iter().take(has));
        text.extend(std::iter::repeat_n('=', 4 - has));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decision::Standing;

    #[test]
    fn a_refusal_says_a_second_at_least() {
        let policy = Policy {
            name: "a\nb",
            quota: Units::ONE,
            window: None,
            unit: None,
            partition_key: None,
        };
        let answer = Answer {
            decision: Decision::After(Duration::ZERO),
            standing: Standing {
                remaining: Units::ZERO,
                reset: Duration::ZERO,
                debt: Units::ZERO,
            },
            cost: Units::ONE,
        };
        let form = Form {
            legacy_retry_after: true,
            ..Form::default()
        };
        let made = headers(&[policy], &[answer], form);
        let expected = [
            ("RateLimit-Policy", "\"a?b\";q=1"),
            ("RateLimit", "\"a?b\";r=0;t=1"),
            ("Retry-After", "1"),
            ("X-RateLimit-Retry-After", "1"),
        ];
        assert_eq!(made, expected.map(|(name, value)| (name, value.to_owned())));
    }
}
