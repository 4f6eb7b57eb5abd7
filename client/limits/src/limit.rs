//! The interface of all limits that threads share: one limit ([`crate::Shared`], [`crate::AtomicBucket`]), or one key
//! of a map ([`crate::keyed::AtKey`]).
//!
//! Each operation is atomic. [`crate::several`] takes from several limits, all or nothing: it *holds* them meanwhile.
//! Limits are held in the order of their addresses, and a map holds its shards in their order and its overflow last.
//! So all threads lock in one order, and no deadlock is possible.

use crate::algorithm::Algorithm;
use crate::decision::{Answer, Decision, Standing};
use crate::key::Key;
use crate::moment::Moment;
use crate::units::Units;

/// A limit that many threads use by reference.
///
/// Two shared limits have an interface of their own. [`crate::InFlight`] cannot say when a permit comes back. The owner
/// of a [`crate::AtomicFedBucket`] reads its clock again where the lease ends, so a take by itself has no final answer.
pub trait Limit: Send + Sync {
    /// Takes `cost` if it is available.
    fn take(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the answer that a take would get. A peek of 0 only looks.
    fn peek(&self, cost: Units, now: Moment) -> Decision;

    /// Returns the standing of the limit, even if it refuses.
    fn standing(&self, now: Moment) -> Standing;

    /// Takes `cost`, available or not.
    fn charge(&self, cost: Units, now: Moment);

    /// Gives back `cost`. Any amount above full is lost.
    fn refund(&self, cost: Units, now: Moment);

    /// Returns the address of the limit, or of the map for one of its keys.
    fn address(&self) -> usize;

    /// Returns the key in the map.
    fn key(&self) -> Key {
        Key::NONE
    }

    /// Holds the limit, or the given keys of the map: no other thread uses them until the result is dropped.
    fn hold(&self, keys: &[Key], now: Moment) -> Box<dyn Held + '_>;
}

/// A limit, or some keys of a map, that only one thread uses.
pub trait Held {
    /// Does one operation, on the given key if it is a map.
    fn act(&mut self, act: Act, key: Key, cost: Units) -> Answer;
}

/// Operation on a held limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    /// Returns the answer that a take would get.
    Peek,
    /// Takes the cost if it is available.
    Take,
    /// Records an attempt that another limit refused.
    Attempt,
    /// Gives back the cost.
    Refund,
}

/// Does one operation on a state.
pub(crate) fn act<A: Algorithm>(
    limit: &A,
    state: &mut A::State,
    act: Act,
    cost: Units,
    now: Moment,
) -> Answer {
    match act {
        Act::Attempt => limit.attempt(state, cost, now),
        Act::Refund => limit.refund(state, cost, now),
        Act::Peek | Act::Take => {}
    }
    let decision = match act {
        Act::Take => limit.take(state, cost, now),
        _ => limit.peek(state, cost, now),
    };
    let standing = match (act, decision) {
        (Act::Peek | Act::Take, Decision::Allowed(allowed)) => Standing {
            remaining: allowed.remaining,
            reset: allowed.reset,
            debt: Units::ZERO,
        },
        _ => limit.standing(state, now),
    };
    Answer {
        decision,
        standing,
        cost,
    }
}
