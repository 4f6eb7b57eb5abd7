//! The place of a request, which belongs to its work.

use std::sync::{Arc, Mutex, PoisonError};

use super::{Cost, Permit};
use crate::layer::leases::Held;

/// The place of a request. A handler finds it in the extensions of the request. The request is in flight until its
/// answer begins, and as long as there is a clone: move one into a blocking task, a spawned one, or the stream of an
/// answer. The layer cannot know of work that goes on without it after the caller has gone.
#[derive(Clone, Debug)]
pub struct InFlight(Arc<Work>);

/// Ends a request when it is dropped.
#[derive(Debug)]
struct Work {
    parts: Mutex<Option<Parts>>,
}

/// Parts of a request that end with its work.
struct Parts {
    /// That of overload control, if the layer has it.
    permit: Option<Permit>,
    leases: Held,
    cost: Cost,
    outcome: Outcome,
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
        let outcome = Outcome::Open;
        let parts = Mutex::new(Some(Parts {
            permit,
            leases,
            cost,
            outcome,
        }));
        Self(Arc::new(Work { parts }))
    }

    /// Takes the answer into account.
    pub(crate) fn answer(&self, is_failure: bool) {
        let mut parts = self.0.parts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(parts) = parts.as_mut() {
            parts.outcome = if is_failure {
                Outcome::Failed
            } else {
                Outcome::Answered
            };
        }
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        let parts = self.parts.get_mut().unwrap_or_else(PoisonError::into_inner);
        let Some(Parts {
            permit: Some(permit),
            leases,
            cost,
            outcome,
        }) = parts.take()
        else {
            return;
        };
        match outcome {
            Outcome::Answered => leases.settle(permit.settle(cost.get())),
            Outcome::Open => permit.warn_of_drop(),
            Outcome::Failed => {}
        }
    }
}

debug_by_name!(Parts);
