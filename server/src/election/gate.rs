//! New templates, on their way to be in force.
//!
//! The master of a root with an election tells in etcd how long leases last before templates count
//! that give other lengths ([`doorward_session::candidate::older_leases`]). Whoever has new templates hands them in here,
//! and waits. Everybody else's count at once.

use std::fmt;

use doorward_engine::template::Templates;
use tokio::sync::{mpsc, oneshot};

/// How many changes may be handed in before the first one is looked at.
const CHANGES_MAX: usize = 4;

/// Where new templates are handed in.
#[derive(Clone, Debug)]
pub struct Gate {
    /// Who opens it. None: it stands open.
    changes: Option<mpsc::Sender<Change>>,
}

/// New templates, and what brings them into force.
pub(super) struct Change {
    pub(super) templates: Templates,
    apply: Box<dyn FnOnce(Templates) + Send>,
    done: oneshot::Sender<()>,
}

impl fmt::Debug for Change {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Change").finish_non_exhaustive()
    }
}

impl Gate {
    /// One that stands open.
    pub const fn open() -> Self {
        Self { changes: None }
    }

    /// One that somebody opens, who gets what is handed in.
    pub(super) fn guarded() -> (Self, mpsc::Receiver<Change>) {
        let (sender, changes) = mpsc::channel(CHANGES_MAX);
        let sender = Some(sender);
        (Self { changes: sender }, changes)
    }

    /// Waits until templates may count, and lets `apply` bring them into force at that moment. If this
    /// server stops meanwhile, they never are.
    pub async fn pass(&self, templates: Templates, apply: impl FnOnce(Templates) + Send + 'static) {
        let Some(changes) = &self.changes else {
            return apply(templates);
        };
        let (done, is_done) = oneshot::channel();
        let change = Change {
            templates,
            apply: Box::new(apply),
            done,
        };
        // If nobody takes it, or answers, the election is over, and this server with it.
        if changes.send(change).await.is_ok() {
            let _ = is_done.await;
        }
    }
}

impl Change {
    /// They are in force from now on.
    pub(super) fn apply(self) {
        (self.apply)(self.templates);
        // Who handed it in may have given up.
        let _ = self.done.send(());
    }
}
