//! A case that one limiter plays.

use doorward_limits::{Decision, InvalidUnits, Moment, Reason, Standing, Units};
use serde_json::Value;

use crate::vectors::Played;
use crate::vectors::driver::{self, Driven};

/// Times are compared to a nanosecond; for warm-up, which has a slope, to a microsecond.
const TIME_TOLERANCE: u128 = 1;
const SLOPE_TOLERANCE: u128 = 1_000;

/// Amounts are compared to a millionth.
const PARTS_TOLERANCE: u128 = 1_000;

/// Expectation of an operation, and the problems found.
pub(crate) struct Check<'a> {
    pub(crate) expect: &'a Value,
    pub(crate) place: String,
    pub(crate) tolerance: u128,
    pub(crate) problems: &'a mut Vec<String>,
}

impl Check<'_> {
    pub(crate) fn same(&mut self, what: &str, is: &Value) {
        if let Some(expected) = self.expect.get(what)
            && expected != is
        {
            self.problems
                .push(format!("{}: {what} is {is}, not {expected}", self.place));
        }
    }

    pub(crate) fn nanos(&mut self, what: &str, is: std::time::Duration) {
        let Some(expected) = self.expect.get(what) else {
            return;
        };
        let expected = u128::from(expected.as_u64().unwrap());
        if is.as_nanos().abs_diff(expected) > self.tolerance {
            self.problems.push(format!(
                "{}: {what} is {}, not {expected}",
                self.place,
                is.as_nanos()
            ));
        }
    }

    pub(crate) fn amount(&mut self, what: &str, is: Units) {
        let Some(expected) = self.expect.get(what) else {
            return;
        };
        let expected = driver::units(expected).unwrap();
        if is.parts().abs_diff(expected.parts()) > PARTS_TOLERANCE {
            self.problems
                .push(format!("{}: {what} is {is}, not {expected}", self.place));
        }
    }

    pub(crate) fn standing(&mut self, standing: Standing) {
        self.amount("remaining", standing.remaining);
        self.nanos("reset_ns", standing.reset);
    }

    pub(crate) fn decision(&mut self, decision: Decision) {
        if self.is_on_the_boundary(decision) {
            return;
        }
        self.same("allowed", &decision.is_allowed().into());
        match decision {
            Decision::Allowed(allowed) => {
                self.nanos("delay_ns", allowed.delay);
                self.nanos("reset_ns", allowed.reset);
                self.amount("remaining", allowed.remaining);
                if self.expect["allowed"] == true {
                    self.same("warn", &allowed.warn.into());
                }
            }
            Decision::After(span) => {
                self.nanos("retry_after_ns", span);
                if self.expect.get("retry_after_ns").is_none() {
                    self.problems
                        .push(format!("{}: a wait of {span:?}", self.place));
                }
            }
            Decision::Never(reason) => {
                let reason = match reason {
                    Reason::CostAboveLimit => "cost_above_limit",
                    Reason::RateIsZero => "rate_is_zero",
                };
                self.same("never", &reason.into());
            }
        }
    }

    /// Returns whether an instant is within the tolerance of a slope; then the instant decides.
    fn is_on_the_boundary(&self, decision: Decision) -> bool {
        let expected = self.expect["retry_after_ns"].as_u64();
        match (decision, expected) {
            (Decision::Allowed(_), Some(wait)) => {
                self.tolerance > TIME_TOLERANCE && u128::from(wait) <= self.tolerance
            }
            (Decision::After(wait), None) => {
                self.tolerance > TIME_TOLERANCE && wait.as_nanos() <= self.tolerance
            }
            _ => false,
        }
    }
}

/// Returns a cost; none if our types cannot represent it.
pub(crate) fn cost(value: &Value) -> Option<Result<Units, InvalidUnits>> {
    match driver::units(value) {
        Err(InvalidUnits::TooFine) => None,
        cost => Some(cost),
    }
}

pub(crate) fn play(case: &Value) -> Played {
    let mut driven = Driven::new(&case["config"]);
    let mut problems = Vec::new();
    let ops = case["ops"].as_array().unwrap();
    for (index, op) in ops.iter().enumerate() {
        let warms_up = case["config"]["algorithm"] == "warm_up";
        let mut check = Check {
            expect: &op["expect"],
            place: format!("operation {index}, {}", op["op"]),
            tolerance: if warms_up {
                SLOPE_TOLERANCE
            } else {
                TIME_TOLERANCE
            },
            problems: &mut problems,
        };
        if step(&mut driven, op, &mut check).is_none() {
            return Played::Skipped;
        }
    }
    if problems.is_empty() {
        Played::Right(ops.len())
    } else {
        Played::Wrong(problems)
    }
}

/// Does one operation and compares. None if its values cannot be represented.
fn step(driven: &mut Driven, op: &Value, check: &mut Check<'_>) -> Option<()> {
    let now = Moment::from_nanos(op["t_ns"].as_i64().unwrap());
    let cost = match op.get("cost").map_or(Some(Ok(Units::ZERO)), cost)? {
        Ok(cost) => cost,
        Err(_) => {
            check.same("error", &"invalid_cost".into());
            check.same("allowed", &"an error".into());
            return Some(());
        }
    };
    check.same("error", &"none".into());
    let limit = &mut driven.limit;
    match op["op"].as_str().unwrap() {
        "take" => {
            let asked = limit.peek(cost, now);
            let decision = limit.take(cost, now);
            if asked != decision {
                check
                    .problems
                    .push(format!("{}: {asked:?} was told before", check.place));
            }
            check.decision(decision);
        }
        "peek" => check.decision(limit.peek(cost, now)),
        "charge" => limit.charge(cost, now),
        "refund" => limit.refund(cost, now),
        "set_limit" => driven.set_limit(op, now),
        other => panic!("no operation {other}"),
    }
    let limit = &driven.limit;
    check.standing(limit.standing(now));
    if let Some(stored) = limit.stored(now) {
        check.amount("stored", stored);
    }
    if let Some(warns) = limit.warns(now) {
        let refused = check.expect["allowed"] == false;
        check.same("warn", &(warns || refused).into());
    }
    Some(())
}
