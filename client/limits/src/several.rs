//! Several limits at once: all must allow, or none is charged.
//!
//! A log-in may be limited by address *and* by name, a query by requests *and* by what it costs. All are asked first;
//! only if all allow does each take its own cost. The answer is that of the strictest one, by its place in the list:
//!
//! - refused: the one with the longest wait (*never* is the longest), then the first;
//! - allowed: the one that lets the fewest more like this pass (remaining/cost, a cost of 0 counting as 1), then the one
//!   with the longer reset, then the first.
//!
//! A ban takes note of attempts, also of those that another limit refuses.

use std::cmp::Ordering;
use std::time::Duration;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::limiter::Limiter;
use crate::moment::Moment;
use crate::units::Units;
use crate::wide::compare_products;

/// Any limit, whatever its algorithm: what several of them are made of.
pub trait Limit {
    /// Takes so much if it is there.
    fn take(&mut self, cost: Units, now: Moment) -> Decision;
    /// What a take would answer.
    fn peek(&self, cost: Units, now: Moment) -> Decision;
    /// Another limit refused this.
    fn attempt(&mut self, cost: Units, now: Moment);
    /// How it stands, also when it refuses.
    fn standing(&self, now: Moment) -> Standing;
    /// Takes so much whether or not it is there.
    fn charge(&mut self, cost: Units, now: Moment);
    /// Gives back so much.
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

/// One of several limits, and what this costs it.
pub struct Part<'a> {
    /// What it is called.
    pub name: &'a str,
    /// The limit.
    pub limit: &'a mut dyn Limit,
    /// What this costs it; 0 only asks.
    pub cost: Units,
}

/// What several limits answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "what is refused must not be done"]
pub struct Verdict<'a> {
    /// The answer of all: that of the strictest limit.
    pub decision: Decision,
    /// The strictest limit, by its place in the list.
    pub strictest: usize,
    /// Its name.
    pub name: &'a str,
    /// How it stands now.
    pub standing: Standing,
    /// All that refuse, by their place in the list.
    pub refused_by: Vec<usize>,
}

/// What one of several limits answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Answer {
    /// What it says.
    pub decision: Decision,
    /// How it stands now.
    pub standing: Standing,
    /// What this costs it.
    pub cost: Units,
}

/// Takes from all of them, or from none. If there are none, nothing limits it, and there is nothing to tell.
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
        // A ban that begins now stands otherwise.
        let standing = part.limit.standing(now);
        Answer { standing, ..answer }
    });
    let answers: Vec<Answer> = answers.collect();
    verdict(parts, &answers)
}

/// What a take would answer, without taking.
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

/// The strictest of several answers, by its place; none if there are none.
pub fn strictest(answers: &[Answer]) -> Option<usize> {
    // The first of those that are equally restrictive.
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

/// Whether one answer is more restrictive than another one.
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

/// How long a refusal makes wait: never is longest.
fn waits(decision: Decision) -> (u8, Duration) {
    match decision {
        Decision::Allowed(_) => (0, Duration::ZERO),
        Decision::After(span) => (1, span),
        Decision::Never(_) => (2, Duration::ZERO),
    }
}
