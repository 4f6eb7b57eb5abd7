//! Checks that the use below a node stays within what its parent reserved for it, at every level of
//! the tree. It counts the clients of the node and of all nodes below it.

use std::collections::BTreeMap;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::templates::Algorithm;
use doorward_engine::time::Time;

use crate::checker::{Extreme, ROUNDING, Watched};
use crate::numbered::Numbered;
use crate::recording::part;

/// Error that rounding may leave in sums, relative to the capacity.
const OF_ALL: f64 = 1e-14;

/// Parent's books on a node.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NodeBook {
    /// Index of the parent, which is smaller than its own. `None` for the root.
    pub(crate) parent: Option<u32>,
    /// Most that may be in use below the node, by the parent's books. `None` if no parent knows.
    pub(crate) reserved: Option<f64>,
}

#[derive(Debug, Default)]
pub(super) struct Nesting {
    /// Sum of the leases of the clients at each node.
    used: BTreeMap<u32, ExactSum>,
    lacks_template: bool,
    /// Start of the root's learning mode, and the end of the time in which it may not know of
    /// leases, by its own clock.
    learns_since: Time,
    pub(super) learns_until: Time,
    /// Largest excess of a subtree over its reservation, and when.
    pub(super) worst: Extreme<f64>,
}

impl Nesting {
    /// Notes a changed lease of a client at that node.
    pub(super) fn replace(&mut self, place: u32, before: Amount, after: Amount) {
        self.used.entry(place).or_default().replace(before, after);
    }

    /// Returns the use below each node, its own clients included.
    fn used_below(&self, books: &Numbered<NodeBook>) -> Numbered<f64> {
        let used_at = |place| self.used.get(&place).map_or(0.0, ExactSum::rounded_down);
        let mut used: Numbered<f64> = books.numbers().map(used_at).collect();
        // Parents come before their children, so the loop goes from the leaves up.
        for place in books.numbers().rev() {
            let below = used[place];
            if let Some(parent) = books[place].parent {
                used[parent] += below;
            }
        }
        used
    }

    /// Notes another template, or none. Leases by former templates end at `former`, by the root's
    /// clock.
    pub(super) fn note_template(&mut self, has: bool, algorithm: &Algorithm, former: Time) {
        let learns_until = self.learns_since + algorithm.learning_mode_duration;
        self.learns_until = self.learns_until.max(learns_until);
        if !has || self.lacks_template {
            // A resource without a template is forgotten, although its leases are still valid.
            self.learns_until = self.learns_until.max(former);
        }
        self.lacks_template = !has;
    }

    /// Notes that a new master of the root starts learning mode, when its clock shows `local`.
    pub(super) fn note_learning(&mut self, learns: Duration, local: Time) {
        self.learns_since = local;
        let learns_until = local + learns;
        self.learns_until = self.learns_until.max(learns_until);
    }
}

impl Watched {
    /// Compares the use below each node with its parent's books.
    pub(crate) fn note_books(&mut self, books: &Numbered<NodeBook>, now: Time) {
        let used = self.nesting.used_below(books);
        for (used, book) in used.iter().zip(books.iter()) {
            if let Some(reserved) = book.reserved {
                self.note_nesting(*used, reserved, now);
            }
        }
    }

    /// Compares the use below a node with its parent's reservation, if all use is accounted for.
    pub(super) fn note_nesting(&mut self, used: f64, reserved: f64, now: Time) {
        if !self.overshoot.is_accounted(now) {
            return;
        }
        let capacity = self.overshoot.capacity;
        // Rounding of the whole may exceed a very small reservation.
        if used <= reserved * (1.0 + ROUNDING) || used - reserved <= capacity * OF_ALL {
            return;
        }
        // The excess is a part of the capacity, because the reservation may be tiny or zero.
        let of = reserved.max(capacity);
        self.nesting.worst.note(part(used - reserved, of, 1.0), now);
    }

    /// Returns whether a root that is up may not know of leases that clients use.
    pub(crate) fn may_be_unknown(&self, now: Time) -> bool {
        self.overshoot.clock.shows(now) <= self.nesting.learns_until
    }
}
