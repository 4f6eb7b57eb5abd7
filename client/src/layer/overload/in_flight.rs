//! The place of a request, which belongs to its work.

use std::sync::{Arc, OnceLock};

use super::{Cost, Permit};
use crate::layer::leases::Held;

/// The place of a request. A handler finds it in the extensions of the request. The request is in flight until its
/// answer begins, and as long as there is a clone: move one into a blocking task, a spawned one, or the stream of an
/// answer. The layer cannot know of work that goes on without it after the caller has gone.
#[derive(Clone, Debug)]
pub struct InFlight(Arc<Work>);

/// Work on a request, which ends when this is dropped.
struct Work {
    /// That of overload control, if the layer has it.
    permit: Option<Permit>,
    leases: Held,
    cost: Cost,
    /// Whether the service failed, which says nothing about the cost of an answer. Empty before the answer.
    has_failed: OnceLock<bool>,
}

impl InFlight {
    /// Creates the place of a request that is served.
    pub(crate) fn new(permit: Option<Permit>, leases: Held, cost: Cost) -> Self {
        Self(Arc::new(Work {
            permit,
            leases,
            cost,
            has_failed: OnceLock::new(),
        }))
    }

    /// Takes the answer into account.
    pub(crate) fn answer(&self, is_failure: bool) {
        self.0.has_failed.get_or_init(|| is_failure);
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let Some(permit) = self.permit.take() else {
            return;
        };
        match self.has_failed.get() {
            Some(false) => {
                let leases = std::mem::take(&mut self.leases);
                leases.settle(permit.settle(self.cost.get()));
            }
            None => permit.warn_of_drop(),
            Some(true) => {}
        }
    }
}

debug_by_name!(Work);
