//! The states of a candidate, by name.

use crate::named;

named! {
    /// The state of a candidate, for metrics, the status and logs.
    #[derive(PartialOrd, Ord, Hash)]
    CandidateState {
        /// It has no lease in etcd yet.
        Outside = "outside",
        /// It has a lease. Another server is the master, or there is none and this server is not able to be it.
        Watching = "watching",
        /// It asks etcd for the mastership.
        Standing = "standing",
        /// It has the master's key, but decides nothing yet: etcd has not confirmed it, or its predecessor may still act
        /// as the master.
        Elected = "elected",
        /// It is the master.
        Master = "master",
        /// It has the master's key as far as it knows, but etcd has not confirmed it in time. It decides nothing.
        Lapsed = "lapsed",
        /// It gives back its lease and keys in etcd.
        Resigning = "resigning",
        /// It no longer takes part.
        Over = "over",
    }
}
