//! What is used below a node, against the most that may be by the books of its parent, at every level of the
//! tree: what its own clients use, and what those of all nodes below it use.

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::exact_sum::ExactSum;
use doorward_engine::template::Algorithm;
use doorward_engine::time::Time;

use crate::checker::{ROUNDING, Watched};
use crate::planted::{self, Blunt};
use crate::recording::Checker;

/// What rounding may leave over of sums, relative to the capacity.
const OF_ALL: f64 = 1e-14;

/// What a node's parent says of it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct NodeBook {
    /// The parent's place among the nodes, before its own. None: it is the root.
    pub(crate) parent: Option<u32>,
    /// The most that may be in use below the node, as its parent has it. None: there is no parent that knows.
    pub(crate) reserved: Option<f64>,
}

#[derive(Debug)]
pub(super) struct Nesting {
    /// What the clients at each node may use by their leases.
    used: Vec<ExactSum>,
    has_template: bool,
    /// When the root began to learn, and until when it may not know what is out: by its own clock.
    learns_since: Time,
    learns_until: Time,
    /// The largest part by which a subtree used more than was reserved for it, and when.
    pub(super) worst: (f64, Time),
}

impl Nesting {
    pub(super) fn new(learns: Duration) -> Self {
        Self {
            used: Vec::new(),
            has_template: true,
            learns_since: Time::ZERO,
            learns_until: Time::ZERO + learns,
            worst: (0.0, Time::ZERO),
        }
    }

    /// The lease of a client there is another.
    pub(super) fn replace(&mut self, place: u32, before: Amount, after: Amount) {
        let place = place as usize;
        if place >= self.used.len() {
            self.used.resize(place + 1, ExactSum::ZERO);
        }
        if let Some(used) = self.used.get_mut(place) {
            used.replace(before, after);
        }
    }

    fn used_at(&self, place: usize) -> f64 {
        self.used.get(place).map_or(0.0, ExactSum::rounded_down)
    }

    /// What is used below each node, its own clients included.
    fn used_below(&self, books: &[NodeBook]) -> Vec<f64> {
        let mut used: Vec<f64> = (0..books.len()).map(|place| self.used_at(place)).collect();
        if planted::is(Blunt::NestingOfParentsOnly) {
            return used;
        }
        // Parents stand before their children: from the leaves up.
        for (place, book) in books.iter().enumerate().rev() {
            let below = used.get(place).copied().unwrap_or_default();
            if let Some(used) = book.parent.and_then(|parent| used.get_mut(parent as usize)) {
                *used += below;
            }
        }
        used
    }

    /// Another template is in force, or none; leases by the former ones end then, by the root's clock.
    pub(super) fn note_template(&mut self, has: bool, algorithm: &Algorithm, former: Time) {
        let learns_until = self.learns_since + algorithm.learning_mode_duration;
        self.learns_until = self.learns_until.max(learns_until);
        if !has || !self.has_template {
            // What nothing matches is forgotten, though leases are out.
            self.learns_until = self.learns_until.max(former);
        }
        self.has_template = has;
    }

    /// Another root was elected, when its clock showed this, and learns for so long.
    pub(super) fn note_learning(&mut self, learns: Duration, local: Time) {
        self.learns_since = local;
        let learns_until = local + learns;
        self.learns_until = self.learns_until.max(learns_until);
    }

    /// Whether the root may know nothing of this, though it is used, when its clock shows this.
    fn may_be_unknown(&self, local: Time) -> bool {
        local <= self.learns_until
    }

    /// What all below a node use, and the most that may be in use there by its parent's books.
    fn note(&mut self, used: f64, reserved: f64, capacity: f64, now: Time) {
        let is_unseen = planted::is(Blunt::NestingOfNothingUnseen) && reserved <= 0.0;
        if is_unseen || !planted::sees(Checker::Nesting, now) {
            return;
        }
        // Nor is what rounding leaves of the whole, where next to nothing is reserved.
        if used <= reserved * (1.0 + ROUNDING) || used - reserved <= capacity * OF_ALL {
            return;
        }
        // Of what is hardly anything, a little is a large part: what is reserved may be nothing.
        let of = reserved.max(capacity);
        let over = if of > 0.0 {
            (used - reserved) / of
        } else {
            1.0
        };
        if over > self.worst.0 {
            self.worst = (over, now);
        }
    }
}

impl Watched {
    /// What parents say of their children, by the places of the nodes.
    pub(crate) fn note_books(&mut self, books: &[NodeBook], now: Time) {
        let used = self.nesting.used_below(books);
        for (used, book) in used.into_iter().zip(books) {
            if planted::is(Blunt::NestingOfRootsOnly) && book.parent != Some(0) {
                continue;
            }
            if let Some(reserved) = book.reserved {
                self.note_nesting(used, reserved, now);
            }
        }
    }

    /// What all below a node use, and the most that may be in use there by its parent's books.
    pub(super) fn note_nesting(&mut self, used: f64, reserved: f64, now: Time) {
        if self.overshoot.is_accounted(now) {
            let capacity = self.overshoot.capacity;
            self.nesting.note(used, reserved, capacity, now);
        }
    }

    /// Whether a root that is up may know nothing of this, though clients use it.
    pub(crate) fn may_be_unknown(&self, now: Time) -> bool {
        self.nesting.may_be_unknown(self.overshoot.local(now))
    }
}
