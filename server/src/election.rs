//! Who is the master of the node.
//!
//! Servers of the same node elect one that decides; the others send callers to it. An election
//! tells the present [`Mastership`], and every change of it, through a watch channel. Only
//! [`fixed`] exists so far: a node with a single server needs no election.

pub mod fixed;

use doorward_engine::node::mastership::Mastership;
use tokio::sync::watch;

/// How the master is found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Election {
    /// This server is the only one of its node, and always the master.
    #[default]
    Fixed,
}

impl Election {
    /// Takes part. The channel closes when nothing will change any more.
    pub fn start(&self) -> watch::Receiver<Mastership> {
        match self {
            Self::Fixed => fixed::start(),
        }
    }
}
