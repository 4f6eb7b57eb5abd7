//! Several limits at once: all must allow, or none is charged.
//!
//! A log-in may be limited by address *and* by name, a query by requests *and* by its cost. All limits are asked first;
//! only if all allow does each take its own cost. The answer is that of the strictest one, by its place in the list:
//!
//! - refused: the one with the longest wait (*never* is the longest), then the first;
//! - allowed: the one that lets the fewest more such requests pass (remaining/cost, a cost of 0 counting as 1), then
//!   the one with the longer reset, then the first.
//!
//! A ban records attempts, even those that another limit refuses.
//!
//! If another thread takes between the questions and the takes, the takes before a refusal are refunded. So no request
//! passes needlessly; of two that meet, one may be refused needlessly. A limit may be in the list twice.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use crate::decision::{Answer, Decision, Standing};
use crate::limit::Limit;
use crate::moment::Moment;
use crate::units::Units;
use crate::wide::compare_products;

/// One of several limits, and its cost of the request.
pub struct Part<'a> {
    /// Name of the limit.
    pub name: &'a str,
    /// The limit.
    pub limit: &'a dyn Limit,
    /// Cost of the request; 0 only asks.
    pub cost: Units,
}

impl fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, cost, .. } = self;
        f.debug_struct("Part")
            .field("name", name)
            .field("cost", cost)
            .finish_non_exhaustive()
    }
}

/// The answer of several limits.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is refused must not be done"]
pub struct Verdict<'a> {
    /// Decision of all: that of the strictest limit.
    pub decision: Decision,
    /// Place of the strictest limit in the list.
    pub strictest: usize,
    /// Its name.
    pub name: &'a str,
    /// Its standing now.
    pub standing: Standing,
    /// Places of all limits that refuse.
    pub refused_by: Vec<usize>,
}

impl Part<'_> {
    fn answer(&self, decision: Decision, now: Moment) -> Answer {
        let standing = match decision {
            Decision::Allowed(allowed) => Standing::new(allowed.remaining, allowed.reset),
            _ => self.limit.standing(now),
        };
        Answer {
            decision,
            standing,
            cost: self.cost,
        }
    }
}

/// Does the same operation on all parts.
fn answers(
    parts: &[Part<'_>],
    now: Moment,
    ask: fn(&dyn Limit, Units, Moment) -> Decision,
) -> Vec<Answer> {
    let answers = parts.iter();
    let answers = answers.map(|part| part.answer(ask(part.limit, part.cost, now), now));
    answers.collect()
}

/// Takes from all limits, or from none. Returns `None` if there are no limits.
pub fn take<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let all_allow = |answers: &[Answer]| answers.iter().all(|it| it.decision.is_allowed());
    let mut asked = answers(parts, now, |limit, cost, now| limit.peek(cost, now));
    if all_allow(&asked) {
        asked = answers(parts, now, |limit, cost, now| limit.take(cost, now));
        if all_allow(&asked) {
            return verdict(parts, &asked);
        }
        // Another thread was earlier, or the same limit is in the list twice.
        for (part, answer) in parts.iter().zip(&asked) {
            if answer.decision.is_allowed() {
                part.limit.refund(part.cost, now);
            }
        }
    } else {
        for (part, answer) in parts.iter().zip(&mut asked) {
            part.limit.attempt(part.cost, now);
            // A ban that begins now has another standing.
            answer.standing = part.limit.standing(now);
        }
    }
    verdict(parts, &asked)
}

/// Returns the answer that a take would get, without taking.
pub fn peek<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let asked = answers(parts, now, |limit, cost, now| limit.peek(cost, now));
    verdict(parts, &asked)
}

fn verdict<'a>(parts: &[Part<'a>], answers: &[Answer]) -> Option<Verdict<'a>> {
    let strictest = strictest(answers)?;
    let refusals = answers.iter().enumerate();
    let refusals = refusals.filter(|(_, it)| !it.decision.is_allowed());
    Some(Verdict {
        decision: answers.get(strictest)?.decision,
        strictest,
        name: parts.get(strictest)?.name,
        standing: answers.get(strictest)?.standing,
        refused_by: refusals.map(|(index, _)| index).collect(),
    })
}

/// Returns the place of the strictest of several answers; `None` if there are none.
pub fn strictest<'a>(answers: impl IntoIterator<Item = &'a Answer>) -> Option<usize> {
    // The first of those that are equally strict.
    let places = answers.into_iter().enumerate();
    let most = places.min_by(|one, other| restriction(other.1, one.1));
    most.map(|(place, _)| place)
}

/// Compares the strictness of two answers.
fn restriction(one: &Answer, other: &Answer) -> Ordering {
    match (one.decision, other.decision) {
        (Decision::Allowed(_), Decision::Allowed(_)) => {
            let cost = |it: &Answer| match it.cost {
                Units::ZERO => Units::ONE.parts(),
                cost => cost.parts(),
            };
            let (left, others) = (one.standing.remaining, other.standing.remaining);
            compare_products(left.parts(), cost(other), others.parts(), cost(one))
                .reverse()
                .then(one.standing.reset.cmp(&other.standing.reset))
        }
        (one, other) => waits(one).cmp(&waits(other)),
    }
}

/// Returns the wait of a refusal, for a comparison: never is longest.
fn waits(decision: Decision) -> (u8, Duration) {
    match decision {
        Decision::Allowed(_) => (0, Duration::ZERO),
        Decision::After(span) => (1, span),
        Decision::Never(_) => (2, Duration::ZERO),
    }
}
