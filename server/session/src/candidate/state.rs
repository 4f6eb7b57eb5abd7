//! The states of a candidate, by name.

/// The state of a candidate, for metrics, the status and logs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CandidateState {
    /// It has no lease in etcd yet.
    Outside,
    /// It has a lease. Another server is the master, or there is none and this server is not able to be it.
    Watching,
    /// It asks etcd for the mastership.
    Standing,
    /// It has the master's key, but decides nothing yet: etcd has not confirmed it, or its predecessor may still act as
    /// the master.
    Elected,
    /// It is the master.
    Master,
    /// It has the master's key as far as it knows, but etcd has not confirmed it in time. It decides nothing.
    Lapsed,
    /// It gives back its lease and keys in etcd.
    Resigning,
    /// It no longer takes part.
    Over,
}

impl CandidateState {
    /// All states.
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

    /// Returns the name.
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
