//! The oracle's vectors (`testdata/vectors/budgets.json`): what one granter answers, where windows begin, and how far the
//! mark reaches.

#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "a test")]

use std::sync::Arc;
use std::time::Duration;

use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::amount::Amount;
use crate::claims::{Claim, Demand, Subclients};
use crate::id::{HolderId, HolderName};
use crate::messages::AMOUNT_MAX;
use crate::templates::budget_terms::BudgetTerms;
use crate::templates::window::Period;
use crate::templates::{AlgorithmKind, TemplateSpec, Templates};

const VECTORS: &str = include_str!("../../testdata/vectors/budgets.json");
const MASTERSHIP: MastershipId = MastershipId::new(7);

#[derive(Deserialize)]
struct Case {
    kind: String,
    name: String,
    budget: Option<Value>,
    window: Option<String>,
    #[serde(default)]
    offset_s: i64,
    /// Of marks.
    #[serde(default)]
    capacity: u64,
    events: Vec<Value>,
    expect: Vec<Value>,
}

fn cases(kind: &str) -> impl Iterator<Item = Case> {
    let all: Vec<Case> = serde_json::from_str(VECTORS).unwrap();
    let cases: Vec<_> = all.into_iter().filter(|case| case.kind == kind).collect();
    assert!(!cases.is_empty(), "there are vectors of {kind}");
    cases.into_iter()
}

fn template(budget: &Value, capacity: u64) -> Arc<Template> {
    let mut parameters = vec![(
        "window".to_owned(),
        Some(budget["window"].as_str().unwrap().to_owned()),
    )];
    // The vectors bound no smallest amount where they name no largest call.
    let largest = budget["largest_call"].as_u64().unwrap_or(AMOUNT_MAX);
    parameters.push(("largest_call".to_owned(), Some(largest.to_string())));
    for (name, percent) in [("soft_limit", "soft_percent"), ("carry", "carry_percent")] {
        if let Some(percent) = budget[percent].as_u64() {
            parameters.push((name.to_owned(), Some(format!("{percent}%"))));
        }
    }
    if let Some(pace) = budget["pace"].as_object() {
        let pace = format!("{}% {}%", pace["start_percent"], pace["until_percent"]);
        parameters.push(("pace".to_owned(), Some(pace)));
    }
    let spec = TemplateSpec {
        identifier_glob: Some("budget".to_owned()),
        capacity: Some(capacity as f64),
        kind: Some(AlgorithmKind::Budget),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        parameters,
        ..TemplateSpec::default()
    };
    let templates = Templates::parse(&[spec]).unwrap();
    Arc::clone(templates.iter().next().unwrap())
}

/// One granter, played at the times of a vector.
struct Played {
    budget: Budget,
    spec: Value,
    first: UnixMillis,
}

impl Played {
    fn new(case: &Case) -> Self {
        let spec = case.budget.clone().unwrap();
        let first = case.events[0]["t_ms"].as_i64().unwrap();
        let template = template(&spec, spec["capacity"].as_u64().unwrap());
        let id = ResourceId::new("budget").unwrap();
        let caller = CallerSlot::NOBODY;
        Self {
            budget: Budget::of_root(
                id,
                template,
                (None, BTreeSet::new(), false),
                MASTERSHIP,
                caller,
                first,
            ),
            spec,
            first,
        }
    }

    /// Returns what happens, but for the sums.
    fn play(&mut self, event: &Value) -> Value {
        let at = event["t_ms"].as_i64().unwrap();
        // The engine's time does not go back.
        let now = Time::ZERO + Duration::from_millis((at - self.first).max(0).unsigned_abs());
        for key in ["capacity", "add"] {
            if let Some(capacity) = event[key].as_u64() {
                self.budget
                    .set_template(Some(&template(&self.spec, capacity)));
            }
        }
        if !event["remove"].is_null() {
            self.budget.set_template(None);
        }
        self.budget.look(at, now);
        let Some(ask) = event["ask"].as_object() else {
            return json!({});
        };
        let number = |name: &str| ask.get(name).and_then(Value::as_u64).unwrap_or(0);
        let present = self.budget.window();
        let start = ask.get("window_start").and_then(Value::as_i64);
        let period = self.budget.algorithm.budget.as_ref().unwrap().period;
        let book = ask.get("book").and_then(Value::as_str);
        let book = book.map(|book| {
            if book == "g1" {
                node_book(&self.budget.id)
            } else {
                1
            }
        });
        let claim = Claim {
            wants: Amount::new(number("need") as f64).unwrap(),
            subclients: Subclients::new(number("clients").max(1) as f64).unwrap(),
        };
        let word = Word {
            sequence: number("sequence"),
            book,
            mastership: Some(MASTERSHIP),
            window: Some(start.map_or(present, |start| period.at(start))),
            has: number("has"),
            taken: number("taken"),
            need: Demand::Client { priority: 0, claim },
            least: number("least"),
            streams: ask.get("stream").is_some_and(|it| it == true),
            closes: ask.get("closes").is_some_and(|it| it == true),
        };
        let account = AccountId {
            book: 0,
            holder: HolderId::client(
                HolderName::new(ask["holder"].as_str().unwrap()).unwrap(),
                None,
            ),
        };
        let closes = word.closes;
        let answer = match self.budget.ask(&account, word, at, now) {
            Ok(answer) if closes => return json!({"closed": answer.ceiling}),
            Ok(answer) => answer,
            Err(RefusalReason::NotReady) => return json!({"refused": "NOT_READY"}),
            Err(RefusalReason::UnknownResource) => return json!({"refused": "UNKNOWN_RESOURCE"}),
            Err(other) => panic!("{other}"),
        };
        let state = self.budget.state(answer.taken, at, now);
        let mut said = json!({"ceiling": answer.ceiling, "book": "g1"});
        if let Some(left) = state.ends_in {
            said["window_start"] = json!(state.window.start);
            said["ends_in_ms"] = json!(left.as_millis() as u64);
        }
        if !self.spec["soft_percent"].is_null() {
            said["soft"] = json!(state.soft);
        }
        said
    }
}

#[test]
fn a_granter_answers_as_the_oracle_says() {
    // One case has more than a capacity can be.
    let is_possible =
        |case: &Case| case.budget.as_ref().unwrap()["capacity"].as_u64() <= Some(AMOUNT_MAX);
    for case in cases("granter").filter(is_possible) {
        let mut played = Played::new(&case);
        for (step, (event, expected)) in case.events.iter().zip(&case.expect).enumerate() {
            let mut said = played.play(event);
            played.budget.assert_consistent();
            let granter = &played.budget.granter;
            said["sum"] = json!({"reserved": granter.reserved(), "taken": granter.taken()});
            assert_eq!(&said, expected, "{}, step {step}: {event}", case.name);
        }
    }
}

#[test]
fn windows_begin_and_end_where_the_oracle_says() {
    for case in cases("window") {
        let (window, offset) = (case.window.unwrap(), case.offset_s);
        let period = Period::parse(&window, &format!("{offset}s")).unwrap();
        for (event, expected) in case.events.iter().zip(&case.expect) {
            let window = period.at(event["t_ms"].as_i64().unwrap());
            let said = json!({"start": window.start, "end": window.end});
            assert_eq!(&said, expected, "{}: {event}", case.name);
        }
    }
}

#[test]
fn a_mark_leads_as_the_oracle_says() {
    for case in cases("mark") {
        let total = case.capacity;
        let mut mark = BudgetMark::default();
        for (event, expected) in case.events.iter().zip(&case.expect) {
            if let Some(due) = event["out"]
                .as_u64()
                .and_then(|out| mark.due(out, out, total))
            {
                mark.send(due);
                assert_eq!(mark.due(total, total, total), None, "one write at a time");
                mark.note_written();
            }
            if !event["lose"].is_null() {
                mark = BudgetMark::found(mark.confirmed());
                assert_eq!(json!(total - mark.confirmed()), expected["usable"]);
            }
            assert_eq!(
                json!(mark.confirmed()),
                expected["mark"],
                "{}: {event}",
                case.name
            );
        }
    }
}

#[test]
fn parameters_are_checked() {
    for (given, problems) in [
        ("window=hour", &[][..]),
        ("window=15m offset=-1h", &[]),
        ("window=day pace=10%/50%", &[]),
        ("", &["window"]),
        ("window=fortnight", &["window"]),
        ("window=day offset=soon", &["offset"]),
        ("window=day soft_limit=80", &["soft_limit"]),
        ("window=day carry=110%", &["carry"]),
        ("window=day pace=10%", &["pace"]),
        ("window=day pace=10%/0%", &["pace"]),
        ("window=lifetime pace=10%/50%", &["pace"]),
        ("window=day largest_call=-1", &["largest_call"]),
        (
            "window=never decimals=20 carry=1",
            &["decimals", "carry", "window"],
        ),
    ] {
        let pairs = given
            .split_whitespace()
            .map(|it| it.split_once('=').unwrap());
        let parameters = pairs.map(|(name, value)| (name.to_owned(), value.replace('/', " ")));
        let parsed = BudgetTerms::parse(parameters.collect());
        let found = parsed.err().unwrap_or_default();
        let found: Vec<_> = found.iter().map(|(name, _)| *name).collect();
        assert_eq!(found, problems, "{given:?}");
    }
}

#[test]
fn a_call_above_the_largest_one_is_served_to_who_is_alone() {
    let ask = |holder: &str, need: u64| {
        let ask =
            json!({"holder": holder, "sequence": 1, "need": need, "least": need, "stream": true});
        json!({"t_ms": 0, "ask": ask})
    };
    for (name, before, expected) in [
        ("alone", None, 60),
        ("another needs nothing", Some(0), 60),
        ("another needs some", Some(5), 20),
    ] {
        let budget = json!({"window": "hour", "capacity": 100, "largest_call": 10});
        let events = before.map(|need| ask("b", need)).into_iter();
        let events: Vec<_> = events.chain([ask("a", 60)]).collect();
        let case = json!({"kind": "granter", "name": name, "budget": budget, "events": events, "expect": []});
        let case: Case = serde_json::from_value(case).unwrap();
        let mut played = Played::new(&case);
        let said: Vec<_> = case.events.iter().map(|it| played.play(it)).collect();
        assert_eq!(said.last().unwrap()["ceiling"], json!(expected), "{name}");
    }
}
