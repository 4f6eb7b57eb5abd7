//! Marks of the windows of budgets. The store has them beside those of leases, under names of their own.

use std::time::Duration;

use doorward_time::marks::BUDGET_KEY;

use crate::amount::Amount;
use crate::continuity::mark::Mark;
use crate::id::{IdError, ResourceId};
use crate::node::Node;
use crate::node::budgets::Budgets;
use crate::templates::window::UnixMillis;
use crate::time::Time;

impl Budgets {
    /// Begins to write the mark of that key. None: it is not that of a budget, or there is nothing to write.
    pub(in crate::node) fn send_mark(&mut self, key: &ResourceId) -> Option<(Option<Mark>, bool)> {
        let (id, start) = parse_mark_key(key.as_str())?;
        let budget = &mut self.by_id.get_mut(&id)?.budget;
        if budget.window().start != start {
            return Some((None, true));
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
        if let Some((id, _)) = parse_mark_key(key.as_str()) {
            if let Some(place) = self.budgets.by_id.get_mut(&id) {
                place.budget.note_mark_written();
                let at = self.budgets.clock.at(now);
                place.budget.look(at, now);
            }
            self.settle_budget(&id, now);
        }
    }
}

/// Returns the name under which the store has the mark of a budget's window.
///
/// # Errors
///
/// If it is too long.
pub(in crate::node) fn mark_key(id: &ResourceId, start: UnixMillis) -> Result<ResourceId, IdError> {
    ResourceId::new(&format!("{id}{BUDGET_KEY}{start}"))
}

fn parse_mark_key(key: &str) -> Option<(ResourceId, UnixMillis)> {
    let (id, start) = key.rsplit_once(BUDGET_KEY)?;
    Some((ResourceId::new(id).ok()?, start.parse().ok()?))
}
