//! Bounds each hold of the node's lock. A message may name a thousand resources, and a thousand leases may end at once.
//! The node handles them one by one, and releases the lock after each [`HOLD`].

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;
use std::time::Duration;

use doorward_engine::node::Node;
use doorward_engine::time::Time;
use doorward_replica::Replica;

use crate::clock;
use crate::replica_handle::{ReplicaHandle, Shared};

/// Time after which the node handles no further resource before other threads have had the lock. The engine takes at
/// most as long again for one resource.
const HOLD: Duration = Duration::from_millis(1);

impl ReplicaHandle {
    /// Calls `next` until it is ready, and lets other calls run in between, also those of this thread. If a caller
    /// gives up in between, the finished steps stay done.
    pub async fn finish<T>(&self, mut next: impl FnMut(&mut Node, Time) -> Poll<T>) -> T {
        self.finish_shared(|shared, now| shared.replica.change(&mut next, now))
            .await
    }

    /// Does work of the replica until the part that the caller waits for is done, or nothing is due. The timer's task
    /// does the rest.
    pub async fn work_until(&self, is_done: impl Fn(&Replica) -> bool) {
        self.finish_shared(|shared, now| match is_done(&shared.replica) {
            true => Poll::Ready(()),
            false => self.advance(shared, now),
        })
        .await;
    }

    /// Does the next step of the replica's work. A panic starts the node anew, and does not end the task that happens to
    /// do the step.
    pub(super) fn advance(&self, shared: &mut Shared, now: Time) -> Poll<()> {
        let step = AssertUnwindSafe(|| shared.replica.advance(now, clock::wall()));
        catch_unwind(step).unwrap_or_else(|_| {
            self.start_anew(shared);
            Poll::Pending
        })
    }

    pub(super) fn hold_shared<T>(
        &self,
        mut next: impl FnMut(&mut Shared, Time) -> Poll<T>,
    ) -> Poll<T> {
        self.change_shared(|shared, now| {
            loop {
                let answer = next(shared, now);
                if answer.is_ready() || self.clock.now().since(now) >= HOLD {
                    return answer;
                }
            }
        })
    }

    pub(super) async fn finish_shared<T>(
        &self,
        mut next: impl FnMut(&mut Shared, Time) -> Poll<T>,
    ) -> T {
        loop {
            if let Poll::Ready(answer) = self.hold_shared(&mut next) {
                return answer;
            }
            tokio::task::yield_now().await;
            self.lock.let_others_go_first();
        }
    }
}
