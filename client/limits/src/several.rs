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

use std::cmp::Ordering;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::limiter::Limiter;
use crate::moment::Moment;
use crate::units::Units;
use crate::wide::compare_products;

/// A limit of any algorithm, for use together with others.
pub trait Limit {
    /// Takes `cost` if it is available.
    fn take(&mut self, cost: Units, now: Moment) -> Decision;
    /// Returns the answer that a take would get.
    fn peek(&self, cost: Units, now: Moment) -> Decision;
    /// Records an attempt that another limit refused.
    fn attempt(&mut self, cost: Units, now: Moment);
    /// Returns the standing, even if it refuses.
    fn standing(&self, now: Moment) -> Standing;
    /// Takes `cost`, available or not.
    fn charge(&mut self, cost: Units, now: Moment);
    /// Gives back `cost`.
    fn refund(&mut self, cost: Units, now: Moment);
}

impl<A: Algorithm> Limit for Limiter<A> {
    fn take(&mut self, cost: Units, now: Moment) -> Decision {
        Limiter::take(self, cost, now)
    }

    fn peek(&self, cost: Units, now: Moment) -> Decision {
        Limiter::peek(self, cost, now)
    }

    fn attempt(&mut self, cost: Units, now: Moment) {
        Limiter::attempt(self, cost, now);
    }

    fn standing(&self, now: Moment) -> Standing {
        Limiter::standing(self, now)
    }

    fn charge(&mut self, cost: Units, now: Moment) {
        Limiter::charge(self, cost, now);
    }

    fn refund(&mut self, cost: Units, now: Moment) {
        Limiter::refund(self, cost, now);
    }
}

/// One of several limits, and its cost of the request.
pub struct Part<'a> {
    /// Name of the limit.
    pub name: &'a str,
    /// The limit.
    pub limit: &'a mut dyn Limit,
    /// Cost of the request; 0 only asks.
    pub cost: Units,
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

/// The answer of one of several limits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Its decision.
    pub decision: Decision,
    /// Its standing now.
    pub standing: Standing,
    /// Cost of the request.
    pub cost: Units,
}

/// Takes from all limits, or from none. Returns `None` if there are no limits.
pub fn take<'a>(parts: &mut [Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let answers = asked(parts, now);
    if answers.iter().all(|it| it.decision.is_allowed()) {
        let answers = parts.iter_mut().map(|part| {
            let decision = part.limit.take(part.cost, now);
            answer(part, decision, now)
        });
        let answers: Vec<Answer> = answers.collect();
        return verdict(parts, &answers);
    }
    let answers = parts.iter_mut().zip(answers).map(|(part, answer)| {
        part.limit.attempt(part.cost, now);
        // A ban that begins now has another standing.
        let standing = part.limit.standing(now);
        Answer { standing, ..answer }
    });
    let answers: Vec<Answer> = answers.collect();
    verdict(parts, &answers)
}

/// Returns the answer that a take would get, without taking.
pub fn peek<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    verdict(parts, &asked(parts, now))
}

fn asked(parts: &[Part<'_>], now: Moment) -> Vec<Answer> {
    let ask = |part: &Part<'_>| answer(part, part.limit.peek(part.cost, now), now);
    parts.iter().map(ask).collect()
}

fn answer(part: &Part<'_>, decision: Decision, now: Moment) -> Answer {
    let standing = match decision {
        Decision::Allowed(allowed) => Standing {
            remaining: allowed.remaining,
            reset: allowed.reset,
        },
        _ => part.limit.standing(now),
    };
    Answer {
        decision,
        standing,
        cost: part.cost,
    }
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
pub fn strictest(answers: &[Answer]) -> Option<usize> {
    // The first of those that are equally strict.
    let places = answers.iter().enumerate();
    let most = places.reduce(|most, it| {
        if restriction(it.1, most.1) == Ordering::Greater {
            it
        } else {
            most
        }
    });
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
