//! Marks of the windows of budgets. The store has them beside those of leases, under names of their own.

use std::time::Duration;

use crate::amount::Amount;
use crate::continuity::mark::Mark;
use crate::id::ResourceId;
use crate::node::Node;
use crate::node::budgets::Budgets;
use crate::time::Time;

impl Budgets {
    /// Begins to write the mark of that key. None: it is not that of a budget, or there is nothing to write.
    pub(in crate::node) fn send_mark(&mut self, key: &ResourceId) -> Option<(Option<Mark>, bool)> {
        let (id, start) = key.window()?;
        let budget = &mut self.by_id.get_mut(&id)?.budget;
        if budget.window().start != start {
            return budget.remove_mark(start).then_some((None, true));
        }
        let (amount, was_there) = budget.send_mark()?;
        let mark = Mark {
            amount: Some(Amount::from_computed(amount as f64)),
            longest: Duration::ZERO,
        };
        Some((Some(mark), was_there))
    }
}

impl Node {
    /// Notes that a mark is in the store, if it is that of a budget.
    pub(in crate::node) fn note_budget_mark_written(&mut self, key: &ResourceId, now: Time) {
        if let Some((id, _)) = key.window() {
            if let Some(place) = self.budgets.by_id.get_mut(&id) {
                place.budget.note_mark_written();
                let at = self.budgets.clock.at(now);
                place.budget.look(at, now);
            }
            self.settle_budget(&id, now);
        }
    }
}
