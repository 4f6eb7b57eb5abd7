//! Learning mode in words: that a resource is in it, for how long, and what to do about it.
//!
//! Who has nothing gets nothing meanwhile, which looks like a fault to anybody who is not told.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::Node;
use doorward_engine::time::Time;
use tracing::info;

use crate::status::millis;
use crate::web::figures::span;

/// What a person can do about it. `is_root`: the templates that say how long to learn are this node's.
const fn advice(is_root: bool) -> &'static str {
    if is_root {
        "It ends by itself. If more than the capacity may be in use for a lease length, or if nobody held \
         anything before, set learning_mode_duration: 0s in the template to end it now."
    } else {
        "It ends by itself. How long it lasts, the templates of the root say."
    }
}

/// What is told of a resource that is in learning mode for so long.
pub fn sentence(left: Duration, is_root: bool) -> String {
    format!(
        "learning mode, {} left: holders keep what they say they have, and newcomers wait. {}",
        span(millis(left)),
        advice(is_root)
    )
}

/// For how long a resource still is in learning mode. None: it is not, or nobody holds anything of it.
pub(crate) fn left(node: &Node, resource: &ResourceId, now: Time) -> Option<Duration> {
    node.resource_snapshot(resource, now)?.learning_remaining
}

/// A line in the log for a resource that begins to learn. That it ends is told by the node.
pub(crate) fn log_beginning(resource: &ResourceId, left: Duration) {
    let lasts = span(millis(left));
    info!(%resource, lasts, "learning mode began: holders keep what they say they have, newcomers wait");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_says_for_how_long_and_what_to_do() {
        let root = sentence(Duration::from_secs(41), true);
        assert!(root.starts_with("learning mode, 41 s left: "), "{root}");
        assert!(root.contains("learning_mode_duration: 0s"), "{root}");
        let below = sentence(Duration::from_millis(900), false);
        assert!(below.starts_with("learning mode, 900 ms left"), "{below}");
        assert!(below.contains("templates of the root"), "{below}");
    }
}
