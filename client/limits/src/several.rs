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
//! All limits are held from the first question to the last take ([`crate::limit`]), so the result is the same as if no
//! other thread took meanwhile. A limit may be in the list twice; then the takes before a refusal are refunded.

use std::cmp::Ordering;
use std::fmt;
use std::time::Duration;

use crate::decision::{Answer, Decision, Standing};
use crate::key::Key;
use crate::limit::{Act, Held, Limit};
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

/// Limits of the parts, held in the order of their addresses.
struct Holds<'a>(Vec<(usize, Box<dyn Held + 'a>)>);

impl<'a> Holds<'a> {
    fn new(parts: &[Part<'a>], now: Moment) -> Self {
        let mut limits: Vec<&'a dyn Limit> = parts.iter().map(|part| part.limit).collect();
        limits.sort_by_key(|limit| limit.address());
        let maps = limits.chunk_by(|one, other| one.address() == other.address());
        let held = maps.filter_map(|keys| {
            let limit = *keys.first()?;
            let keys: Vec<Key> = keys.iter().map(|limit| limit.key()).collect();
            Some((limit.address(), limit.hold(&keys, now)))
        });
        Self(held.collect())
    }

    /// Does the same operation on all parts.
    fn act(&mut self, act: Act, parts: &[Part<'a>]) -> Vec<Answer> {
        let answers = parts.iter().filter_map(|part| {
            let place = self
                .0
                .binary_search_by_key(&part.limit.address(), |it| it.0);
            let (_, held) = self.0.get_mut(place.ok()?)?;
            Some(held.act(act, part.limit.key(), part.cost))
        });
        answers.collect()
    }
}

/// Takes from all limits, or from none. Returns `None` if there are no limits.
pub fn take<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    let mut held = Holds::new(parts, now);
    let mut answers = held.act(Act::Peek, parts);
    let all_allow = |answers: &[Answer]| answers.iter().all(|it| it.decision.is_allowed());
    if all_allow(&answers) {
        answers = held.act(Act::Take, parts);
        if all_allow(&answers) {
            return verdict(parts, &answers);
        }
        // The same limit is in the list twice.
        for (part, answer) in parts.iter().zip(&answers) {
            if answer.decision.is_allowed() {
                held.act(Act::Refund, std::slice::from_ref(part));
            }
        }
    } else {
        // A ban that begins now has another standing.
        for (answer, after) in answers.iter_mut().zip(held.act(Act::Attempt, parts)) {
            answer.standing = after.standing;
        }
    }
    verdict(parts, &answers)
}

/// Returns the answer that a take would get, without taking.
pub fn peek<'a>(parts: &[Part<'a>], now: Moment) -> Option<Verdict<'a>> {
    verdict(parts, &Holds::new(parts, now).act(Act::Peek, parts))
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
