//! The decision whether to accept the master of an epoch.
//!
//! A holder that has seen an epoch refuses masters of older ones. Their masterships are over, even if their servers do
//! not know it yet. But an operator may wipe etcd, or restore it from a backup, while no server runs that remembers the
//! epoch. Then epochs begin again at a lower number, and a holder that refused them would be cut off forever. So the
//! holder forgets the epoch when the last lease of the node has ended. From then on it uses only the grants of the
//! lower epoch.
//!
//! A holder without a valid lease forgets at once. A lease from an earlier epoch counts as valid, too, because
//! the holder cannot know whether the newer master confirmed it.
//!
//! There is one filter per node, whichever servers it has: a client has one for its node, a child server one for its
//! parent. A master without an epoch is always accepted, because there is nothing to compare.

use std::time::Duration;

/// Newest epoch seen of a node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct EpochFilter {
    newest: Option<u64>,
}

/// Refusal: the epoch is older than the newest one seen, and a lease is still valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "its mastership is out of date: its epoch is {epoch}, and {newest} was seen, which is remembered for another \
     {forgotten_in:?}, until the last lease ends"
)]
pub struct OutOfDate {
    /// Refused epoch.
    pub epoch: u64,
    /// Newest epoch that was seen.
    pub newest: u64,
    /// Time until the newest epoch is forgotten, unless a lease is renewed before.
    pub forgotten_in: Duration,
}

impl EpochFilter {
    /// Returns the newest epoch seen that is not forgotten.
    pub fn newest(&self) -> Option<u64> {
        self.newest
    }

    /// Checks the epoch of a master that answered, or that another server named. `leases_last` returns the remaining
    /// time of the last lease of the node, zero if there is none. It is called only if the epoch is older than the
    /// newest.
    ///
    /// Returns the newer epoch that was forgotten for it, if there was one.
    ///
    /// # Errors
    ///
    /// If the master is refused. Then nothing changes.
    pub fn accept(
        &mut self,
        epoch: u64,
        leases_last: impl FnOnce() -> Duration,
    ) -> Result<Option<u64>, OutOfDate> {
        let newer = self.newest.filter(|newest| *newest > epoch);
        if let Some(newest) = newer {
            let forgotten_in = leases_last();
            if !forgotten_in.is_zero() {
                return Err(OutOfDate {
                    epoch,
                    newest,
                    forgotten_in,
                });
            }
        }
        self.newest = Some(epoch);
        Ok(newer)
    }
}

#[cfg(test)]
mod tests;
