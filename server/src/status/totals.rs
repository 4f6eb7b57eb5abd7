//! Sums over all resources of a server, for its status, its pages and its metrics.
//!
//! They are taken a few resources at a time, so that no request waits long. A server that holds so many that this
//! takes several looks keeps the sums for a second: who asks for page after page does not have all resources
//! walked for each of them.

use std::sync::PoisonError;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::totals::Totals;
use doorward_engine::snapshot::ResourceSnapshot;
use doorward_engine::time::Time;

use crate::status::Board;

/// Resources that are looked at while requests wait.
const RESOURCES_PER_LOOK: usize = 256;

/// How long sums are kept.
const KEPT: Duration = Duration::from_secs(1);

/// Sums that are kept, and when they were taken.
pub(super) type Kept = Option<(Time, Totals)>;

impl Board {
    /// Sums over all resources: of this moment if they are few, else no more than a second old.
    pub fn totals(&self) -> Totals {
        let node = self.node();
        let look = |after: Option<&ResourceId>| {
            node.read(|node, now| (node.totals_after(after, RESOURCES_PER_LOOK, now), now))
        };
        let ((mut totals, mut next), now) = look(None);
        if next.is_none() {
            return totals;
        }
        // Whoever asks meanwhile waits for these sums, and takes none of his own.
        let mut kept = self
            .kept_totals()
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some((at, totals)) = *kept
            && now.since(at) < KEPT
        {
            return totals;
        }
        while let Some(after) = next {
            let ((more, last), _) = look(Some(&after));
            totals.add(&more);
            next = last;
        }
        *kept = Some((now, totals));
        totals
    }

    /// The first so many resources, a few of them at a time.
    pub fn snapshots(&self, max: usize) -> Vec<ResourceSnapshot> {
        let mut seen: Vec<ResourceSnapshot> = Vec::new();
        loop {
            let look = max
                .saturating_sub(seen.len())
                .min(super::RESOURCES_PER_LOOK);
            let after = seen.last().map(|it| it.resource.clone());
            let more = self
                .node()
                .read(|node, now| node.snapshots_after(after.as_ref(), look, now));
            let is_last = more.len() < look || look == 0;
            seen.extend(more);
            if is_last {
                return seen;
            }
        }
    }
}
