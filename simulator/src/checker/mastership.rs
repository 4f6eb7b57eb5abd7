//! Whether only masters decide: every answer of a server is one of the only master of its node, and
//! in its term.

use doorward_engine::time::Time;

use crate::planted::{self, Blunt};
use crate::recording::Checker;

/// What can be said of a server of a node, by its own clock.
#[derive(Clone, Copy, Debug)]
pub(crate) struct MasterClaim {
    /// Which.
    pub(crate) term: u64,
    /// It is a second process under the name of another one, of which it does not know.
    pub(crate) is_twin: bool,
    /// Until when a renewal of its lease in etcd lets it decide: one that has arrived there, by when it was sent.
    /// None: its node has no election.
    pub(crate) may_lead_until: Option<Time>,
    /// It takes itself for the master.
    pub(crate) is_master: bool,
}

/// What was decided by servers that may not.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct MastershipChecker {
    answers: f64,
    first: Option<Time>,
}

/// Whether a server may decide, by what can be said of all servers of its node: as long as its lease in etcd
/// allows, and if nobody else takes itself for the master.
pub(crate) fn may_decide(
    term: u64,
    claims: impl Iterator<Item = MasterClaim>,
    local: Time,
) -> bool {
    let (mut has_lease, mut has_rival, mut is_twin) = (false, false, false);
    for claim in claims {
        if claim.term == term {
            is_twin = claim.is_twin;
            has_lease = claim.may_lead_until.is_none_or(|until| local < until);
        } else if !claim.is_twin && claim.may_lead_until.is_some() {
            has_rival |= claim.is_master;
        }
    }
    has_lease |= planted::is(Blunt::MastershipByBeliefOnly);
    has_rival &= !planted::is(Blunt::MastershipByLeaseOnly);
    is_twin || has_lease && !has_rival
}

impl MastershipChecker {
    /// A server that is not the master, or not any more, has granted something.
    pub(crate) fn note(&mut self, now: Time) {
        if planted::sees(Checker::Mastership, now) {
            self.answers += 1.0;
            self.first.get_or_insert(now);
        }
    }

    /// How often that was.
    pub(super) fn answers(self) -> f64 {
        self.answers
    }

    /// When it was first.
    pub(super) fn first(self) -> Option<Time> {
        self.first
    }
}
