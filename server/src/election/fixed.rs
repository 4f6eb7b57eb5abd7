//! No election: the only server of a node is its master from the start.
//!
//! Such a mastership has no epoch, since there is nothing to compare. A node that gets an election later begins with an
//! epoch that no client or server has seen.

use tokio::sync::watch;

use crate::election::Standing;

/// Returns the standing of a master, which never changes.
pub fn start() -> watch::Receiver<Standing> {
    watch::channel(Standing::Alone).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_server_is_the_master_at_once() {
        let standing = start().borrow().clone();
        assert!(standing.is_master());
        assert_eq!(standing.term(), None, "it has no epoch, and does not end");
    }
}
