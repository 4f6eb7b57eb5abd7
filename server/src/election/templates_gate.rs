//! New templates, on their way to be in force.
//!
//! The master of a root with an election tells in etcd how long leases last before templates count
//! that give other lengths ([`doorward_session::candidate::older_leases`]). Whoever has new templates hands them in here,
//! and waits. Everybody else's count at once.

use std::fmt;

use doorward_engine::node::reload::PreparedTemplates;
use tokio::sync::{mpsc, oneshot};

/// How many changes may be handed in before the first one is looked at.
const CHANGES_MAX: usize = 4;

/// Where new templates are handed in.
#[derive(Clone, Debug)]
pub struct TemplatesGate {
    /// Who opens it. None: it stands open.
    changes: Option<mpsc::Sender<GatedTemplates>>,
}

/// New templates, and what brings them into force.
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
    /// One that stands open.
    pub const fn open() -> Self {
        Self { changes: None }
    }

    /// One that somebody opens, who gets what is handed in.
    pub(super) fn guarded() -> (Self, mpsc::Receiver<GatedTemplates>) {
        let (sender, changes) = mpsc::channel(CHANGES_MAX);
        let sender = Some(sender);
        (Self { changes: sender }, changes)
    }

    /// Waits until templates may count, and lets `apply` bring them into force at that moment. Returns whether they
    /// are: if this server stops meanwhile, they never are.
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
        // If nobody takes it, or answers, the election is over, and this server with it.
        changes.send(change).await.is_ok() && is_done.await.is_ok()
    }
}

impl GatedTemplates {
    /// They are in force from now on.
    pub(super) fn apply(self) {
        (self.apply)(self.prepared);
        // Who handed it in may have given up.
        let _ = self.done.send(());
    }
}
