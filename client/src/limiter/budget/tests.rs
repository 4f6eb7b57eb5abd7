//! The oracle's vectors of one holder, and of several budgets at once.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::*;
use doorward_session::time::budget::BudgetState;

const VECTORS: &str = include_str!("../../../../server/engine/testdata/vectors/budgets.json");

/// A holder, its calls, and the number of its newest request.
struct Played {
    holder: BudgetHolder,
    /// Estimate, turn, and what is settled.
    calls: BTreeMap<String, (u64, u64, Option<u64>)>,
    newest: u64,
    now: Time,
}

/// Returns the answer of an event.
fn answer(with: &Value, number: u64) -> BudgetAnswer {
    let book = with["book"].as_str().unwrap();
    let start = with["window"].as_i64().unwrap();
    BudgetAnswer {
        state: BudgetState {
            granter_book: book[1..].parse().unwrap(),
            window: Window {
                start,
                ..Window::LIFETIME
            },
            ends_in: with["ends_in_ms"].as_u64().map(Duration::from_millis),
            total: 0,
            known_taken: 0,
            soft: false,
        },
        ceiling: with["ceiling"].as_u64().unwrap(),
        granted_by: None,
        limited_by: None,
        sent_at: Time::ZERO,
        number,
    }
}

impl Played {
    fn new() -> Self {
        Self {
            holder: BudgetHolder::new(7),
            calls: BTreeMap::new(),
            newest: 0,
            now: Time::ZERO,
        }
    }

    fn play(&mut self, event: &Value) -> Value {
        if let Some(at) = event["t_ms"].as_u64() {
            self.now = Time::ZERO + Duration::from_millis(at);
        }
        let (name, with) = event
            .as_object()
            .unwrap()
            .iter()
            .find(|(key, _)| *key != "t_ms" && *key != "budget")
            .unwrap();
        let number = |name: &str| with[name].as_u64().unwrap_or(0);
        let call = with["id"].as_str().unwrap_or("").to_owned();
        match name.as_str() {
            "send" => {
                self.newest = number("sequence");
                let said = self.holder.say_need(number("need"));
                let word = said.word;
                let book = word.granter_book.map(|book| format!("g{book}"));
                let mut said = json!({"book": book, "has": said.has, "taken": word.taken});
                if let Some(window) = word.window {
                    said["window"] = json!(window.start);
                }
                said
            }
            "answer" => {
                let answer = answer(with, self.holder.answered() + 1);
                let applied = number("sequence") == self.newest && self.holder.answer(&answer);
                match applied {
                    true => json!({"applied": true, "remaining": self.holder.left(self.now)}),
                    false => json!({"applied": false}),
                }
            }
            "reserve" => {
                let estimate = number("estimate");
                match self.holder.reserve(estimate, self.now) {
                    Ok(()) => {
                        let call_of = (estimate, self.holder.turn(), None);
                        self.calls.insert(call, call_of);
                        json!({"decision": "allowed", "remaining": self.holder.left(self.now)})
                    }
                    Err(short) => json!({"decision": "wait", "why": match short {
                        Short::Ceiling | Short::Exhausted => "ceiling",
                        Short::Turning => "window",
                        Short::NoCeiling => "no ceiling",
                    }}),
                }
            }
            "settle" | "drop" => self.settle(&call, with["actual"].as_i64()),
            "refund" => {
                // The permit of a call that is settled is consumed.
                let (estimate, turn, _) = self.calls[&call];
                self.holder.settle(turn, estimate, 0);
                json!({"refunded": "all", "remaining": self.holder.left(self.now)})
            }
            "lose" => {
                *self = Self::new();
                json!({"accounts": 0})
            }
            other => panic!("{other}"),
        }
    }

    fn settle(&mut self, call: &str, actual: Option<i64>) -> Value {
        let (estimate, turn, settled) = self.calls[call];
        let used = actual.map_or(estimate, i64::unsigned_abs);
        assert_eq!(settled, None, "a permit is settled once");
        self.holder.settle(turn, estimate, used);
        self.calls
            .insert(call.to_owned(), (estimate, turn, Some(used)));
        let above = used.saturating_sub(estimate);
        json!({"settled": used, "above": above, "remaining": self.holder.left(self.now)})
    }

    /// Whether the types rule it out: a permit is settled once, by an amount that is not negative.
    fn is_impossible(&self, event: &Value) -> bool {
        let (settle, refund) = (&event["settle"], &event["refund"]);
        let id = settle["id"].as_str().or_else(|| refund["id"].as_str());
        let is_settled = id
            .and_then(|id| self.calls.get(id))
            .is_some_and(|it| it.2.is_some());
        is_settled || settle["actual"].as_i64().is_some_and(|actual| actual < 0)
    }
}

fn cases(kind: &str) -> Vec<Value> {
    let all: Vec<Value> = serde_json::from_str(VECTORS).unwrap();
    let cases: Vec<_> = all
        .into_iter()
        .filter(|case| case["kind"] == kind)
        .collect();
    assert!(!cases.is_empty(), "there are vectors of {kind}");
    cases
}

#[test]
fn a_holder_does_what_the_oracle_says() {
    for case in cases("holder") {
        let mut played = Played::new();
        let steps = case["events"]
            .as_array()
            .unwrap()
            .iter()
            .zip(case["expect"].as_array().unwrap());
        for (step, (event, expected)) in steps.enumerate() {
            if !played.is_impossible(event) {
                assert_eq!(
                    &played.play(event),
                    expected,
                    "{}, step {step}: {event}",
                    case["name"]
                );
            }
        }
    }
}

#[test]
fn several_budgets_give_all_or_nothing() {
    for case in cases("many") {
        let mut budgets: BTreeMap<String, Played> = BTreeMap::new();
        let steps = case["events"]
            .as_array()
            .unwrap()
            .iter()
            .zip(case["expect"].as_array().unwrap());
        for (event, expected) in steps {
            let Some(all) = event["all"]["estimates"].as_object() else {
                let name = event["budget"].as_str().unwrap().to_owned();
                let played = budgets.entry(name).or_insert_with(Played::new);
                assert_eq!(&played.play(event), expected, "{event}");
                continue;
            };
            // As `and` does: what the first gave is refunded if another one refuses.
            let (mut got, mut by) = (Vec::new(), None);
            for (name, estimate) in all {
                let played = budgets.get_mut(name).unwrap();
                let call = json!({"reserve": {"id": event["all"]["id"], "estimate": estimate}});
                match played.play(&call)["decision"] == "allowed" {
                    true => got.push(name),
                    false => by = Some(name),
                }
            }
            let refund = json!({"refund": {"id": event["all"]["id"]}});
            if by.is_some() {
                got.iter()
                    .for_each(|name| drop(budgets.get_mut(*name).unwrap().play(&refund)));
            }
            let left = budgets
                .iter()
                .map(|(name, it)| (name.clone(), json!(it.holder.left(it.now))));
            let left: serde_json::Map<String, Value> = left.collect();
            let said = match by {
                None => json!({"decision": "allowed", "remaining": left}),
                Some(by) => json!({"decision": "wait", "by": by, "remaining": left}),
            };
            assert_eq!(&said, expected, "{event}");
        }
    }
}

#[test]
fn a_client_asks_early_once_for_each_answer() {
    let mut holder = BudgetHolder::new(7);
    let now = Time::from_secs(10);
    assert_eq!(holder.reserve(10, now), Err(Short::NoCeiling));
    assert!(holder.asks_early(now), "a call waits");
    assert!(!holder.asks_early(now), "it was asked already");
    let word = holder.say(Duration::from_secs(5), true, now);
    assert!(word.need >= 10 && word.word.least == 10, "{word:?}");
    let answer = |number, ceiling, known_taken, limited_by| BudgetAnswer {
        state: BudgetState {
            granter_book: 1,
            window: Window::LIFETIME,
            ends_in: None,
            total: 100,
            known_taken,
            soft: false,
        },
        ceiling,
        granted_by: None,
        limited_by: Some(limited_by),
        sent_at: now,
        number,
    };
    assert!(holder.answer(&answer(1, 20, 0, LimitedBy::Wants)));
    assert_eq!(holder.reserve(8, now), Ok(()));
    assert!(!holder.asks_early(now), "more than half is left");
    assert_eq!(holder.reserve(8, now), Ok(()));
    assert!(holder.asks_early(now), "less than half is left");
    assert_eq!(holder.reserve(8, now), Err(Short::Ceiling));
    assert!(!holder.asks_early(now), "it was asked already");
    holder.say_need(50);
    assert!(holder.answer(&answer(2, 20, 16, LimitedBy::Share)));
    assert_eq!(holder.reserve(8, now), Err(Short::Exhausted));
    assert!(!holder.asks_early(now), "the server has no more");
    assert_eq!(holder.reserve(4, now), Ok(()), "a smaller call fits");
}

#[test]
fn a_window_ends_early_by_the_clock_of_a_holder() {
    let mut holder = BudgetHolder::new(7);
    let sent_at = Time::from_secs(10);
    holder.say_need(5);
    let state = BudgetState {
        granter_book: 1,
        window: Window {
            start: 0,
            end: 1_000_000,
        },
        ends_in: Some(Duration::from_secs(1_000)),
        total: 100,
        known_taken: 0,
        soft: false,
    };
    assert!(holder.answer(&BudgetAnswer {
        state,
        ceiling: 5,
        granted_by: None,
        limited_by: Some(LimitedBy::Wants),
        sent_at,
        number: 1,
    }));
    assert_eq!(holder.ends_at(), Some(sent_at + Duration::from_secs(999)));
    assert_eq!(holder.left(sent_at + Duration::from_secs(998)), 5);
    assert_eq!(
        holder.reserve(1, sent_at + Duration::from_secs(999)),
        Err(Short::Turning)
    );
}

#[test]
fn a_call_above_the_whole_budget_is_refused_at_once_and_needs_nothing() {
    let mut holder = BudgetHolder::new(7);
    let with = json!({"book": "g1", "window": 0, "ceiling": 100});
    let mut told = answer(&with, 1);
    told.state.total = 1_000;
    assert!(holder.answer(&told));
    assert_eq!(holder.reserve(1_001, Time::ZERO), Err(Short::Exhausted));
    assert_eq!(holder.reserve(1_000, Time::ZERO), Err(Short::Ceiling));
    let said = holder.say(SPAN, true, Time::ZERO);
    assert_eq!((said.need, said.word.least), (1_000, 1_000));
}

#[test]
fn a_use_is_an_amount_however_much_is_settled() {
    let mut holder = BudgetHolder::new(7);
    holder.settle(0, 0, AMOUNT_MAX);
    let with = json!({"book": "g1", "window": 0, "ceiling": 100});
    assert!(holder.answer(&answer(&with, 1)));
    holder.settle(1, 0, u64::MAX);
    assert_eq!(holder.say_need(5).word.taken, AMOUNT_MAX);
}
