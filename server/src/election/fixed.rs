//! No election: the only server of a node is its master from the start.
//!
//! The epoch must grow with every start of the process, for nobody goes back to an older one: it
//! is the wall clock at the start, in milliseconds. Should the wall clock have been set back
//! between two starts, holders that saw the later epoch wait until it is passed or they restart.

use doorward_engine::node::mastership::Mastership;
use tokio::sync::watch;

use crate::clock;

/// Master at once, for ever.
pub fn start() -> watch::Receiver<Mastership> {
    let epoch = u64::try_from(clock::wall().as_millis()).unwrap_or(u64::MAX);
    watch::channel(Mastership::Master { epoch }).1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_server_is_the_master_at_once() {
        assert!(start().borrow().is_master());
    }
}
