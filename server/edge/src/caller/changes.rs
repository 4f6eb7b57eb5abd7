//! Resources of a stream whose assignments may have changed.

use std::collections::BTreeSet;

use parking_lot::Mutex;
use tokio::sync::Notify;

/// Resources whose assignment to a stream may have changed.
#[derive(Debug, Default)]
pub struct Changes {
    resources: Mutex<BTreeSet<Box<str>>>,
    wake: Notify,
}

impl Changes {
    pub(super) fn add(&self, resource: &str) {
        let mut resources = self.resources.lock();
        resources.insert(resource.into());
        self.wake.notify_one();
    }

    /// Takes the resources out.
    pub(crate) fn take(&self) -> BTreeSet<Box<str>> {
        let mut resources = self.resources.lock();
        std::mem::take(&mut *resources)
    }

    /// Waits for a change. Cancel safe.
    pub(crate) async fn changed(&self) {
        self.wake.notified().await;
    }
}
