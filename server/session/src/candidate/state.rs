//! What a candidate does at a moment, by name.

/// What a candidate does at a moment: for a metric, a status field, and people.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum State {
    /// It has no lease in etcd: nobody knows of it.
    Outside,
    /// It has a lease, and somebody else is the master, or nobody is and it cannot be.
    Watching,
    /// It asks etcd to be the master.
    Standing,
    /// It has the master's key, and decides nothing yet: etcd has yet to confirm it, or its predecessor's time
    /// is not over.
    Elected,
    /// It is the master.
    Master,
    /// It has the master's key as far as it knows, and etcd has not confirmed it in time: it decides nothing.
    Lapsed,
    /// It gives back what it has in etcd.
    Resigning,
    /// It takes part no more.
    Over,
}

impl State {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::Outside,
        Self::Watching,
        Self::Standing,
        Self::Elected,
        Self::Master,
        Self::Lapsed,
        Self::Resigning,
        Self::Over,
    ];

    /// Its name.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Outside => "outside",
            Self::Watching => "watching",
            Self::Standing => "standing",
            Self::Elected => "elected",
            Self::Master => "master",
            Self::Lapsed => "lapsed",
            Self::Resigning => "resigning",
            Self::Over => "over",
        }
    }
}
