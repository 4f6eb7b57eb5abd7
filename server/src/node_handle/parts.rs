//! Calls of the node that are done a part at a time: the lock is given back after each part, so that nobody waits for
//! a request of a thousand resources but who sent it.

use doorward_engine::node::Node;
use doorward_engine::node::parts::InParts;
use doorward_engine::time::Time;

use crate::node_handle::NodeHandle;

impl NodeHandle {
    /// Does a call part by part, and lets other calls in between, also those that this thread serves.
    pub async fn change_in_parts<C: InParts>(&self, mut call: C) -> C::Answer {
        loop {
            if let Some(answer) = self.change(|node, now| call.next_part(node, now)) {
                return answer;
            }
            tokio::task::yield_now().await;
        }
    }

    /// The same where nothing can be awaited.
    pub fn change_part_by_part<C: InParts>(&self, call: C) -> C::Answer {
        self.change_part_by_part_with(call, |call, node, now| call.next_part(node, now))
    }

    /// The same, with something else that is done beside each part.
    pub fn change_part_by_part_with<C: InParts>(
        &self,
        mut call: C,
        mut next_part: impl FnMut(&mut C, &mut Node, Time) -> Option<C::Answer>,
    ) -> C::Answer {
        loop {
            if let Some(answer) = self.change(|node, now| next_part(&mut call, node, now)) {
                return answer;
            }
            self.lock.let_others_go_first();
        }
    }
}
