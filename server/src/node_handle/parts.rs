//! Calls of the node that are done a part at a time: the lock is given back after each part, and the thread after some
//! parts. So nobody waits long for a request of a thousand resources but who sent it.

use doorward_engine::node::parts::InParts;

use crate::node_handle::NodeHandle;

/// Parts that are done before the thread is given to other calls: some tenths of a millisecond. On a busy server it
/// comes back after all of them, so to give it away after each part would make long calls last for seconds.
const PARTS_AT_ONCE: usize = 8;

impl NodeHandle {
    /// Does a call part by part, and lets other calls in between, also those that this thread serves. If it is given up in
    /// between, it has done what it has done.
    pub async fn change_in_parts<C: InParts>(&self, mut call: C) -> C::Answer {
        loop {
            for _ in 0..PARTS_AT_ONCE {
                if let Some(answer) = self.change(|node, now| call.next_part(node, now)) {
                    return answer;
                }
            }
            tokio::task::yield_now().await;
        }
    }
}
