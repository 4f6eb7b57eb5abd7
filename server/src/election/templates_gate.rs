//! The gate that new templates pass before they are in force.
//!
//! In a root with an election, the master tells in etcd how long leases last before templates with other lease lengths
//! come into force ([`doorward_session::candidate::older_leases`]). So the reader of templates passes them to this gate
//! and waits. In other servers the gate is open.

use std::fmt;

use doorward_engine::node::reload::PreparedTemplates;
use tokio::sync::{mpsc, oneshot};

/// Largest number of changes that wait at the gate.
const CHANGES_MAX: usize = 4;

/// The gate for new templates.
#[derive(Clone, Debug)]
pub struct TemplatesGate {
    /// Way to the candidate that opens the gate. None: the gate is open.
    changes: Option<mpsc::Sender<GatedTemplates>>,
}

/// New templates, and the function that brings them into force.
pub(super) struct GatedTemplates {
    pub(super) prepared: PreparedTemplates,
    apply: Box<dyn FnOnce(PreparedTemplates) + Send>,
    done: oneshot::Sender<()>,
}

impl fmt::Debug for GatedTemplates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatedTemplates").finish_non_exhaustive()
    }
}

impl TemplatesGate {
    /// Returns an open gate.
    pub const fn open() -> Self {
        Self { changes: None }
    }

    /// Returns a gate, and the receiver of the templates that wait at it.
    pub(super) fn guarded() -> (Self, mpsc::Receiver<GatedTemplates>) {
        let (sender, changes) = mpsc::channel(CHANGES_MAX);
        let sender = Some(sender);
        (Self { changes: sender }, changes)
    }

    /// Waits until templates may come into force, and calls `apply` at that moment. Returns whether they are in force.
    /// They never are if this server stops meanwhile.
    pub async fn pass(
        &self,
        prepared: PreparedTemplates,
        apply: impl FnOnce(PreparedTemplates) + Send + 'static,
    ) -> bool {
        let Some(changes) = &self.changes else {
            apply(prepared);
            return true;
        };
        let (done, is_done) = oneshot::channel();
        let change = GatedTemplates {
            prepared,
            apply: Box::new(apply),
            done,
        };
        // If no candidate takes or answers the change, the election is over, and this server stops.
        changes.send(change).await.is_ok() && is_done.await.is_ok()
    }
}

impl GatedTemplates {
    /// Brings the templates into force.
    pub(super) fn apply(self) {
        (self.apply)(self.prepared);
        // The caller may have given up.
        let _ = self.done.send(());
    }
}
