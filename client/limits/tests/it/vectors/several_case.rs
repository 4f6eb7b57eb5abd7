//! A case that several limits play together.

use doorward_limits::{Moment, Part, Units, Verdict, several};
use serde_json::Value;

use crate::vectors::Played;
use crate::vectors::case::{self, Check};
use crate::vectors::driver::Driven;

struct Rule {
    name: String,
    limit: Driven,
}

pub(crate) fn play(case: &Value) -> Played {
    let rules = case["config"]["rules"].as_array().unwrap().iter();
    let mut rules: Vec<Rule> = rules
        .map(|rule| Rule {
            name: rule["name"].as_str().unwrap().to_owned(),
            limit: Driven::new(rule),
        })
        .collect();
    let mut problems = Vec::new();
    let ops = case["ops"].as_array().unwrap();
    for (index, op) in ops.iter().enumerate() {
        let mut check = Check {
            expect: &op["expect"],
            place: format!("operation {index}, {}", op["op"]),
            tolerance: 1,
            problems: &mut problems,
        };
        if step(&mut rules, op, &mut check).is_none() {
            return Played::Skipped;
        }
    }
    if problems.is_empty() {
        Played::Right(ops.len())
    } else {
        Played::Wrong(problems)
    }
}

/// Returns the cost of an operation for each rule; an error if one is invalid; none if it cannot be
/// represented.
fn costs(rules: &[Rule], op: &Value) -> Option<Result<Vec<Units>, ()>> {
    let mut costs = Vec::new();
    for rule in rules {
        let value = op["costs"].get(&rule.name).or(op.get("cost"));
        match value.map_or(Some(Ok(Units::ZERO)), case::cost)? {
            Ok(cost) => costs.push(cost),
            Err(_) => return Some(Err(())),
        }
    }
    Some(Ok(costs))
}

fn step(rules: &mut [Rule], op: &Value, check: &mut Check<'_>) -> Option<()> {
    let now = Moment::from_nanos(op["t_ns"].as_i64().unwrap());
    let Ok(costs) = costs(rules, op)? else {
        check.same("error", &"invalid_cost".into());
        check.same("allowed", &"an error".into());
        return Some(());
    };
    check.same("error", &"none".into());
    let parts: Vec<Part<'_>> = rules
        .iter()
        .zip(&costs)
        .map(|(rule, cost)| Part {
            name: &rule.name,
            limit: rule.limit.limit.as_ref(),
            cost: *cost,
        })
        .collect();
    match op["op"].as_str().unwrap() {
        "take" => verdict(check, &several::take(&parts, now).unwrap(), &parts),
        "peek" => verdict(check, &several::peek(&parts, now).unwrap(), &parts),
        "charge" => parts.iter().for_each(|it| it.limit.charge(it.cost, now)),
        "refund" => parts.iter().for_each(|it| it.limit.refund(it.cost, now)),
        "set_limit" => {
            let rule = rules.iter_mut().find(|it| op["rule"] == it.name.as_str());
            let limit = &mut rule.unwrap().limit;
            limit.set_limit(op, now);
            check.standing(limit.limit.standing(now));
        }
        other => panic!("no operation {other}"),
    }
    Some(())
}

fn verdict(check: &mut Check<'_>, verdict: &Verdict<'_>, parts: &[Part<'_>]) {
    check.decision(verdict.decision);
    check.standing(verdict.standing);
    // The vectors' name for the strictest limit.
    check.same("told", &verdict.name.into());
    let refused_by = verdict.refused_by.iter().map(|it| parts[*it].name);
    if !verdict.refused_by.is_empty() {
        check.same("refused_by", &refused_by.collect::<Vec<_>>().into());
    }
}
