//! No election: the only server of a node is its master from the start.
//!
//! It has no epoch: there is nothing to compare, and a node that gets an election later begins with
//! one that nobody has seen.

use tokio::sync::watch;

use crate::election::Standing;

/// Master at once, for ever.
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
