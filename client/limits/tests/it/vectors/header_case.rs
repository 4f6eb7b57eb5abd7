//! Headers from answers, byte for byte.

use std::time::Duration;

use doorward_limits::headers::{Dialect, Form, Policy, headers};
use doorward_limits::{Allowed, Answer, Decision, Reason, Standing, Units};
use serde_json::Value;

use crate::vectors::Played;
use crate::vectors::driver::units;

fn nanos(value: &Value) -> Duration {
    Duration::from_nanos(value.as_u64().unwrap_or(0))
}

fn answer(result: &Value) -> Answer {
    let standing = Standing {
        remaining: units(&result["remaining"]).unwrap(),
        reset: nanos(&result["reset_ns"]),
        debt: Units::ZERO,
    };
    let decision = if result["allowed"] == true {
        Decision::Allowed(Allowed {
            remaining: standing.remaining,
            reset: standing.reset,
            delay: Duration::ZERO,
            warn: false,
        })
    } else if result.get("never").is_some() {
        Decision::Never(Reason::CostAboveLimit)
    } else {
        Decision::After(nanos(&result["retry_after_ns"]))
    };
    Answer {
        decision,
        standing,
        cost: result
            .get("cost")
            .map_or(Units::ONE, |cost| units(cost).unwrap()),
    }
}

pub(crate) fn play(case: &Value) -> Played {
    let policies = case["policies"].as_array().unwrap();
    let results = case["results"].as_array().unwrap();
    let result_of = |policy: &Value| results.iter().find(|it| it["policy"] == policy["name"]);
    let answers: Vec<Answer> = policies
        .iter()
        .map(|it| answer(result_of(it).unwrap()))
        .collect();
    let policies: Vec<Policy<'_>> = policies
        .iter()
        .map(|policy| Policy {
            name: policy["name"].as_str().unwrap(),
            quota: units(&policy["quota"]).unwrap(),
            window: policy.get("window_ns").map(nanos),
        })
        .collect();
    let form = Form {
        jitter: nanos(&case["jitter_ns"]),
        dialect: match case["dialect"].as_str() {
            Some("legacy") => Dialect::Legacy,
            _ => Dialect::Draft11,
        },
    };
    let made = headers(&policies, &answers, form);
    let made = made
        .into_iter()
        .map(|(name, value)| (name.to_owned(), value.into()));
    let made = Value::Object(made.collect());
    if made == case["headers"] {
        Played::Right(1)
    } else {
        Played::Wrong(vec![format!("{made}, not {}", case["headers"])])
    }
}
