//! Checks that only masters decide: every decision must come from the only master of the node,
//! within its term.

use doorward_engine::time::Time;

/// Claim of a server of a node to be master, by its own clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MasterClaim {
    /// Number of the server.
    pub(crate) term: u64,
    /// True for a second process under the name of another, which does not know of that.
    pub(crate) is_twin: bool,
    /// End of the time in which its lease in etcd lets it decide. It counts renewals that reached
    /// etcd, from when they were sent. `None`: the node has no election.
    pub(crate) may_lead_until: Option<Time>,
    /// Whether it believes to be the master.
    pub(crate) is_master: bool,
}

/// Decisions by servers that were not master.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MastershipChecker {
    pub(super) answers: f64,
    pub(super) first: Option<Time>,
}

/// Returns whether a server may decide, by the claims of all servers of its node: its lease in etcd
/// must be valid, and no other server may believe to be master.
pub(crate) fn may_decide(term: u64, claims: impl Iterator<Item = MasterClaim>, now: Time) -> bool {
    let (mut has_lease, mut has_rival, mut is_twin) = (false, false, false);
    for claim in claims {
        if claim.term == term {
            is_twin = claim.is_twin;
            has_lease = claim.may_lead_until.is_none_or(|until| now < until);
        } else if !claim.is_twin && claim.may_lead_until.is_some() {
            has_rival |= claim.is_master;
        }
    }
    is_twin || has_lease && !has_rival
}

impl MastershipChecker {
    /// Notes a grant by a server that is not the master, or no longer.
    pub(crate) fn note(&mut self, now: Time) {
        self.answers += 1.0;
        self.first.get_or_insert(now);
    }
}
