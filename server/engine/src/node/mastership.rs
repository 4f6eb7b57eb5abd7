//! Mastership as state: who of a node's servers decides.
//!
//! Only the master decides. Winning and losing it both drop all that is known of leases: the new
//! master learns it from the holders.

/// Which server of the node is the master, as far as this one knows.
#[derive(Clone, Debug, PartialEq, Eq, Default)]
pub enum Mastership {
    /// This one.
    Master {
        /// Grows with every change of mastership.
        epoch: u64,
    },
    /// Another one.
    Follower {
        /// Where the master is.
        master_address: String,
        /// Its epoch, if it is known.
        epoch: Option<u64>,
    },
    /// None, or none is known.
    #[default]
    Unknown,
}

impl Mastership {
    /// Whether it is this server.
    pub const fn is_master(&self) -> bool {
        matches!(self, Self::Master { .. })
    }
}

/// What came of a request: only the master serves it. Not being the master is no error.
#[derive(Clone, Debug, PartialEq)]
pub enum Outcome<T> {
    /// Served.
    Served(T),
    /// Go there instead. Never [`Mastership::Master`].
    NotMaster(Mastership),
}
