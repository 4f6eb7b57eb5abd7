//! The place of a request, which belongs to its work.

use std::sync::{Arc, Mutex};

use super::{Cost, Permit};
use crate::layer::leases::Held;
use crate::lock::lock;

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
    outcome: Mutex<Outcome>,
}

/// Fate of a request.
#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    /// It has no answer yet.
    Open,
    Answered,
    /// The service failed, which says nothing about the cost of an answer.
    Failed,
}

impl InFlight {
    /// Creates the place of a request that is served.
    pub(crate) fn new(permit: Option<Permit>, leases: Held, cost: Cost) -> Self {
        Self(Arc::new(Work {
            permit,
            leases,
            cost,
            outcome: Mutex::new(Outcome::Open),
        }))
    }

    /// Takes the answer into account.
    pub(crate) fn answer(&self, is_failure: bool) {
        *lock(&self.0.outcome) = match is_failure {
            true => Outcome::Failed,
            false => Outcome::Answered,
        };
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let outcome = *lock(&self.outcome);
        let Some(permit) = self.permit.take() else {
            return;
        };
        match outcome {
            Outcome::Answered => {
                let leases = std::mem::take(&mut self.leases);
                leases.settle(permit.settle(self.cost.get()));
            }
            Outcome::Open => permit.warn_of_drop(),
            Outcome::Failed => {}
        }
    }
}

debug_by_name!(Work);
