//! Several limits at once: all must allow, or none is charged.
//!
//! A log-in may be limited by address *and* by name, a query by requests *and* by what it costs. All are asked first;
//! only if all allow does each take its own cost. The most restrictive one is told, by its place in the list:
//!
//! - refused: the one with the longest wait (*never* is the longest), then the first;
//! - allowed: the one that lets the fewest more like this pass (remaining/cost, a cost of 0 counting as 1), then the one
//!   with the longer reset, then the first.
//!
//! A ban takes note of attempts, also of those that another limit refuses.

use std::cmp::Ordering;

use crate::algorithm::Algorithm;
use crate::decision::{Decision, Standing};
use crate::limiter::Limiter;
use crate::moment::Moment;
use crate::rest::compare_products;
use crate::units::Units;

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
    /// The answer of all: that of the limit that is told.
    pub decision: Decision,
    /// The most restrictive limit, by its place in the list; and how it stands now.
    pub told: usize,
    /// Its name.
    pub name: &'a str,
    /// How it stands now.
    pub standing: Standing,
    /// All that refuse, by their place in the list.
    pub refused_by: Vec<usize>,
}

/// Takes from all of them, or from none. None at all allow nothing to be told: the answer is none.
pub fn take<'a>(parts: &mut [Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let refusal = refused(parts, now);
    if refusal.is_some() {
        for part in parts {
            part.limit.attempt(part.cost, now);
        }
        return refusal;
    }
    let decisions = parts.iter_mut().map(|part| part.limit.take(part.cost, now));
    let decisions: Vec<Decision> = decisions.collect();
    allowed(parts, decisions)
}

/// What a take would answer, without taking.
pub fn peek<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    refused(parts, now).or_else(|| {
        let decisions = parts.iter().map(|part| part.limit.peek(part.cost, now));
        allowed(parts, decisions.collect())
    })
}

/// If any refuses: the one that is told.
fn refused<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let mut verdict: Option<Verdict<'a>> = None;
    for (index, part) in parts.iter().enumerate() {
        let decision = part.limit.peek(part.cost, now);
        if decision.is_allowed() {
            continue;
        }
        let refusal = || Verdict {
            decision,
            told: index,
            name: part.name,
            standing: part.limit.standing(now),
            refused_by: Vec::new(),
        };
        let verdict = verdict.get_or_insert_with(refusal);
        if is_longer(&decision, &verdict.decision) {
            let refused_by = std::mem::take(&mut verdict.refused_by);
            *verdict = refusal();
            verdict.refused_by = refused_by;
        }
        verdict.refused_by.push(index);
    }
    verdict
}

/// Whether a refusal makes wait for longer than another one.
fn is_longer(one: &Decision, other: &Decision) -> bool {
    match (one, other) {
        (Decision::After(one), Decision::After(other)) => one > other,
        (Decision::Never(_), Decision::After(_)) => true,
        _ => false,
    }
}

/// All have allowed it: the one that is told.
fn allowed<'a>(parts: &[Part<'a>], decisions: Vec<Decision>) -> Option<Verdict<'a>> {
    let mut verdict: Option<Verdict<'a>> = None;
    for (index, (part, decision)) in parts.iter().zip(decisions).enumerate() {
        let Decision::Allowed(allowed) = decision else {
            continue;
        };
        let standing = Standing {
            remaining: allowed.remaining,
            reset: allowed.reset,
        };
        let is_tighter = verdict.as_ref().is_none_or(|told| {
            let told_cost = parts.get(told.told).map_or(Units::ONE, |part| part.cost);
            let of_it = (&standing, part.cost);
            more_like_this(of_it, (&told.standing, told_cost)) == Ordering::Less
        });
        if is_tighter {
            verdict = Some(Verdict {
                decision,
                told: index,
                name: part.name,
                standing,
                refused_by: Vec::new(),
            });
        }
    }
    verdict
}

/// By how many more like this pass, fewest first, then by the reset, longest first.
pub(crate) fn more_like_this(one: (&Standing, Units), other: (&Standing, Units)) -> Ordering {
    let cost = |cost: Units| match cost {
        Units::ZERO => Units::ONE.parts(),
        cost => cost.parts(),
    };
    compare_products(
        one.0.remaining.parts(),
        cost(other.1),
        other.0.remaining.parts(),
        cost(one.1),
    )
    .then_with(|| other.0.reset.cmp(&one.0.reset))
}
