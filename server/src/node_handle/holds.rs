//! Bounds each hold of the node's lock. A message may name a thousand resources, and a thousand leases may end at once.
//! The node handles them one by one, and the lock is given back whenever it was held for [`HOLD`].

use std::task::Poll;
use std::time::Duration;

use doorward_engine::node::Node;
use doorward_engine::time::Time;

use crate::node_handle::NodeHandle;

/// After so long, no further resource is handled before others have had the lock: the engine takes at most as long again for
/// one.
const HOLD: Duration = Duration::from_millis(1);

impl NodeHandle {
    /// Calls `next` until it is ready, for as long as the lock may be held.
    pub fn hold<T>(&self, mut next: impl FnMut(&mut Node, Time) -> Poll<T>) -> Poll<T> {
        self.change(|node, now| {
            loop {
                let answer = next(node, now);
                if answer.is_ready() || self.clock.now().since(now) >= HOLD {
                    return answer;
                }
            }
        })
    }

    /// Calls `next` until it is ready, and lets other calls in between, also those that this thread serves. A call that is
    /// given up in between has done what it has done.
    pub async fn finish<T>(&self, mut next: impl FnMut(&mut Node, Time) -> Poll<T>) -> T {
        loop {
            if let Poll::Ready(answer) = self.hold(&mut next) {
                return answer;
            }
            tokio::task::yield_now().await;
            self.lock.let_others_go_first();
        }
    }
}
